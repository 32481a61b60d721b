! What may be an origin through the module mpi_f08, see buffers.inc. MPI-4.1 section 19.1.
! ranks: 1 2

#define F08
#define PROGRAM_NAME 'buffers_f08'
#include "buffers.inc"
