! Attributes with keyvals of the program through the module mpi, see keyvals.inc. MPI-4.1 section
! 7.7.3.
! ranks: 1 2

#define MODULE
#define PROGRAM_NAME 'keyvals_mpi'
#include "keyvals.inc"
