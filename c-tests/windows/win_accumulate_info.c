// What a window reports of its accumulates: mpi_accumulate_granularity is 0 whatever the program
// asks for, because the library ignores the hint; and fompi_accumulate_ops is any_op, which holds.
// MPI-4.1 sections 12.2.1, 12.2.7 and 12.7.1. The MPI alone does not report this.
// ranks: 1 2 4

#include "check.h"

enum { ROUNDS = 500 };

static char value[MPI_MAX_INFO_VAL + 1];

// The value that the window reports for a key; NULL: it does not know the key.
static const char *reported(MPI_Win win, const char *key)
{
    MPI_Info used;
    int flag;
    OK(MPI_Win_get_info(win, &used));
    OK(MPI_Info_get(used, key, MPI_MAX_INFO_VAL, value, &flag));
    OK(MPI_Info_free(&used));
    return flag ? value : NULL;
}

static void reports(MPI_Win win, const char *key, const char *want)
{
    const char *is = reported(win, key);
    if (is == NULL || strcmp(is, want) != 0)
        check_failed(__FILE__, __LINE__, "%s is reported as %s, not %s", key, is ? is : "nothing",
                     want);
}

// Adds 2 by other calls than those of the other ranks, and sets the lowest bit.
static void mix(MPI_Win win)
{
    const unsigned two[2] = {2, 2}, one = 1;
    unsigned before = 0, seen, swapped;
    for (int i = 0; i < ROUNDS; i++) {
        switch ((i + rank) % 4) {
        case 0:
            OK(MPI_Accumulate(two, 1, MPI_UNSIGNED, 0, 0, 1, MPI_UNSIGNED, MPI_SUM, win));
            break;
        case 1:
            OK(MPI_Fetch_and_op(two, &before, MPI_UNSIGNED, 0, 0, MPI_SUM, win));
            break;
        case 2:
            OK(MPI_Accumulate(two, 2, MPI_UNSIGNED, 0, 0, 2, MPI_UNSIGNED, MPI_SUM, win));
            break;
        default:
            do {
                seen = before, swapped = seen + 2;
                OK(MPI_Compare_and_swap(&swapped, &seen, &before, MPI_UNSIGNED, 0, 0, win));
                OK(MPI_Win_flush(0, win));
            } while (before != seen);
        }
        OK(MPI_Accumulate(&one, 1, MPI_UNSIGNED, 0, 0, 1, MPI_UNSIGNED, MPI_BOR, win));
    }
}

int main(int argc, char **argv)
{
    MPI_Info info;
    MPI_Win win;
    unsigned *base;
    check_start(&argc, &argv);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_accumulate_granularity", "64"));
    OK(MPI_Info_set(info, "fompi_accumulate_ops", "same_op"));
    OK(MPI_Win_allocate(64, sizeof *base, info, MPI_COMM_WORLD, (void *)&base, &win));
    if (reported(win, "fompi_transport")) {
        for (int turn = 0; turn < 2; turn++) {
            reports(win, "mpi_accumulate_granularity", "0");
            reports(win, "fompi_accumulate_ops", "any_op");
            OK(MPI_Win_set_info(win, info));
        }
        base[0] = base[1] = 0;
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_lock_all(0, win));
        mix(win);
        OK(MPI_Win_unlock_all(win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0)
            CHECK_EQ(base[0], 2 * ROUNDS * (unsigned)size + 1);
    }
    OK(MPI_Info_free(&info));
    OK(MPI_Win_free(&win));
    return check_end();
}
