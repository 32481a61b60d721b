// Many small puts in one epoch, to one target and to several: each call that completes them does so
// for all of them, and the origin's buffers may be changed at once where the standard says so. With
// the library: a call of the same origin sees its earlier puts, calls that need not complete them
// pass them on, and an error is the answer of the call that completes them. MPI-4.1 sections 12.3.1,
// 12.5, 12.6.2 and 12.7.3.
// ranks: 1 2 3 4
// settings: FOMPI_ADOPT=never

#include "created.h"
#include "nodes.h"

#include <sys/mman.h>

// Longs of each origin at a target; puts of one long, then of many, then of pairs.
enum {
    SINGLE = 500, LONG_PUTS = 40, LONG = 128, PAIRS = 30, PAGE = 4096,
    BEFORE = SINGLE + LONG_PUTS * LONG, PART = BEFORE + 2 * PAIRS
};

static long *memory;
static MPI_Win win;

static long value(int origin, int salt, int i) { return 1000000L * salt + 100000L * origin + i; }

static void put_types(int target, int salt);

// Puts in an order in which few follow each other.
static void put_all(int target, int salt)
{
    static long many[LONG];
    for (int k = 0; k < SINGLE; k++) {
        const int i = k * 77 % SINGLE;
        long one = value(rank, salt, i);
        OK(MPI_Put(&one, 1, MPI_LONG, target, rank * PART + i, 1, MPI_LONG, win));
        OK(MPI_Win_flush_local(target, win));
        one = -1;
    }
    for (int k = 0; k < LONG_PUTS; k++) {
        const int at = SINGLE + k * 7 % LONG_PUTS * LONG;
        for (int i = 0; i < LONG; i++)
            many[i] = value(rank, salt, at + i);
        MPI_Request request;
        OK(MPI_Rput(many, LONG, MPI_LONG, target, rank * PART + at, LONG, MPI_LONG, win, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        memset(many, -1, sizeof many);
    }
    put_types(target, salt);
}

// Puts of derived types that are one block at the target, among others: pairs, from every second
// long, at the places of PART that `put_all` leaves.
static void put_types(int target, int salt)
{
    MPI_Datatype pair, strided;
    long values[4];
    OK(MPI_Type_contiguous(2, MPI_LONG, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Type_vector(2, 1, 2, MPI_LONG, &strided));
    OK(MPI_Type_commit(&strided));
    for (int k = 0; k < PAIRS; k++) {
        const int i = BEFORE + k * 7 % PAIRS * 2;
        values[0] = value(rank, salt, i);
        values[1] = k % 2 ? -1 : value(rank, salt, i + 1);
        values[2] = value(rank, salt, i + 1);
        OK(MPI_Put(values, 1, k % 2 ? strided : pair, target, rank * PART + i, 1, pair, win));
        OK(MPI_Win_flush_local(target, win));
        memset(values, -1, sizeof values);
    }
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_free(&strided));
}

// The same for epochs without requests and local flushes.
static void put_lasting(int target, const long *values)
{
    OK(MPI_Put(values + SINGLE, PART - SINGLE, MPI_LONG, target, rank * PART + SINGLE,
               PART - SINGLE, MPI_LONG, win));
    for (int k = 0; k < SINGLE; k++) {
        const int i = k * 77 % SINGLE;
        OK(MPI_Put(values + i, 1, MPI_LONG, target, rank * PART + i, 1, MPI_LONG, win));
    }
}

// The values of all origins are here. No call of the window: it might pass on what others wait for.
static void check_all(int salt)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    __sync_synchronize();
    for (int origin = 0; origin < size; origin++)
        for (int i = 0; i < PART; i++)
            CHECK_EQ(((volatile long *)memory)[origin * PART + i], value(origin, salt, i));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void passive_epochs(void)
{
    int salt = 1;
    OK(MPI_Win_lock_all(0, win));
    for (int target = 0; target < size; target++)
        put_all(target, salt);
    for (int target = 0; target < size; target++)
        OK(MPI_Win_flush(target, win));
    check_all(salt++);
    for (int target = 0; target < size; target++)
        put_all(target, salt);
    OK(MPI_Win_flush_all(win));
    check_all(salt++);
    for (int target = 0; target < size; target++)
        put_all(target, salt);
    OK(MPI_Win_unlock_all(win));
    check_all(salt++);
    const int types[] = {MPI_LOCK_SHARED, MPI_LOCK_EXCLUSIVE};
    for (int k = 0; k < 2; k++) {
        for (int target = 0; target < size; target++) {
            OK(MPI_Win_lock(types[k], target, 0, win));
            put_all(target, salt);
            OK(MPI_Win_unlock(target, win));
        }
        check_all(salt++);
    }
}

static void active_epochs(void)
{
    static long values[PART];
    const int salt = 10;
    for (int i = 0; i < PART; i++)
        values[i] = value(rank, salt, i);
    memset(memory, 0, (size_t)size * PART * sizeof(long));
    OK(MPI_Win_fence(0, win));
    for (int target = 0; target < size; target++)
        put_lasting(target, values);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    check_all(salt);
    MPI_Group all;
    OK(MPI_Win_get_group(win, &all));
    memset(memory, 0, (size_t)size * PART * sizeof(long));
    OK(MPI_Win_post(all, 0, win));
    OK(MPI_Win_start(all, 0, win));
    for (int target = 0; target < size; target++)
        put_lasting(target, values);
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    check_all(salt);
    OK(MPI_Group_free(&all));
}

// Rank 0 alone has an access epoch, and calls nothing after it.
static void one_origin(void)
{
    static long values[PART];
    MPI_Group all, origin, targets;
    for (int i = 0; i < PART; i++)
        values[i] = value(0, 11, i);
    OK(MPI_Win_get_group(win, &all));
    OK(MPI_Group_incl(all, 1, (int[]){0}, &origin));
    OK(MPI_Group_excl(all, 1, (int[]){0}, &targets));
    if (rank == 0) {
        OK(MPI_Win_start(targets, 0, win));
        for (int target = 1; target < size; target++)
            put_lasting(target, values);
        OK(MPI_Win_complete(win));
    } else {
        OK(MPI_Win_post(origin, 0, win));
        OK(MPI_Win_wait(win));
        for (int i = 0; i < PART; i++)
            CHECK_EQ(memory[i], value(0, 11, i));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&origin));
    OK(MPI_Group_free(&targets));
}

// Beyond the standard: a call of this origin sees what it has put before, and puts stay in order.
static void later_calls_see_puts(void)
{
    const int target = next_rank(), at = rank * PART;
    const long one = 1, two = 2, three = 3;
    long got, before, block[256], blocks[6];
    MPI_Datatype strided;
    OK(MPI_Type_vector(3, 1, 2, MPI_LONG, &strided));
    OK(MPI_Type_commit(&strided));
    OK(MPI_Win_lock_all(0, win));
#define PUT(what, to) OK(MPI_Put(what, 1, MPI_LONG, target, at + (to), 1, MPI_LONG, win))
#define GET(from) OK(MPI_Get(&got, 1, MPI_LONG, target, at + (from), 1, MPI_LONG, win))
    PUT(&one, 0);
    PUT(&two, 0);
    PUT(&three, 1);
    GET(0);
    CHECK_EQ(got, 2);
    GET(1);
    CHECK_EQ(got, 3);
    PUT(&one, 0);
    PUT(&three, 0);
    OK(MPI_Accumulate(&one, 1, MPI_LONG, target, at, 1, MPI_LONG, MPI_SUM, win));
    PUT(&two, 1);
    OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, target, at + 1, MPI_SUM, win));
    CHECK_EQ(before, 2);
    PUT(&three, 1);
    OK(MPI_Compare_and_swap(&one, &three, &before, MPI_LONG, target, at + 1, win));
    CHECK_EQ(before, 3);
    GET(0);
    CHECK_EQ(got, 4);
    GET(1);
    CHECK_EQ(got, 1);
    // A put that is not small, and one of several blocks, after a small one and before it.
    for (int i = 0; i < 256; i++)
        block[i] = 500 + i;
    PUT(&one, 0);
    PUT(&one, 200);
    OK(MPI_Put(block, 256, MPI_LONG, target, at, 256, MPI_LONG, win));
    PUT(&two, 7);
    PUT(&one, 300);
    OK(MPI_Put(block, 1, strided, target, at + 300, 1, strided, win));
    PUT(&two, 302);
    OK(MPI_Get(blocks, 1, strided, target, at + 300, 1, strided, win));
    OK(MPI_Get(block, 256, MPI_LONG, target, at, 256, MPI_LONG, win));
    CHECK_EQ(blocks[0], 500);
    CHECK_EQ(blocks[2], 2);
    CHECK_EQ(blocks[4], 504);
    for (int i = 0; i < 256; i++)
        CHECK_EQ(block[i], i == 7 ? 2 : 500 + i);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Type_free(&strided));
}

