! Error handlers that are subroutines through the module mpi, see handlers.inc. MPI-4.1 section
! 9.3.
! ranks: 1 2

#define MODULE
#define PROGRAM_NAME 'handlers_mpi'
#include "handlers.inc"
