// Hints are accepted at creation and later; get_info returns a new info object that holds the hints
// in use, and that the caller frees. MPI-4.1 section 12.2.7.
// ranks: 1 2 4

#include "check.h"

// A hint that the window reports must be the one that was given.
static void reported_hint_is(MPI_Win win, const char *key, const char *want)
{
    MPI_Info used;
    char value[MPI_MAX_INFO_VAL + 1];
    int keys, flag;
    OK(MPI_Win_get_info(win, &used));
    CHECK(used != MPI_INFO_NULL);
    OK(MPI_Info_get_nkeys(used, &keys));
    CHECK(keys >= 0);
    OK(MPI_Info_get(used, key, MPI_MAX_INFO_VAL, value, &flag));
    if (flag)
        CHECK(strcmp(value, want) == 0);
    OK(MPI_Info_free(&used));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    MPI_Info info;
    int *base, value;
    check_start(&argc, &argv);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_locks", "false"));
    OK(MPI_Info_set(info, "accumulate_ordering", "rar,raw,war,waw"));
    OK(MPI_Info_set(info, "accumulate_ops", "same_op_no_op"));
    OK(MPI_Info_set(info, "same_size", "true"));
    OK(MPI_Info_set(info, "same_disp_unit", "true"));
    OK(MPI_Info_set(info, "a_hint_that_nobody_knows", "7"));
    OK(MPI_Win_allocate(16, 4, info, MPI_COMM_WORLD, &base, &win));
    reported_hint_is(win, "same_size", "true");
    reported_hint_is(win, "no_locks", "false");

    OK(MPI_Win_set_info(win, info));
    reported_hint_is(win, "same_disp_unit", "true");
    OK(MPI_Info_free(&info));
    reported_hint_is(win, "same_size", "true");

    value = rank;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT, next_rank(), 1, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(base[1], previous_rank());
    OK(MPI_Win_free(&win));
    return check_end();
}
