// One rank, the last, is killed by SIGKILL while the others wait for it in a one-sided call or
// access its memory: they get an error that names it, or end together with it, as the launcher
// decides. usage: killed MODE FILE, to which the survivors append a line each
//   lock shared fence start wait create free    the others wait for it, in an allocated window
//   test                                        they ask by MPI_Win_test until it completes
//   notified polled                             they wait for a notification, or poll the counter
//   created dynamic                             the others wait for it to make such a window too
//   again                                       all make and free windows when it is killed
//   puts gets requests accumulates              to its memory in a created window, all the time
//   holds_all                                   it holds the accumulate lock of rank 0
//   queued                                      it waits for that lock, in front of rank 1
//   attaches                                    it changes its table, which the others read
//   holds                                       it puts to the others, who change their tables
// With LEAVES_A_CHILD in the environment a child of it lives on. With STOPS_FIRST it is stopped
// (SIGSTOP) for so many seconds before it is killed.

#include "robust.h"

#include "../../include/fompi_notify.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

enum { BYTES = 4 << 20, RANKS_MAX = 16 };

#pragma weak FOMPI_Win_set_num_notify
#pragma weak FOMPI_Win_wait_notify
#pragma weak FOMPI_Win_get_notify_value

static MPI_Win win, created, dynamic, allocated;
static MPI_Comm comm;
static char *memory, *origin;
static MPI_Aint places[RANKS_MAX];

static void die(void)
{
    usleep(300000); // the others wait by then
    if (getenv("LEAVES_A_CHILD") != NULL && fork() == 0) {
        for (int fd = 0; fd < 3; fd++)
            close(fd); // the launcher waits for their ends
        sleep(20);
        _exit(0);
    }
    const char *seconds = getenv("STOPS_FIRST");
    if (seconds != NULL && fork() == 0) {
        sleep((unsigned)atoi(seconds));
        kill(getppid(), SIGKILL);
        _exit(0);
    }
    kill(getpid(), seconds != NULL ? SIGSTOP : SIGKILL);
}

// Dies in the middle of what this process does by then.
static void *die_meanwhile(void *unused)
{
    die();
    return unused;
}

// Between nodes the lock may be taken by its first use.
static int take_lock(int type, int target, MPI_Win of)
{
    const int code = MPI_Win_lock(type, target, 0, of);
    return code == MPI_SUCCESS ? MPI_Win_flush(target, of) : code;
}

// What all do before the victim dies.
static void prepare(const char *mode, int victim)
{
    if ((strcmp(mode, "lock") == 0 || strcmp(mode, "shared") == 0) && rank == victim)
        OK(take_lock(MPI_LOCK_EXCLUSIVE, 0, win));
    if (strcmp(mode, "notified") == 0 || strcmp(mode, "polled") == 0)
        OK(FOMPI_Win_set_num_notify(win, MPI_INFO_NULL, 1));
    MPI_Barrier(MPI_COMM_WORLD);
}

static int test_until_done(void)
{
    int done = 0, code = MPI_SUCCESS;
    while (code == MPI_SUCCESS && !done)
        code = MPI_Win_test(win, &done);
    return code;
}

static int poll_counter(void)
{
    MPI_Count value = 0;
    int code = MPI_SUCCESS;
    while (code == MPI_SUCCESS && value == 0)
        code = FOMPI_Win_get_notify_value(win, 0, &value);
    return code;
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
        return take_lock(MPI_LOCK_EXCLUSIVE, 0, win);
    if (strcmp(mode, "shared") == 0)
        return rank % 2 ? take_lock(MPI_LOCK_SHARED, 0, win) : MPI_Win_lock_all(0, win);
    if (strcmp(mode, "fence") == 0)
        return MPI_Win_fence(0, win);
    if (strcmp(mode, "start") == 0)
        return MPI_Win_start(group, 0, win);
    if (strcmp(mode, "notified") == 0)
        return FOMPI_Win_wait_notify(win, 0, 1);
    if (strcmp(mode, "polled") == 0)
        return poll_counter();
    if (strcmp(mode, "create") == 0)
        return MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &other);
    if (strcmp(mode, "created") == 0)
        return MPI_Win_create(memory, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other);
    if (strcmp(mode, "dynamic") == 0)
        return MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &other);
    if (strcmp(mode, "free") == 0)
        return MPI_Win_free(&win);
    OK(MPI_Win_post(group, 0, win));
    return strcmp(mode, "test") == 0 ? test_until_done() : MPI_Win_wait(win);
}

// Windows over the program's own memory, in which the ranks access each other all the time.
static void make_windows(void)
{
    MPI_Aint place;
    CHECK(size <= RANKS_MAX);
    memory = calloc(1, BYTES);
    origin = calloc(1, BYTES);
    OK(MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &created));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic));
    OK(MPI_Win_attach(dynamic, memory, BYTES));
    OK(MPI_Get_address(memory, &place));
    OK(MPI_Allgather(&place, 1, MPI_AINT, places, 1, MPI_AINT, MPI_COMM_WORLD));
    OK(MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &place, &allocated));
    OK(MPI_Win_set_errhandler(allocated, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock_all(0, allocated));
    OK(MPI_Win_set_errhandler(created, MPI_ERRORS_RETURN));
    OK(MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock_all(0, created));
    OK(MPI_Win_lock_all(0, dynamic));
}

