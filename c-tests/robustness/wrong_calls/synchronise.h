// Synchronisation calls that one rank makes by itself (MPI-4.1 section 12.5): locks and flushes,
// and those that others would have to match, where they are wrong or concern nobody else.

#ifndef WRONG_CALLS_SYNCHRONISE_H
#define WRONG_CALLS_SYNCHRONISE_H

#include "effects.h"

enum { NO_LOCK_TYPE = 12345, NO_ASSERT = 1 << 22 };

// The asserts of each call (MPI-4.1 section 12.5.5).
enum { FENCE_ASSERTS = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED,
       POST_ASSERTS = MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT };

static int draw_assert(int right)
{
    const int wrong[] = {NO_ASSERT, -1, MPI_MODE_NOPRECEDE | MPI_MODE_NOCHECK, right | NO_ASSERT};
    if (odd())
        return wrong[draw(&own, 4)];
    return draw(&own, 4) ? 0 : right;
}

static void judge_assert(int given, int allowed)
{
    if (given & ~allowed)
        fault(ERR_ASSERT);
}

static int draw_rank(const struct window *w)
{
    if (odd())
        return wrong_target(w);
    return draw(&own, 24) ? (int)draw(&own, (unsigned)w->size) : MPI_PROC_NULL;
}

// Whether the rank is one of the window. The standard does not speak of MPI_PROC_NULL as the rank
// of a lock or a flush.
static int judge_rank(const struct window *w, int target)
{
    if (target >= 0 && target < w->size)
        return 1;
    if (target == MPI_PROC_NULL)
        doubt(ERR_RANK | ERR_RMA_SYNC);
    else
        fault(ERR_RANK);
    return 0;
}

static void tell_rank(int target)
{
    if (target == MPI_PROC_NULL)
        tell("MPI_PROC_NULL, ");
    else
        tell("%d, ", target);
}

// A window for the call, with what is right for a wrong handle.
static struct named begin_on_window(const char *name)
{
    begin(name);
    struct named win = draw_window();
    if (win.window == NULL)
        fault(ERR_WIN);
    return win;
}

// The epochs that no new access epoch may begin in.
static void judge_opening(const struct window *w)
{
    if (in_access_epoch(w) || w->opened)
        fault(ERR_RMA_SYNC);
    else
        doubt(w->perhaps_opened ? ERR_RMA_SYNC : 0);
}

// Whether this process may wait for a lock of the window: the rank that it waits for must release
// it. In windows for writing, a process holds locks of one window only, and takes them in the order
// of the ranks.
static int may_wait(const struct window *w, int target)
{
    for (int i = 0; i < WINDOWS; i++) {
        const struct window *other = &windows[i];
        if (other->alive && other->mode == WRITING && other != w
            && (other->locked > 0 || other->locked_all))
            return 0;
    }
    for (int r = target; r < w->size; r++)
        if (w->locks[r] != UNLOCKED)
            return 0;
    return 1;
}

static void lock(void)
{
    struct named win = begin_on_window("MPI_Win_lock");
    struct window *w = win.window;
    const int target = draw_rank(w ? w : any_window(&own));
    int assert = draw_assert(MPI_MODE_NOCHECK);
    const int writes = w != NULL && w->mode == WRITING;
    int type = writes && draw(&own, 2) ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
    if (odd())
        type = NO_LOCK_TYPE + (int)draw(&own, 2);
    judge_assert(assert, MPI_MODE_NOCHECK);
    const int inside = w != NULL && judge_rank(w, target);
    if (inside && (w->locked == 0 || w->locks[target] != UNLOCKED))
        judge_opening(w);
    const int allowed = w == NULL || (w->mode == READING && type == MPI_LOCK_SHARED)
                        || (writes && assert == 0 && inside && may_wait(w, target));
    if (inside && !call.wrong && (!allowed || w->perhaps_opened))
        type = NO_LOCK_TYPE;
    if (type != MPI_LOCK_SHARED && type != MPI_LOCK_EXCLUSIVE)
        fault(ERR_LOCKTYPE);
    tell("%s, ", type == MPI_LOCK_SHARED ? "shared" : type == MPI_LOCK_EXCLUSIVE ? "exclusive"
                                                                                : "no lock type");
    tell_rank(target);
    tell("assert %d, %s", assert, win.text);
    go();
    if (judge(MPI_Win_lock(type, target, assert, win.handle)) && inside) {
        w->locks[target] = type == MPI_LOCK_SHARED ? LOCKED_SHARED : LOCKED_EXCLUSIVE;
        w->locked++;
    }
}

