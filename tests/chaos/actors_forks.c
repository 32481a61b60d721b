// The address space is copied, or shared with another process.
#include "chaos.h"
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct child {
    pid_t pid;
    int go[2];
};

static int wait_for(struct act *act, pid_t pid)
{
    int status;
    pid_t got;
    do
        got = waitpid(pid, &status, 0);
    while (got < 0 && errno == EINTR);
    if (got != pid)
        fail(act, "waitpid");
    return status;
}

// fork of the C library with its handlers, or without them. Not by the bare system call: its child
// shares adopted pages, which a program can notice (README).
static pid_t fork_by(uint64_t way)
{
    return way == 0 ? _Fork() : fork();
}

// The child: what it has is what there was at the fork, whatever the parent stores. It makes no
// call of the C library that takes a lock.
static void live_as_child(struct act *act, const struct child *child)
{
    char byte;
    while (read(child->go[0], &byte, 1) < 0 && errno == EINTR)
        ;
    int code = memcmp(act->zone, act->want, act->bytes) == 0 ? 0 : 1;
    memset(act->zone, 0x77, act->bytes);
    if (act->zone[act->bytes - 1] != 0x77)
        code = 2;
    _exit(code);
}

static void begin_fork(struct act *act)
{
    struct child *child = state_of(act, sizeof *child);
    refill(act);
    open_pipe(act, child->go);
    child->pid = fork_by(below(&act->chance, 4));
    if (child->pid < 0)
        fail(act, "fork");
    if (child->pid == 0)
        live_as_child(act, child);
    refill(act);
}

static void end_fork(struct act *act)
{
    struct child *child = act->state;
    if (!write_all(child->go[1], "", 1))
        fail(act, "write");
    int status = wait_for(act, child->pid);
    if (status != 0)
        fail(act, "the child (status %x) had other bytes than at the fork", status);
    expect(act, "stores of a parent, and of its child");
    close(child->go[0]);
    close(child->go[1]);
}

static void fork_once(struct act *act)
{
    begin_fork(act);
    end_fork(act);
    free(act->state);
    act->state = NULL;
}

// The child of vfork stores in the memory of its parent.
static void vfork_once(struct act *act)
{
    want_next(act);
    volatile unsigned char *to = act->zone;
    const unsigned char *from = act->want;
    const size_t bytes = act->bytes;
    pid_t pid = vfork();
    if (pid == 0) {
        for (size_t i = 0; i < bytes; i++)
            to[i] = from[i];
        _exit(0);
    }
    if (pid < 0 || wait_for(act, pid) != 0)
        fail(act, "vfork");
    expect(act, "stores of a child of vfork");
}

static void spawn_once(struct act *act)
{
    char *const words[] = {"true", NULL};
    pid_t pid;
    refill(act);
    int code = posix_spawnp(&pid, "true", NULL, NULL, words, environ);
    if (code != 0)
        fail(act, "posix_spawnp: %d", code);
    wait_for(act, pid);
    expect(act, "posix_spawn");
}

// --- another process in this address space ------------------------------------------------------

struct sharer {
    pid_t pid;
    unsigned char *stack;
    atomic_bool is_over;
    _Atomic uint64_t stored;
    volatile uint64_t *word;
};

enum { SHARER_STACK = 64 << 10 };

// Stores numbers, and reads them again. No call of the C library: its state is the parent's.
static int share(void *argument)
{
    struct sharer *sharer = argument;
    uint64_t number = *sharer->word;
    while (!atomic_load(&sharer->is_over)) {
        if (*sharer->word != number)
            return 1;
        *sharer->word = ++number;
    }
    atomic_store(&sharer->stored, number);
    return 0;
}

// clone(CLONE_VM): /proc/self/task does not have it.
static void begin_sharing(struct act *act)
{
    struct sharer *sharer = state_of(act, sizeof *sharer);
    refill(act);
    sharer->stack = mmap(NULL, SHARER_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                         -1, 0);
    sharer->word = (volatile uint64_t *)(((uintptr_t)act->zone + 7) / 8 * 8);
    atomic_store(&act->is_quiet, false);
    sharer->pid = clone(share, sharer->stack + SHARER_STACK, CLONE_VM | SIGCHLD, sharer);
    if (sharer->pid < 0)
        fail(act, "clone");
}

static void end_sharing(struct act *act)
{
    struct sharer *sharer = act->state;
    atomic_store(&sharer->is_over, true);
    int status = wait_for(act, sharer->pid);
    if (status != 0)
        fail(act, "a process that shares this memory lost what it stored (%x)", status);
    const uint64_t stored = sharer->stored;
    memcpy(act->want + ((unsigned char *)sharer->word - act->zone), &stored, sizeof stored);
    expect(act, "stores of a process that shares this memory");
    munmap(sharer->stack, SHARER_STACK);
    atomic_store(&act->is_quiet, true);
}

const struct actor actors_forks[] = {
    {"fork", FORKS, DOES_FORK | PRIVATE | ON_MAIN, 64, NULL, NULL, fork_once, NULL},
    {"fork-pending", FORKS, DOES_FORK | PRIVATE | STATE_ENDS, 64, NULL, begin_fork, NULL, end_fork},
    {"vfork", FORKS, 0, 64, NULL, NULL, vfork_once, NULL},
    {"posix_spawn", FORKS, ON_MAIN, 64, NULL, NULL, spawn_once, NULL},
    {"clone-vm", FORKS | THREADS, STATE_ENDS, 64, NULL, begin_sharing, NULL, end_sharing},
    {NULL, 0, 0, 0, NULL, NULL, NULL, NULL},
};
