// The generator: a round from a seed. It draws the same for all ranks, so it asks nothing of the
// system but what all ranks have agreed on.
#include "chaos.h"

static const size_t sizes[] = {64, 3000, PAGE, 3 * PAGE + 100, 16 * PAGE, 40 * PAGE + 24, 64 * PAGE,
                               100 * PAGE + 8, 256 * PAGE, 512 * PAGE, 700 * PAGE + 40, 1024 * PAGE,
                               2048 * PAGE, 4096 * PAGE};
enum { SIZES = sizeof sizes / sizeof *sizes };

static bool fits(const struct actor *actor, int number, unsigned taken)
{
    if (!is_available(number))
        return false;
    if (settings.groups && !(actor->groups & settings.groups))
        return false;
    if (settings.actor && strcmp(settings.actor, actor->name) != 0)
        return false;
    if (actor->needs & MULTIPLE && settings.thread_level < MPI_THREAD_MULTIPLE)
        return false;
    return !(actor->needs & NO_FORK && taken & DOES_FORK) &&
           !(actor->needs & DOES_FORK && taken & NO_FORK) &&
           !(actor->needs & SINGLE && taken & SINGLE) && !(taken & WHOLE) &&
           !(actor->needs & WHOLE && taken);
}

static const struct actor *choose(struct chance *chance, unsigned taken, unsigned without)
{
    for (int tries = 0; tries < 400; tries++) {
        int number = (int)below(chance, (uint64_t)actor_count());
        const struct actor *actor = actor_at(number);
        if (fits(actor, number, taken) && !(actor->needs & without))
            return actor;
    }
    return NULL;
}

static bool carries(int kind, const struct actor *actor, size_t bytes)
{
    unsigned traits = memories[kind].traits;
    if (actor->needs & ANONYMOUS && !(traits & IS_ANONYMOUS))
        return false;
    if (actor->needs & PRIVATE && traits & IS_SHARED)
        return false;
    if (actor->needs & WHOLE && !(traits & IS_MALLOC))
        return false;
    if (actor->needs & DOES_FORK && traits & IS_REUSED)
        return false;
    return bytes >= actor->bytes_min;
}

static void choose_points(struct chance *chance, const struct round *round, struct act *act)
{
    static const enum point firsts[] = {BEFORE, BEFORE, ALIVE, ALIVE, BEFORE, BEFORE, ALIVE, AFTER};
    static const enum point lasts[] = {ALIVE, ALIVE, AFTER, AFTER, AFTER, BEFORE, ALIVE, AFTER};
    const unsigned needs = act->actor->needs;
    const uint64_t way = below(chance, needs & STATE_ENDS ? 5 : 8);
    act->first = firsts[way];
    act->last = lasts[way];
    if (needs & WHOLE) {
        act->first = ALIVE;
        act->last = AFTER;
    }
    if (needs & AT_END)
        act->first = act->last = AFTER;
    if (needs & NOT_ALIVE) {
        act->first = needs & STATE_ENDS || percent(chance, 50) ? BEFORE : AFTER;
        act->last = needs & STATE_ENDS ? AFTER : act->first;
    }
    if (round->is_clear && act->first == BEFORE && act->last > BEFORE && !(needs & NOT_ALIVE)) {
        act->first = ALIVE;
        act->last = needs & STATE_ENDS || percent(chance, 70) ? AFTER : ALIVE;
    }
    bool may = act->actor->once && !(needs & ON_MAIN) && act->first != act->last;
    act->on_thread = percent(chance, 60) && may;
    act->is_touched = needs & TOUCHED ||
                      (!(needs & UNTOUCHED) && percent(chance, needs & JOINT ? 40 : 70));
}