static void unlock_target(struct named win, int target)
{
    struct window *w = win.window;
    const int inside = w != NULL && judge_rank(w, target);
    if (inside && w->locks[target] == UNLOCKED)
        fault(ERR_RMA_SYNC);
    tell_rank(target);
    tell("%s", win.text);
    go();
    if (judge(MPI_Win_unlock(target, win.handle)) && inside) {
        completed(w, target, 1);
        w->locks[target] = UNLOCKED;
        w->locked--;
    }
}

static void unlock(void)
{
    struct named win = begin_on_window("MPI_Win_unlock");
    unlock_target(win, draw_rank(win.window ? win.window : any_window(&own)));
}

static void lock_all(void)
{
    struct named win = begin_on_window("MPI_Win_lock_all");
    struct window *w = win.window;
    int assert = draw_assert(MPI_MODE_NOCHECK);
    if (w != NULL) {
        judge_opening(w);
        const int allowed = w->mode == READING
                            || (w->mode == WRITING && assert == 0 && may_wait(w, 0));
        if (!call.wrong && (!allowed || w->perhaps_opened))
            assert = NO_ASSERT;
    }
    judge_assert(assert, MPI_MODE_NOCHECK);
    tell("assert %d, %s", assert, win.text);
    go();
    if (judge(MPI_Win_lock_all(assert, win.handle)))
        w->locked_all = 1;
}

static void unlock_all_targets(struct named win)
{
    struct window *w = win.window;
    if (w != NULL && !w->locked_all)
        fault(ERR_RMA_SYNC);
    tell("%s", win.text);
    go();
    if (judge(MPI_Win_unlock_all(win.handle))) {
        completed(w, -1, 1);
        w->locked_all = 0;
    }
}

static void unlock_all(void)
{
    unlock_all_targets(begin_on_window("MPI_Win_unlock_all"));
}

static void flush(void)
{
    const int everywhere = (int)draw(&own, 2);
    struct named win = begin_on_window(everywhere ? "MPI_Win_flush" : "MPI_Win_flush_local");
    struct window *w = win.window;
    const int target = draw_rank(w ? w : any_window(&own));
    const int inside = w != NULL && judge_rank(w, target);
    if (w != NULL && !(inside ? is_passive(w, target) : w->locked || w->locked_all)) {
        if (target == MPI_PROC_NULL)
            doubt(ERR_RMA_SYNC);
        else
            fault(ERR_RMA_SYNC);
    }
    tell_rank(target);
    tell("%s", win.text);
    go();
    const int code = everywhere ? MPI_Win_flush(target, win.handle)
                                : MPI_Win_flush_local(target, win.handle);
    if (judge(code) && inside)
        completed(w, target, everywhere);
}

static void flush_all(void)
{
    const int everywhere = (int)draw(&own, 2);
    const char *name = everywhere ? "MPI_Win_flush_all" : "MPI_Win_flush_local_all";
    struct named win = begin_on_window(name);
    struct window *w = win.window;
    if (w != NULL && !w->locked && !w->locked_all)
        fault(ERR_RMA_SYNC);
    tell("%s", win.text);
    go();
    const int code = everywhere ? MPI_Win_flush_all(win.handle)
                                : MPI_Win_flush_local_all(win.handle);
    if (judge(code))
        completed(w, -1, everywhere);
}

// It is for passive epochs too, but shared memory is ordered by it also elsewhere.
static void sync_window(void)
{
    struct named win = begin_on_window("MPI_Win_sync");
    if (win.window != NULL && !win.window->locked && !win.window->locked_all)
        doubt(ERR_RMA_SYNC);
    tell("%s", win.text);
    go();
    judge(MPI_Win_sync(win.handle));
}

// A fence that is right would wait for the others.
static void fence(void)
{
    struct named win = begin_on_window("MPI_Win_fence");
    const struct window *w = win.window;
    int assert = draw_assert(MPI_MODE_NOSTORE | MPI_MODE_NOPRECEDE);
    if (w != NULL && (in_access_epoch(w) || w->exposed))
        fault(ERR_RMA_SYNC);
    else if (w != NULL)
        assert |= NO_ASSERT;
    judge_assert(assert, FENCE_ASSERTS);
    tell("assert %d, %s", assert, win.text);
    go();
    judge(MPI_Win_fence(assert, win.handle));
}

enum whose { NO_GROUP, NOBODY, STRANGERS, MEMBERS };
static const char *const group_names[] = {"MPI_GROUP_NULL", "MPI_GROUP_EMPTY",
                                          "group of strangers", "group of all"};

