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
/* The rank of FOMPI_Complete, FOMPI_Win_order and FOMPI_Win_nflush that stands for all. */
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

/* Makes a duplicate of a window (issue 113 of the MPI Forum): another window over the same
 * memory, whose operations complete apart from those of the window and of other duplicates.
 * Local. An access epoch for all ranks is open on it from now until MPI_Win_free, which is
 * local, too, and completes its operations: the calls for communication and MPI_Win_flush and
 * its like are legal, and those that begin or end epochs are errors. It asks for no lock, as
 * MPI_Win_lock_all with MPI_MODE_NOCHECK; accumulates are atomic with those on the window.
 * Between nodes a flush waits only for ranks to which this duplicate has sent something since
 * its last one; the operations of one process on one rank share a connection, so it waits for
 * what went ahead to that process, too. `info`: hints, such as fompi_attributes; all but that
 * one are otherwise those of the window. The error handler is that of the window. The window
 * is freed after its duplicates. Any thread may call. Errors: MPI_ERR_WIN, MPI_ERR_INFO,
 * MPI_ERR_ARG for a null pointer, MPI_ERR_OTHER for too many windows,
 * MPI_ERR_UNSUPPORTED_OPERATION on a window of the host MPI. */
int FOMPI_Win_dup(MPI_Win win, MPI_Info info, MPI_Win *newwin);

/* Makes a window from memory handles (MPI_Win_from_memhandle of Schuchart and others): a
 * duplicate, as FOMPI_Win_dup makes one, whose target with a rank is the memory of the handle
 * that this rank has exposed. Displacements are in bytes. `count` handles of one window, one
 * at most of each rank; a rank without one is no target. The handles may be released before
 * the window is freed; when an owner withdraws its memory, accesses to it fail. Local. `info`:
 * as for FOMPI_Win_dup. Any thread may call. Errors: MPI_ERR_COUNT for a negative count,
 * MPI_ERR_ARG for a null pointer, no handle, or handles of several windows or twice of a rank;
 * MPI_ERR_INFO, MPI_ERR_OTHER for too many windows. */
int FOMPI_Win_from_mem(int count, const FOMPI_Mem *mems, MPI_Info info, MPI_Win *newwin);

/* Exposes `size` bytes from `base`, memory that this process has, to the other processes of
 * `win`, a window of MPI_Win_create_dynamic, and returns a handle of it. Local. The memory
 * need not be attached, and handles may overlap. It stays mapped until the handle is withdrawn
 * or the window freed. `info`: no keys. Cost: within a node no system call; over TCP an entry
 * of a table; over an RDMA device a registration and a round trip. Any thread may call.
 * Errors, here and below through the handler of the window: MPI_ERR_WIN, MPI_ERR_RMA_FLAVOR
 * for another window, MPI_ERR_SIZE, MPI_ERR_ARG for a null pointer, MPI_ERR_RMA_ATTACH for
 * memory of a GPU, MPI_ERR_NO_MEM, MPI_ERR_UNSUPPORTED_OPERATION for memory that is in part of
 * MPI_Alloc_mem, and on a window of the host MPI. */
int FOMPI_Mem_expose(void *base, MPI_Aint size, MPI_Info info, MPI_Win win, FOMPI_Mem *mem);

/* Allocates `size` bytes as MPI_Alloc_mem does, exposes them as FOMPI_Mem_expose does, and
 * stores their address in the pointer variable at `baseptr`. Processes of the node access them
 * by load and store. MPI_Free_mem frees them after the handle is withdrawn. `info`:
 * mpi_minimum_memory_alignment. Local; any thread may call. Errors: those of MPI_Alloc_mem and
 * FOMPI_Mem_expose. */
int FOMPI_Mem_allocate(MPI_Aint size, MPI_Info info, MPI_Win win, void *baseptr, FOMPI_Mem *mem);

