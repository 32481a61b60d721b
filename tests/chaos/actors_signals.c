// Handlers of a timer that run on the zone.
#include "chaos.h"
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LINES = 8 };
static unsigned char *volatile zone;
static size_t zone_bytes;
static volatile uint64_t stored, refused, wrong;
static int handler_pipe[2];
static struct sigaction before;
static stack_t stack_before;

static timer_t timer;

// The signals of this timer come to the thread that made it.
static void arm(unsigned us)
{
    struct itimerspec every = {{0, us * 1000L}, {0, us * 1000L}};
    timer_settime(timer, 0, &every, NULL);
}

// One more in each of a few words, which lie in different pages.
static void store(int number)
{
    (void)number;
    const uint64_t next = stored + 1;
    for (int i = 0; i < LINES; i++) {
        uint64_t have, at = zone_bytes / LINES * (uint64_t)i;
        memcpy(&have, zone + at, sizeof have);
        wrong += have != stored;
        memcpy(zone + at, &next, sizeof next);
    }
    stored = next;
}

// The kernel reads a word of the zone and writes another one.
static void call(int number)
{
    (void)number;
    const int code = errno;
    const uint64_t next = stored + 1;
    uint64_t *first = (uint64_t *)zone;
    memcpy(first, &next, sizeof next);
    if (write(handler_pipe[1], first, sizeof next) != sizeof next)
        refused = refused * 1000 + (uint64_t)errno;
    else if (read(handler_pipe[0], zone + zone_bytes / 2, sizeof next) != sizeof next)
        refused = refused * 1000 + (uint64_t)errno;
    wrong += memcmp(zone + zone_bytes / 2, &next, sizeof next) != 0;
    stored = next;
    errno = code;
}

static void begin(struct act *act, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | flags};
    memset(act->zone, 0, act->bytes);
    zone = act->zone;
    zone_bytes = act->bytes / 16 * 8;
    stored = refused = wrong = 0;
    open_pipe(act, handler_pipe);
    sigaction(SIGALRM, &action, &before);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
        fail(act, "timer_create");
    atomic_store(&act->is_quiet, false);
    arm(100 + (unsigned)below(&act->chance, 400));
}

static void end(struct act *act)
{
    arm(0);
    timer_delete(timer);
    sigaction(SIGALRM, &before, NULL);
    close(handler_pipe[0]);
    close(handler_pipe[1]);
    if (refused)
        fail(act, "system calls of a handler failed, errno %llu", (unsigned long long)refused);
    if (wrong)
        fail(act, "%llu times a handler read what was not stored there last",
             (unsigned long long)wrong);
}

static void begin_stores(struct act *act)
{
    begin(act, store, 0);
}

static void end_stores(struct act *act)
{
    end(act);
    const uint64_t number = stored;
    memset(act->want, 0, act->bytes);
    for (int i = 0; i < LINES; i++)
        memcpy(act->want + zone_bytes / LINES * (size_t)i, (const void *)&number, sizeof number);
    expect(act, "stores of a handler");
    refill(act);
    atomic_store(&act->is_quiet, true);
}

static void begin_calls(struct act *act)
{
    begin(act, call, 0);
}

static void end_calls(struct act *act)
{
    end(act);
    refill(act);
    atomic_store(&act->is_quiet, true);
}

// The handler runs on a stack in the zone, where the kernel stores its frame.
static void begin_stack(struct act *act)
{
    static unsigned char counted[LINES * 64];
    stack_t stack = {.ss_sp = act->zone, .ss_size = act->bytes};
    if (sigaltstack(&stack, &stack_before) != 0)
        fail(act, "sigaltstack");
    begin(act, store, SA_ONSTACK);
    arm(0);
    memset(counted, 0, sizeof counted);
    zone = counted;
    zone_bytes = sizeof counted;
    stored = wrong = 0;
    arm(200);
}

static void end_stack(struct act *act)
{
    end(act);
    sigaltstack(&stack_before, NULL);
    refill(act);
    expect(act, "a former stack of a handler");
    atomic_store(&act->is_quiet, true);
}

enum { TIMED = STATE_ENDS | SINGLE };

const struct actor actors_signals[] = {
    {"signal-stores", SIGNALS, TIMED, 256, NULL, begin_stores, NULL, end_stores},
    {"signal-calls", SIGNALS | READS | WRITES, TIMED, 256, NULL, begin_calls, NULL, end_calls},
    {"signal-stack", SIGNALS | THREADS, TIMED, 65536, NULL, begin_stack, NULL, end_stack},
    {NULL, 0, 0, 0, NULL, NULL, NULL, NULL},
};
