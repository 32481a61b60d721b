// All memory held against what must be in it: the windows of this process, what is around them, and
// the buffers of its calls. Each origin tells the target what it has left in its stripes.

#ifndef WRONG_CALLS_MEMORY_H
#define WRONG_CALLS_MEMORY_H

#include "epochs.h"

typedef unsigned char stripes_of_window[AREAS][STRIPE_MAX];
static stripes_of_window sent[RANKS_MAX][WINDOWS], received[RANKS_MAX][WINDOWS];

static void exchange_stripes(void)
{
    const int bytes = sizeof sent[0];
    FOR_ALIVE(w)
        for (int r = 0; r < w->size; r++)
            memcpy(sent[w->world[r]][index_of(w)], w->stripes[r], sizeof w->stripes[r]);
    OK(MPI_Alltoall(sent, bytes, MPI_BYTE, received, bytes, MPI_BYTE, MPI_COMM_WORLD));
}

static unsigned char should_be(const struct window *w, int a, int64_t byte)
{
    const struct area *area = &w->parts[w->rank].areas[a];
    const int64_t each = stride(w, area);
    const int64_t origin = each > 0 ? byte / each : w->size;
    if (origin < w->size && byte - origin * each < stripe_bytes(w, area))
        return received[w->world[origin]][index_of(w)][a][byte - origin * each];
    return untouched(w, w->world[w->rank], a, byte);
}

static void check_guards(const struct window *w, int a)
{
    const unsigned char *memory = w->memory[a];
    const int64_t bytes = w->parts[w->rank].areas[a].bytes;
    for (int64_t i = 1; i <= GUARD - 16; i++)
        if (memory[-i] != GUARD_BYTE || memory[bytes + i - 1] != GUARD_BYTE)
            fail("memory within %d bytes around area %d of w%d (%s) has changed", GUARD, a,
                 index_of(w), flavour_names[w->flavour]);
}

static void check_area(const struct window *w, int a)
{
    const volatile unsigned char *memory = w->memory[a];
    const int64_t bytes = w->parts[w->rank].areas[a].bytes;
    for (int64_t i = 0; i < bytes; i++) {
        const unsigned char is = memory[i], should_hold = should_be(w, a, i);
        if (is != should_hold)
            fail("byte %lld of %lld of area %d of w%d (%s, %s) is %#x, not %#x", (long long)i,
                 (long long)bytes, a, index_of(w), flavour_names[w->flavour], w->comm_name, is,
                 should_hold);
    }
    if (w->owned[a] != NULL)
        check_guards(w, a);
}

static void check_arena(void)
{
    if (memcmp(arena, arena_should, ARENA) == 0)
        return;
    for (int i = 0; i < ARENA; i++)
        if (arena[i] != arena_should[i])
            fail("byte %d of the buffers is %#x, not %#x", i, arena[i], arena_should[i]);
}

// Nobody is in an epoch, and nobody goes on before all are done.
static void check_memory(void)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    exchange_stripes();
    FOR_ALIVE(w) {
        begin("MPI_Win_lock");
        tell("shared, %d, 0, w%d", w->rank, index_of(w));
        go();
        judge(MPI_Win_lock(MPI_LOCK_SHARED, w->rank, 0, w->handle));
        w->locks[w->rank] = LOCKED_SHARED;
        w->locked = 1;
        for (int a = 0; a < area_count(w); a++)
            check_area(w, a);
        unlock_everything(w);
        check_counters(w);
    }
    check_arena();
    if (result_count != 0)
        fail("the model has forgotten %d results", result_count);
    start_arena();
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

#endif
