! Attributes that C and Fortran set and get through the module mpi_f08, see attributes.inc.
! MPI-4.1 section 19.3.7.
! ranks: 1 2
! c: attributes

#define F08
#define PROGRAM_NAME 'attributes_f08'
#include "attributes.inc"
