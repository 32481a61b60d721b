// Over TCP the service thread sleeps while nothing waits to be sent and no request comes: a rank that
// computes keeps its processor. A put behind another one arrives though its origin computes. The
// program counts how often the thread gives its processor up, or loses it. The plain MPI has no such
// thread. MPI-4.1 section 12.7.3.
// ranks: 2 4

#define _GNU_SOURCE
#include "nodes.h"

#include <dirent.h>

enum { QUIET_MS = 500, WAKES_MAX = 2, SETTLE_MS = 50, COME_MS = 10000, PUTS = 3 };

// The switches of the thread of this name, or -1 without one.
static long switches_of(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    long found = -1;
    for (struct dirent *task; (task = readdir(tasks)) != NULL && found < 0;) {
        char path[300], line[200], its[64] = "";
        long count, all = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = fopen(path, "r");
        if (status == NULL)
            continue;
        while (fgets(line, sizeof line, status) != NULL) {
            sscanf(line, "Name:\t%63s", its);
            if (sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1 ||
                sscanf(line, "nonvoluntary_ctxt_switches: %ld", &count) == 1)
                all += count;
        }
        fclose(status);
        if (strcmp(its, name) == 0)
            found = all;
    }
    closedir(tasks);
    return found;
}

// Without a call of MPI.
static void compute(int milliseconds)
{
    usleep((useconds_t)milliseconds * 1000);
}

int main(int argc, char **argv)
{
    volatile int64_t *memory;
    const int64_t value = 1;
    MPI_Win win;
    check_start(&argc, &argv);
    OK(MPI_Win_allocate(PUTS * sizeof value, sizeof value, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                        &win));
    for (int i = 0; i < PUTS; i++)
        memory[i] = 0;
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const int next = (rank + 1) % size;
    for (int i = 0; i < PUTS; i++)
        OK(MPI_Put(&value, 1, MPI_INT64_T, next, i, 1, MPI_INT64_T, win));
    // No rank calls the MPI before its own puts have come, so none comes by a call of its origin.
    const int has_thread = switches_of("fompi-service") >= 0;
    for (int i = 0; i < PUTS && has_thread; i++) {
        for (int waited = 0; memory[i] != 1 && waited < COME_MS; waited++)
            compute(1);
        CHECK_EQ(memory[i], 1);
    }
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    compute(SETTLE_MS); // the barrier of the host MPI ends on all ranks
    const long before = switches_of("fompi-service");
    compute(QUIET_MS);
    const long wakes = switches_of("fompi-service") - before;
    if (wakes > WAKES_MAX)
        check_failed(__FILE__, __LINE__, "the service thread ran %ld times", wakes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
