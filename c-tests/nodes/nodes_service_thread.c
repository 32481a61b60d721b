// The thread that serves requests of other nodes over TCP has a name, blocks all signals, and may run
// on the processors of all ranks of its node, though each rank is bound to one of them. It begins with
// the first window. MPI-4.1 section 12.7.3.
// ranks: 2 4

#define _GNU_SOURCE // sched_setaffinity, RTLD_DEFAULT

#include "../../include/fompi.h"
#include "nodes.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sched.h>

enum { PROCESSORS_MAX = 64, KILL_AND_STOP = 1 << (SIGKILL - 1) | 1 << (SIGSTOP - 1) };

// Binds this thread to one of its processors: ranks of one node to different ones, if it has them.
static unsigned long bind_to_one(void)
{
    cpu_set_t mine, one;
    CHECK_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
    int wanted = rank % CPU_COUNT(&mine), processor = 0;
    while (!CPU_ISSET(processor, &mine) || wanted-- > 0)
        processor++;
    CHECK(processor < PROCESSORS_MAX);
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    return 1ul << processor;
}

// The processors of a thread.
static unsigned long processors_of(int thread)
{
    cpu_set_t its;
    unsigned long found = 0;
    CHECK_EQ(sched_getaffinity(thread, sizeof its, &its), 0);
    for (int processor = 0; processor < PROCESSORS_MAX; processor++)
        found |= (unsigned long)!!CPU_ISSET(processor, &its) << processor;
    return found;
}

// The service thread of this process, or 0. `blocked`: the signals that it blocks.
static int service_thread(unsigned long *blocked)
{
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    int thread = 0;
    for (struct dirent *task; (task = readdir(tasks)) != NULL && thread == 0;) {
        char path[300], line[200];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = fopen(path, "r");
        if (status == NULL)
            continue;
        while (fgets(line, sizeof line, status) != NULL) {
            if (strcmp(line, "Name:\tfompi-service\n") == 0)
                thread = atoi(task->d_name);
            if (thread != 0)
                sscanf(line, "SigBlk: %lx", blocked);
        }
        fclose(status);
    }
    closedir(tasks);
    return thread;
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    const char *net = getenv("FOMPI_NET");
    MPI_Comm node;
    const int per_node = ranks_per_node() > 0 ? ranks_per_node() : size;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank / per_node, rank, &node));
    unsigned long one = bind_to_one(), all = 0, blocked = 0;
    OK(MPI_Allreduce(&one, &all, 1, MPI_UNSIGNED_LONG, MPI_BOR, node));
    MPI_Win win;
    window_of(64, 1, &win);
    const int leads = rank % per_node == 0, thread = service_thread(&blocked);
    if (net != NULL && strcmp(net, "tcp") == 0 && size > per_node && leads)
        CHECK(thread != 0 || dlsym(RTLD_DEFAULT, "fompi_get_verbs_counts") == NULL);
    if (thread != 0) {
        // The thread may not have run yet.
        while (processors_of(thread) != all) // else the watchdog ends it
            usleep(1000);
        for (int number = 1; number < 32; number++)
            CHECK(((blocked | KILL_AND_STOP) >> (number - 1) & 1) == 1);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&node));
    return check_end();
}
