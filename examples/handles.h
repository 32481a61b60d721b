/* Memory handles of libfompi, by names that are weak: a program is linked with the MPI alone and started by
 * fompirun. In C and C++. */
#ifndef HANDLES_H
#define HANDLES_H

#include "../include/fompi_rma.h"

#pragma weak FOMPI_Mem_expose
#pragma weak FOMPI_Mem_allocate
#pragma weak FOMPI_Mem_pack
#pragma weak FOMPI_Mem_unpack
#pragma weak FOMPI_Mem_query
#pragma weak FOMPI_Mem_withdraw
#pragma weak FOMPI_Mem_release
#pragma weak FOMPI_Mem_put
#pragma weak FOMPI_Mem_get
#pragma weak FOMPI_Mem_accumulate
#pragma weak FOMPI_Mem_fetch_and_op
#pragma weak FOMPI_Mem_compare_and_swap
#pragma weak FOMPI_Xfer
#pragma weak FOMPI_Complete
#pragma weak FOMPI_Complete_collective
#pragma weak FOMPI_Win_order
#pragma weak FOMPI_Win_dup

/* Whether this process has them. */
static inline int has_handles(void) { return FOMPI_Mem_allocate != NULL; }

#endif
