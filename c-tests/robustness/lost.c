// One rank of four, two to a node, is killed while the others wait in a one-sided call, on its node
// and on the other one, and nobody need have contacted it. Each of the others gets an error that
// names it, though none of them exits, and one may compute meanwhile: LATE, which calls when the
// others have their errors. usage: lost MODE FILE VICTIM [LATE]; FILE gets a line from each of them,
// and FILE.pid the process number of the victim
//   lock created    the victim holds the lock that the others wait for, in an allocated window or
//                   in one of the program's own memory
//   fence free      all wait for all
//   start           the others wait for its post
//   wait test       the others wait for its MPI_Win_complete, or ask for it again and again
//   beside          all have contacted it, but wait in a window that it has no part in: no error
// or: lost departed FILE
//   a spawned process was in a window with all, has disconnected and finalised: no error either

#include "robust.h"

#include <signal.h>
#include <time.h>

static MPI_Win win;
static int64_t *base;
static const char *path;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// How many have said what they got.
static int told(void)
{
    int lines = 0, c;
    FILE *file = fopen(path, "r");
    while (file != NULL && (c = fgetc(file)) != EOF)
        lines += c == '\n';
    if (file != NULL)
        fclose(file);
    return lines;
}

static void wait_until_told(int count)
{
    while (told() < count)
        usleep(20000);
}

static void say(double waited, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code != MPI_SUCCESS)
        MPI_Error_string(code, text, &length);
    FILE *file = fopen(path, "a");
    fprintf(file, "rank %d after %.1f s, %s: %s\n", rank, waited,
            code == MPI_SUCCESS ? "no error" : "error", text);
    fclose(file);
}

// Between nodes the lock may be taken by its first use.
static int take_lock(int target, MPI_Win of)
{
    const int code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, of);
    return code == MPI_SUCCESS ? MPI_Win_flush(target, of) : code;
}

static void die(void)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.pid", path);
    FILE *file = fopen(name, "w");
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
    usleep(300000); // the others wait by then
    kill(getpid(), SIGKILL);
}

static int wait_for(const char *mode, int victim)
{
    MPI_Group all, group;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &victim, &group);
    if (strcmp(mode, "fence") == 0)
        return MPI_Win_fence(0, win);
    if (strcmp(mode, "free") == 0)
        return MPI_Win_free(&win);
    if (strcmp(mode, "start") == 0)
        return MPI_Win_start(group, 0, win);
    if (strcmp(mode, "wait") == 0) {
        OK(MPI_Win_post(group, 0, win));
        return MPI_Win_wait(win);
    }
    if (strcmp(mode, "test") == 0) {
        int done = 0, code = MPI_SUCCESS;
        OK(MPI_Win_post(group, 0, win));
        while (code == MPI_SUCCESS && !done)
            code = MPI_Win_test(win, &done);
        return code;
    }
    return take_lock((victim + 2) % size, win);
}

// A wait that is longer than it takes to find out that a process is gone, and then all that waits
// for all others of the window.
static int wait_long(MPI_Comm comm)
{
    MPI_Win other;
    int64_t *words, one = 1;
    int me, ranks, code;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &ranks);
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, &words, &other));
    OK(MPI_Win_set_errhandler(other, MPI_ERRORS_RETURN));
    if (me == 1)
        OK(take_lock(0, other));
    MPI_Barrier(comm);
    if (me == 1) {
        sleep(8);
    } else {
        code = take_lock(0, other);
        if (code != MPI_SUCCESS)
            return code;
    }
    for (int target = 0; target < ranks; target++)
        if (target != 0)
            OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, other));
    for (int target = 0; target < ranks; target++)
        OK(MPI_Put(&one, 1, MPI_INT64_T, target, me, 1, MPI_INT64_T, other));
    code = MPI_Win_flush_all(other);
    for (int target = 0; target < ranks && code == MPI_SUCCESS; target++)
        code = MPI_Win_unlock(target, other);
    if (code == MPI_SUCCESS)
        code = MPI_Win_fence(0, other);
    return code == MPI_SUCCESS ? MPI_Win_free(&other) : code;
}

// Contacts all, then waits in a window of all but the victim.
static int beside(int victim)
{
    MPI_Comm others;
    int64_t one = 1;
    OK(MPI_Win_lock_all(0, win));
    for (int target = 0; target < size; target++)
        OK(MPI_Put(&one, 1, MPI_INT64_T, target, rank, 1, MPI_INT64_T, win));
    OK(MPI_Win_unlock_all(win));
    MPI_Comm_split(MPI_COMM_WORLD, rank == victim, 0, &others);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == victim)
        die();
    return wait_long(others);
}

static int departed(char *program)
{
    MPI_Comm parent, between, all;
    MPI_Win both;
    int64_t *words, one = 1;
    int ranks;
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL)
        OK(MPI_Comm_spawn(program, (char *[]){"departed", (char *)path, NULL}, 1, MPI_INFO_NULL, 0,
                          MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE));
    else
        between = parent;
    OK(MPI_Intercomm_merge(between, parent != MPI_COMM_NULL, &all));
    MPI_Comm_size(all, &ranks);
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, all, &words, &both));
    OK(MPI_Win_lock_all(0, both));
    for (int target = 0; target < ranks; target++)
        OK(MPI_Put(&one, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, both));
    OK(MPI_Win_unlock_all(both));
    OK(MPI_Win_free(&both));
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&between);
    if (parent != MPI_COMM_NULL) {
        MPI_Finalize();
        exit(0);
    }
    return wait_long(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    signal(SIGUSR1, SIG_IGN); // MPICH's launcher tells the survivors so
    start(40, &argc, &argv);
    const char *mode = argc > 1 ? argv[1] : "departed";
    path = argc > 2 ? argv[2] : "/dev/stdout";
    int victim = argc > 3 ? atoi(argv[3]) : -1, late = argc > 4 ? atoi(argv[4]) : -1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (strcmp(mode, "departed") == 0) {
        say(0, departed(argv[0]));
        MPI_Finalize();
        return 0;
    }
    if (strcmp(mode, "created") == 0) {
        base = calloc(8, 8);
        OK(MPI_Win_create(base, 64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    } else {
        base = window_of(8, &win);
    }
    if (rank == victim && (strcmp(mode, "lock") == 0 || strcmp(mode, "created") == 0))
        OK(take_lock((victim + 2) % size, win));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == victim && strcmp(mode, "beside") != 0)
        die();
    if (rank == late)
        wait_until_told(size - 2);
    double began = now();
    int code = strcmp(mode, "beside") == 0 ? beside(victim) : wait_for(mode, victim);
    say(now() - began, code);
    wait_until_told(size - 1);
    usleep(500000); // all have seen it
    _exit(0); // MPI_Finalize would wait for the victim
}
