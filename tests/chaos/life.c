// The life of a window: the points at which acts begin, act and end, and what is checked there.
#include "chaos.h"

static void set_phase(const char *text)
{
    atomic_store(&phase_text, text);
    say_state("%s", text);
}

// The zone of an act, when the memory is known.
static void find_zone(struct round *round, struct act *act)
{
    if (act->actor->needs & PAGES) {
        uintptr_t first = (uintptr_t)round->base + act->offset, end = first + act->bytes;
        uintptr_t up = (first + PAGE - 1) / PAGE * PAGE, down = end / PAGE * PAGE;
        if (up >= down)
            give_up(act);
        else {
            act->offset += up - first;
            act->bytes = down - up;
        }
    }
    if (act->bytes < act->actor->bytes_min && !(act->actor->needs & JOINT))
        give_up(act);
    act->zone = round->base + act->offset;
    act->want = round->want + act->offset;
    act->round = round;
    act->chance.state = act->seed;
    atomic_store(&act->is_quiet, true);
}

static void fill(struct round *round, size_t offset, size_t bytes, uint64_t seed)
{
    pattern(round->want + offset, bytes, seed);
    memcpy(round->base + offset, round->want + offset, bytes);
}

// Touched zones get bytes; the others stay as the memory was, which is zero if it is new.
static void fill_all(struct round *round)
{
    struct part *my = round->my;
    if (memories[my->kind].traits & IS_NEW) {
        memset(round->want, 0, my->bytes);
    } else {
        fill(round, 0, my->bytes, round->seed + round->number);
    }
    if (my->is_used_touched)
        fill(round, my->used, my->used_bytes, my->used + 1);
    if (my->is_own_touched)
        fill(round, my->own, my->own_bytes, my->own + 2);
    for (int i = 0; i < my->acts; i++)
        if (my->act[i].is_touched && !my->act[i].is_inert)
            refill(&my->act[i]);
}

void store_own(struct round *round)
{
    struct part *my = round->my;
    round->own_version++;
    fill(round, my->own, my->own_bytes, round->own_version * 31 + round->number);
}

static void *loop(void *argument)
{
    struct act *act = argument;
    struct chance chance = {act->seed ^ 99};
    while (!atomic_load(&act->is_stopped)) {
        spin_us((unsigned)below(&chance, percent(&chance, 50) ? 50 : 2000));
        act->actor->once(act);
    }
    return NULL;
}

static void begin(struct act *act)
{
    if (act->is_inert)
        return;
    act->is_begun = true;
    if (act->actor->begin)
        act->actor->begin(act);
    if (act->on_thread && !act->is_inert) {
        atomic_store(&act->is_quiet, false);
        start_thread(act, loop);
    }
}

static void end(struct act *act)
{
    if (act->is_inert || !act->is_begun)
        return;
    if (act->on_thread) {
        join_thread(act);
        atomic_store(&act->is_quiet, true);
    }
    if (act->actor->end)
        act->actor->end(act);
    act->is_begun = false;
    free(act->state);
    act->state = NULL;
}

static void once(struct act *act)
{
    if (!act->is_inert && act->is_begun && !act->on_thread && act->actor->once)
        act->actor->once(act);
}

static bool is_late(const struct act *act)
{
    return act->actor->needs & WHOLE;
}

// Transfers of the MPI that are to be pending over the next call begin right before it, as other
// calls of the MPI carry them on.
static bool is_pending(const struct act *act)
{
    return act->actor->needs & JOINT && act->last > act->first;
}

// What happens at one point.
static void act_at(struct round *round, enum point point)
{
    struct part *my = round->my;
    for (int i = 0; i < my->acts; i++)
        if (my->act[i].last == point && my->act[i].first < point)
            end(&my->act[i]);
    const bool checks = point != BEFORE || round->reads_early;
    if (checks)
        check_all(round, "after the acts that ended");
    for (int i = 0; i < my->acts; i++)
        if (my->act[i].first == point && !is_late(&my->act[i]) && !is_pending(&my->act[i]))
            begin(&my->act[i]);
    for (int i = 0; i < my->acts; i++)
        if (!is_late(&my->act[i]))
            once(&my->act[i]);
    store_own(round);
    for (int i = 0; point == ALIVE && i < round->uses; i++) {
        use_window(round);
        for (int j = 0; j < my->acts; j++)
            if (!is_late(&my->act[j]))
                once(&my->act[j]);
    }
    for (int i = 0; i < my->acts; i++)
        if (my->act[i].last == point && my->act[i].first == point)
            end(&my->act[i]);
    if (point == ALIVE && round->compares)
        compare_windows(round);
    for (int i = 0; i < my->acts; i++)
        if (my->act[i].first == point && is_late(&my->act[i]))
            begin(&my->act[i]);
    if (checks)
        check_all(round, "at the end of the point");
    check_fd_of_memory(round);
    for (int i = 0; i < my->acts; i++)
        if (my->act[i].first == point && is_pending(&my->act[i]))
            begin(&my->act[i]);
}

static void go_to_call(struct round *round, int which)
{
    if (round->waits[which])
        MPI_Barrier(MPI_COMM_WORLD);
    spin_us(round->my->delay_us[which]);
}

void live(struct round *round)
{
    struct part *my = round->my;
    round->want = malloc(my->bytes + 8);
    for (int i = 0; i < my->acts; i++)
        find_zone(round, &my->act[i]);
    fill_all(round);
    set_phase("before MPI_Win_create");
    act_at(round, BEFORE);
    go_to_call(round, 0);
    set_phase("MPI_Win_create");
    MPI_Win_create(round->base + my->win_offset, (MPI_Aint)my->win_bytes, 1, MPI_INFO_NULL,
                   MPI_COMM_WORLD, &round->win);
    set_phase("between MPI_Win_create and MPI_Win_free");
    check_all(round, "after MPI_Win_create");
    act_at(round, ALIVE);
    go_to_call(round, 1);
    set_phase("MPI_Win_free");
    MPI_Win_free(&round->win);
    set_phase("after MPI_Win_free");
    check_all(round, "after MPI_Win_free");
    act_at(round, AFTER);
    check_kept();
    free(round->want);
}