// Waits, without a call of the window, until a long here has this value.
static void await(int at, long wanted)
{
    while (((volatile long *)memory)[at] != wanted)
        check_here(__FILE__, __LINE__);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// Beyond the standard: calls that need not complete puts pass them on.
static void other_calls_send_puts(void)
{
    const int target = next_rank(), mine = previous_rank() * PART;
    long values[10][2];
    int done, salt = 0;
    MPI_Group from, to, world;
    OK(MPI_Win_get_group(win, &world));
    OK(MPI_Group_incl(world, 1, (int[]){previous_rank()}, &from));
    OK(MPI_Group_incl(world, 1, (int[]){target}, &to));
#define TWO() do { \
    values[salt][0] = values[salt][1] = 7000 + salt; \
    OK(MPI_Put(&values[salt][0], 1, MPI_LONG, target, rank * PART, 1, MPI_LONG, win)); \
    OK(MPI_Put(&values[salt][1], 1, MPI_LONG, target, rank * PART + 1, 1, MPI_LONG, win)); \
} while (0)
#define SENT_BY(call) do { TWO(); call; await(mine + 1, 7000 + salt); salt++; } while (0)
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    SENT_BY(OK(MPI_Win_sync(win)));
    SENT_BY(OK(MPI_Win_post(from, 0, win)));
    OK(MPI_Win_unlock(target, win));
    OK(MPI_Win_start(to, 0, win));
    SENT_BY(OK(MPI_Win_test(win, &done)));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    if (size > 2) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
        SENT_BY(OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win)));
        SENT_BY(OK(MPI_Win_flush(rank, win)));
        OK(MPI_Win_unlock(target, win));
        OK(MPI_Win_unlock(rank, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&from));
    OK(MPI_Group_free(&to));
}

