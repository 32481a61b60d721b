// Other threads that store, load, sleep or wait on the zone, or run on a stack in it.
#include "chaos.h"
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// --- stores and loads ---------------------------------------------------------------------------

struct counting {
    uint64_t number;
    unsigned sleep_us;
    bool failed;
};

static uint64_t *word_of(const struct act *act, size_t at)
{
    return (uint64_t *)(((uintptr_t)act->zone + at + 7) / 8 * 8);
}

// Counts in words of a few pages; each must hold what the thread has stored there last.
static void *count(void *argument)
{
    struct act *act = argument;
    struct counting *counting = act->state;
    const size_t step = (act->bytes - 16) / 8;
    for (int i = 0; i < 8; i++)
        *(volatile uint64_t *)word_of(act, step * (size_t)i / 8 * 8) = 0;
    while (!atomic_load(&act->is_stopped)) {
        for (int i = 0; i < 8; i++) {
            volatile uint64_t *word = word_of(act, step * (size_t)i / 8 * 8);
            if (*word != counting->number)
                counting->failed = true;
            *word = counting->number + 1;
        }
        counting->number++;
        if (counting->sleep_us)
            nanosleep(&(struct timespec){.tv_nsec = counting->sleep_us * 1000L}, NULL);
    }
    return NULL;
}

static void begin_count(struct act *act)
{
    static const unsigned sleeps[] = {0, 0, 20, 500, 5000};
    struct counting *counting = state_of(act, sizeof *counting);
    counting->sleep_us = sleeps[below(&act->chance, 5)];
    refill(act);
    atomic_store(&act->is_quiet, false);
    start_thread(act, count);
}

static void end_count(struct act *act)
{
    struct counting *counting = act->state;
    const size_t step = (act->bytes - 16) / 8;
    join_thread(act);
    if (counting->failed)
        fail(act, "a thread did not find what it had stored");
    for (int i = 0; i < 8; i++)
        memcpy(act->want + ((unsigned char *)word_of(act, step * (size_t)i / 8 * 8) - act->zone),
               &counting->number, sizeof counting->number);
    expect(act, "stores of a thread");
    atomic_store(&act->is_quiet, true);
}

// A whole version after another one, by plain stores.
static void copy_once(struct act *act)
{
    refill(act);
    expect(act, "stores");
}

static void load_once(struct act *act)
{
    expect(act, "loads");
}

// --- a thread that sleeps in a call without pointers, and then stores ---------------------------

struct sleeper {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    bool is_called;
};

static void *sleep_and_store(void *argument)
{
    struct act *act = argument;
    struct sleeper *sleeper = act->state;
    pthread_mutex_lock(&sleeper->mutex);
    while (!sleeper->is_called)
        pthread_cond_wait(&sleeper->condition, &sleeper->mutex);
    pthread_mutex_unlock(&sleeper->mutex);
    refill(act);
    return NULL;
}

static void begin_sleep(struct act *act)
{
    struct sleeper *sleeper = state_of(act, sizeof *sleeper);
    pthread_mutex_init(&sleeper->mutex, NULL);
    pthread_cond_init(&sleeper->condition, NULL);
    start_thread(act, sleep_and_store);
}

static void end_sleep(struct act *act)
{
    struct sleeper *sleeper = act->state;
    pthread_mutex_lock(&sleeper->mutex);
    sleeper->is_called = true;
    pthread_cond_signal(&sleeper->condition);
    pthread_mutex_unlock(&sleeper->mutex);
    pthread_join(act->thread, NULL);
    expect(act, "stores of a thread that slept");
}

// --- a thread that waits for a word in the zone, as process-shared semaphores do ----------------

static void *wait_for_word(void *argument)
{
    struct act *act = argument;
    uint32_t *word = (uint32_t *)word_of(act, 0);
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0)
        syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0);
    return NULL;
}

static void begin_futex(struct act *act)
{
    memset(act->zone, 0, act->bytes);
    memset(act->want, 0, act->bytes);
    start_thread(act, wait_for_word);
}

static void end_futex(struct act *act)
{
    uint32_t *word = (uint32_t *)word_of(act, 0);
    const uint32_t one = 1;
    spin_us(200);
    __atomic_store_n(word, one, __ATOMIC_RELEASE);
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 20;
    if (pthread_timedjoin_np(act->thread, NULL, &limit) != 0)
        fail(act, "a thread that waited for a word (FUTEX_WAIT) was not woken");
    memcpy(act->want + ((unsigned char *)word - act->zone), &one, sizeof one);
    expect(act, "a word that was waited for");
}

// --- a thread whose stack is the zone -----------------------------------------------------------

// Not beside fork: the C library's child stores to the descriptors of threads, which lie on their
// stacks, before it calls handlers. A program can notice that (docs/internals/adoption.md).

__attribute__((noinline)) static uint64_t deep(struct act *act, int levels)
{
    volatile uint64_t here[64];
    for (int i = 0; i < 64; i++)
        here[i] = (uint64_t)levels * 64 + (uint64_t)i;
    uint64_t sum = levels > 0 && !atomic_load(&act->is_stopped) ? deep(act, levels - 1) : 0;
    for (int i = 0; i < 64; i++)
        sum += here[i] != (uint64_t)levels * 64 + (uint64_t)i;
    return sum;
}

static void *run_on_zone(void *argument)
{
    struct act *act = argument;
    while (!atomic_load(&act->is_stopped)) {
        if (deep(act, 20) != 0)
            fail(act, "a thread whose stack is in the window lost a local variable");
        if (act->seed % 2)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
    return NULL;
}

static void begin_stack(struct act *act)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    atomic_store(&act->is_quiet, false);
    atomic_store(&act->is_stopped, false);
    if (pthread_attr_setstack(&attributes, act->zone, act->bytes) != 0 ||
        pthread_create(&act->thread, &attributes, run_on_zone, act) != 0)
        fail(act, "a thread with a stack of the program");
    pthread_attr_destroy(&attributes);
}

static void end_stack(struct act *act)
{
    join_thread(act);
    refill(act);
    expect(act, "a former stack");
    atomic_store(&act->is_quiet, true);
}

const struct actor actors_threads[] = {
    {"thread-counts", THREADS, STATE_ENDS, 256, NULL, begin_count, NULL, end_count},
    {"stores", THREADS, 0, 64, NULL, NULL, copy_once, NULL},
    {"loads", THREADS, 0, 64, NULL, NULL, load_once, NULL},
    {"thread-sleeps", THREADS, STATE_ENDS, 64, NULL, begin_sleep, NULL, end_sleep},
    {"thread-futex", THREADS, STATE_ENDS, 64, NULL, begin_futex, NULL, end_futex},
    {"thread-stack", THREADS, PAGES | STATE_ENDS | NO_FORK, 131072, NULL, begin_stack, NULL, end_stack},
    {NULL, 0, 0, 0, NULL, NULL, NULL, NULL},
};
