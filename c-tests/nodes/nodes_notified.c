// What notified operations between nodes cost: a put is a WRITE and an atomic request, without a wait; so
// is a get; a flush behind many of them is one wait. A wait of one second for a notification takes little
// of a processor. Issue 59 of the MPI Forum. The plain MPI has nothing to count.
// ranks: 2

#include "../../include/fompi.h"
#include "notified.h"

#include <dlfcn.h>
#include <sys/resource.h>

enum { COUNT = 100 };

static MPI_Win win;
static int (*get_counts)(fompi_verbs_counts *);
static fompi_verbs_counts before;

static fompi_verbs_counts counted(void)
{
    fompi_verbs_counts counts;
    CHECK(get_counts(&counts));
    return counts;
}

static void cost_at(int line, unsigned puts, unsigned gets, unsigned atomics, unsigned waits)
{
    const fompi_verbs_counts now = counted();
    const unsigned is[] = { now.puts - before.puts, now.gets - before.gets,
                            now.atomics - before.atomics, now.waits - before.waits };
    const unsigned wants[] = { puts, gets, atomics, waits };
    for (int i = 0; i < 4; i++)
        if (is[i] != wants[i])
            check_failed(__FILE__, line, "%u %u %u %u (puts gets atomics waits), not %u %u %u %u",
                         is[0], is[1], is[2], is[3], wants[0], wants[1], wants[2], wants[3]);
    before = now;
}

#define COST(...) cost_at(__LINE__, __VA_ARGS__)

static void operate(void)
{
    int word = 1;
    // The first one finds the target and its counters.
    OK(FOMPI_Put_notify(&word, 1, MPI_INT, 1, 0, 1, MPI_INT, 0, win));
    OK(MPI_Win_flush(1, win));
    before = counted();
    for (int i = 0; i < COUNT; i++)
        OK(FOMPI_Put_notify(&word, 1, MPI_INT, 1, 0, 1, MPI_INT, 0, win));
    COST(COUNT, 0, COUNT, 0);
    OK(MPI_Win_flush(1, win));
    COST(0, 0, 0, 1);
    for (int i = 0; i < 10; i++)
        OK(FOMPI_Get_notify(&word, 1, MPI_INT, 1, 0, 1, MPI_INT, 0, win));
    COST(0, 10, 10, 0);
    OK(MPI_Win_flush(1, win));
    COST(0, 0, 0, 1);
    for (int i = 0; i < 10; i++)
        OK(FOMPI_Put_notify(NULL, 0, MPI_BYTE, 1, 0, 0, MPI_BYTE, 1, win));
    COST(0, 0, 10, 0);
    OK(MPI_Win_flush(1, win));
}

static double processor_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    *(void **)&get_counts = dlsym(RTLD_DEFAULT, "fompi_get_verbs_counts");
    if (!has_notified() || get_counts == NULL)
        return check_end();
    window_of(64, sizeof(int), &win);
    if (!get_counts(&before)) { // on one node there is nothing to count
        OK(MPI_Win_free(&win));
        return check_end();
    }
    OK(FOMPI_Win_set_num_notify(win, MPI_INFO_NULL, 3));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        operate();
        sleep(1);
        OK(FOMPI_Put_notify(NULL, 0, MPI_BYTE, 1, 0, 0, MPI_BYTE, 2, win));
        OK(MPI_Win_flush(1, win));
    } else {
        OK(FOMPI_Win_wait_notify(win, 1, 10));
        CHECK_EQ(notified(win, 0), COUNT + 11);
        const double began = processor_seconds();
        OK(FOMPI_Win_wait_notify(win, 2, 1));
        // Not a limit of time: a thread that spins for a second takes most of it.
        CHECK(processor_seconds() - began < 0.5);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
