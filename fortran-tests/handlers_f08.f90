! Error handlers that are subroutines through the module mpi_f08, see handlers.inc. MPI-4.1
! section 9.3.
! ranks: 1 2

#define F08
#define PROGRAM_NAME 'handlers_f08'
#include "handlers.inc"
