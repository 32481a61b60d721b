! Accumulates on the types of Fortran through mpif.h, see types.inc. MPI-4.1 section 6.9.2.
! ranks: 1 2

#define MPIF
#define PROGRAM_NAME 'types_mpif'
#include "types.inc"
