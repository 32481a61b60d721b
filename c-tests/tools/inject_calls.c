// One system call of libfompi fails on one rank while windows of each kind are made, used and freed:
// the first call of a function, then the second one, until there are no more. No rank hangs, all
// ranks agree on whether there is a window, the error class is right, the next window on the same
// communicator works, and no descriptor stays.
//
// usage: inject_calls [FUNCTION]...   by default all of them
//        inject_calls --first         the environment has chosen a call (profiler/inject.c): of those
//                                     for the first windows of a process, and for the first contact
//        inject_calls --plan          prints each function with one of its errors, on a line
// ranks: 2
// linked: inject
// between nodes: a call that fails may delegate the window

#include "check.h"
#include "profiler/inject.h"
#include <dirent.h>
#include <errno.h>

// Elements of a window.
#define WORDS 512
// A window needs fewer calls of one function, but for those that wait.
#define CALLS_MAX 12
#define ERRORS 5

// The functions and the errors that the system may give for them.
static const struct {
    const char *function;
    int errors[ERRORS];
} plan[] = {
    {"memfd_create", {EMFILE, ENFILE, ENOMEM, ENOSYS, EPERM}},
    {"ftruncate64", {EINTR, ENOMEM, EPERM}},
    {"fallocate", {EINTR, ENOSPC, ENOMEM, ENOSYS, EPERM}},
    {"madvise", {EINTR, ENOMEM, EINVAL, EPERM}},
    {"mincore", {EAGAIN, ENOSYS, EPERM}},
    {"mmap", {ENOMEM, EPERM}},
    {"open64", {EINTR, EMFILE, ENFILE, ENOMEM, EACCES}},
    {"stat64", {ENOMEM, EACCES, ENOENT}},
    {"fstat64", {ENOMEM}},
    {"statx", {ENOMEM, EACCES, ENOSYS, EPERM}},
    {"readlink", {ENOMEM, EACCES}},
    {"getrandom", {EINTR, ENOSYS, EPERM}},
    {"prctl", {EINVAL, ENOSYS, EPERM}},
    {"pidfd_open", {EMFILE, ENFILE, ENOMEM, ENOSYS, EPERM}},
    {"poll", {EINTR, ENOMEM}},
    {"futex", {EINTR}},
    {"read", {EINTR, ENOMEM, EAGAIN}},
    {"process_vm_readv", {EINTR, ENOMEM, ENOSYS, EPERM}},
    {"process_vm_writev", {EINTR, ENOMEM, ENOSYS, EPERM}},
    {"socket", {EMFILE, ENFILE, ENOMEM, EACCES}},
    {"setsockopt", {ENOMEM}},
    {"bind", {EADDRINUSE, EACCES, ENOMEM}},
    {"listen", {EADDRINUSE, ENOMEM}},
    {"getifaddrs", {EMFILE, ENOMEM}},
    {"getsockname", {ENOMEM}},
    {"getpeername", {ENOMEM, ENOTCONN}},
    {"connect", {EINTR, EAGAIN, ECONNREFUSED, ETIMEDOUT, EADDRNOTAVAIL}},
    {"accept4", {EINTR, EMFILE, ENOMEM, ECONNABORTED, EPERM}},
    {"send", {EINTR, EAGAIN, ECONNRESET, ENOMEM}},
    {"recv", {EINTR, EAGAIN, ECONNRESET, ENOMEM}},
    {"pthread_create", {EAGAIN, EPERM}},
    {"socketpair", {EMFILE, ENFILE, ENOMEM}},
    {"fcntl", {EMFILE, ENOMEM}},
    {"epoll_create1", {EMFILE, ENFILE, ENOMEM}},
    {"epoll_ctl", {ENOMEM, ENOSPC}},
    {"epoll_wait", {EINTR}},
    {"eventfd", {EMFILE, ENFILE, ENOMEM}},
    {"timerfd_create", {EMFILE, ENFILE, ENOMEM}},
    {"pthread_setaffinity_np", {EINVAL, EPERM}},
    {"getsockopt", {EACCES, EPERM}},
    {"sendmsg", {EAGAIN, ENOMEM, ENOBUFS}},
    {"recvmsg", {EINTR, ENOMEM, EAGAIN}},
    {"ppoll", {EINTR, ENOMEM}},
};

// How a window comes to be.
enum kind { ALLOCATED, LARGE, SHARED, CREATED, CREATED_IN_HEAP, DYNAMIC, KINDS };
static const char *const names[] = {"allocated", "large", "shared", "created", "created in heap",
                                    "dynamic"};

