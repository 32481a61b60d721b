! Attributes with keyvals of the program through the module mpi_f08, see keyvals.inc. MPI-4.1
! section 7.7.3.
! ranks: 1 2

#define F08
#define PROGRAM_NAME 'keyvals_f08'
#include "keyvals.inc"
