// The last rank is killed, and its process number goes to a process outside of the job, a copy of
// rank 0 with memory at the same addresses. What the others do to the memory of the rank is an
// error that names it and leaves the memory of that process alone, and so is waiting for it.
// usage: reused MODE FILE; FILE gets a line from each of the others
//   known   they have accessed its memory before
//   fresh   they access it for the first time then
//   full    as before, and have no file descriptor left

#define _GNU_SOURCE
#include "robust.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { BYTES = 64 << 10, FILL = 0x5a };

static MPI_Win locked, created, dynamic;
static char *memory;
static int64_t *told, one = 1;
static int victim;
static long pids[16];
static char origin[BYTES];
static FILE *file;

// Memory at an address that is free in every process.
static void *here(void)
{
    void *at = (void *)0x100000000000;
    void *got = mmap(at, BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(got == at);
    return got;
}

static void make_windows(void)
{
    long pid = getpid();
    memory = here();
    told = window_of(2, &locked);
    OK(MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &created));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic));
    OK(MPI_Win_attach(dynamic, memory, BYTES));
    OK(MPI_Allgather(&pid, 1, MPI_LONG, pids, 1, MPI_LONG, MPI_COMM_WORLD));
    OK(MPI_Win_set_errhandler(created, MPI_ERRORS_RETURN));
    OK(MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock_all(0, created));
    OK(MPI_Win_lock_all(0, dynamic));
}

static void no_descriptors(void)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_cur < 256 ? limit.rlim_cur : 256;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while (open("/dev/null", O_RDONLY) >= 0) {
    }
    CHECK(errno == EMFILE);
}

static void say(const char *text)
{
    fprintf(file, "rank %d: %s\n", rank, text);
    fflush(file);
}

// A process with the number of the victim. The system must allow to choose a number.
static pid_t take_number(const int *ready)
{
    pid_t number = (pid_t)pids[victim];
    struct clone_args how = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&number,
                             .set_tid_size = 1};
    long made;
    while ((made = syscall(SYS_clone3, &how, sizeof how)) < 0 && errno == EEXIST)
        usleep(100); // the rank that has to has not asked for the victim yet
    if (made < 0 && (errno == EPERM || errno == ENOSYS)) {
        char text[100];
        snprintf(text, sizeof text, "skipped, no process number may be chosen: %s", strerror(errno));
        say(text);
        _exit(0);
    }
    CHECK(made >= 0);
    if (made == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        memset(memory, FILL, BYTES);
        CHECK(write(ready[1], "", 1) == 1);
        for (;;)
            pause();
    }
    CHECK(made == number);
    return number;
}

static int is_untouched(pid_t stranger)
{
    static char seen[BYTES];
    struct iovec to = {seen, BYTES}, from = {memory, BYTES};
    CHECK(process_vm_readv(stranger, &to, 1, &from, 1, 0) == BYTES);
    for (int i = 0; i < BYTES; i++)
        if (seen[i] != FILL)
            return 0;
    return 1;
}

// The call must return the error that names the victim.
static void names_it(const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "no error", expected[64], line[MPI_MAX_ERROR_STRING + 100];
    int length;
    snprintf(expected, sizeof expected, "rank %d (process %ld) died", victim, pids[victim]);
    if (code != MPI_SUCCESS)
        MPI_Error_string(code, text, &length);
    if (strstr(text, expected) != NULL)
        return;
    snprintf(line, sizeof line, "%s: %s", what, text);
    say(line);
}

static void access_it(void)
{
    MPI_Datatype every_other;
    MPI_Aint at;
    OK(MPI_Get_address(memory, &at));
    OK(MPI_Type_vector(100, 1, 2, MPI_INT64_T, &every_other));
    OK(MPI_Type_commit(&every_other));
    OK(MPI_Put(origin, 8, MPI_BYTE, victim, 8, 8, MPI_BYTE, created)); // waits for the flush
    names_it("put", MPI_Win_flush(victim, created));
    names_it("large put", MPI_Put(origin, BYTES, MPI_BYTE, victim, 0, BYTES, MPI_BYTE, created));
    names_it("strided put",
             MPI_Put(origin, 1, every_other, victim, 0, 1, every_other, created));
    names_it("get", MPI_Get(origin, 8, MPI_BYTE, victim, 8, 8, MPI_BYTE, created));
    names_it("accumulate", MPI_Accumulate(&one, 1, MPI_INT64_T, victim, 16, 1, MPI_INT64_T,
                                          MPI_SUM, created));
    names_it("dynamic put",
             MPI_Put(origin, 8, MPI_BYTE, victim, at, 8, MPI_BYTE, dynamic));
}

// Tells rank 1 that the number is in use again.
static void tell(void)
{
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, locked));
    OK(MPI_Accumulate(&one, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, MPI_SUM, locked));
    OK(MPI_Win_unlock(1, locked));
}

int main(int argc, char **argv)
{
    int ready[2];
    pid_t stranger = 0;
    char byte;
    signal(SIGUSR1, SIG_IGN); // MPICH's launcher tells the survivors so
    start(30, &argc, &argv);
    const char *mode = argc > 1 ? argv[1] : "known";
    file = fopen(argc > 2 ? argv[2] : "/dev/stdout", "a");
    CHECK(size == 3 && pipe(ready) == 0 && file != NULL);
    victim = size - 1;
    make_windows();
    if (strcmp(mode, "known") == 0) {
        OK(MPI_Put(origin, 8, MPI_BYTE, victim, 0, 8, MPI_BYTE, created));
        OK(MPI_Win_flush(victim, created));
    }
    if (rank == victim)
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, locked));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == victim)
        kill(getpid(), SIGKILL);
    if (rank == 0) {
        stranger = take_number(ready);
        CHECK(read(ready[0], &byte, 1) == 1);
        tell();
    } else {
        while (*(volatile int64_t *)told == 0)
            usleep(100);
    }
    if (strcmp(mode, "full") == 0)
        no_descriptors();
    access_it();
    names_it("lock", MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, locked));
    if (rank == 0 && !is_untouched(stranger))
        say("the memory of another process was written");
    say("done");
    usleep(300000); // both survivors have written before a launcher sees the first one leave
    _exit(0); // MPI_Finalize would wait for the victim
}
