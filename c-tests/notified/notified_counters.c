// The counters of notified operations: each rank has a number of its own, up to thousands; a new number
// sets all to 0 and may be smaller; a wrong index, at the target or at the own rank, is an error of its
// own class before any byte moves; an error of one rank is one of all; attributes, info key, epochs.
// Issue 59 of the MPI Forum. The plain MPI has none.
// ranks: 1 2 4

#include "notified.h"

static MPI_Win win;
static int *base;

static int count_of(int target)
{
    int count = -1;
    OK(FOMPI_Win_get_num_notify(win, target, &count));
    return count;
}

static void put(int target, int value, int index)
{
    OK(FOMPI_Put_notify(&value, 1, MPI_INT, target, rank, 1, MPI_INT, index, win));
}

static void expect_no_counters(void)
{
    MPI_Count value;
    int word = 1, bad = FOMPI_ERR_RMA_NOTIFICATION, other = next_rank();
    CHECK_EQ(count_of(other), 0);
    EXPECT(FOMPI_Win_get_notify_value(win, 0, &value), bad);
    OK(MPI_Win_lock_all(0, win));
    EXPECT(FOMPI_Put_notify(&word, 1, MPI_INT, other, 0, 1, MPI_INT, 0, win), bad);
    OK(MPI_Win_unlock_all(win));
}

