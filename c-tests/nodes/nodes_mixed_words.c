// Ranks of the target's node and of other nodes change the same words at once, by all calls that
// change a word, in an order that a seed gives (CHECK_SEED); ranks of the node also load them, where
// MPI_Win_shared_query shows them, and store to words of their own, which the others get. No addition
// is lost, and nobody sees a smaller number after a larger one. MPI-4.1 sections 12.4 and 12.7.
// ranks: 4 8
// plain ranks: 4

#include "check.h"

enum { SUMS = 6, RANKS_MAX = 8, OWN = SUMS, WORDS = SUMS + RANKS_MAX, STEPS = 1500 };

static MPI_Win win;
static uint64_t state;
// What this rank has added to each sum, and the largest it has seen of each word, per target.
static int64_t added[RANKS_MAX][SUMS], seen[RANKS_MAX][WORDS], stored[RANKS_MAX];
// Where the memory of a rank is for loads and stores; NULL where it is not.
static volatile int64_t *mapped[RANKS_MAX];

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static void saw(int target, int word, int64_t value)
{
    if (value < seen[target][word])
        check_failed(__FILE__, __LINE__, "word %d of rank %d is %lld after %lld", word, target,
                     (long long)value, (long long)seen[target][word]);
    seen[target][word] = value;
}

static void add(int target, int word, int64_t operand)
{
    int64_t before, none = 0;
    switch (draw(4)) {
    case 0:
        OK(MPI_Accumulate(&operand, 1, MPI_INT64_T, target, word, 1, MPI_INT64_T, MPI_SUM, win));
        break;
    case 1:
        OK(MPI_Fetch_and_op(&operand, &before, MPI_INT64_T, target, word, MPI_SUM, win));
        OK(MPI_Win_flush(target, win));
        saw(target, word, before);
        break;
    case 2:
        OK(MPI_Get_accumulate(&operand, 1, MPI_INT64_T, &before, 1, MPI_INT64_T, target, word, 1,
                              MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Win_flush(target, win));
        saw(target, word, before);
        break;
    default:
        // Somebody may have been faster; then the other's value is as good as a read.
        OK(MPI_Fetch_and_op(&none, &before, MPI_INT64_T, target, word, MPI_NO_OP, win));
        OK(MPI_Win_flush(target, win));
        for (int64_t expected = before - 1, next; expected != before;) {
            saw(target, word, before);
            expected = before;
            next = expected + operand;
            OK(MPI_Compare_and_swap(&next, &expected, &before, MPI_INT64_T, target, word, win));
            OK(MPI_Win_flush(target, win));
        }
    }
    added[target][word] += operand;
}

static void store_own(int target)
{
    const int64_t value = ++stored[target];
    if (mapped[target] != NULL && draw(2)) {
        // After what this rank has put there before.
        OK(MPI_Win_flush(target, win));
        __atomic_store_n(&mapped[target][OWN + rank], value, __ATOMIC_RELEASE);
    } else {
        OK(MPI_Accumulate(&value, 1, MPI_INT64_T, target, OWN + rank, 1, MPI_INT64_T, MPI_REPLACE,
                          win));
        OK(MPI_Win_flush(target, win));
    }
}

static void read_there(int target)
{
    const int word = (int)draw(WORDS - RANKS_MAX + (unsigned)size);
    int64_t got, none = 0;
    if (mapped[target] != NULL) {
        OK(MPI_Win_sync(win));
        got = __atomic_load_n(&mapped[target][word], __ATOMIC_ACQUIRE);
    } else {
        OK(MPI_Fetch_and_op(&none, &got, MPI_INT64_T, target, word, MPI_NO_OP, win));
        OK(MPI_Win_flush(target, win));
    }
    saw(target, word, got);
}

static void check_sums(const int64_t *base)
{
    for (int target = 0; target < size; target++) {
        int64_t all[SUMS], last[RANKS_MAX];
        OK(MPI_Reduce(added[target], all, SUMS, MPI_INT64_T, MPI_SUM, target, MPI_COMM_WORLD));
        OK(MPI_Gather(&stored[target], 1, MPI_INT64_T, last, 1, MPI_INT64_T, target,
                      MPI_COMM_WORLD));
        for (int i = 0; target == rank && i < SUMS; i++)
            CHECK_EQ(base[i], all[i]);
        for (int i = 0; target == rank && i < size; i++)
            CHECK_EQ(base[OWN + i], last[i]);
    }
}

int main(int argc, char **argv)
{
    int64_t *base;
    check_start(&argc, &argv);
    CHECK(size <= RANKS_MAX);
    const char *seed = getenv("CHECK_SEED");
    state = 1000u * (seed == NULL ? 1u : (unsigned)atoi(seed)) + (unsigned)rank;
    OK(MPI_Win_allocate(WORDS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    memset(base, 0, WORDS * 8);
    for (int target = 0; target < size; target++) {
        MPI_Aint bytes = 0;
        int unit;
        int64_t *there = NULL;
        if (MPI_Win_shared_query(win, target, &bytes, &unit, &there) == MPI_SUCCESS && bytes > 0)
            mapped[target] = there;
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int step = 0; step < STEPS; step++) {
        // Mostly rank 0, where all meet.
        const int target = draw(3) ? 0 : (int)draw((unsigned)size), what = (int)draw(4);
        if (what == 0)
            read_there(target);
        else if (what == 1)
            store_own(target);
        else
            add(target, (int)draw(SUMS), 1 + (int64_t)draw(9));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    check_sums(base);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Win_free(&win));
    return check_end();
}
