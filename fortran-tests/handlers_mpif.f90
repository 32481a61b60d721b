! Error handlers that are subroutines through mpif.h, see handlers.inc. MPI-4.1 section 9.3.
! ranks: 1 2

#define MPIF
#define PROGRAM_NAME 'handlers_mpif'
#include "handlers.inc"
