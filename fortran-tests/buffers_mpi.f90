! What may be an origin through the module mpi, see buffers.inc. MPI-4.1 section 19.1.
! ranks: 1 2

#define MODULE
#define PROGRAM_NAME 'buffers_mpi'
#include "buffers.inc"
