// Another process, the companion, copies and traces the memory of this one.
#include "chaos.h"
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum way { COPY, MEM_FILE, TRACE, WAYS };

struct request {
    int way;          // -1: ends a loop, -2: the end
    pid_t target;     // the thread
    pid_t process;
    uint64_t address, bytes, seed;
    bool loops;
};

struct reply {
    uint64_t number;  // how often
    int code, wrong;
};

static int channel = -1;
static pid_t companion;

// --- in the companion ---------------------------------------------------------------------------

static bool copies(const struct request *request, void *mine, size_t at, size_t bytes, bool writes)
{
    struct iovec here = {mine, bytes}, there = {(void *)(uintptr_t)(request->address + at), bytes};
    ssize_t done = writes ? process_vm_writev(request->process, &here, 1, &there, 1, 0)
                          : process_vm_readv(request->process, &here, 1, &there, 1, 0);
    return done == (ssize_t)bytes;
}

static bool by_file(const struct request *request, void *mine, size_t at, size_t bytes, bool writes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", request->process);
    int fd = open(path, O_RDWR);
    off_t place = (off_t)(request->address + at);
    ssize_t done = fd < 0 ? -1
                   : writes ? pwrite(fd, mine, bytes, place) : pread(fd, mine, bytes, place);
    const int code = errno;
    if (fd >= 0)
        close(fd);
    errno = code;
    return done == (ssize_t)bytes;
}

// One word.
static bool by_trace(const struct request *request, void *mine, size_t at, bool writes)
{
    int status;
    void *place = (void *)(uintptr_t)(request->address + at);
    if (ptrace(PTRACE_SEIZE, request->target, NULL, NULL) != 0)
        return false;
    if (ptrace(PTRACE_INTERRUPT, request->target, NULL, NULL) != 0 ||
        waitpid(request->target, &status, __WALL) != request->target)
        return false;
    // A signal that comes at that moment is for the program.
    int number = WSTOPSIG(status) == SIGTRAP || status >> 16 ? 0 : WSTOPSIG(status);
    long word, code = 0;
    errno = 0;
    if (writes) {
        memcpy(&word, mine, sizeof word);
        code = ptrace(PTRACE_POKEDATA, request->target, place, word);
    } else {
        word = ptrace(PTRACE_PEEKDATA, request->target, place, NULL);
        code = errno ? -1 : 0;
        memcpy(mine, &word, sizeof word);
    }
    const int failed = errno;
    ptrace(PTRACE_DETACH, request->target, NULL, (void *)(intptr_t)number);
    errno = failed;
    return code == 0;
}

static bool transfer(const struct request *request, void *mine, size_t at, size_t bytes,
                     bool writes)
{
    switch (request->way) {
    case COPY:
        return copies(request, mine, at, bytes, writes);
    case MEM_FILE:
        return by_file(request, mine, at, bytes, writes);
    default:
        return by_trace(request, mine, at, writes);
    }
}

// Counts in the first word, and puts a pattern after it.
static void work(const struct request *request, struct reply *reply, unsigned char *mine)
{
    uint64_t have = 0, next = reply->number + 1;
    if (!transfer(request, &have, 0, sizeof have, false))
        reply->code = errno ? errno : -1;
    else
        reply->wrong += have != reply->number;
    if (!transfer(request, &next, 0, sizeof next, true))
        reply->code = errno ? errno : -1;
    reply->number = next;
    const size_t more = request->bytes > 16 && request->way != TRACE ? request->bytes - 16 : 0;
    if (more == 0)
        return;
    pattern(mine, more, request->seed + next);
    if (!transfer(request, mine, 16, more, true) ||
        !transfer(request, mine + more, 16, more, false))
        reply->code = errno ? errno : -1;
    else
        reply->wrong += memcmp(mine, mine + more, more) != 0;
}

