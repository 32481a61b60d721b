// Accumulates of all ranks on words of one rank: what each fetches is its own, every operation
// counts, a place is claimed once, and each origin's take effect in its order, also those that
// nobody waits for. MPI-4.1 sections 12.5.2, 12.7.1 and 12.7.2.
// ranks: 2 4 8
// plain ranks: 2

#include "check.h"

#include <unistd.h>

enum { TIMES = 60, RANKS_MAX = 8, PLACES = 40, MANY = 300, OFTEN = 30, HALF_ROUNDS = 300, SOME = 1 };
enum { TICKET, HALVES, BITS, OWN, CLAIMED = OWN + RANKS_MAX, WIDE = CLAIMED + PLACES };
enum { MIXED = WIDE + MANY, LONGS = MIXED + MANY / 2 };

static MPI_Win win;
static int64_t *base;
static const int64_t one = 1;

// Nobody draws a ticket that another has drawn.
static void tickets(void)
{
    static int64_t drawn[TIMES], all[TIMES * RANKS_MAX];
    char seen[TIMES * RANKS_MAX] = {0};
    for (int i = 0; i < TIMES; i++) {
        OK(MPI_Fetch_and_op(&one, &drawn[i], MPI_INT64_T, 0, TICKET, MPI_SUM, win));
        OK(MPI_Win_flush(0, win));
    }
    OK(MPI_Allgather(drawn, TIMES, MPI_INT64_T, all, TIMES, MPI_INT64_T, MPI_COMM_WORLD));
    for (int i = 0; i < TIMES * size; i++) {
        CHECK(all[i] >= 0 && all[i] < TIMES * size);
        CHECK_EQ(seen[all[i]], 0);
        seen[all[i]] = 1;
    }
}

