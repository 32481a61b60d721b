// Puts, gets, accumulates and locks to targets on the own node and on others, in one window, for
// windows of every flavor: every byte and every sum is right. MPI-4.1 sections 12.3 and 12.5.
// ranks: 1 2 4 8
// plain ranks: 2

#include "created.h"
#include "nodes.h"

enum { ROUNDS = 12, BLOCK = 12000, RANKS_MAX = 8, BYTES = 64 + RANKS_MAX * BLOCK };
enum { GUARDED = 0, SUM = 8, HALVES = 16, WIDE = 24 };

static MPI_Comm comm;
static int me, count;
static MPI_Win win;
static char *base;
static MPI_Aint starts[RANKS_MAX];

// What this rank has put into its block of each target, and what it gets from there.
static char sent[RANKS_MAX][BLOCK], got[BLOCK];

static unsigned next_number(void)
{
    static unsigned state;
    if (state == 0)
        state = 77u + (unsigned)me;
    state = state * 1103515245u + 12345u;
    return state >> 8;
}

static unsigned sum_of(const char *bytes)
{
    unsigned sum = 1;
    for (int i = 0; i < BLOCK; i++)
        sum = sum * 31 + (unsigned char)bytes[i];
    return sum;
}

static MPI_Aint block_of(int target, int from)
{
    return starts[target] + 64 + (MPI_Aint)me * BLOCK + from;
}

// A run of bytes, now and then all, often few.
static void put_some(int target)
{
    unsigned most = next_number() % 3 == 0 ? BLOCK : 40;
    int bytes = (int)(1 + next_number() % most);
    int from = (int)(next_number() % (unsigned)(BLOCK - bytes + 1));
    char *run = &sent[target][from];
    for (int i = 0; i < bytes; i++)
        run[i] = (char)next_number();
    OK(MPI_Put(run, bytes, MPI_CHAR, target, block_of(target, from), bytes, MPI_CHAR, win));
}

static void accumulate_some(int target)
{
    static const int64_t wide = 1 + ((int64_t)1 << 33);
    static const int32_t halves[2] = {1, 2};
    static const double number = 0.5;
    OK(MPI_Accumulate(&wide, 1, MPI_INT64_T, target, starts[target] + SUM, 1, MPI_INT64_T, MPI_SUM,
                      win));
    OK(MPI_Accumulate(halves, 2, MPI_INT32_T, target, starts[target] + HALVES, 2, MPI_INT32_T,
                      MPI_SUM, win));
    OK(MPI_Accumulate(&number, 1, MPI_DOUBLE, target, starts[target] + WIDE, 1, MPI_DOUBLE, MPI_SUM,
                      win));
}

static void compare(int target)
{
    OK(MPI_Get(got, BLOCK, MPI_CHAR, target, block_of(target, 0), BLOCK, MPI_CHAR, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 0; i < BLOCK; i++)
        CHECK_EQ(got[i], sent[target][i]);
}

// A sum that only the lock keeps right.
static void guarded(int target)
{
    int64_t value;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    OK(MPI_Get(&value, 1, MPI_INT64_T, target, starts[target] + GUARDED, 1, MPI_INT64_T, win));
    OK(MPI_Win_flush(target, win));
    value++;
    OK(MPI_Put(&value, 1, MPI_INT64_T, target, starts[target] + GUARDED, 1, MPI_INT64_T, win));
    OK(MPI_Win_unlock(target, win));
}

static void round_with_locks(int round)
{
    for (int i = 0; i < count; i++) {
        int target = (me + i) % count;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
        put_some(target);
        accumulate_some(target);
        OK(MPI_Win_unlock(target, win));
    }
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < count; i++)
        compare((me + round + i) % count);
    OK(MPI_Win_unlock_all(win));
    for (int i = 0; i < count; i++)
        guarded((me + i) % count);
}

// All targets at once within a fence.
static void round_with_fence(void)
{
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    for (int i = 0; i < count; i++) {
        put_some((me + i) % count);
        accumulate_some((me + i) % count);
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

// What the target has is what each origin says that it has sent.
static void check_memory(void)
{
    unsigned mine[RANKS_MAX], theirs[RANKS_MAX];
    int64_t guarded_sum, sum;
    int32_t halves[2];
    double number;
    for (int target = 0; target < count; target++)
        mine[target] = sum_of(sent[target]);
    OK(MPI_Alltoall(mine, 1, MPI_UNSIGNED, theirs, 1, MPI_UNSIGNED, comm));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win));
    for (int origin = 0; origin < count; origin++)
        CHECK_EQ(sum_of(base + 64 + origin * BLOCK), theirs[origin]);
    memcpy(&guarded_sum, base + GUARDED, 8);
    memcpy(&sum, base + SUM, 8);
    memcpy(halves, base + HALVES, 8);
    memcpy(&number, base + WIDE, 8);
    OK(MPI_Win_unlock(me, win));
    CHECK_EQ(guarded_sum, ROUNDS / 2 * count);
    CHECK_EQ(sum, ROUNDS * count * (1 + ((int64_t)1 << 33)));
    CHECK_EQ(halves[0], ROUNDS * count);
    CHECK_EQ(halves[1], 2 * ROUNDS * count);
    CHECK_EQ(2 * number, ROUNDS * count);
}

static void use(void)
{
    memset(base, 0, BYTES);
    memset(sent, 0, sizeof sent);
    OK(MPI_Barrier(comm));
    for (int round = 0; round < ROUNDS; round++)
        if (round % 2 == 0)
            round_with_locks(round);
        else
            round_with_fence();
    OK(MPI_Barrier(comm));
    check_memory();
    OK(MPI_Win_free(&win));
}

static void over(MPI_Comm ranks)
{
    comm = ranks;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &count));
    memset(starts, 0, sizeof starts);
}

int main(int argc, char **argv)
{
    MPI_Comm node;
    check_start(&argc, &argv);
    CHECK(size <= RANKS_MAX);
    over(MPI_COMM_WORLD);
    OK(MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, comm, &base, &win));
    use();
    base = heap_memory(BYTES);
    OK(MPI_Win_create(base, BYTES, 1, MPI_INFO_NULL, comm, &win));
    use();
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
    OK(MPI_Win_attach(win, base, BYTES));
    OK(MPI_Get_address(base, &starts[me]));
    OK(MPI_Allgather(MPI_IN_PLACE, 1, MPI_AINT, starts, 1, MPI_AINT, comm));
    use();
    if (ranks_per_node() > 0)
        OK(MPI_Comm_split(MPI_COMM_WORLD, rank / ranks_per_node(), rank, &node));
    else
        OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node));
    over(node);
    OK(MPI_Win_allocate_shared(BYTES, 1, MPI_INFO_NULL, comm, &base, &win));
    use();
    OK(MPI_Comm_free(&node));
    return check_end();
}