// Rank r has `of(r)` counters; each rank sends to the first and the last of each.
static void try_numbers(int first, int step)
{
    int own = first + step * rank;
    OK(FOMPI_Win_set_num_notify(win, MPI_INFO_NULL, own));
    for (int target = 0; target < size; target++)
        CHECK_EQ(count_of(target), first + step * target);
    OK(MPI_Win_lock_all(0, win));
    for (int target = 0; target < size; target++) {
        int last = first + step * target - 1, word = -5;
        put(target, 100 + rank, last);
        put(target, 100 + rank, 0);
        EXPECT(FOMPI_Put_notify(&word, 1, MPI_INT, target, rank, 1, MPI_INT, last + 1, win),
               FOMPI_ERR_RMA_NOTIFICATION);
        EXPECT(FOMPI_Put_notify(&word, 1, MPI_INT, target, rank, 1, MPI_INT, -1, win),
               FOMPI_ERR_RMA_NOTIFICATION);
        EXPECT(FOMPI_Accumulate_notify(&word, 1, MPI_INT, target, rank, 1, MPI_INT, MPI_SUM, last + 1,
                                       win), FOMPI_ERR_RMA_NOTIFICATION);
        EXPECT(FOMPI_Get_notify(&word, 1, MPI_INT, target, rank, 1, MPI_INT, 1 << 30, win),
               FOMPI_ERR_RMA_NOTIFICATION);
    }
    MPI_Count value;
    OK(FOMPI_Win_wait_notify(win, 0, own == 1 ? 2 * size : size));
    OK(FOMPI_Win_wait_notify(win, own - 1, own == 1 ? 2 * size : size));
    for (int i = 0; i < size; i++)
        CHECK_EQ(base[i], 100 + i);
    EXPECT(FOMPI_Win_get_notify_value(win, own, &value), FOMPI_ERR_RMA_NOTIFICATION);
    EXPECT(FOMPI_Win_get_notify_value(win, -1, &value), FOMPI_ERR_RMA_NOTIFICATION);
    EXPECT(FOMPI_Win_reset_notify_value(win, own, &value), FOMPI_ERR_RMA_NOTIFICATION);
    EXPECT(FOMPI_Win_wait_notify(win, own, 0), FOMPI_ERR_RMA_NOTIFICATION);
    int index;
    EXPECT(FOMPI_Win_wait_any_notify(win, 0, own + 1, 0, &index), FOMPI_ERR_RMA_NOTIFICATION);
    EXPECT(FOMPI_Win_wait_any_notify(win, 0, 0, 0, &index), MPI_ERR_ARG);
    // The number does not change while an access epoch of this rank is open.
    OK(MPI_Barrier(MPI_COMM_WORLD));
    EXPECT(FOMPI_Win_set_num_notify(win, MPI_INFO_NULL, 3), MPI_ERR_RMA_SYNC, MPI_ERR_UNSUPPORTED_OPERATION);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(count_of(rank), own);
    CHECK_EQ(notified(win, own - 1), own == 1 ? 2 * size : size);
    memset(base, 0, (size_t)size * sizeof *base);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void try_wrong_numbers(void)
{
    // One rank is wrong: all get an error, and the counters stay.
    OK(FOMPI_Win_set_num_notify(win, MPI_INFO_NULL, 2));
    int number = rank == size - 1 ? -1 : 5, code = FOMPI_Win_set_num_notify(win, MPI_INFO_NULL, number);
    CHECK(code != MPI_SUCCESS);
    if (rank == size - 1) {
        int class;
        OK(MPI_Error_class(code, &class));
        CHECK_EQ(class, MPI_ERR_ARG);
    }
    CHECK_EQ(count_of(next_rank()), 2);
}

static void try_epochs(void)
{
    int word = 1;
    OK(MPI_Win_fence(0, win));
    EXPECT(FOMPI_Put_notify(&word, 1, MPI_INT, rank, 0, 1, MPI_INT, 0, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    EXPECT(FOMPI_Put_notify(&word, 1, MPI_INT, rank, 0, 1, MPI_INT, 0, win), MPI_ERR_RMA_SYNC);
    for (int type = 0; type < 2; type++) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_lock(type ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
        // An ordinary put ahead of it may be kept back until the lock is held.
        OK(MPI_Put(&word, 1, MPI_INT, next_rank(), 1, 1, MPI_INT, win));
        OK(FOMPI_Put_notify(&word, 1, MPI_INT, next_rank(), 0, 1, MPI_INT, 1, win));
        OK(FOMPI_Win_wait_notify(win, 1, type + 1));
        OK(MPI_Win_unlock(next_rank(), win));
        CHECK_EQ(base[0], 1);
    }
    CHECK_EQ(notified(win, 0), 0);
}

static void try_attributes(void)
{
    int *number, found = 0;
    MPI_Count *most;
    OK(MPI_Win_get_attr(win, FOMPI_WIN_NOTIFICATION_NUM_SB, &number, &found));
    CHECK(found && *number >= 16);
    OK(MPI_Win_get_attr(win, FOMPI_WIN_NOTIFICATION_NUM_UB, &number, &found));
    CHECK(found && *number >= 5000);
    OK(MPI_Win_get_attr(win, FOMPI_WIN_NOTIFICATION_VALUE_UB, &most, &found));
    CHECK(found && *most == INT64_MAX);
    CHECK_EQ(FOMPI_WIN_NOTIFICATION_NUM_SB, FOMPI_WIN_NOTIFICATION_NUM_SB);
    CHECK(FOMPI_WIN_NOTIFICATION_NUM_SB != FOMPI_WIN_NOTIFICATION_NUM_UB);
    // The class is a code that has a text.
    char text[MPI_MAX_ERROR_STRING];
    text_of(FOMPI_ERR_RMA_NOTIFICATION, text);
    CHECK(strstr(text, "notification") != NULL);
}

static void try_promise(void)
{
    MPI_Info info, given;
    char value[100] = "";
    int found = 0;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_max_num_notify", "4"));
    MPI_Win other;
    int *memory;
    OK(MPI_Win_allocate(64, 1, info, MPI_COMM_WORLD, &memory, &other));
    OK(MPI_Win_set_errhandler(other, MPI_ERRORS_RETURN));
    OK(MPI_Win_get_info(other, &given));
    OK(MPI_Info_get(given, "mpi_assert_max_num_notify", 99, value, &found));
    CHECK(found && atoi(value) == 4);
    OK(MPI_Info_free(&given));
    OK(MPI_Info_set(info, "mpi_assert_max_num_notify", "40"));
    OK(MPI_Win_set_info(other, info));
    EXPECT(FOMPI_Win_set_num_notify(other, MPI_INFO_NULL, 5), MPI_ERR_ARG);
    OK(FOMPI_Win_set_num_notify(other, MPI_INFO_NULL, 4));
    OK(MPI_Win_free(&other));
    OK(MPI_Info_free(&info));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (has_notified()) {
        base = returning_window_of(size * sizeof *base + 64, sizeof *base, &win);
        expect_no_counters();
        try_numbers(1, 0);
        try_numbers(3, 1);
        try_numbers(5000, 100);
        try_numbers(2, 0);
        try_wrong_numbers();
        try_epochs();
        try_attributes();
        try_promise();
        OK(FOMPI_Win_set_num_notify(win, MPI_INFO_NULL, 0));
        expect_no_counters();
        OK(MPI_Win_free(&win));
    }
    return check_end();
}
