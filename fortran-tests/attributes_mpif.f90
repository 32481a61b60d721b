! Attributes that C and Fortran set and get through mpif.h, see attributes.inc. MPI-4.1 section
! 19.3.7.
! ranks: 1 2
! c: attributes

#define MPIF
#define PROGRAM_NAME 'attributes_mpif'
#include "attributes.inc"