/* Stores FOMPI_MEM_BYTES bytes that stand for a handle in all processes of its window: plain
 * bytes, which may be sent, put or written to a file, any number of times. A handle of
 * FOMPI_Mem_unpack may be packed, too. Local, about 0.1 us; any thread may call. Errors:
 * MPI_ERR_ARG for no handle or a null pointer. */
int FOMPI_Mem_pack(FOMPI_Mem mem, void *packed);

/* Returns a handle of the memory that FOMPI_Mem_pack has packed in a process of the window
 * `win`. Local: nothing is sent, so the memory may be withdrawn by now; an access tells. The
 * first handle of a segment of another process of the node costs two system calls. Any thread
 * may call. Errors: MPI_ERR_ARG for bytes that no process of this window has packed, which
 * includes those of another window, and for a null pointer; MPI_ERR_RMA_FLAVOR,
 * MPI_ERR_UNSUPPORTED_OPERATION on a window of the host MPI. */
int FOMPI_Mem_unpack(const void *packed, MPI_Win win, FOMPI_Mem *mem);

/* Stores the rank in the window of the process that has exposed the memory, its bytes, and in
 * the pointer variable at `baseptr` the address at which loads and stores of this process
 * reach it: NULL where none do. Loads and stores are not part of what FOMPI_Mem_withdraw waits
 * for. Null pointers are allowed. Local; any thread may call. Errors: MPI_ERR_ARG for no
 * handle. */
int FOMPI_Mem_query(FOMPI_Mem mem, int *rank, MPI_Aint *size, void *baseptr);

/* Withdraws the memory of a handle of FOMPI_Mem_expose or FOMPI_Mem_allocate, in the process
 * that called it, and stores FOMPI_MEM_NULL. When this returns, no access that began before
 * touches the memory, and none begins: a later one fails with MPI_ERR_RMA_RANGE. Waits for the
 * accesses under way, for no later ones, and not for processes that have ended. Cost: a
 * membarrier(2), some microseconds; over TCP a lock; over an RDMA device a round trip and the
 * end of a registration. Any thread may call, but no callback that the MPI runs within another
 * call. Errors: MPI_ERR_ARG for no handle, or one of FOMPI_Mem_unpack; MPI_ERR_OTHER if the
 * system refuses the barrier: then the memory stays exposed. */
int FOMPI_Mem_withdraw(FOMPI_Mem *mem);

/* Forgets a handle of FOMPI_Mem_unpack, and stores FOMPI_MEM_NULL. No other thread uses the
 * handle. Transfers that have begun are completed by FOMPI_Complete nevertheless. Local.
 * Errors: MPI_ERR_ARG for no handle, or one of FOMPI_Mem_expose or FOMPI_Mem_allocate. */
int FOMPI_Mem_release(FOMPI_Mem *mem);

/* Waits until all operations of this process on a rank of `win`, or on all for
 * FOMPI_ALL_RANKS, are done at the target: those by memory handles, and those on the window.
 * No epoch is needed. Cost: that of MPI_Win_flush or MPI_Win_flush_all. Any thread may call.
 * Errors: MPI_ERR_WIN, MPI_ERR_RANK, MPI_ERR_RMA_RANGE if a transfer between nodes has used a
 * handle that is withdrawn, MPI_ERR_OTHER if a process is lost, MPI_ERR_UNSUPPORTED_OPERATION
 * on a window of the host MPI. */
int FOMPI_Complete(int rank, MPI_Win win);

/* Transfers `count` elements of `type` from `origin` to displacement `disp`, in bytes, of the
 * memory of a handle. No epoch is needed. By stores where the memory is mapped here, by
 * process_vm into other memory of the node, by one request to another node; over an RDMA
 * device a round trip comes before. `attributes`: 0, or a sum of FOMPI_ORDERED, FOMPI_REMOTE,
 * FOMPI_ATOMIC, FOMPI_BLOCKING and FOMPI_NOTIFY. Without FOMPI_BLOCKING or FOMPI_REMOTE the
 * buffer may be in use until FOMPI_Complete. Any thread may call. Errors: MPI_ERR_ARG for no
 * handle, MPI_ERR_RMA_RANGE for bytes outside or memory that was withdrawn (between nodes by
 * the call that completes), MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_BUFFER, MPI_ERR_OTHER if the
 * owner is lost. */
