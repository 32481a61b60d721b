// The communication calls (MPI-4.1 section 12.3): their arguments, and whether these are right.

#ifndef WRONG_CALLS_TRANSFERS_H
#define WRONG_CALLS_TRANSFERS_H

#include "windows.h"

enum kind { PUT, GET, ACCUMULATE, GET_ACCUMULATE, FETCH_AND_OP, COMPARE_AND_SWAP, KINDS };

// A buffer of the origin: the address that is passed, and the bytes that are there.
struct side {
    unsigned char *address, *slice;
    int64_t slice_first, slice_bytes;
    int64_t count;
    const struct type *type;
};

struct transfer {
    enum kind kind;
    int with_request, large, no_request;
    // it notifies this counter of the target
    int notifies, index;
    struct named win;
    struct side origin, result, compare;
    int target;
    int64_t disp, count;
    const struct type *type;
    const struct op *op;
    // elements move if it is right
    int moves;
    // the standard does not say what it does, or others may wait for what it opens
    int unclear;
    // where it accesses the target, if it is right
    int area;
};

static int is_accumulate(const struct transfer *t)
{
    return t->kind >= ACCUMULATE;
}

static int is_single(const struct transfer *t)
{
    return t->kind >= FETCH_AND_OP;
}

static int returns_old(const struct transfer *t)
{
    return t->kind >= GET_ACCUMULATE;
}

// With MPI_NO_OP the arguments of the origin's buffer are ignored.
static int uses_origin(const struct transfer *t)
{
    return !((t->kind == GET_ACCUMULATE || t->kind == FETCH_AND_OP) && t->op->kind == NO_OP);
}

static wide bytes_of(const struct side *side, int *too_many)
{
    const wide bytes = (wide)side->count * item_bytes(side->type);
    *too_many |= bytes >> 63 != 0;
    return bytes;
}

static void judge_side(const struct transfer *t, const struct side *side)
{
    if (side->count < 0)
        fault(ERR_COUNT);
    if (side->type->flaw)
        fault(ERR_TYPE);
    if (side->address != NULL || side->count <= 0 || !side->type->is_basic)
        return;
    if (t->target == MPI_PROC_NULL || !t->moves)
        doubt(ERR_BUFFER | ERR_ARG);
    else
        fault(ERR_BUFFER | ERR_ARG);
}

// The origin's buffers must be as large as they are said to be.
static void judge_slice(struct transfer *t, const struct side *side)
{
    wide first, end;
    reach_of(side->type, side->count, &first, &end);
    if (side->address != NULL)
        t->unclear |= first < side->slice_first || end > side->slice_first + side->slice_bytes;
}

// Numbers of bytes: what is sent must fit, with no limit for MPI_PROC_NULL.
static void judge_amounts(struct transfer *t)
{
    const struct side target = {.count = t->count, .type = t->type};
    const struct side *into = t->kind == GET ? &t->origin : &t->result;
    int too_many = 0, wrong = 0;
    t->moves = 0;
    if (t->type->flaw || t->count < 0)
        return;
    const wide there = bytes_of(&target, &too_many);
    t->moves = there > 0;
    if (t->kind != GET && uses_origin(t) && !t->origin.type->flaw && t->origin.count >= 0) {
        const wide sent = bytes_of(&t->origin, &too_many);
        t->moves = t->moves && sent > 0;
        wrong |= sent > there;
        t->unclear |= t->kind == GET_ACCUMULATE && sent != there;
    }
    if ((t->kind == GET || t->kind == GET_ACCUMULATE) && !into->type->flaw && into->count >= 0)
        wrong |= there > bytes_of(into, &too_many);
    const unsigned classes = (wrong ? ERR_TRUNCATE : 0)
                             | (too_many ? ERR_COUNT | ERR_TRUNCATE | ERR_RMA_RANGE : 0);
    if (t->target == MPI_PROC_NULL)
        doubt(classes);
    else
        fault(classes);
}

// The operation, and whether the types are such as the call takes. Elements of several kinds are
// none of them, but no MPI must find that.
static void judge_operation(struct transfer *t)
{
    if (t->kind != COMPARE_AND_SWAP) {
        if (t->op->kind == NO_OPERATION || (t->op->kind == NO_OP && t->kind == ACCUMULATE))
            fault(ERR_OP);
    }
    if (t->type->flaw)
        return;
    if (is_single(t) && !t->type->is_basic)
        fault(ERR_TYPE);
    const int compares = t->type->basic[0] != DOUBLE && t->type->basic[0] != WCHAR;
    if (t->kind == COMPARE_AND_SWAP && t->type->is_basic && !compares)
        fault(ERR_TYPE);
    int differ = 0, mixed = !is_uniform(t->type);
    const struct side *sides[] = {&t->origin, &t->result};
    for (int i = 0; i < 2; i++) {
        const struct type *type = sides[i]->type;
        if ((i == 0 && !uses_origin(t)) || (i == 1 && !returns_old(t)) || type->flaw)
            continue;
        mixed |= !is_uniform(type);
        differ |= type->basic[0] != t->type->basic[0];
    }
    if (mixed && !differ) {
        t->unclear = 1;
        doubt(ERR_TYPE | ERR_OP);
    }
    const int suited = t->kind == COMPARE_AND_SWAP || suits(t->op, t->type->basic[0]);
    const unsigned classes = differ || !suited ? ERR_TYPE | ERR_OP : 0;
    if (t->moves && t->target != MPI_PROC_NULL)
        fault(classes);
    else
        doubt(classes);
}