// Rank 1 ends the access epoch for which rank 0 waits when it has got what rank 0 puts.
static void a_wait_sends_puts(void)
{
    const long values[] = {811, 812};
    MPI_Group world, other;
    OK(MPI_Win_get_group(win, &world));
    OK(MPI_Group_incl(world, 1, (int[]){1 - rank % 2}, &other));
    if (rank == 0) {
        OK(MPI_Win_post(other, 0, win));
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
        for (int k = 0; k < 2; k++)
            OK(MPI_Put(&values[k], 1, MPI_LONG, 1, k, 1, MPI_LONG, win));
        OK(MPI_Win_wait(win));
        OK(MPI_Win_unlock(1, win));
    } else if (rank == 1) {
        OK(MPI_Win_start(other, 0, win));
        while (((volatile long *)memory)[1] != 812)
            check_here(__FILE__, __LINE__);
        OK(MPI_Win_complete(win));
    }
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&other));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// The second page of the window cannot be written; the others get what is put there.
static void puts_that_fail(void)
{
    enum { LONGS = PAGE / sizeof(long) };
    long *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    CHECK_EQ(mprotect(pages + LONGS, PAGE, PROT_READ), 0);
    MPI_Win own = win;
    win = returning_window_over(pages, 3 * PAGE, sizeof(long));
    const int target = next_rank();
    long values[4];
#define FOUR(salt) do { \
    for (int k = 0; k < 4; k++) { \
        values[k] = 10 * (salt) + k; \
        OK(MPI_Put(&values[k], 1, MPI_LONG, target, k == 1 ? 5 : k == 2 ? LONGS + 9 : 2 * LONGS + k, \
                   1, MPI_LONG, win)); \
    } \
} while (0)
#define FAILED_IN(salt, call) do { \
    FOUR(salt); \
    EXPECT(call, MPI_ERR_RMA_RANGE); \
    OK(MPI_Barrier(MPI_COMM_WORLD)); \
    CHECK_EQ(((volatile long *)pages)[5], 10 * (salt) + 1); \
    CHECK_EQ(((volatile long *)pages)[2 * LONGS], 10 * (salt)); \
    CHECK_EQ(((volatile long *)pages)[2 * LONGS + 3], 10 * (salt) + 3); \
    OK(MPI_Barrier(MPI_COMM_WORLD)); \
} while (0)
    OK(MPI_Win_lock_all(0, win));
    FAILED_IN(1, MPI_Win_flush(target, win));
    OK(MPI_Win_flush(target, win));
    FAILED_IN(2, MPI_Win_flush_all(win));
    FAILED_IN(3, MPI_Win_unlock_all(win));
    // The locks are given back also then.
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    FAILED_IN(4, MPI_Win_unlock(target, win));
    // All ranks leave a fence, and the epoch after it is a new one.
    OK(MPI_Win_fence(0, win));
    FAILED_IN(5, MPI_Win_fence(0, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    // An error that a get meets stays the answer of the call that completes the put.
    OK(MPI_Win_lock_all(0, win));
    FOUR(6);
    OK(MPI_Get(&values[0], 1, MPI_LONG, target, 5, 1, MPI_LONG, win));
    CHECK_EQ(values[0], 61);
    EXPECT(MPI_Win_flush_all(win), MPI_ERR_RMA_RANGE);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    CHECK_EQ(munmap(pages, 3 * PAGE), 0);
    win = own;
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    const size_t bytes = (size_t)size * PART * sizeof(long);
    memory = heap_memory(bytes);
    win = window_over(memory, (MPI_Aint)bytes, sizeof(long));
    passive_epochs();
    active_epochs();
    if (size > 1)
        one_origin();
    // Requests between nodes promise less.
    const int promised = library_is_here() && ranks_per_node() == 0;
    if (promised) {
        passive_epochs();
        later_calls_see_puts();
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (size > 1) {
            other_calls_send_puts();
            a_wait_sends_puts();
            puts_that_fail();
        }
        // Without a completing call before it.
        const long values[] = {91, 92};
        OK(MPI_Win_fence(0, win));
        for (int k = 0; k < 2; k++)
            OK(MPI_Put(&values[k], 1, MPI_LONG, next_rank(), k, 1, MPI_LONG, win));
    }
    OK(MPI_Win_free(&win));
    if (promised) {
        CHECK_EQ(memory[0], 91);
        CHECK_EQ(memory[1], 92);
    }
    return check_end();
}