// A group for post or start. Only with nobody in it, it may be right. Groups that were freed are
// not among them: the MPIs do not know them as such, and crash.
static MPI_Group draw_group(const struct window *w, enum whose *whose)
{
    static MPI_Group strangers = MPI_GROUP_NULL;
    *whose = draw(&own, MEMBERS + 1);
    if (strangers == MPI_GROUP_NULL)
        OK(MPI_Comm_group(MPI_COMM_WORLD, &strangers));
    if (*whose == STRANGERS && (w == NULL || w->size == size))
        *whose = NO_GROUP;
    switch (*whose) {
    case NO_GROUP: return MPI_GROUP_NULL;
    case NOBODY: return MPI_GROUP_EMPTY;
    case STRANGERS: return strangers;
    default: return w ? w->group : strangers;
    }
}

static void judge_group(enum whose whose)
{
    if (whose == NO_GROUP)
        fault(ERR_GROUP);
    if (whose == STRANGERS)
        fault(ERR_GROUP | ERR_RANK);
}

static void post(void)
{
    struct named win = begin_on_window("MPI_Win_post");
    struct window *w = win.window;
    const int assert = draw_assert(MPI_MODE_NOSTORE | MPI_MODE_NOCHECK);
    enum whose whose;
    MPI_Group group = draw_group(w, &whose);
    judge_assert(assert, POST_ASSERTS);
    if (w != NULL && (w->exposed || w->opened))
        fault(ERR_RMA_SYNC);
    else if (w != NULL && (whose == MEMBERS || w->mode != MATCHED))
        group = MPI_GROUP_NULL, whose = NO_GROUP;
    judge_group(whose);
    tell("%s, assert %d, %s", group_names[whose], assert, win.text);
    go();
    if (judge(MPI_Win_post(group, assert, win.handle)))
        w->exposed = w->exposed_to_nobody = 1;
}

static void start_access(void)
{
    struct named win = begin_on_window("MPI_Win_start");
    struct window *w = win.window;
    const int assert = draw_assert(MPI_MODE_NOCHECK);
    enum whose whose;
    MPI_Group group = draw_group(w, &whose);
    judge_assert(assert, MPI_MODE_NOCHECK);
    if (w != NULL && (in_access_epoch(w) || w->opened))
        fault(ERR_RMA_SYNC);
    else if (w != NULL && (whose == MEMBERS || w->mode == FENCED))
        group = MPI_GROUP_NULL, whose = NO_GROUP;
    judge_group(whose);
    tell("%s, assert %d, %s", group_names[whose], assert, win.text);
    go();
    if (judge(MPI_Win_start(group, assert, win.handle))) {
        w->started = 1;
        w->targets = 0;
    }
}

static void complete_access(struct named win)
{
    struct window *w = win.window;
    if (w != NULL && !w->started)
        fault(ERR_RMA_SYNC);
    tell("%s", win.text);
    go();
    if (judge(MPI_Win_complete(win.handle))) {
        completed(w, -1, 0);
        w->started = 0;
    }
}

static void complete(void)
{
    complete_access(begin_on_window("MPI_Win_complete"));
}

// The end of an exposure epoch, by a wait or by tests. One with origins comes to an end only when
// all have come to the end of theirs.
static void end_exposure(struct named win, int tests, int *flag)
{
    struct window *w = win.window;
    int code = 0, done = 0;
    if (w != NULL && !w->exposed)
        fault(ERR_RMA_SYNC);
    if (tests && flag == NULL)
        fault(ERR_ARG);
    tell("%s%s", win.text, tests && flag == NULL ? ", NULL" : "");
    go();
    if (!tests) {
        code = MPI_Win_wait(win.handle);
    } else {
        do {
            code = MPI_Win_test(win.handle, flag);
            done = code != MPI_SUCCESS || *flag;
        } while (!done && w != NULL && !w->exposed_to_nobody);
    }
    if (judge(code)) {
        CHECK_ANSWER(!tests || *flag);
        w->exposed = w->exposed_to_nobody = 0;
    }
}

static void wait_or_test(void)
{
    const int tests = (int)draw(&own, 2);
    struct named win = begin_on_window(tests ? "MPI_Win_test" : "MPI_Win_wait");
    int flag, *place = tests && odd() ? NULL : &flag;
    const struct window *w = win.window;
    if (w != NULL && w->exposed && !w->exposed_to_nobody && place != NULL) {
        if (!tests)
            return; // it would wait
        place = NULL;
    }
    end_exposure(win, tests, place);
}

// Only what is refused at once: all others would have to come.
static void free_window(void)
{
    struct named win = begin_on_window("MPI_Win_free");
    struct window *w = win.window;
    MPI_Win handle = win.handle, *place = &handle;
    if (w != NULL && (in_access_epoch(w) || w->exposed)) {
        fault(ERR_RMA_SYNC);
    } else if (w != NULL) {
        fault(ERR_ARG | ERR_WIN);
        place = NULL;
    }
    tell("%s", place ? win.text : "NULL");
    go();
    judge(MPI_Win_free(place));
    if (handle != win.handle)
        fail("has changed the handle");
}

#endif
