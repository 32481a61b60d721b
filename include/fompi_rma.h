/* libfompi: memory handles, by which a process accesses memory of another one without an epoch, and
 * transfers that say what they want. Written by scripts/dev/headers. */

#ifndef FOMPI_RMA_H
#define FOMPI_RMA_H

#include <mpi.h>

/* A handle of memory of one process of a window of MPI_Win_create_dynamic. */
typedef const struct fompi_mem *FOMPI_Mem;
#define FOMPI_MEM_NULL ((FOMPI_Mem)0)
/* Bytes of a packed handle. */
#define FOMPI_MEM_BYTES 128
/* The rank of FOMPI_Complete that stands for all. */
#define FOMPI_ALL_RANKS (-3)

/* Attributes of a transfer, to be added up. */
/* It takes effect behind all earlier transfers of this process to the same rank, by handles of its window or
 * on the window itself. */
#define FOMPI_ORDERED 1
/* It is complete at the target when it is complete; the call waits for that. */
#define FOMPI_REMOTE 2
/* As a whole it is exclusive with other puts and gets with this attribute, and with accumulates of several
 * elements, on memory of the same rank and window. For puts and gets. */
#define FOMPI_ATOMIC 4
/* It is complete when the call returns. */
#define FOMPI_BLOCKING 8
/* It adds 1 to counter `index` of its target behind itself, as FOMPI_Put_notify (fompi_notify.h); up to
 * 8,388,607. */
#define FOMPI_NOTIFY(index) (16 | (index) << 8)

/* Kinds of FOMPI_Xfer. */
#define FOMPI_PUT 0
#define FOMPI_GET 1
#define FOMPI_ACCUMULATE 2
#define FOMPI_GET_ACCUMULATE 3
#define FOMPI_COMPARE_AND_SWAP 4

/* The buffers of this process in FOMPI_Xfer. A kind uses some of them; the others are NULL. */
typedef struct fompi_buffers {
  /* what is sent: of a put, an accumulate, or the new value of a compare-and-swap */
  const void *origin;
  /* its elements */
  MPI_Count origin_count;
  /* their type */
  MPI_Datatype origin_type;
  /* what comes back: of a get, a get-accumulate or a compare-and-swap */
  void *result;
  /* its elements */
  MPI_Count result_count;
  /* their type */
  MPI_Datatype result_type;
  /* the value to compare with, of a compare-and-swap */
  const void *compare;
} fompi_buffers;

#ifdef __cplusplus
extern "C" {
#endif /* __cplusplus */

int FOMPI_Mem_expose(void *base, MPI_Aint size, MPI_Info info, MPI_Win win, FOMPI_Mem *mem);

int FOMPI_Mem_allocate(MPI_Aint size, MPI_Info info, MPI_Win win, void *baseptr, FOMPI_Mem *mem);

int FOMPI_Mem_pack(FOMPI_Mem mem, void *packed);

int FOMPI_Mem_unpack(const void *packed, MPI_Win win, FOMPI_Mem *mem);

int FOMPI_Mem_query(FOMPI_Mem mem, int *rank, MPI_Aint *size, void *baseptr);

int FOMPI_Mem_withdraw(FOMPI_Mem *mem);

int FOMPI_Mem_release(FOMPI_Mem *mem);

int FOMPI_Complete(int rank, MPI_Win win);

int FOMPI_Mem_put(const void *origin,
                  MPI_Count count,
                  MPI_Datatype datatype,
                  FOMPI_Mem mem,
                  MPI_Aint disp,
                  int attributes);

int FOMPI_Mem_get(void *origin,
                  MPI_Count count,
                  MPI_Datatype datatype,
                  FOMPI_Mem mem,
                  MPI_Aint disp,
                  int attributes);

int FOMPI_Mem_accumulate(const void *origin,
                         MPI_Count count,
                         MPI_Datatype datatype,
                         FOMPI_Mem mem,
                         MPI_Aint disp,
                         MPI_Op op,
                         int attributes);

int FOMPI_Mem_fetch_and_op(const void *origin,
                           void *result,
                           MPI_Datatype datatype,
                           FOMPI_Mem mem,
                           MPI_Aint disp,
                           MPI_Op op,
                           int attributes);

int FOMPI_Mem_compare_and_swap(const void *origin,
                               const void *compare,
                               void *result,
                               MPI_Datatype datatype,
                               FOMPI_Mem mem,
                               MPI_Aint disp,
                               int attributes);

int FOMPI_Xfer(int kind,
               MPI_Op op,
               const struct fompi_buffers *buffers,
               FOMPI_Mem mem,
               MPI_Aint disp,
               MPI_Count count,
               MPI_Datatype datatype,
               int attributes,
               MPI_Request *request);

#ifdef __cplusplus
} /* extern "C" */
#endif /* __cplusplus */

#endif /* FOMPI_RMA_H */
