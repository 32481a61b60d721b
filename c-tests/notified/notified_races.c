// Many threads of many ranks notify the same counters while their owner resets them, waits for any of
// them, and waits for one by requests: no notification is lost or counted twice. Requests mix with
// others in MPI_Waitall. MPI_Fetch_and_op and MPI_Compare_and_swap have requests, too. Issues 59 and 128
// of the MPI Forum. The plain MPI has none.
// ranks: 2 4

#include "notified.h"
#include "threads.h"

enum { COUNTERS = 20, ROUNDS = 400, THREADS = 2 };

static MPI_Win win;
static int64_t *base;

static void *notify(void *argument)
{
    int thread = *(int *)argument;
    int64_t one = 1;
    for (int i = 0; i < ROUNDS; i++)
        for (int target = 0; target < size; target++) {
            int index = (i + thread) % COUNTERS;
            if (i % 2)
                OK(FOMPI_Put_notify(NULL, 0, MPI_BYTE, target, 0, 0, MPI_BYTE, index, win));
            else
                OK(FOMPI_Accumulate_notify(&one, 1, MPI_INT64_T, target, index, 1, MPI_INT64_T, MPI_SUM,
                                           index, win));
        }
    return NULL;
}

// Takes what the others send, by resets, until all is there.
static void *take(void *argument)
{
    (void)argument;
    MPI_Count taken = 0, value, all = (MPI_Count)ROUNDS * THREADS * size;
    while (taken < all) {
        int index = -1;
        OK(FOMPI_Win_wait_any_notify(win, 0, COUNTERS, 1, &index));
        OK(FOMPI_Win_reset_notify_value(win, index, &value));
        CHECK(value >= 1);
        taken += value;
    }
    CHECK_EQ(taken, all);
    return NULL;
}

static void *either(void *argument)
{
    return *(int *)argument == THREADS ? take(argument) : notify(argument);
}

static void race(int threads)
{
    if (threads) {
        run_numbered_threads(THREADS + 1, either);
    } else {
        int thread[THREADS] = { 0, 1 };
        for (int i = 0; i < THREADS; i++)
            notify(&thread[i]);
        take(NULL);
    }
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int64_t sum = 0;
    for (int i = 0; i < COUNTERS; i++) {
        CHECK_EQ(notified(win, i), 0);
        sum += base[i];
    }
    CHECK_EQ(sum, (int64_t)ROUNDS / 2 * THREADS * size);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void try_requests(void)
{
    int word = rank, from = -1, other = next_rank();
    MPI_Request requests[5];
    MPI_Status statuses[5];
    OK(FOMPI_Win_notify_request(win, 0, 2, &requests[0]));
    OK(FOMPI_Win_notify_request(win, 1, 1, &requests[1]));
    OK(FOMPI_Win_notify_request(win, 2, 0, &requests[2]));
    OK(MPI_Irecv(&from, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &requests[3]));
    OK(MPI_Isend(&word, 1, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[4]));
    int done = 1;
    OK(MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE));
    CHECK(!done);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(FOMPI_Put_notify(NULL, 0, MPI_BYTE, other, 0, 0, MPI_BYTE, 0, win));
    OK(FOMPI_Put_notify(NULL, 0, MPI_BYTE, other, 0, 0, MPI_BYTE, 0, win));
    OK(FOMPI_Put_notify(NULL, 0, MPI_BYTE, other, 0, 0, MPI_BYTE, 1, win));
    OK(MPI_Win_flush(other, win));
    OK(MPI_Waitall(5, requests, statuses));
    CHECK_EQ(from, previous_rank());
    CHECK_EQ(notified(win, 0), 2);
    CHECK_EQ(notified(win, 1), 1);
}

static void try_words(void)
{
    int64_t one = 1, zero = 0, seven = 7, result = -1;
    MPI_Request request;
    for (int i = 0; i < COUNTERS; i++)
        base[i] = 0;
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(FOMPI_Rfetch_and_op(&one, &result, MPI_INT64_T, next_rank(), 3, MPI_SUM, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(result, 0);
    OK(FOMPI_Rfetch_and_op(&one, &result, MPI_INT64_T, next_rank(), 3, MPI_SUM, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(result, 1);
    OK(FOMPI_Rcompare_and_swap(&seven, &zero, &result, MPI_INT64_T, next_rank(), 4, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(result, 0);
    OK(FOMPI_Rcompare_and_swap(&one, &zero, &result, MPI_INT64_T, next_rank(), 4, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(result, 7);
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(base[3], 2);
    CHECK_EQ(base[4], 7);
}

int main(int argc, char **argv)
{
    int threads = check_start_threads(&argc, &argv);
    if (has_notified()) {
        base = window_of(COUNTERS * sizeof *base, sizeof *base, &win);
        OK(FOMPI_Win_set_num_notify(win, MPI_INFO_NULL, COUNTERS));
        OK(MPI_Win_lock_all(0, win));
        race(threads);
        try_requests();
        try_words();
        OK(MPI_Win_unlock_all(win));
        OK(MPI_Win_free(&win));
    }
    return check_end();
}
