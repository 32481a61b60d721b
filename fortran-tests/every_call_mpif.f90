! Every one-sided call through mpif.h, see every_call.inc. MPI-4.1 chapter 12.
! ranks: 1 2 4
! between nodes: shared windows are left to the host MPI

#define MPIF
#define PROGRAM_NAME 'every_call_mpif'
#include "every_call.inc"
