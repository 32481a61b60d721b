! Accumulates on the types of Fortran through the module mpi, see types.inc. MPI-4.1 section 6.9.2.
! ranks: 1 2

#define MODULE
#define PROGRAM_NAME 'types_mpi'
#include "types.inc"
