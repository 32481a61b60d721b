// A writer gets in although readers come and go without a gap, and a reader although writers do:
// readers stop only once the writer was let in, and the other way about. MPI-4.1 section 12.7.3.
// ranks: 3 4 8
// plain ranks: 3

#include "check.h"

enum { COUNT = 16 };

static MPI_Win win;

static void set_done(int place)
{
    const int one = 1;
    OK(MPI_Accumulate(&one, 1, MPI_INT, 1, place, 1, MPI_INT, MPI_REPLACE, win));
    OK(MPI_Win_flush(1, win));
}

static int is_done(int place)
{
    int done = 0;
    OK(MPI_Fetch_and_op(NULL, &done, MPI_INT, 1, place, MPI_NO_OP, win));
    OK(MPI_Win_flush(1, win));
    return done;
}

// Rank 0 takes a lock of type `rare` on the last rank; all others take `common` ones, so often and
// so overlapping that there is never a moment without, until rank 0 was let in. The word that says
// so is at rank 1, on a window of its own.
static void one_against_many(MPI_Win contended, int rare, int common, int place)
{
    int target = size - 1, value = rank, got;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        OK(MPI_Win_lock(rare, target, 0, contended));
        OK(MPI_Put(&value, 1, MPI_INT, target, 0, 1, MPI_INT, contended));
        OK(MPI_Win_unlock(target, contended));
        set_done(place);
    } else {
        while (!is_done(place)) {
            OK(MPI_Win_lock(common, target, 0, contended));
            OK(MPI_Get(&got, 1, MPI_INT, target, 1, 1, MPI_INT, contended));
            OK(MPI_Win_unlock(target, contended));
        }
    }
}

// The same, where what everybody else takes is lock_all.
static void one_against_lock_all(MPI_Win contended, int place)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, contended));
        OK(MPI_Win_unlock(size - 1, contended));
        set_done(place);
    } else {
        while (!is_done(place)) {
            OK(MPI_Win_lock_all(0, contended));
            OK(MPI_Win_unlock_all(contended));
        }
    }
}

// And lock_all against exclusive locks.
static void lock_all_against_many(MPI_Win contended, int place)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        OK(MPI_Win_lock_all(0, contended));
        OK(MPI_Win_unlock_all(contended));
        set_done(place);
    } else {
        while (!is_done(place)) {
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, contended));
            OK(MPI_Win_unlock(size - 1, contended));
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Win contended;
    check_start(&argc, &argv);
    window_of(COUNT * sizeof(int), sizeof(int), &win);
    window_of(COUNT * sizeof(int), sizeof(int), &contended);
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int i = 0; i < 3; i++) {
        one_against_many(contended, MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED, 4 * i);
        one_against_many(contended, MPI_LOCK_SHARED, MPI_LOCK_EXCLUSIVE, 4 * i + 1);
        one_against_lock_all(contended, 4 * i + 2);
        lock_all_against_many(contended, 4 * i + 3);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&contended));
    OK(MPI_Win_free(&win));
    return check_end();
}
