! What may be an origin through mpif.h, see buffers.inc. MPI-4.1 section 19.1.
! ranks: 1 2

#define MPIF
#define PROGRAM_NAME 'buffers_mpif'
#include "buffers.inc"
