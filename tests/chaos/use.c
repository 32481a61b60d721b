// How other ranks use the window: puts, gets and accumulates on the used zone, of which the first
// quarter holds counters. A rank puts to the next one. All ranks add to the counters.
#include "chaos.h"

static MPI_Group neighbours(int one, int other)
{
    MPI_Group world, group;
    int ranks[2] = {one, other};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, one == other ? 1 : 2, ranks, &group);
    MPI_Group_free(&world);
    return group;
}

static void open_epoch(struct round *round, enum synchronisation how, int target, int origin)
{
    MPI_Group group;
    switch (how) {
    case FENCE:
        MPI_Win_fence(MPI_MODE_NOPRECEDE, round->win);
        break;
    case LOCK_ALL:
        MPI_Win_lock_all(0, round->win);
        break;
    case LOCK:
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, round->win);
        break;
    default:
        group = neighbours(origin, origin);
        MPI_Win_post(group, 0, round->win);
        MPI_Group_free(&group);
        group = neighbours(target, target);
        MPI_Win_start(group, 0, round->win);
        MPI_Group_free(&group);
    }
}

static void close_epoch(struct round *round, enum synchronisation how, int target)
{
    switch (how) {
    case FENCE:
        MPI_Win_fence(MPI_MODE_NOSUCCEED, round->win);
        break;
    case LOCK_ALL:
        MPI_Win_unlock_all(round->win);
        break;
    case LOCK:
        MPI_Win_unlock(target, round->win);
        break;
    default:
        MPI_Win_complete(round->win);
        MPI_Win_wait(round->win);
    }
}

static size_t counters_of(const struct part *part)
{
    size_t counters = part->used_bytes / 4 / sizeof(int64_t);
    return counters > 16 ? 16 : counters;
}

static uint64_t put_seed(const struct round *round, int target, int use)
{
    return mixed(round->seed + round->number * 64 + (uint64_t)target * 8) + (uint64_t)use;
}

// Stores what the next rank's zone has now into its model, and what it shall have to `next`.
static void exchange(struct round *round, int target)
{
    const struct part *part = &round->part[target];
    const size_t skipped = counters_of(part) * sizeof(int64_t);
    const size_t bytes = part->used_bytes - skipped;
    const MPI_Aint disp = (MPI_Aint)(part->used - part->win_offset + skipped);
    unsigned char *have = malloc(bytes + 8), *next = malloc(bytes + 8);
    const enum synchronisation how = round->how[round->used_times % 3];
    const int origin = (my_rank + all_ranks - 1) % all_ranks;
    pattern(next, bytes, put_seed(round, target, round->used_times + 1));

    open_epoch(round, how, target, origin);
    MPI_Get(have, (int)bytes, MPI_BYTE, target, disp, (int)bytes, MPI_BYTE, round->win);
    close_epoch(round, how, target);
    if (round->used_times > 0) {
        unsigned char *before = malloc(bytes + 8);
        struct act shown = {.actor = &(struct actor){.name = "MPI_Get"}};
        pattern(before, bytes, put_seed(round, target, round->used_times));
        expect_bytes(&shown, have, before, bytes, "what the last put has stored");
        free(before);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    open_epoch(round, how, target, origin);
    struct chance chance = {put_seed(round, target, 7)};
    for (int i = 0; i < round->puts && bytes > 64; i++) {
        size_t at = below(&chance, bytes - 8), length = 1 + below(&chance, 8);
        MPI_Put(next + at, (int)length, MPI_BYTE, target, disp + (MPI_Aint)at, (int)length,
                MPI_BYTE, round->win);
        if (how == LOCK_ALL || how == LOCK)
            MPI_Win_flush(target, round->win);
    }
    if (how == LOCK_ALL || how == LOCK || round->puts == 0) {
        MPI_Put(next, (int)bytes, MPI_BYTE, target, disp, (int)bytes, MPI_BYTE, round->win);
        close_epoch(round, how, target);
    } else { // puts of one epoch must not overlap
        close_epoch(round, how, target);
        open_epoch(round, how, target, origin);
        MPI_Put(next, (int)bytes, MPI_BYTE, target, disp, (int)bytes, MPI_BYTE, round->win);
        close_epoch(round, how, target);
    }
    free(have);
    free(next);
}

static void count(struct round *round)
{
    MPI_Win_lock_all(0, round->win);
    for (int target = 0; target < all_ranks; target++) {
        const struct part *part = &round->part[target];
        int64_t one[16];
        const int counters = (int)counters_of(part);
        for (int i = 0; i < counters; i++)
            one[i] = 1 + i;
        if (counters)
            MPI_Accumulate(one, counters, MPI_INT64_T, target,
                           (MPI_Aint)(part->used - part->win_offset), counters, MPI_INT64_T,
                           MPI_SUM, round->win);
    }
    MPI_Win_unlock_all(round->win);
}

void use_window(struct round *round)
{
    struct part *my = round->my;
    unsigned char *used = round->base + my->used, *want = round->want + my->used;
    const size_t counters = counters_of(my), skipped = counters * sizeof(int64_t);
    MPI_Win_lock_all(0, round->win);
    MPI_Win_sync(round->win);
    MPI_Win_unlock_all(round->win);
    MPI_Barrier(MPI_COMM_WORLD);
    exchange(round, (my_rank + 1) % all_ranks);
    count(round);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, round->win);
    MPI_Win_sync(round->win);
    MPI_Win_unlock_all(round->win);
    round->used_times++;
    if (my->used_bytes > skipped)
        pattern(want + skipped, my->used_bytes - skipped,
                put_seed(round, my_rank, round->used_times));
    for (size_t i = 0; i < counters; i++) {
        uint64_t number;
        memcpy(&number, want + i * sizeof number, sizeof number);
        number += (uint64_t)all_ranks * (i + 1);
        memcpy(want + i * sizeof number, &number, sizeof number);
    }
    struct act shown = {.actor = &(struct actor){.name = "use"}};
    expect_bytes(&shown, used, want, my->used_bytes, "what other ranks have put and added");
    MPI_Barrier(MPI_COMM_WORLD);
}