int FOMPI_Mem_put(const void *origin,
                  MPI_Count count,
                  MPI_Datatype datatype,
                  FOMPI_Mem mem,
                  MPI_Aint disp,
                  int attributes);

/* Transfers `count` elements of `type` from displacement `disp`, in bytes, of the memory of a
 * handle to `origin`. Otherwise as FOMPI_Mem_put: without FOMPI_BLOCKING or FOMPI_REMOTE the
 * data may arrive as late as FOMPI_Complete. Errors: those of FOMPI_Mem_put. */
int FOMPI_Mem_get(void *origin,
                  MPI_Count count,
                  MPI_Datatype datatype,
                  FOMPI_Mem mem,
                  MPI_Aint disp,
                  int attributes);

/* Combines `count` elements of `type` at displacement `disp`, in bytes, of the memory of a
 * handle with those at `origin` by a predefined operation, as MPI_Accumulate. Atomic for each
 * element with accumulates by handles and on the window, except those of a process that holds
 * an exclusive lock. Otherwise as FOMPI_Mem_put. Errors: those of FOMPI_Mem_put, MPI_ERR_OP,
 * MPI_ERR_UNSUPPORTED_OPERATION with FOMPI_ATOMIC. */
int FOMPI_Mem_accumulate(const void *origin,
                         MPI_Count count,
                         MPI_Datatype datatype,
                         FOMPI_Mem mem,
                         MPI_Aint disp,
                         MPI_Op op,
                         int attributes);

/* Adds `count` elements at `origin` times the one at `factor`, all of one type, to those at
 * displacement `disp`, in bytes, of the memory of a handle: `target += factor * origin`, the
 * accumulate of ARMCI, or daxpy. The types are MPI_INT, MPI_LONG, MPI_FLOAT, MPI_DOUBLE, the
 * complex types of C of the last two, and types of Fortran like these; integers wrap. This
 * process multiplies the elements into memory of its own, one pass and `count` elements of
 * memory, and sends a sum by FOMPI_Mem_accumulate, so it is atomic for each element as that
 * one. The buffers are free when the call returns, as with FOMPI_BLOCKING. Errors: those of
 * FOMPI_Mem_accumulate, MPI_ERR_TYPE for another type or memory of a GPU, MPI_ERR_BUFFER for a
 * null pointer as the factor, MPI_ERR_NO_MEM. */
int FOMPI_Mem_accumulate_scaled(const void *factor,
                                const void *origin,
                                MPI_Count count,
                                MPI_Datatype datatype,
                                FOMPI_Mem mem,
                                MPI_Aint disp,
                                int attributes);

/* Returns one element at displacement `disp`, in bytes, of the memory of a handle in `result`,
 * and combines it with that at `origin`, as MPI_Fetch_and_op. The result has arrived when the
 * transfer is complete, as that of FOMPI_Mem_get. Atomic as FOMPI_Mem_accumulate. Errors:
 * those of FOMPI_Mem_accumulate. */
int FOMPI_Mem_fetch_and_op(const void *origin,
                           void *result,
                           MPI_Datatype datatype,
                           FOMPI_Mem mem,
                           MPI_Aint disp,
                           MPI_Op op,
                           int attributes);

/* Returns one element at displacement `disp`, in bytes, of the memory of a handle in `result`,
 * and replaces it by that at `origin` if it equals that at `compare`, as MPI_Compare_and_swap.
 * Otherwise as FOMPI_Mem_fetch_and_op. Errors: those of FOMPI_Mem_accumulate. */
