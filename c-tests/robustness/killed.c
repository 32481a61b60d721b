// One rank, the last, is killed by SIGKILL while the others wait for it in a one-sided call: they
// get an error that names it, or end together with it, as the launcher decides.
// usage: killed lock|shared|fence|start|wait|create|free FILE     the survivors append a line each

#include "robust.h"

#include <signal.h>
#include <time.h>

static MPI_Win win;
static MPI_Comm comm;

static void die(void)
{
    usleep(300000); // the others wait by then
    kill(getpid(), SIGKILL);
}

// What all do before the victim dies.
static void prepare(const char *mode, int victim)
{
    if ((strcmp(mode, "lock") == 0 || strcmp(mode, "shared") == 0) && rank == victim)
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    MPI_Barrier(MPI_COMM_WORLD);
}

// Where the others wait for the victim.
static int wait_for(const char *mode, int victim)
{
    MPI_Group all, group;
    MPI_Win other;
    void *base;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &victim, &group);
    if (strcmp(mode, "lock") == 0)
        return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    if (strcmp(mode, "shared") == 0)
        return rank % 2 ? MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win) : MPI_Win_lock_all(0, win);
    if (strcmp(mode, "fence") == 0)
        return MPI_Win_fence(0, win);
    if (strcmp(mode, "start") == 0)
        return MPI_Win_start(group, 0, win);
    if (strcmp(mode, "create") == 0)
        return MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &other);
    if (strcmp(mode, "free") == 0)
        return MPI_Win_free(&win);
    OK(MPI_Win_post(group, 0, win));
    return MPI_Win_wait(win);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    signal(SIGUSR1, SIG_IGN); // MPICH's launcher tells the survivors so
    start(30, &argc, &argv);
    const char *mode = argc > 1 ? argv[1] : "lock";
    int victim = size - 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    window_of(4, &win);
    prepare(mode, victim);
    if (rank == victim)
        die();
    double began = now();
    int code = wait_for(mode, victim), class = class_of(code);
    double waited = now() - began;
    if (code != MPI_SUCCESS)
        MPI_Error_string(code, text, &length);
    // A window on which somebody died still answers, instead of hanging.
    if (strcmp(mode, "lock") == 0 && MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win) == MPI_SUCCESS)
        strcpy(text, "a second lock was granted");
    // Not through the launcher, which may have lost its head by now.
    FILE *file = fopen(argc > 2 ? argv[2] : "/dev/stdout", "a");
    fprintf(file, "rank %d after %.1f s, %s: %s\n", rank, waited, class ? "error" : "no error",
            text);
    fclose(file);
    usleep(500000); // both survivors have written before a launcher sees the first one leave
    _exit(0); // MPI_Finalize would wait for the victim
}
