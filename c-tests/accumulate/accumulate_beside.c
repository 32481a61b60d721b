// Ranks change single words next to an array to which rank 0 adds as a whole, at the same time:
// first no word of the array, then some, then all of them one after the other, then none again. No
// change is lost, and a rank sees a word only grow. In windows over allocated memory, and over
// memory that begins at an odd multiple of four. MPI-4.1 sections 12.2 and 12.7.1.
// ranks: 2 4 8
// plain ranks: 2

#include "check.h"

enum { ARRAY = 502, WORDS = ARRAY + 2, ALL = 100, SINGLE = 800, TARGET = 1, ROUNDS = 2 };
enum { NOTHING, SOME, EACH, PHASES };

static MPI_Win win;
static int64_t added[WORDS];
static int32_t memory[WORDS + 1];

static void add_to_all(void)
{
    int32_t ones[ARRAY];
    for (int i = 0; i < ARRAY; i++)
        ones[i] = 1;
    for (int i = 0; i < ALL; i++) {
        OK(MPI_Accumulate(ones, ARRAY, MPI_INT32_T, TARGET, 1, ARRAY, MPI_INT32_T, MPI_SUM, win));
        OK(MPI_Win_flush(TARGET, win));
    }
    for (int i = 1; i <= ARRAY; i++)
        added[i] += ALL;
}

// The word of a call: the two words next to the array in turns, and some of the array.
static int word_of(int phase, int call)
{
    if (phase % PHASES == SOME && call % 7 == 0)
        return 1 + (call + 31 * rank) % ARRAY;
    if (phase % PHASES == EACH)
        return rank % 2 == 0 ? call % WORDS : WORDS - 1 - call % WORDS;
    return call % 2 == 0 ? 0 : WORDS - 1;
}

static void add_to_single(int phase)
{
    const int32_t one = 1;
    int32_t last[WORDS] = {0}, before;
    for (int i = 0; i < SINGLE; i++) {
        int word = word_of(phase, i);
        OK(MPI_Fetch_and_op(&one, &before, MPI_INT32_T, TARGET, word, MPI_SUM, win));
        OK(MPI_Win_flush(TARGET, win));
        CHECK(before >= last[word]);
        last[word] = before + 1;
        added[word]++;
    }
}

static void phases(const int32_t *base)
{
    int64_t sums[WORDS];
    memset(added, 0, sizeof added);
    for (int phase = 0; phase < ROUNDS * PHASES; phase++) {
        OK(MPI_Win_lock_all(0, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0)
            add_to_all();
        else
            add_to_single(phase);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        // After ranks that have made calls on single words, and make none now.
        if (rank == 0)
            add_to_all();
        OK(MPI_Win_unlock_all(win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Reduce(added, sums, WORDS, MPI_INT64_T, MPI_SUM, TARGET, MPI_COMM_WORLD));
    if (rank == TARGET) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, win));
        for (int i = 0; i < WORDS; i++)
            CHECK_EQ((long)base[i], (long)sums[i]);
        OK(MPI_Win_unlock(TARGET, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    int32_t *base, *owned;
    const MPI_Aint bytes = WORDS * sizeof *base;
    check_start(&argc, &argv);
    base = window_of(bytes, sizeof *base, &win);
    phases(base);
    OK(MPI_Win_free(&win));
    // From the second word of memory on.
    OK(MPI_Alloc_mem(bytes + sizeof *owned, MPI_INFO_NULL, &owned));
    memset(owned, 0, bytes + sizeof *owned);
    OK(MPI_Win_create(owned + 1, bytes, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    phases(owned + 1);
    OK(MPI_Win_free(&win));
    OK(MPI_Free_mem(owned));
    OK(MPI_Win_create(memory + 1, bytes, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    phases(memory + 1);
    OK(MPI_Win_free(&win));
    return check_end();
}