int FOMPI_Mem_compare_and_swap(const void *origin,
                               const void *compare,
                               void *result,
                               MPI_Datatype datatype,
                               FOMPI_Mem mem,
                               MPI_Aint disp,
                               int attributes);

/* Carries out one transfer with the memory of a handle that says all it wants: the kind
 * (FOMPI_PUT, FOMPI_GET, FOMPI_ACCUMULATE, FOMPI_GET_ACCUMULATE, FOMPI_COMPARE_AND_SWAP), the
 * operation of an accumulate, the buffers of this process, `count` elements of `type` at
 * displacement `disp`, in bytes, and the attributes of FOMPI_Mem_put. A put uses `origin`, a
 * get `result`, an accumulate `origin`, a get-accumulate `origin` and `result`, a
 * compare-and-swap of one element all three. `request`: NULL, or where to store a request for
 * MPI_Wait and its like, which is complete when the buffers may be used again and results have
 * arrived; with FOMPI_REMOTE the call waits and the request is complete. Without a request,
 * FOMPI_BLOCKING and FOMPI_REMOTE, FOMPI_Complete completes the transfer. Any thread may call.
 * Errors: those of the short form of the kind, MPI_ERR_ARG for an unknown kind or attribute, a
 * null pointer as the buffers, or FOMPI_BLOCKING with a request. */
int FOMPI_Xfer(int kind,
               MPI_Op op,
               const struct fompi_buffers *buffers,
               FOMPI_Mem mem,
               MPI_Aint disp,
               MPI_Count count,
               MPI_Datatype datatype,
               int attributes,
               MPI_Request *request);

/* Orders operations (issue 135 of the MPI Forum): what this process sends to a rank of `win`
 * behind this call takes effect there behind what it has sent there before. `rank` is a rank,
 * MPI_PROC_NULL, or FOMPI_ALL_RANKS for each rank by itself. An access epoch for the rank is
 * open, or FOMPI_ALL_RANKS is given. Completes nothing at the origin or the target. Cost: a
 * fence of the processor within a node; nothing between nodes, but a round trip if accumulates
 * on single elements are not confirmed. Any thread may call; it orders operations whose calls
 * have returned. Errors: MPI_ERR_WIN, MPI_ERR_RANK, MPI_ERR_RMA_SYNC without an access epoch,
 * MPI_ERR_OTHER if the target is lost, MPI_ERR_UNSUPPORTED_OPERATION on a window of the host
 * MPI. */
int FOMPI_Win_order(int rank, MPI_Win win);

/* Completes all operations on a rank, or on all ranks for FOMPI_ALL_RANKS, at the target, on
 * each of `count` windows (issue 47 of the MPI Forum), as MPI_Win_flush on each. Windows whose
 * `rank` is the same process cost one round trip together, since one connection carries their
 * operations. Any thread may call. Errors of a window go to its handler, and the others are
 * flushed nevertheless: those of MPI_Win_flush, MPI_ERR_UNSUPPORTED_OPERATION on a window of
 * the host MPI; MPI_ERR_COUNT for a negative count, MPI_ERR_ARG for a null pointer as the
 * windows. */
int FOMPI_Win_nflush(int rank, int count, const MPI_Win *wins);

/* Completes all operations of this process at their targets, and waits until all processes of
 * the window have called this (MPI_RMA_complete_collective of the strawman interface): behind
 * it, each process sees in its memory what all have sent to it. Collective; no epoch is
 * needed, none begins and none ends, so that it is legal between MPI_Win_lock_all and
 * MPI_Win_unlock_all. Cost: that of MPI_Win_fence. Errors: MPI_ERR_WIN, MPI_ERR_OTHER if a
 * process is lost, MPI_ERR_UNSUPPORTED_OPERATION on a window of the host MPI. */
int FOMPI_Complete_collective(MPI_Win win);

#ifdef __cplusplus
} /* extern "C" */
#endif /* __cplusplus */

#endif /* FOMPI_RMA_H */
