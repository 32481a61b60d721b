// Accesses of one process to the same bytes in one epoch are MPI_ERR_RMA_CONFLICT if one of them writes, unless
// both are accumulates of one type, and then are not carried out; a flush, the end of an epoch and an order
// separate them. On a window with the info key fompi_conflicts only. MPI-4.1 sections 12.3, 12.7 and 12.9.
// The plain MPI carries all of them out.
// ranks: 1 2 4

#include "created.h"
#include "handles.h"
#include "../include/fompi.h"

#pragma weak FOMPI_Win_order

enum { LONGS = 64 };

static long one = 1, got, values[LONGS];
static MPI_Win win;
static int target;

// The call conflicts with an earlier one: it names both, and the bytes.
#define CONFLICTS(call, text) do { \
    if (library_is_here()) { \
        char reason_[MPI_MAX_ERROR_STRING]; \
        check_here(__FILE__, __LINE__); \
        const int code_ = (call); \
        EXPECT(code_, MPI_ERR_RMA_CONFLICT); \
        text_of(code_, reason_); \
        if (strstr(reason_, text) == NULL) \
            check_failed(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", reason_, text); \
    } \
} while (0)

#define FLUSH() OK(MPI_Win_flush(target, win))

static int put(int at) { return MPI_Put(&one, 1, MPI_LONG, target, at, 1, MPI_LONG, win); }
static int get(int at) { return MPI_Get(&got, 1, MPI_LONG, target, at, 1, MPI_LONG, win); }

static int add(int at, MPI_Datatype type, MPI_Op op)
{
    return MPI_Accumulate(&one, 1, type, target, at, 1, type, op, win);
}

static int fetch(int at, MPI_Op op)
{
    return MPI_Fetch_and_op(&one, &got, MPI_LONG, target, at, op, win);
}

// Each pair of accesses, in both orders.
static void pairs(void)
{
    OK(put(0));
    CONFLICTS(put(0), "a put of bytes 0 to 8");
    CONFLICTS(get(0), "a get of bytes 0 to 8");
    CONFLICTS(add(0, MPI_LONG, MPI_SUM), "an accumulate of bytes 0 to 8");
    CONFLICTS(fetch(0, MPI_NO_OP), "an accumulate with MPI_NO_OP of bytes 0 to 8");
    CONFLICTS(MPI_Compare_and_swap(&one, &one, &got, MPI_LONG, target, 0, win), "conflicts with a put");
    OK(put(1)); // the next bytes
    OK(get(2));
    OK(get(2));
    OK(fetch(2, MPI_NO_OP)); // both only read
    CONFLICTS(put(2), "conflicts with a get");
    CONFLICTS(add(2, MPI_LONG, MPI_SUM), "conflicts with a get");
    OK(add(3, MPI_LONG, MPI_SUM));
    OK(add(3, MPI_LONG, MPI_REPLACE)); // those of one process are ordered
    OK(fetch(3, MPI_SUM));
    OK(fetch(3, MPI_NO_OP));
    if (library_is_here()) // Open MPI 4.1 crashes
        OK(MPI_Compare_and_swap(&one, &one, &got, MPI_LONG, target, 3, win));
    CONFLICTS(put(3), "conflicts with an accumulate");
    CONFLICTS(get(3), "conflicts with an accumulate");
    CONFLICTS(add(3, MPI_DOUBLE, MPI_REPLACE), "conflicts with an accumulate");
    // Two ranks share no bytes.
    if (size > 1)
        OK(MPI_Put(&one, 1, MPI_LONG, (target + 1) % size, 0, 1, MPI_LONG, win));
    OK(MPI_Win_flush_all(win));
    OK(put(0));
    FLUSH();
}

// What ends an access, and what does not.
static void ends(void)
{
    MPI_Request request;
    OK(put(0));
    FLUSH();
    OK(put(0));
    OK(MPI_Win_flush_local(target, win));
    CONFLICTS(get(0), "conflicts with a put");
    OK(MPI_Win_flush_all(win));
    OK(get(0));
    OK(MPI_Win_flush_local(target, win)); // the bytes have arrived
    OK(put(0));
    OK(MPI_Win_flush_all(win));
    OK(get(0));
    OK(MPI_Win_flush_local_all(win));
    OK(put(0));
    FLUSH();
    OK(MPI_Rget(&got, 1, MPI_LONG, target, 0, 1, MPI_LONG, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Rput(&one, 1, MPI_LONG, target, 0, 1, MPI_LONG, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE)); // the buffer is free, but the target may not have it
    CONFLICTS(get(0), "conflicts with a put");
    if (FOMPI_Win_order != NULL) {
        OK(FOMPI_Win_order(target, win));
        OK(put(0));
        OK(FOMPI_Win_order(FOMPI_ALL_RANKS, win));
        OK(get(0));
    }
    FLUSH();
    if (library_is_here())
        EXPECT(put(LONGS), MPI_ERR_RMA_RANGE);
    FLUSH();
}

// Only the bytes of a type map count.
static void types(void)
{
    MPI_Datatype even;
    OK(MPI_Type_vector(4, 1, 2, MPI_LONG, &even));
    OK(MPI_Type_commit(&even));
    OK(MPI_Put(values, 4, MPI_LONG, target, 8, 1, even, win));
    OK(MPI_Put(values, 4, MPI_LONG, target, 9, 1, even, win));
    CONFLICTS(put(14), "a put of bytes 112 to 120");
    CONFLICTS(MPI_Get(values, 8, MPI_LONG, target, 1, 8, MPI_LONG, win), "a get of bytes 64 to 72");
    OK(put(16));
    FLUSH();
    OK(MPI_Put(values, 2, MPI_LONG, target, 20, 4, MPI_LONG, win)); // of four elements, two
    OK(put(22));
    FLUSH();
    OK(MPI_Type_free(&even));
}

static void other_epochs(void)
{
    MPI_Group all, next, previous;
    const int to = next_rank(), from = previous_rank();
    OK(MPI_Win_fence(0, win));
    OK(put(0));
    CONFLICTS(get(0), "conflicts with a put");
    OK(MPI_Win_fence(0, win));
    OK(put(0));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_get_group(win, &all));
    OK(MPI_Group_incl(all, 1, &to, &next));
    OK(MPI_Group_incl(all, 1, &from, &previous));
    for (int i = 0; i < 2; i++) {
        OK(MPI_Win_post(previous, 0, win));
        OK(MPI_Win_start(next, 0, win));
        OK(put(0));
        CONFLICTS(put(0), "conflicts with a put");
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win));
        OK(put(0));
        CONFLICTS(put(0), "conflicts with a put");
        OK(MPI_Win_unlock(to, win));
        OK(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
        OK(put(1));
        OK(MPI_Win_unlock(to, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&next));
    OK(MPI_Group_free(&previous));
}

static void window(const char *key, const char *value, const char *order)
{
    MPI_Info info;
    void *base;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, key, value));
    OK(MPI_Info_set(info, "accumulate_ordering", order));
    OK(MPI_Win_allocate(LONGS * sizeof(long), sizeof(long), info, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Info_free(&info));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
}

// By handles, which ask no epoch.
static void by_handles(void)
{
    MPI_Info info;
    FOMPI_Mem mems[16];
    void *base = NULL;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "fompi_conflicts", "true"));
    OK(MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &win));
    OK(MPI_Info_free(&info));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    share(win, &base, LONGS * sizeof(long), mems);
    const FOMPI_Mem mem = mems[target];
    OK(FOMPI_Mem_put(&one, 1, MPI_LONG, mem, 0, FOMPI_BLOCKING));
    CONFLICTS(FOMPI_Mem_put(&one, 1, MPI_LONG, mem, 0, 0), "conflicts with a put");
    CONFLICTS(FOMPI_Mem_get(&got, 1, MPI_LONG, mem, 4, 0), "a get of bytes");
    OK(FOMPI_Mem_put(&one, 1, MPI_LONG, mem, 8, 0));
    OK(FOMPI_Mem_put(&one, 1, MPI_LONG, mem, 0, FOMPI_ORDERED));
    OK(FOMPI_Mem_put(&one, 1, MPI_LONG, mem, 16, FOMPI_ATOMIC));
    OK(FOMPI_Mem_put(&one, 1, MPI_LONG, mem, 16, FOMPI_ATOMIC));
    OK(FOMPI_Mem_put(&one, 1, MPI_LONG, mem, 24, FOMPI_REMOTE));
    OK(FOMPI_Mem_get(&got, 1, MPI_LONG, mem, 24, FOMPI_BLOCKING));
    OK(FOMPI_Mem_put(&one, 1, MPI_LONG, mem, 24, 0));
    MPI_Request request;
    const fompi_buffers into = {NULL, 0, MPI_LONG, &got, 1, MPI_LONG, NULL};
    OK(FOMPI_Xfer(FOMPI_GET, MPI_OP_NULL, &into, mem, 32, 1, MPI_LONG, 0, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(FOMPI_Mem_put(&one, 1, MPI_LONG, mem, 32, 0));
    OK(FOMPI_Complete(target, win));
    OK(FOMPI_Mem_put(&one, 1, MPI_LONG, mem, 24, 0));
    unshare(mems);
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    target = next_rank();
    window("fompi_conflicts", "true", "rar,raw,war,waw");
    OK(MPI_Win_lock_all(0, win));
    pairs();
    ends();
    types();
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    other_epochs();
    OK(MPI_Win_free(&win));
    // Without an order of the accumulates of a process, their operations count.
    window("fompi_conflicts", "true", "none");
    OK(MPI_Win_lock_all(0, win));
    OK(add(0, MPI_LONG, MPI_SUM));
    OK(add(0, MPI_LONG, MPI_SUM));
    OK(fetch(0, MPI_NO_OP));
    CONFLICTS(add(0, MPI_LONG, MPI_REPLACE), "an accumulate of bytes 0 to 8");
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    if (has_handles() && library_is_here())
        by_handles();
    // Other windows do not look.
    window("fompi_conflicts", "false", "rar,raw,war,waw");
    OK(MPI_Win_lock_all(0, win));
    OK(put(0));
    OK(put(0));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
