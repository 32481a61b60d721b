! Attributes with keyvals of the program through mpif.h, see keyvals.inc. MPI-4.1 section 7.7.3.
! ranks: 1 2

#define MPIF
#define PROGRAM_NAME 'keyvals_mpif'
#include "keyvals.inc"
