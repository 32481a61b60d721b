// Epochs that all ranks open and close together (MPI-4.1 sections 12.5.1 and 12.5.2), so that those
// calls which wait for others are matched.

#ifndef WRONG_CALLS_EPOCHS_H
#define WRONG_CALLS_EPOCHS_H

#include "counters.h"

static struct named name_of(struct window *w)
{
    struct named name = {w->handle, w, ""};
    snprintf(name.text, sizeof name.text, "w%d", index_of(w));
    return name;
}

static void fence_together(struct window *w, int assert)
{
    begin("MPI_Win_fence");
    tell("assert %d, w%d", assert, index_of(w));
    go();
    judge(MPI_Win_fence(assert, w->handle));
    completed(w, -1, 1);
    w->opened = w->perhaps_opened = 0;
    w->fenced = !(assert & MPI_MODE_NOSUCCEED);
    w->get_only = (assert & MPI_MODE_NOPUT) != 0;
}

// A fence in the middle: some say what comes next. Nobody stores into the windows.
static void fence_again(struct window *w)
{
    const int asserts[] = {0, 0, MPI_MODE_NOSTORE, MPI_MODE_NOPUT, MPI_MODE_NOSUCCEED};
    const int precede = w->fenced ? 0 : MPI_MODE_NOPRECEDE;
    fence_together(w, precede | asserts[draw(&all, 5)]);
}

// Who accesses whom in the epochs of a matched window, and with which asserts.
struct matching {
    unsigned targets[RANKS_MAX];
    int post_assert, start_assert;
};
static struct matching matchings[WINDOWS];

static MPI_Group group_of_ranks(const struct window *w, unsigned members)
{
    int ranks[RANKS_MAX], n = 0;
    MPI_Group group;
    for (int r = 0; r < w->size; r++)
        if (members >> r & 1)
            ranks[n++] = r;
    OK(MPI_Group_incl(w->group, n, ranks, &group));
    return group;
}

// Who says NOCHECK must do so on both sides (section 12.5.5). Where all posts are known to have
// come before the starts, one that says so alone does no harm.
static void draw_matching(struct window *w)
{
    struct matching *m = &matchings[index_of(w)];
    for (int r = 0; r < w->size; r++)
        m->targets[r] = draw(&all, 1u << w->size);
    const int asserts[][2] = {{0, 0}, {0, 0}, {MPI_MODE_NOCHECK, MPI_MODE_NOCHECK},
                              {0, MPI_MODE_NOCHECK}, {MPI_MODE_NOCHECK, 0},
                              {MPI_MODE_NOSTORE | MPI_MODE_NOPUT, 0}};
    const int *drawn = asserts[draw(&all, 6)];
    m->post_assert = drawn[0];
    m->start_assert = drawn[1];
    w->get_only = (drawn[0] & MPI_MODE_NOPUT) != 0;
}

static void post_together(struct window *w)
{
    const struct matching *m = &matchings[index_of(w)];
    unsigned origins = 0;
    for (int r = 0; r < w->size; r++)
        origins |= (m->targets[r] >> w->rank & 1) << r;
    if (origins == 0)
        return;
    MPI_Group group = group_of_ranks(w, origins);
    begin("MPI_Win_post");
    tell("ranks in %#x, assert %d, w%d", origins, m->post_assert, index_of(w));
    go();
    judge(MPI_Win_post(group, m->post_assert, w->handle));
    OK(MPI_Group_free(&group));
    w->exposed = 1;
}

static void start_together(struct window *w)
{
    const struct matching *m = &matchings[index_of(w)];
    const unsigned targets = m->targets[w->rank];
    if (targets == 0)
        return;
    MPI_Group group = group_of_ranks(w, targets);
    begin("MPI_Win_start");
    tell("ranks in %#x, assert %d, w%d", targets, m->start_assert, index_of(w));
    go();
    judge(MPI_Win_start(group, m->start_assert, w->handle));
    OK(MPI_Group_free(&group));
    w->started = 1;
    w->targets = targets;
}

#define FOR_ALIVE(w) \
    for (struct window *w = windows; w < windows + WINDOWS; w++) \
        if (w->alive)

static void open_epochs(void)
{
    FOR_ALIVE(w) {
        w->mode = draw(&all, WRITING + 1);
        if (w->mode == FENCED) {
            fence_together(w, draw(&all, 2) ? 0 : MPI_MODE_NOPRECEDE);
        } else if (w->mode == MATCHED) {
            draw_matching(w);
            post_together(w);
        } else if (draw(&all, 3) == 0) {
            fence_together(w, 0);
            w->fenced = 0;
            w->vague = 1;
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    FOR_ALIVE(w)
        if (w->mode == MATCHED)
            start_together(w);
}

// Gives all locks of a window back.
static void unlock_everything(struct window *w)
{
    for (int r = 0; r < w->size; r++)
        if (w->locks[r] != UNLOCKED) {
            begin("MPI_Win_unlock");
            unlock_target(name_of(w), r);
        }
    if (w->locked_all) {
        begin("MPI_Win_unlock_all");
        unlock_all_targets(name_of(w));
    }
}

// Between two times in which each rank calls what it likes: nobody may hold what others wait for.
static void meet(void)
{
    FOR_ALIVE(w)
        if (w->mode == WRITING)
            unlock_everything(w);
    if (draw(&all, 3) == 0)
        make_wrong();
    FOR_ALIVE(w)
        if (w->mode == FENCED)
            fence_again(w);
}

static void close_epochs(void)
{
    FOR_ALIVE(w) {
        unlock_everything(w);
        if (w->started) {
            begin("MPI_Win_complete");
            complete_access(name_of(w));
        }
    }
    FOR_ALIVE(w) {
        const int tests = (int)draw(&own, 2);
        int flag = 0;
        if (w->mode == FENCED)
            fence_together(w, draw(&all, 2) ? 0 : MPI_MODE_NOSUCCEED);
        if (w->exposed) {
            begin(tests ? "MPI_Win_test" : "MPI_Win_wait");
            end_exposure(name_of(w), tests, &flag);
        }
        completed(w, -1, 1);
        forget_fence(w);
    }
}

#endif