// What is injected now, for the line that a rank prints before it ends.
static struct { const char *function; int error; long k; int victim; enum kind kind; } now;

// Like CHECK, with what was injected.
#define HOLDS(condition) do { \
    check_here(__FILE__, __LINE__); \
    if (!(condition)) \
        check_failed(__FILE__, __LINE__, \
                     "%s window, call %ld of %s on rank %d fails with errno %d: does not hold: %s", \
                     names[now.kind], now.k, now.function, now.victim, now.error, #condition); \
} while (0)

static int class_of(int code)
{
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    return class;
}

// A window and the memory under it.
struct window {
    MPI_Win win;
    int64_t *memory;
    int is_allocated;
};

// The class of the error with which the window was not made.
static int make(struct window *window, enum kind kind, MPI_Comm comm)
{
    MPI_Aint bytes = kind == LARGE ? 17 << 20 : WORDS * (MPI_Aint)sizeof(int64_t);
    int code;
    window->memory = NULL;
    window->is_allocated = 0;
    switch (kind) {
    case ALLOCATED:
    case LARGE:
        code = MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, comm, &window->memory, &window->win);
        break;
    case SHARED:
        code = MPI_Win_allocate_shared(bytes, 8, MPI_INFO_NULL, comm, &window->memory, &window->win);
        break;
    case DYNAMIC:
        window->memory = malloc(bytes);
        code = MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &window->win);
        break;
    case CREATED_IN_HEAP:
        window->is_allocated = MPI_Alloc_mem(bytes, MPI_INFO_NULL, &window->memory) == MPI_SUCCESS;
        // Without memory this rank exposes none.
        code = MPI_Win_create(window->memory, window->is_allocated ? bytes : 0, 8, MPI_INFO_NULL,
                              comm, &window->win);
        break;
    default:
        window->memory = malloc(bytes);
        code = MPI_Win_create(window->memory, bytes, 8, MPI_INFO_NULL, comm, &window->win);
    }
    return class_of(code);
}

static void drop_memory(struct window *window, enum kind kind)
{
    if (window->is_allocated)
        MPI_Free_mem(window->memory);
    else if (kind == CREATED || kind == DYNAMIC)
        free(window->memory);
}

// Records the class of the first call that fails.
#define TRY(call) do { \
    int class_ = class_of(call); \
    if (first == MPI_SUCCESS) \
        first = class_; \
} while (0)