// Cuts the memory: the used zone, the owner's, and one for each act, in any order.
static void cut(struct chance *chance, struct part *part)
{
    const int zones = part->acts + 2;
    int order[ACTS_MAX + 2];
    for (int i = 0; i < zones; i++)
        order[i] = i;
    for (int i = zones - 1; i > 0; i--) {
        int other = (int)below(chance, (uint64_t)i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    size_t at = 0;
    for (int i = 0; i < zones; i++) {
        size_t end = i == zones - 1 ? part->bytes : at + (part->bytes - at) / (size_t)(zones - i);
        if (percent(chance, 50) && i < zones - 1 && end / PAGE * PAGE > at)
            end = end / PAGE * PAGE;
        const int who = order[i];
        if (who == 0) {
            part->used = (at + 63) / 64 * 64;
            part->used_bytes = end > part->used ? (end - part->used) / 64 * 64 : 0;
        } else if (who == 1) {
            part->own = at;
            part->own_bytes = end - at;
        } else {
            struct act *act = &part->act[who - 2];
            act->offset = at;
            act->bytes = end - at;
        }
        at = end;
    }
}

static void choose_window(struct chance *chance, struct part *part)
{
    // MPICH 4.0 puts to the wrong place if the address is no multiple of 16.
    part->win_offset = percent(chance, 50) ? 0 : below(chance, 12) * 16;
    if (percent(chance, 20))
        part->win_offset = below(chance, PAGE / 16) * 16;
    if (part->win_offset > part->used)
        part->win_offset = part->used;
    size_t least = part->used + part->used_bytes - part->win_offset;
    size_t most = part->bytes - part->win_offset;
    part->win_bytes = percent(chance, 60) ? most : least + below(chance, most - least + 1);
}

// Memory that a library may move.
static bool is_plain(int kind)
{
    const unsigned traits = memories[kind].traits;
    return traits & IS_ANONYMOUS && !(traits & IS_STACK);
}

static void choose_part(struct chance *chance, struct round *round, int rank, int size, int acts,
                        const struct actor *const *chosen)
{
    struct part *part = &round->part[rank];
    const unsigned traits_out = settings.thread_level < MPI_THREAD_SERIALIZED ? ON_THREAD : 0;
    part->acts = acts;
    for (int tries = 0;; tries++) {
        part->kind = (int)below(chance, (uint64_t)memory_count());
        if (settings.memory && strcmp(settings.memory, memories[part->kind].name) != 0)
            continue;
        size_t most = memories[part->kind].bytes_max;
        part->bytes = sizes[size >= 0 ? (uint64_t)size : below(chance, SIZES - 1)];
        part->bytes = part->bytes > most ? most : part->bytes;
        bool all = !(memories[part->kind].traits & traits_out) &&
                   (!round->is_clear || tries > 1000 || is_plain(part->kind));
        for (int i = 0; i < acts; i++)
            all = all && carries(part->kind, chosen[i], part->bytes / (size_t)(acts + 2));
        if (all)
            break;
        if (tries > 2000) { // the wishes of the command line contradict each other
            part->acts = acts = 0;
            break;
        }
    }
    for (int i = 0; i < acts; i++) {
        struct act *act = &part->act[i];
        act->actor = chosen[i];
        act->rank = rank;
        act->index = i;
        act->seed = draw(chance);
        choose_points(chance, round, act);
    }
    cut(chance, part);
    part->is_used_touched = percent(chance, 70);
    part->is_own_touched = percent(chance, 70);
    choose_window(chance, part);
    for (int i = 0; i < acts; i++)
        if (part->act[i].actor->needs & WHOLE) {
            part->act[i].offset = 0;
            part->act[i].bytes = part->bytes;
        }
    for (int i = 0; i < 2; i++)
        if (!percent(chance, part->joint ? 80 : 50))
            part->delay_us[i] = (unsigned)below(chance, 2000);
}

// All ranks of a joint act begin together; each may end when it likes.
static void join(struct round *round, int ranks)
{
    for (int i = 0; i < round->part[0].acts; i++) {
        struct act *first = &round->part[0].act[i];
        if (!(first->actor->needs & JOINT))
            continue;
        size_t least = first->bytes;
        for (int rank = 1; rank < ranks; rank++) {
            struct act *act = &round->part[rank].act[i];
            least = act->bytes < least ? act->bytes : least;
            act->first = first->first;
            // A rank that waits for the message at once, and one that has more to do before it
            // begins: not in two messages at once, nor where that is a use of the window.
            if (act->last < act->first || act->first == ALIVE || round->part[0].joint > 1)
                act->last = first->last;
        }
        for (int rank = 0; rank < ranks; rank++) {
            round->part[rank].act[i].bytes_all_ranks = least;
            round->part[rank].act[i].seed_all_ranks = first->seed;
        }
    }
}

void plan_round(struct round *round, uint64_t seed, uint64_t number)
{
    struct chance chance = {mixed(seed) ^ mixed(number + 77)};
    memset(round, 0, sizeof *round);
    round->seed = seed;
    round->number = number;
    round->ranks = all_ranks;
    round->rank = my_rank;
    round->waits[0] = percent(&chance, 60);
    round->waits[1] = percent(&chance, 60);
    round->uses = percent(&chance, 70) ? 1 : 2 + (int)below(&chance, 2);
    round->puts = percent(&chance, 10) ? 100 : (int)below(&chance, 12);
    round->reads_early = percent(&chance, 40);
    round->compares = percent(&chance, 60);
    round->is_clear = percent(&chance, 45);
    for (int i = 0; i < 3; i++)
        round->how[i] = (enum synchronisation)below(&chance, SYNCHRONISATIONS);
    // Joint acts come first, at the same index on all ranks.
    unsigned taken = 0;
    const struct actor *chosen[RANKS_MAX][ACTS_MAX];
    int joint = 0;
    const struct actor *actor;
    while (joint < 2 && percent(&chance, settings.groups || settings.actor ? 80 : 25)) {
        actor = choose(&chance, taken, 0);
        if (!actor || !(actor->needs & JOINT))
            continue;
        taken |= actor->needs;
        for (int rank = 0; rank < all_ranks; rank++)
            chosen[rank][joint] = actor;
        joint++;
    }
    // Messages between ranks are as long as their zones; half of them take the MPI a while.
    const int size = !joint || percent(&chance, 30) ? -1
                     : percent(&chance, 60)         ? SIZES - 1 - (int)below(&chance, 4)
                                                    : (int)below(&chance, SIZES);
    for (int rank = 0; rank < all_ranks; rank++) {
        unsigned mine = taken;
        int acts = joint, most = joint + 1 + (int)below(&chance, 3);
        while (acts < most && (actor = choose(&chance, mine, JOINT))) {
            mine |= actor->needs | 1u << 31;
            chosen[rank][acts++] = actor;
        }
        round->part[rank].joint = joint;
        choose_part(&chance, round, rank, size, acts, chosen[rank]);
    }
    for (int rank = 0; rank < all_ranks; rank++)
        if (round->part[rank].acts < joint)
            for (int other = 0; other < all_ranks; other++)
                round->part[other].acts = 0;
    if (joint && percent(&chance, 80)) // a barrier would carry the messages on
        round->waits[0] = round->waits[1] = false;
    join(round, all_ranks);
    if (settings.act >= 0)
        for (int rank = 0; rank < all_ranks; rank++)
            for (int i = 0; i < round->part[rank].acts; i++)
                round->part[rank].act[i].is_inert = i != settings.act;
}

void describe(const struct round *round, char *text, size_t bytes)
{
    static const char *const points[] = {"before", "alive", "after"};
    static const char *const hows[] = {"fence", "lock_all", "lock", "post"};
    size_t at = (size_t)snprintf(text, bytes, "seed=%llu round=%llu ranks=%d "
                                 "uses=%d (%s, %s, %s) puts=%d",
                                 (unsigned long long)round->seed,
                                 (unsigned long long)round->number, round->ranks, round->uses,
                                 hows[round->how[0]], hows[round->how[1]], hows[round->how[2]],
                                 round->puts);
    for (int rank = 0; rank < round->ranks && at < bytes; rank++) {
        const struct part *part = &round->part[rank];
        at += (size_t)snprintf(text + at, bytes - at, "; rank %d: %s %zu window %zu+%zu", rank,
                               memories[part->kind].name, part->bytes, part->win_offset,
                               part->win_bytes);
        for (int i = 0; i < part->acts && at < bytes; i++) {
            const struct act *act = &part->act[i];
            at += (size_t)snprintf(text + at, bytes - at, ", %s%s %s-%s %zu+%zu%s",
                                   act->actor->name, act->on_thread ? " on a thread" : "",
                                   points[act->first], points[act->last], act->offset, act->bytes,
                                   act->is_touched ? "" : " untouched");
        }
    }
}
