! Attributes that C and Fortran set and get through the module mpi, see attributes.inc. MPI-4.1
! section 19.3.7.
! ranks: 1 2
! c: attributes

#define MODULE
#define PROGRAM_NAME 'attributes_mpi'
#include "attributes.inc"