static int access_created(const char *mode, int target)
{
    if (strcmp(mode, "puts") == 0)
        return MPI_Put(origin, BYTES, MPI_BYTE, target, 0, BYTES, MPI_BYTE, created);
    if (strcmp(mode, "gets") == 0)
        return MPI_Get(origin, BYTES, MPI_BYTE, target, 0, BYTES, MPI_BYTE, created);
    int count = BYTES / 32, code;
    if (strcmp(mode, "requests") == 0) {
        MPI_Request request;
        origin[BYTES - 1] = 1;
        code = MPI_Rget(origin, BYTES, MPI_BYTE, target, 0, BYTES, MPI_BYTE, created, &request);
        if (code == MPI_SUCCESS)
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(code != MPI_SUCCESS || origin[BYTES - 1] == 0);
        return code;
    }
    code = MPI_Accumulate(origin, count, MPI_INT, target, 0, count, MPI_INT, MPI_SUM, created);
    return code != MPI_SUCCESS ? code : MPI_Win_flush(target, created);
}

static char *page_inside(char *block)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return (char *)(((uintptr_t)block + BYTES / 2) & ~(page - 1));
}

// A signal handler: the rank has read up to that page of its origin, in the middle of an
// accumulate.
static void in_the_middle(int signal)
{
    (void)signal;
    if (rank != 0)
        die();
    usleep(700000); // the victim dies meanwhile
    mprotect(page_inside(origin), (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE);
}

static void stop_in_accumulate(void)
{
    signal(SIGSEGV, in_the_middle);
    mprotect(page_inside(origin), (size_t)sysconf(_SC_PAGESIZE), PROT_NONE);
}

// Single words need the lock, too, while it is held.
static int accumulate_all(int round)
{
    const int count = BYTES / 4;
    int one = 1, got;
    if (rank == 1 && round % 2 == 0)
        return MPI_Fetch_and_op(&one, &got, MPI_INT, 0, 0, MPI_SUM, allocated);
    return MPI_Accumulate(origin, count, MPI_INT, 0, 0, count, MPI_INT, MPI_SUM, allocated);
}

static int attach_and_detach(void)
{
    static char more[4096];
    int code = MPI_Win_attach(dynamic, more, sizeof more);
    return code != MPI_SUCCESS ? code : MPI_Win_detach(dynamic, more);
}

static int put_to(int target)
{
    return MPI_Put(origin, BYTES, MPI_BYTE, target, places[target], BYTES, MPI_BYTE, dynamic);
}

static int make_and_free(int round)
{
    MPI_Win other;
    int code = round % 2
        ? MPI_Win_create(memory, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other)
        : MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &other);
    if (code != MPI_SUCCESS)
        return code;
    OK(MPI_Win_set_errhandler(other, MPI_ERRORS_RETURN));
    return MPI_Win_free(&other);
}

// One of the many things that all ranks do until one has died.
static int step(const char *mode, int round, int victim)
{
    if (strcmp(mode, "again") == 0)
        return make_and_free(round);
    if (strcmp(mode, "holds_all") == 0 || strcmp(mode, "queued") == 0)
        return accumulate_all(round);
    if (strcmp(mode, "attaches") == 0)
        return rank == victim ? attach_and_detach() : put_to(victim);
    if (strcmp(mode, "holds") == 0) {
        int code = rank == victim ? put_to(round % victim) : attach_and_detach();
        return code != MPI_SUCCESS || rank == victim ? code : put_to(victim);
    }
    return access_created(mode, (rank + round) % size);
}

static int work(const char *mode, int victim)
{
    int code = MPI_SUCCESS;
    pthread_t killer;
    const int queued = strcmp(mode, "queued") == 0, holds_all = strcmp(mode, "holds_all") == 0;
    if ((queued && rank == 0) || (holds_all && rank == victim))
        stop_in_accumulate();
    else if (queued)
        usleep(rank == victim ? 100000 : 200000); // behind rank 0, which has the lock
    if (rank == victim && !holds_all)
        pthread_create(&killer, NULL, die_meanwhile, NULL);
    for (int round = 0; code == MPI_SUCCESS; round++)
        code = step(mode, round, victim);
    return code;
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
    make_windows();
    int works = strstr("again puts gets requests accumulates attaches holds holds_all queued", mode) != NULL;
    prepare(mode, victim);
    if (rank == victim && !works)
        die();
    double began = now();
    int code = works ? work(mode, victim) : wait_for(mode, victim), class = class_of(code);
    double waited = now() - began;
    if (code != MPI_SUCCESS)
        MPI_Error_string(code, text, &length);
    // A window on which somebody died still answers, instead of hanging.
    if (strcmp(mode, "lock") == 0 && take_lock(MPI_LOCK_EXCLUSIVE, 0, win) == MPI_SUCCESS)
        strcpy(text, "a second lock was granted");
    // Not through the launcher, which may have lost its head by now.
    FILE *file = fopen(argc > 2 ? argv[2] : "/dev/stdout", "a");
    fprintf(file, "rank %d after %.1f s, %s: %s\n", rank, waited, class ? "error" : "no error",
            text);
    fclose(file);
    usleep(1000000); // both survivors have written before a launcher sees the first one leave
    _exit(0); // MPI_Finalize would wait for the victim
}
