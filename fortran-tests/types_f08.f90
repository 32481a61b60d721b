! Accumulates on the types of Fortran through the module mpi_f08, see types.inc. MPI-4.1 section
! 6.9.2.
! ranks: 1 2

#define F08
#define PROGRAM_NAME 'types_f08'
#include "types.inc"