// What each rank does with the window; returns the class of the first error.
static int use(struct window *window, enum kind kind, MPI_Comm comm)
{
    int target = next_rank(), first = MPI_SUCCESS;
    int64_t value = 1000 + rank, seen = -1, one = 1, old = -1;
    MPI_Aint disp = 0, disps[16];
    MPI_Win win = window->win;

    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    if (kind == DYNAMIC) {
        TRY(MPI_Win_attach(win, window->memory, WORDS * sizeof(int64_t)));
        OK(MPI_Get_address(window->memory, &disp));
        OK(MPI_Allgather(&disp, 1, MPI_AINT, disps, 1, MPI_AINT, comm));
        disp = disps[target];
    }
    MPI_Aint unit = kind == DYNAMIC ? 8 : 1;
    OK(MPI_Barrier(comm));
    TRY(MPI_Win_fence(0, win));
    TRY(MPI_Put(&value, 1, MPI_INT64_T, target, disp, 1, MPI_INT64_T, win));
    TRY(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    TRY(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    TRY(MPI_Get(&seen, 1, MPI_INT64_T, target, disp, 1, MPI_INT64_T, win));
    TRY(MPI_Win_flush(target, win));
    TRY(MPI_Accumulate(&one, 1, MPI_INT64_T, target, disp + unit, 1, MPI_INT64_T, MPI_REPLACE, win));
    TRY(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, target, disp + 2 * unit, MPI_SUM, win));
    TRY(MPI_Win_unlock(target, win));
    if (first == MPI_SUCCESS)
        HOLDS(seen == value);
    OK(MPI_Barrier(comm));
    if (kind == DYNAMIC)
        MPI_Win_detach(win, window->memory);
    return first;
}

// The largest number of all ranks.
static int most(int number, MPI_Comm comm)
{
    int all;
    OK(MPI_Allreduce(&number, &all, 1, MPI_INT, MPI_MAX, comm));
    return all;
}

// A window is made, used and freed. Returns whether anything failed on any rank.
static int round_trip(MPI_Comm comm)
{
    struct window window;
    // Ranks of several nodes share no memory.
    if (now.kind == SHARED && getenv("FOMPI_RANKS_PER_NODE") != NULL)
        return 0;
    int used = MPI_SUCCESS, made = make(&window, now.kind, comm);
    int some_failed = most(made != MPI_SUCCESS, comm);

    HOLDS((made != MPI_SUCCESS) == some_failed);
    if (made == MPI_SUCCESS) {
        used = use(&window, now.kind, comm);
        HOLDS(class_of(MPI_Win_free(&window.win)) == MPI_SUCCESS);
    } else if (now.error == ENOMEM) {
        HOLDS(made == MPI_ERR_NO_MEM || made == MPI_ERR_OTHER);
    }
    drop_memory(&window, now.kind);
    return most(some_failed || used != MPI_SUCCESS, comm);
}

// One window while the k-th call fails on the victim, and one more on the same communicator after
// it. Returns whether there was such a call.
static int inject_once(void)
{
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    if (rank == now.victim)
        inject_arm(now.function, now.k, now.error);
    int failed = round_trip(comm);
    int fired = most(rank == now.victim && inject_disarm() > 0, comm);
    // What was not injected fails nobody, and a signal is no failure.
    HOLDS(!failed || (fired && now.error != EINTR));
    if (fired)
        HOLDS(!round_trip(comm));
    OK(MPI_Comm_free(&comm));
    return fired;
}

// The same for a call that the environment has chosen. Returns whether there was such a call.
static int inject_first(void)
{
    const char *what = getenv("INJECT"), *where = getenv("INJECT_RANK");
    static char function[32];
    int failed = 0;

    CHECK(what != NULL && where != NULL);
    CHECK(sscanf(what, "%31s %ld %d", function, &now.k, &now.error) == 3);
    now.function = function, now.victim = atoi(where);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (now.kind = 0; now.kind < KINDS; now.kind++)
        failed |= round_trip(MPI_COMM_WORLD);
    int fired = most(inject_disarm() > 0, MPI_COMM_WORLD);
    HOLDS(!failed || (fired && now.error != EINTR));
    for (now.kind = 0; now.kind < KINDS; now.kind++)
        HOLDS(!round_trip(MPI_COMM_WORLD));
    return fired;
}

static int entries(const char *folder)
{
    DIR *all = opendir(folder);
    int count = 0;
    while (all != NULL && readdir(all) != NULL)
        count++;
    if (all != NULL)
        closedir(all);
    return count;
}

static int is_wanted(int argc, char **argv, const char *function)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], function) == 0)
            return 1;
    return argc < 2;
}

// All calls of a function with one of its errors; returns how many there were.
static long inject_all(const char *function, int error)
{
    long injected = 0;
    now.function = function, now.error = error;
    for (now.victim = 0; now.victim < size; now.victim++)
        for (now.kind = 0; now.kind < KINDS; now.kind++)
            for (now.k = 1; now.k <= CALLS_MAX && inject_once(); now.k++)
                injected++;
    return injected;
}

static int print_plan(void)
{
    for (size_t i = 0; i < sizeof plan / sizeof plan[0]; i++)
        for (int e = 0; e < ERRORS && plan[i].errors[e] != 0; e++)
            printf("%s %d\n", plan[i].function, plan[i].errors[e]);
    return 0;
}

int main(int argc, char **argv)
{
    long injected = 0;
    // Windows over several nodes take longer; two errors of each function are enough there.
    int errors = getenv("FOMPI_RANKS_PER_NODE") != NULL ? 2 : ERRORS;

    if (argc == 2 && strcmp(argv[1], "--plan") == 0)
        return print_plan();

    // Ranks of one node that cannot share memory would take TCP, whose descriptors stay.
    if (getenv("FOMPI_RANKS_PER_NODE") == NULL)
        setenv("FOMPI_NET", "off", 0);
    check_start_within(110, &argc, &argv);
    if (argc == 2 && strcmp(argv[1], "--first") == 0) {
        injected = inject_first();
    } else {
        // Makes what stays: also the thread that passes segments where /proc is refused.
        inject_all("no function", 0);
        inject_all("open64", EACCES);
        int before = entries("/proc/self/fd");
        for (size_t i = 0; i < sizeof plan / sizeof plan[0]; i++) {
            long count = is_wanted(argc, argv, plan[i].function);
            // What is not called with one error is not called with another one.
            for (int e = 0; count > 0 && e < errors && plan[i].errors[e] != 0; e++)
                injected += count = inject_all(plan[i].function, plan[i].errors[e]);
        }
        HOLDS(entries("/proc/self/fd") <= before);
    }
    if (rank == 0 && getenv("INJECT_COUNT") != NULL)
        printf("%ld calls failed\n", injected);
    return check_end();
}