// More elements at once than a queue has places for.
static void many(void)
{
    static int64_t ones[MANY], got[MANY];
    for (int i = 0; i < MANY; i++)
        ones[i] = 1;
    OK(MPI_Accumulate(ones, MANY, MPI_INT64_T, 0, WIDE, MANY, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Win_flush(0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Get(got, MANY, MPI_INT64_T, 0, WIDE, MANY, MPI_INT64_T, win));
    OK(MPI_Win_flush(0, win));
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(got[i], size);
}

// Calls `work` with 0, 1 and so on, until each rank has done it often: some are much faster than
// others. Returns how often this one has.
static int together(void (*work)(int), int often)
{
    int times = 0, done = 0;
    MPI_Request request;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    while (!done) {
        work(times++);
        if (times == often)
            OK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
        if (times >= often)
            OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    }
    return times;
}

// Each rank turns a bit of its own in one word, and finds it as it has left it.
static void turn_a_bit(int times)
{
    const int64_t bit = one << rank;
    int64_t got;
    OK(MPI_Accumulate(&bit, 1, MPI_INT64_T, 0, BITS, 1, MPI_INT64_T, MPI_BXOR, win));
    OK(MPI_Fetch_and_op(NULL, &got, MPI_INT64_T, 0, BITS, MPI_NO_OP, win));
    OK(MPI_Win_flush(0, win));
    CHECK_EQ((got & bit) != 0, times % 2 == 0);
}

// Elements of half a word.
static void add_a_half(int times)
{
    const int32_t half = 1;
    (void)times;
    OK(MPI_Accumulate(&half, 1, MPI_INT32_T, 0, HALVES, 1, MPI_INT32_T, MPI_SUM, win));
    OK(MPI_Win_flush(0, win));
}

// The odd ranks add to many halves at once, the even ones to one of them now and then: a rank that
// took no part in the lock of the others would change one between their read and their write.
static void add_to_halves(int times)
{
    static int32_t ones[MANY];
    for (int i = 0; i < MANY; i++)
        ones[i] = 1;
    const int count = rank % 2 ? MANY : 1;
    const MPI_Aint at = MIXED + (rank % 2 ? 0 : times % (MANY / 2));
    if (rank % 2 == 0)
        usleep((useconds_t)(times * 37 % 100));
    OK(MPI_Accumulate(ones, count, MPI_INT32_T, 0, at, count, MPI_INT32_T, MPI_SUM, win));
    OK(MPI_Win_flush(0, win));
}

// A rank that has swapped 0 for its number has the word for itself until it swaps it back.
static void hold_a_word(int times)
{
    const int64_t nobody = 0, me = 1 + rank;
    int64_t before, seen;
    (void)times;
    OK(MPI_Compare_and_swap(&me, &nobody, &before, MPI_INT64_T, 0, OWN, win));
    OK(MPI_Win_flush(0, win));
    if (before != nobody)
        return;
    OK(MPI_Fetch_and_op(NULL, &seen, MPI_INT64_T, 0, OWN, MPI_NO_OP, win));
    OK(MPI_Compare_and_swap(&nobody, &me, &before, MPI_INT64_T, 0, OWN, win));
    OK(MPI_Win_flush(0, win));
    CHECK_EQ(seen, me);
    CHECK_EQ(before, me);
}

static void bits_and_halves(void)
{
    int mine, all;
    together(turn_a_bit, OFTEN);
    together(hold_a_word, OFTEN);
    mine = together(add_a_half, OFTEN);
    OK(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    if (rank == 0)
        CHECK_EQ(*(int32_t *)&base[HALVES], all);

    long added = (long)together(add_to_halves, HALF_ROUNDS) * (rank % 2 ? MANY : 1), sum;
    OK(MPI_Allreduce(&added, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    for (int i = 0; rank == 0 && i < MANY; i++)
        sum -= ((int32_t *)&base[MIXED])[i];
    CHECK(rank != 0 || sum == 0);
}

// Every place is claimed by one of all who try.
static void claims(void)
{
    int64_t before, nobody = 0, me = 1 + rank;
    long mine = 0, all = 0;
    for (int i = 0; i < PLACES; i++) {
        OK(MPI_Compare_and_swap(&me, &nobody, &before, MPI_INT64_T, 0, CLAIMED + i, win));
        OK(MPI_Win_flush(0, win));
        mine += before == nobody;
    }
    OK(MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQ(all, PLACES);
}

// A sum without a result, and then what reads it.
static void in_order(void)
{
    int64_t got[3], old, next;
    for (int64_t i = 0; i < TIMES; i++) {
        old = 3 * i + 2, next = 3 * i + 3;
        OK(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, OWN + rank, 1, MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Fetch_and_op(&one, &got[0], MPI_INT64_T, 0, OWN + rank, MPI_SUM, win));
        OK(MPI_Compare_and_swap(&next, &old, &got[1], MPI_INT64_T, 0, OWN + rank, win));
        OK(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, &got[2], 1, MPI_INT64_T, 0, OWN + rank, 1,
                              MPI_INT64_T, MPI_NO_OP, win));
        OK(MPI_Win_flush(0, win));
        CHECK_EQ(got[0], old - 1);
        CHECK_EQ(got[1], old);
        CHECK_EQ(got[2], next);
    }
}

// Rank 0 sees all sums of an access epoch when its wait or a test says that it is over.
static void in_an_access_epoch(void)
{
    int64_t ones[SOME];
    MPI_Group world, zero, others;
    const int first = 0;
    for (int k = 0; k < SOME; k++)
        ones[k] = 1;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &first, &zero));
    OK(MPI_Group_excl(world, 1, &first, &others));
    for (int i = 1; i <= 3 * TIMES; i++) {
        if (rank == 0) {
            OK(MPI_Win_post(others, 0, win));
            if (i % 4 == 0)
                OK(MPI_Win_wait(win));
            for (int done = i % 4 == 0; !done;)
                OK(MPI_Win_test(win, &done));
            for (int k = 0; k < SOME; k++)
                CHECK_EQ(base[WIDE + k], size + i * (size - 1));
        } else {
            OK(MPI_Win_start(zero, 0, win));
            OK(MPI_Accumulate(ones, SOME, MPI_INT64_T, 0, WIDE, SOME, MPI_INT64_T, MPI_SUM, win));
            OK(MPI_Win_complete(win));
        }
    }
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&zero));
    OK(MPI_Group_free(&others));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    base = window_of(LONGS * sizeof(int64_t), sizeof(int64_t), &win);
    OK(MPI_Win_lock_all(0, win));
    tickets();
    bits_and_halves();
    claims();
    many();
    in_order();
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    in_an_access_epoch();
    OK(MPI_Win_free(&win));
    return check_end();
}
