// Intel's functions for notified access, on windows of the library, with any MPI that has none: as the
// library's own. And the proposal's names by fompi_mpi_next.h. Issue 59 of the MPI Forum. Where neither
// an MPI nor the library has these names there is nothing to test.
// ranks: 2 4

#include "notified.h"

#include "../../include/fompi_mpi_next.h"

int MPIX_Win_create_notify(MPI_Win win, int count);
int MPIX_Win_free_notify(MPI_Win win);
int MPIX_Win_get_notify(MPI_Win win, int index, MPI_Count *value);
int MPIX_Win_set_notify(MPI_Win win, int index, MPI_Count value);
int MPIX_Win_get_notify_request(MPI_Win win, int index, MPI_Count value, MPI_Request *request);
int MPIX_Put_notify(const void *origin, int origin_count, MPI_Datatype origin_type, int target,
                    MPI_Aint disp, int target_count, MPI_Datatype target_type, int index, MPI_Win win);
int MPIX_Put_notify_c(const void *origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
                      MPI_Aint disp, MPI_Count target_count, MPI_Datatype target_type, int index,
                      MPI_Win win);
int MPIX_Get_notify(void *origin, int origin_count, MPI_Datatype origin_type, int target,
                    MPI_Aint disp, int target_count, MPI_Datatype target_type, int index, MPI_Win win);
int MPIX_Get_notify_c(void *origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
                      MPI_Aint disp, MPI_Count target_count, MPI_Datatype target_type, int index,
                      MPI_Win win);
#pragma weak MPIX_Win_create_notify
#pragma weak MPIX_Win_free_notify
#pragma weak MPIX_Win_get_notify
#pragma weak MPIX_Win_set_notify
#pragma weak MPIX_Win_get_notify_request
#pragma weak MPIX_Put_notify
#pragma weak MPIX_Put_notify_c
#pragma weak MPIX_Get_notify
#pragma weak MPIX_Get_notify_c

static int *base;
static MPI_Win win;

static void wait_for(int index, MPI_Count wanted)
{
    MPI_Count value;
    do
        OK(MPIX_Win_get_notify(win, index, &value));
    while (value < wanted);
    CHECK_EQ(value, wanted);
}

static void by_intels_names(void)
{
    int next = next_rank(), word = rank, got[2] = { -1, -1 };
    MPI_Count value;
    OK(MPIX_Win_create_notify(win, 3));
    OK(MPI_Win_lock_all(0, win));
    OK(MPIX_Put_notify(&word, 1, MPI_INT, next, 0, 1, MPI_INT, 2, win));
    wait_for(2, 1);
    CHECK_EQ(base[0], previous_rank());
    OK(MPIX_Win_set_notify(win, 2, -5));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPIX_Put_notify_c(&word, 1, MPI_INT, next, 1, 1, MPI_INT, 2, win));
    wait_for(2, -4);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Request request;
    OK(MPIX_Win_get_notify_request(win, 0, 2, &request));
    OK(MPIX_Get_notify(&got[0], 1, MPI_INT, next, 0, 1, MPI_INT, 0, win));
    OK(MPIX_Get_notify_c(&got[1], 1, MPI_INT, next, 1, 1, MPI_INT, 0, win));
    OK(MPI_Win_flush(next, win));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(got[0], rank);
    CHECK_EQ(got[1], rank);
    EXPECT(MPIX_Put_notify(&word, 1, MPI_INT, next, 0, 1, MPI_INT, 3, win), FOMPI_ERR_RMA_NOTIFICATION);
    OK(MPI_Win_unlock_all(win));
    OK(MPIX_Win_free_notify(win));
    EXPECT(MPIX_Win_get_notify(win, 0, &value), FOMPI_ERR_RMA_NOTIFICATION);
}

static void by_the_proposals_names(void)
{
    int next = next_rank(), word = 10 + rank, count = 0, found = 0, *bound;
    MPI_Count value = 0;
    OK(MPI_Win_set_num_notify(win, MPI_INFO_NULL, 1));
    OK(MPI_Win_get_num_notify(win, next, &count));
    CHECK_EQ(count, 1);
    OK(MPI_Win_get_attr(win, MPI_WIN_NOTIFICATION_NUM_UB, &bound, &found));
    CHECK(found);
    OK(MPI_Win_lock_all(0, win));
    OK(PMPI_Put_notify(&word, 1, MPI_INT, next, 0, 1, MPI_INT, 0, win));
    EXPECT(MPI_Put_notify(&word, 1, MPI_INT, next, 0, 1, MPI_INT, 1, win), MPI_ERR_RMA_NOTIFICATION);
    while (value == 0)
        OK(MPI_Win_get_notify_value(win, 0, &value));
    CHECK_EQ(base[0], 10 + previous_rank());
    OK(MPI_Win_reset_notify_value(win, 0, &value));
    CHECK_EQ(value, 1);
    OK(MPI_Win_unlock_all(win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (has_notified()) {
        base = returning_window_of(2 * sizeof *base, sizeof *base, &win);
        by_intels_names();
        by_the_proposals_names();
        OK(MPI_Win_free(&win));
    }
    return check_end();
}
