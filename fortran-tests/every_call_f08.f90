! Every one-sided call through the module mpi_f08, see every_call.inc. MPI-4.1 chapter 12.
! ranks: 1 2 4
! between nodes: shared windows are left to the host MPI

#define F08
#define PROGRAM_NAME 'every_call_f08'
#include "every_call.inc"
