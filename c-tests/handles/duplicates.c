// FOMPI_Win_dup: windows over the same memory whose operations complete apart. What they have in common with
// their window, that accumulates on both are atomic with each other, that a flush waits for the operations of its
// duplicate alone, and which calls are errors. docs/decisions/0035. The plain MPI has none.
// ranks: 1 2 4

#include "handles.h"
#include "../include/fompi.h"
#include "../include/fompi_notify.h"

#pragma weak fompi_get_verbs_counts
#pragma weak FOMPI_Win_set_num_notify
#pragma weak FOMPI_Win_nflush

enum { COUNT = 4000, ROUNDS = 200 };

typedef enum { ALLOCATED, CREATED, DYNAMIC, KINDS } Kind;

static MPI_Win win, twin, other;
static long *base;
static MPI_Aint bases[64]; // of all ranks; 0 where displacements count from the window

static MPI_Aint at(int target, MPI_Aint index)
{
    return bases[target] == 0 ? index : bases[target] + index * (MPI_Aint)sizeof(long);
}

static void make(Kind kind)
{
    const MPI_Aint bytes = (COUNT + 8) * (MPI_Aint)sizeof(long);
    memset(bases, 0, sizeof bases);
    if (kind == ALLOCATED) {
        OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    } else {
        base = malloc(bytes);
        if (kind == CREATED)
            OK(MPI_Win_create(base, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        else
            OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    }
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(FOMPI_Win_dup(win, MPI_INFO_NULL, &twin));
    if (kind == DYNAMIC) {
        MPI_Aint own;
        OK(MPI_Win_attach(twin, base, bytes)); // the memory is that of the window
        OK(MPI_Get_address(base, &own));
        OK(MPI_Allgather(&own, 1, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD));
    }
    OK(FOMPI_Win_dup(twin, MPI_INFO_NULL, &other));
    memset(base, 0, bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void end(Kind kind)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    EXPECT(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_free(&twin), MPI_ERR_RMA_SYNC); // `other` is a duplicate of it
    OK(MPI_Win_free(&other));
    CHECK(other == MPI_WIN_NULL);
    OK(MPI_Win_free(&twin));
    if (kind == DYNAMIC)
        OK(MPI_Win_detach(win, base));
    OK(MPI_Win_free(&win));
    if (kind != ALLOCATED)
        free(base);
}

static void *attribute(MPI_Win of, int key)
{
    void *value;
    int is_there;
    OK(MPI_Win_get_attr(of, key, &value, &is_there));
    CHECK(is_there);
    return value;
}

// What a duplicate has of its window, and what is its own.
static void check_facts(void)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length, result;
    MPI_Group groups[2];
    MPI_Errhandler handler;
    CHECK(attribute(twin, MPI_WIN_BASE) == attribute(win, MPI_WIN_BASE));
    CHECK_EQ(*(MPI_Aint *)attribute(twin, MPI_WIN_SIZE), *(MPI_Aint *)attribute(win, MPI_WIN_SIZE));
    CHECK_EQ(*(int *)attribute(twin, MPI_WIN_DISP_UNIT), *(int *)attribute(win, MPI_WIN_DISP_UNIT));
    CHECK_EQ(*(int *)attribute(twin, MPI_WIN_CREATE_FLAVOR), *(int *)attribute(win, MPI_WIN_CREATE_FLAVOR));
    OK(MPI_Win_get_errhandler(twin, &handler));
    CHECK(handler == MPI_ERRORS_RETURN);
    OK(MPI_Win_get_group(win, &groups[0]));
    OK(MPI_Win_get_group(other, &groups[1]));
    OK(MPI_Group_compare(groups[0], groups[1], &result));
    CHECK_EQ(result, MPI_IDENT);
    OK(MPI_Group_free(&groups[0]));
    OK(MPI_Group_free(&groups[1]));
    OK(MPI_Win_set_name(twin, "apart"));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK_EQ(length, 0);
    CHECK(twin != win && other != twin);
}

// Each rank sends through all three, in any epoch of the window.
static void check_transfers(void)
{
    long values[COUNT], seen[COUNT];
    const int next = next_rank();
    MPI_Request request;
    for (int i = 0; i < COUNT; i++)
        values[i] = 100000 * (rank + 1) + i;
    OK(MPI_Put(values, COUNT, MPI_LONG, next, at(next, 0), COUNT, MPI_LONG, twin));
    OK(MPI_Win_flush(next, twin));
    OK(MPI_Get(seen, COUNT, MPI_LONG, next, at(next, 0), COUNT, MPI_LONG, other));
    OK(MPI_Win_flush_local(next, other));
    CHECK(memcmp(values, seen, sizeof seen) == 0);
    OK(MPI_Rput(values, 1, MPI_LONG, next, at(next, COUNT), 1, MPI_LONG, other, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Win_flush_local_all(other));
    OK(MPI_Win_flush_all(other));
    OK(MPI_Win_sync(other));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(base[i], 100000 * (previous_rank() + 1) + i);
    CHECK_EQ(base[COUNT], 100000 * (previous_rank() + 1));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    // Small puts, which may wait for a flush, and locks of the window, which may wait for their first use.
    for (long round = 1; round <= ROUNDS; round++) {
        const long mine = 10 * round + rank, behind = round;
        OK(MPI_Win_lock(round % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, next, 0, win));
        OK(MPI_Put(&mine, 1, MPI_LONG, next, at(next, 0), 1, MPI_LONG, win));
        OK(MPI_Put(&behind, 1, MPI_LONG, next, at(next, 1), 1, MPI_LONG, twin));
        OK(MPI_Win_flush_all(twin));
        OK(MPI_Win_sync(twin));
        OK(MPI_Get(seen, 1, MPI_LONG, next, at(next, 1), 1, MPI_LONG, other));
        OK(MPI_Win_flush(next, other));
        CHECK_EQ(seen[0], round);
        OK(MPI_Win_unlock(next, win));
        OK(MPI_Get(seen, 1, MPI_LONG, next, at(next, 0), 1, MPI_LONG, twin));
        OK(MPI_Win_flush(next, twin));
        CHECK_EQ(seen[0], mine);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void check_atomicity(void)
{
    const MPI_Win all[3] = {win, twin, other};
    long ones[20], before, sum = 0;
    for (int i = 0; i < 20; i++)
        ones[i] = 1;
    base[0] = 0;
    memset(base + 10, 0, 20 * sizeof *base);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int round = 0; round < ROUNDS; round++) {
        const MPI_Win on = all[(round + rank) % 3];
        OK(MPI_Fetch_and_op(ones, &before, MPI_LONG, 0, at(0, 0), MPI_SUM, on));
        OK(MPI_Accumulate(ones, 20, MPI_LONG, 0, at(0, 10), 20, MPI_LONG, MPI_SUM, on));
        OK(MPI_Win_flush(0, on));
        CHECK(before >= round && before < (long)size * ROUNDS);
        sum += before;
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    const long total = (long)size * ROUNDS;
    CHECK_EQ(sum, total * (total - 1) / 2);
    if (rank == 0)
        for (int i = 0; i < 20; i++)
            CHECK_EQ(base[10 + i], total);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static long waits(void)
{
    fompi_verbs_counts counts;
    return fompi_get_verbs_counts(&counts) ? (long)counts.waits : 0;
}

// A flush of one waits for nothing where the other has sent something.
static void check_completion(void)
{
    const long value = 77 + rank;
    const int next = next_rank(), previous = previous_rank();
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next, at(next, 0), 1, MPI_LONG, twin)); // all are known
    OK(MPI_Win_flush(next, twin));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 0; round < 10; round++) {
        OK(MPI_Put(&value, 1, MPI_LONG, next, at(next, 0), 1, MPI_LONG, win));
        OK(MPI_Put(&value, 1, MPI_LONG, next, at(next, 1), 1, MPI_LONG, other));
        const long before = waits();
        OK(MPI_Win_flush(next, twin));
        OK(MPI_Win_flush_all(twin));
        OK(MPI_Win_flush_local(next, twin));
        OK(MPI_Win_flush_local_all(twin));
        if (size > 2)
            OK(MPI_Win_flush(previous, other));
        CHECK_EQ(waits(), before);
        OK(MPI_Win_flush_all(other));
        const long there = waits();
        OK(MPI_Win_flush_all(other)); // it is done
        CHECK_EQ(waits(), there);
        OK(MPI_Put(&value, 1, MPI_LONG, next, at(next, 2), 1, MPI_LONG, twin));
        OK(MPI_Win_flush_all(win));
        OK(FOMPI_Complete(FOMPI_ALL_RANKS, twin));
        OK(FOMPI_Win_nflush(next, 1, &other));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 3; i++)
        CHECK_EQ(base[i], 77 + previous);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// Attributes of a duplicate are its own.
static void check_attributes(void)
{
    MPI_Win blocking;
    MPI_Info info;
    long values[COUNT];
    char value[64];
    int is_there;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "fompi_attributes", "blocking"));
    OK(FOMPI_Win_dup(win, info, &blocking));
    OK(MPI_Info_free(&info));
    for (int i = 0; i < COUNT; i++)
        base[i] = rank + i;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 0; round < 5; round++) {
        memset(values, 0, sizeof values);
        OK(MPI_Get(values, COUNT, MPI_LONG, next_rank(), at(next_rank(), 0), COUNT, MPI_LONG, blocking));
        for (int i = 0; i < COUNT; i++)
            CHECK_EQ(values[i], next_rank() + i);
    }
    OK(MPI_Win_get_info(blocking, &info));
    OK(MPI_Info_get(info, "fompi_attributes", 63, value, &is_there));
    CHECK(is_there && strcmp(value, "blocking") == 0);
    OK(MPI_Info_free(&info));
    OK(MPI_Win_get_info(twin, &info));
    OK(MPI_Info_get(info, "fompi_attributes", 63, value, &is_there));
    CHECK(!is_there);
    OK(MPI_Info_free(&info));
    OK(MPI_Win_free(&blocking));
}

static void check_errors(void)
{
    MPI_Group group;
    MPI_Win freed, stale;
    long value = 0;
    int flag;
    OK(MPI_Win_get_group(win, &group));
    EXPECT(MPI_Win_fence(0, twin), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, twin), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), MPI_MODE_NOCHECK, twin), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_unlock(0, twin), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_lock_all(0, twin), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_unlock_all(twin), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_post(group, 0, twin), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_start(group, 0, twin), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_complete(twin), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_wait(twin), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_test(twin, &flag), MPI_ERR_RMA_SYNC);
    EXPECT(FOMPI_Win_set_num_notify(twin, MPI_INFO_NULL, 1), MPI_ERR_RMA_SYNC);
    OK(MPI_Group_free(&group));
    OK(MPI_Put(&value, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, twin));
    EXPECT(MPI_Put(&value, 1, MPI_LONG, size, 0, 1, MPI_LONG, twin), MPI_ERR_RANK);
    EXPECT(MPI_Put(&value, 1, MPI_LONG, next_rank(), at(next_rank(), COUNT + 8), 1, MPI_LONG, twin),
           MPI_ERR_RMA_RANGE);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    EXPECT(FOMPI_Win_dup(win, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    OK(FOMPI_Win_dup(win, MPI_INFO_NULL, &freed));
    stale = freed;
    OK(MPI_Win_free(&freed));
    EXPECT(MPI_Win_flush_all(stale), MPI_ERR_WIN);
    EXPECT(FOMPI_Win_dup(stale, MPI_INFO_NULL, &freed), MPI_ERR_WIN);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// The epochs of the window go on as if there were no duplicate.
static void check_epochs(void)
{
    const long mine = rank + 1;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&mine, 1, MPI_LONG, next_rank(), at(next_rank(), 3), 1, MPI_LONG, win));
    OK(MPI_Accumulate(&mine, 1, MPI_LONG, next_rank(), at(next_rank(), 4), 1, MPI_LONG, MPI_REPLACE, twin));
    OK(MPI_Win_flush(next_rank(), twin));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_EQ(base[3], previous_rank() + 1);
    CHECK_EQ(base[4], previous_rank() + 1);
    // A duplicate completes its operations when it is freed, by one process alone.
    if (rank == size - 1) {
        MPI_Win short_lived;
        OK(FOMPI_Win_dup(win, MPI_INFO_NULL, &short_lived));
        for (int target = 0; target < size; target++)
            OK(MPI_Put(&mine, 1, MPI_LONG, target, at(target, 5), 1, MPI_LONG, short_lived));
        OK(MPI_Win_free(&short_lived));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    CHECK_EQ(base[5], size);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    check_start_within(90, &argc, &argv);
    if (has_handles())
        for (Kind kind = 0; kind < KINDS; kind++) {
            make(kind);
            check_facts();
            check_transfers();
            check_atomicity();
            check_completion();
            check_attributes();
            check_errors();
            check_epochs();
            end(kind);
        }
    return check_end();
}
