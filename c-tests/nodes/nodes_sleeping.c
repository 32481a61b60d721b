// A rank that waits for a rank of another node in MPI_Win_lock, MPI_Win_fence, MPI_Win_start or
// MPI_Win_wait sleeps: it uses little processor time. The thread that serves requests of other nodes
// over TCP does not wake up while there are none. The plain MPI may poll.
// MPI-4.1 sections 12.5 and 12.7.3.
// ranks: 2 4 8

#define _GNU_SOURCE // RTLD_DEFAULT

#include "../../include/fompi.h"
#include "check.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/resource.h>
#include <time.h>

enum { NAP_US = 300000, SHARE_MAX = 4, SLEEPS_MIN = 3 };

static MPI_Win win;
static int served;
static double wall_began, cpu_began;
static long sleeps_began;

static double seconds(clockid_t clock)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(clock, &now), 0);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// How often this thread has given up its processor to wait.
static long sleeps_of_thread(void)
{
    struct rusage used;
    CHECK_EQ(getrusage(RUSAGE_THREAD, &used), 0);
    return used.ru_nvcsw;
}

static void begin(void)
{
    sleeps_began = sleeps_of_thread();
    wall_began = seconds(CLOCK_MONOTONIC);
    cpu_began = seconds(CLOCK_THREAD_CPUTIME_ID);
}

// The wait since `begin` took less than a fourth of its time from a processor, and this thread slept:
// on a busy machine a thread that polls does not get more.
static void slept(const char *call)
{
    const double wall = seconds(CLOCK_MONOTONIC) - wall_began;
    const double cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu_began;
    const long sleeps = sleeps_of_thread() - sleeps_began;
    if (!served || wall < NAP_US / 2e6)
        return;
    if (sleeps < SLEEPS_MIN)
        check_failed(__FILE__, __LINE__, "%s slept %ld times", call, sleeps);
    if (cpu * SHARE_MAX > wall)
        check_failed(__FILE__, __LINE__, "%s used %d of %d us", call, (int)(cpu * 1e6),
                     (int)(wall * 1e6));
}

// Everybody waits for the lock that rank 0 has.
static void locks(void)
{
    const int target = size - 1;
    if (rank == 0)
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        usleep(NAP_US);
    } else {
        begin();
        OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
        // Over verbs and TCP the lock may be asked for only now.
        OK(MPI_Win_flush(target, win));
        slept("MPI_Win_lock");
    }
    OK(MPI_Win_unlock(target, win));
}

static void fences(void)
{
    OK(MPI_Win_fence(0, win));
    if (rank == 0)
        usleep(NAP_US);
    begin();
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    slept("MPI_Win_fence");
}

// The others expose their memory to rank 0, and rank 0 then its own to them, later than they
// expect.
static void epochs(void)
{
    MPI_Group all, first, others;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 1, (int[]){0}, &first));
    OK(MPI_Group_excl(all, 1, (int[]){0}, &others));
    if (rank == 0) {
        OK(MPI_Win_start(others, 0, win));
        usleep(NAP_US);
        OK(MPI_Win_complete(win));
        usleep(NAP_US);
        OK(MPI_Win_post(others, 0, win));
        begin();
        OK(MPI_Win_wait(win));
    } else {
        OK(MPI_Win_post(first, 0, win));
        begin();
        OK(MPI_Win_wait(win));
        slept("MPI_Win_wait");
        begin();
        OK(MPI_Win_start(first, 0, win));
        // The MPI may wait in this call only.
        OK(MPI_Win_complete(win));
        slept("MPI_Win_start");
    }
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&first));
    OK(MPI_Group_free(&others));
}

// How often the service thread of this process has fallen asleep; -1 if there is none.
static long sleeps_of_service(void)
{
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    long sleeps = -1;
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[300], line[200];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = fopen(path, "r");
        if (status == NULL)
            continue;
        int is_it = 0;
        while (fgets(line, sizeof line, status) != NULL) {
            is_it |= strcmp(line, "Name:\tfompi-service\n") == 0;
            if (is_it)
                sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps);
        }
        fclose(status);
    }
    closedir(tasks);
    return sleeps;
}

static void nothing(void)
{
    const char *net = getenv("FOMPI_NET"), *per_node = getenv("FOMPI_RANKS_PER_NODE");
    const int leads = per_node != NULL && rank % atoi(per_node) == 0;
    // A put that nothing waits for: it is sent later.
    char one = 1;
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Put(&one, 1, MPI_CHAR, next_rank(), 0, 1, MPI_CHAR, win));
    usleep(NAP_US / 3);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    usleep(NAP_US / 3);
    const long before = sleeps_of_service();
    if (served && leads && net != NULL && strcmp(net, "tcp") == 0)
        CHECK(before > 0);
    usleep(NAP_US);
    CHECK_EQ(sleeps_of_service(), before);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    window_of(64, 1, &win);
    int (*get_counts)(fompi_verbs_counts *);
    *(void **)&get_counts = dlsym(RTLD_DEFAULT, "fompi_get_verbs_counts");
    fompi_verbs_counts counts;
    served = get_counts != NULL && get_counts(&counts);
    locks();
    fences();
    epochs();
    nothing();
    OK(MPI_Win_free(&win));
    return check_end();
}