// Each rank gets the window of the next one, and compares its quiet zones with their model.
void compare_windows(struct round *round)
{
    struct part *my = round->my;
    const int target = (my_rank + 1) % all_ranks, origin = (my_rank + all_ranks - 1) % all_ranks;
    const struct part *part = &round->part[target];
    size_t zones[2 * ACTS_MAX] = {0}, theirs[2 * ACTS_MAX] = {0};
    for (int i = 0; i < my->acts; i++) {
        const bool may = atomic_load(&my->act[i].is_quiet) || my->act[i].is_inert;
        zones[2 * i] = my->act[i].offset;
        zones[2 * i + 1] = may ? 0 : my->act[i].bytes;
    }
    const MPI_Datatype type = MPI_UNSIGNED_LONG;
    MPI_Sendrecv(zones, 2 * ACTS_MAX, type, origin, 1, theirs, 2 * ACTS_MAX, type, target, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    unsigned char *model = malloc(part->bytes), *have = malloc(part->bytes + 1);
    MPI_Sendrecv(round->want, (int)my->bytes, MPI_BYTE, origin, 2, model, (int)part->bytes,
                 MPI_BYTE, target, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, round->win);
    MPI_Win_sync(round->win);
    struct act shown = {.actor = &(struct actor){.name = "MPI_Get"}};
    size_t at = part->win_offset, end = part->win_offset + part->win_bytes;
    while (at < end) {
        size_t next = end, over = 0;
        for (int i = 0; i < part->acts; i++) {
            const size_t first = theirs[2 * i], bytes = theirs[2 * i + 1];
            if (bytes && first <= at && at < first + bytes)
                over = first + bytes;
            else if (bytes && first > at && first < next)
                next = first;
        }
        if (over) {
            at = over;
            continue;
        }
        MPI_Get(have, (int)(next - at), MPI_BYTE, target, (MPI_Aint)(at - part->win_offset),
                (int)(next - at), MPI_BYTE, round->win);
        MPI_Win_flush(target, round->win);
        expect_bytes(&shown, have, model + at, next - at, "the window of the next rank");
        at = next;
    }
    MPI_Win_unlock_all(round->win);
    MPI_Barrier(MPI_COMM_WORLD);
    free(model);
    free(have);
}