static bool has_message(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

static void serve(int fd)
{
    struct request request;
    while (read_all(fd, &request, sizeof request) && request.way != -2) {
        struct reply reply = {0};
        const size_t room = 2 * request.bytes + 16;
        unsigned char *mine = mmap(NULL, room, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mine == MAP_FAILED)
            _exit(1);
        do {
            work(&request, &reply, mine);
            nanosleep(&(struct timespec){.tv_nsec = 30000}, NULL);
        } while (request.loops && !has_message(fd) && reply.code == 0 && reply.wrong == 0);
        if (request.loops)
            read_all(fd, &request, sizeof request);
        munmap(mine, room);
        write_all(fd, &reply, sizeof reply);
    }
    _exit(0);
}

// For one act: a process that has a child moves no pages. By _Fork: the child of fork goes through
// the stacks of all threads, which an earlier act may have kept from children. The child allocates
// nothing.
static void start_companion(void)
{
    int fd[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
        return;
    companion = _Fork();
    if (companion == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fd[0]);
        serve(fd[1]);
    }
    close(fd[1]);
    channel = fd[0];
    prctl(PR_SET_PTRACER, companion);
}

static void end_companion(void)
{
    struct request request = {.way = -2};
    write_all(channel, &request, sizeof request);
    close(channel);
    waitpid(companion, NULL, 0);
}

// --- in this process ----------------------------------------------------------------------------

static struct reply ask(enum way way, void *at, size_t bytes, uint64_t seed)
{
    struct request request = {.way = (int)way, .target = gettid(), .process = getpid(),
                              .address = (uintptr_t)at, .bytes = bytes, .seed = seed};
    struct reply reply = {.code = -1};
    if (!write_all(channel, &request, sizeof request) || !read_all(channel, &reply, sizeof reply))
        fail(NULL, "the companion does not answer");
    return reply;
}

static bool can(enum way way)
{
    static uint64_t words[64];
    memset(words, 0, sizeof words);
    start_companion();
    const struct reply reply = ask(way, words, sizeof words, 1);
    end_companion();
    return reply.code == 0 && reply.wrong == 0;
}

static bool can_copy(void)
{
    return can(COPY);
}

static bool can_open(void)
{
    return can(MEM_FILE);
}

static bool can_trace(void)
{
    return can(TRACE);
}

static void begin_way(struct act *act, enum way way)
{
    struct request *request = state_of(act, sizeof *request);
    *request = (struct request){.way = (int)way, .target = gettid(), .process = getpid(),
                                .address = (uintptr_t)act->zone, .bytes = act->bytes,
                                .seed = act->seed, .loops = true};
    if (act->is_touched)
        memset(act->zone, 0, act->bytes);
    else if (!(memories[act->round->my->kind].traits & IS_NEW))
        memset(act->zone, 0, 8);
    atomic_store(&act->is_quiet, false);
    start_companion();
    if (!write_all(channel, request, sizeof *request))
        fail(act, "the companion is gone");
}

static void begin_copy(struct act *act)
{
    begin_way(act, COPY);
}

static void begin_file(struct act *act)
{
    begin_way(act, MEM_FILE);
}

static void begin_trace(struct act *act)
{
    begin_way(act, TRACE);
}

static void end_way(struct act *act)
{
    const struct request over = {.way = -1};
    struct reply reply;
    if (!write_all(channel, &over, sizeof over) || !read_all(channel, &reply, sizeof reply))
        fail(act, "the companion is gone");
    end_companion();
    errno = reply.code;
    if (reply.code)
        fail(act, "another process could not access this memory, after %llu times",
             (unsigned long long)reply.number);
    if (reply.wrong)
        fail(act, "another process read other bytes than it had written, after %llu times",
             (unsigned long long)reply.number);
    uint64_t number;
    memcpy(&number, act->zone, sizeof number);
    if (number != reply.number)
        fail(act, "another process has counted to %llu, here it is %llu",
             (unsigned long long)reply.number, (unsigned long long)number);
    refill(act);
    atomic_store(&act->is_quiet, true);
}

enum { BESIDE = STATE_ENDS | SINGLE | DOES_FORK };

const struct actor actors_processes[] = {
    {"process_vm", READS | WRITES, BESIDE, 64, can_copy, begin_copy, NULL, end_way},
    {"proc-mem", READS | WRITES, BESIDE, 64, can_open, begin_file, NULL, end_way},
    {"ptrace", WRITES, BESIDE, 64, can_trace, begin_trace, NULL, end_way},
    {NULL, 0, 0, 0, NULL, NULL, NULL, NULL},
};