// Whether it is for passive target epochs alone.
static int is_for_passive(const struct transfer *t)
{
    return t->with_request || t->notifies;
}

// Whether the epoch allows the operation on a rank of the window.
static void judge_epoch(struct transfer *t, const struct window *w)
{
    if (is_for_passive(t) && !is_passive(w, t->target)) {
        fault(ERR_RMA_SYNC);
    } else if (w->vague && !in_access_epoch(w)) {
        doubt(ERR_RMA_SYNC);
        t->unclear = 1;
    } else if (!is_accessible(w, t->target)) {
        fault(ERR_RMA_SYNC);
    }
}

// Whether the target exposes all bytes from the first to the last.
static void judge_range(struct transfer *t, const struct window *w)
{
    const struct part *part = &w->parts[t->target];
    const wide place = (wide)t->disp * part->disp_unit;
    wide first, end;
    unsigned classes = 0;
    reach_of(t->type, t->count, &first, &end);
    t->area = area_of(w, t->target, place + first, place + end);
    if (t->disp < 0)
        classes = ERR_DISP | ERR_RMA_RANGE;
    else if (t->area < 0)
        classes = ERR_RMA_RANGE;
    if (classes != 0 && (end - first) >> 62 != 0)
        classes |= ERR_COUNT;
    if (t->moves)
        fault(classes);
    else
        doubt(classes | (classes ? ERR_DISP : 0));
}

static void judge_target(struct transfer *t, const struct window *w)
{
    const int no_epoch = !in_access_epoch(w) && !w->fenced;
    if (t->target == MPI_PROC_NULL) {
        doubt(no_epoch || is_for_passive(t) ? ERR_RMA_SYNC : 0);
        return;
    }
    if (t->target < 0 || t->target >= w->size) {
        fault(ERR_RANK | (no_epoch || is_for_passive(t) ? ERR_RMA_SYNC : 0));
        return;
    }
    judge_epoch(t, w);
    if (t->notifies && (t->index < 0 || t->index >= w->counters[t->target]))
        fault(ERR_NOTIFICATION);
    if (!t->type->flaw && t->count >= 0)
        judge_range(t, w);
}

// Says which answers of the call are right.
static void judge_transfer(struct transfer *t)
{
    call.wrong = call.maybe = 0;
    t->unclear = 0;
    t->area = -1;
    if (!is_single(t))
        judge_amounts(t);
    else
        t->moves = !t->type->flaw && t->type->elements > 0;
    if (is_accumulate(t))
        judge_operation(t);
    fault((t->count < 0 ? ERR_COUNT : 0) | (t->type->flaw ? ERR_TYPE : 0));
    if (uses_origin(t))
        judge_side(t, &t->origin);
    if (returns_old(t))
        judge_side(t, &t->result);
    if (t->kind == COMPARE_AND_SWAP)
        judge_side(t, &t->compare);
    if (t->with_request && t->no_request)
        fault(ERR_ARG | ERR_REQUEST);
    if (t->notifies || (is_single(t) && t->with_request))
        judge_foreign(&t->win);
    if (t->win.window == NULL)
        fault(ERR_WIN);
    else
        judge_target(t, t->win.window);
    if (call.wrong != 0)
        return;
    if (uses_origin(t))
        judge_slice(t, &t->origin);
    if (returns_old(t))
        judge_slice(t, &t->result);
}

static void tell_side(const char *name, const struct side *side, int with_count)
{
    if (side->address == NULL)
        tell("%s NULL, ", name);
    else
        tell("%s arena+%td, ", name, side->address - arena);
    if (with_count)
        tell("%lld %s, ", (long long)side->count, side->type->name);
}

static void tell_transfer(const struct transfer *t)
{
    static const char *const names[] = {"put", "get", "accumulate", "get_accumulate",
                                        "fetch_and_op", "compare_and_swap"};
    const char *name = names[t->kind];
    call.length = 0;
    tell("%sMPI_%s%c%s%s%s(", t->notifies || (is_single(t) && t->with_request) ? "FO" : "",
         t->with_request ? "R" : "", t->with_request ? *name : *name - 'a' + 'A', name + 1,
         t->notifies ? "_notify" : "", t->large ? "_c" : "");
    tell_side("origin", &t->origin, !is_single(t));
    if (t->kind == COMPARE_AND_SWAP)
        tell_side("compare", &t->compare, 0);
    if (returns_old(t))
        tell_side("result", &t->result, !is_single(t));
    if (t->target == MPI_PROC_NULL)
        tell("target MPI_PROC_NULL");
    else
        tell("target %d", t->target);
    tell(", disp %lld", (long long)t->disp);
    if (t->area >= 0 && t->win.window->flavour == DYNAMIC)
        tell(" (area %d+%lld)", t->area,
             (long long)(t->disp - t->win.window->parts[t->target].areas[t->area].place));
    if (!is_single(t))
        tell(", %lld", (long long)t->count);
    tell(" %s", t->type->name);
    if (is_accumulate(t) && t->kind != COMPARE_AND_SWAP)
        tell(", %s", t->op->name);
    if (t->notifies)
        tell(", counter %d", t->index);
    tell(", %s", t->win.text);
    if (t->with_request)
        tell(", request%s", t->no_request ? " NULL" : "");
}

#endif
