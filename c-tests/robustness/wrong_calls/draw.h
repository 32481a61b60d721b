// Which communication call comes next: drawn right, then spoiled here and there. What comes out is
// judged as it is; if it is right it must not disturb what others do, or it is changed once more.

#ifndef WRONG_CALLS_DRAW_H
#define WRONG_CALLS_DRAW_H

#include "transfers.h"

static const struct type *type_named(const char *name)
{
    for (int i = 0; i < type_count; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

// A type of elements of one kind that is fit to be used.
static const struct type *draw_type(enum basic basic)
{
    for (int tries = 0; tries < 6; tries++) {
        const struct type *type = &types[draw(&own, (unsigned)type_count)];
        if (!type->flaw && type->elements > 0 && type->basic[0] == basic && is_uniform(type)
            && type->extent < 1000)
            return type;
    }
    return &types[basic];
}

static const struct type *wrong_type(const struct transfer *t, const struct type *instead_of)
{
    for (int tries = 0; tries < 6; tries++) {
        const struct type *type = &types[draw(&own, (unsigned)type_count)];
        const int alike = type->elements == 0 || instead_of->elements == 0
                          || (is_uniform(type) && is_uniform(instead_of)
                              && type->basic[0] == instead_of->basic[0]);
        if (type->flaw || alike || (is_accumulate(t) && !instead_of->flaw))
            return type;
    }
    return type_named("uncommitted");
}

static int64_t wrong_count(const struct transfer *t, int64_t instead_of)
{
    const int64_t one_more = instead_of < INT32_MAX ? instead_of + 1 : 0;
    const int64_t counts[] = {-1, -2147483647 - 1, 2147483647, 1 << 20, 0, one_more,
                              (int64_t)1 << 40, INT64_MAX, INT64_MIN};
    return counts[draw(&own, t->large ? 9 : 6)];
}

static int wrong_target(const struct window *w)
{
    const int targets[] = {-1, -2, -3, -99, w->size, w->size + 1, 1 << 20, -2147483647 - 1,
                           2147483647};
    return targets[draw(&own, 9)];
}

// Where memory of a dynamic window was attached, or might have been.
static int64_t detached_place(const struct window *w, const struct part *part)
{
    for (int a = 0; a < area_count(w); a++)
        if (!part->areas[a].attached)
            return part->areas[a].place + (int64_t)draw(&own, (unsigned)part->areas[a].bytes);
    return 0;
}

// A displacement outside, or one that comes back inside when a multiplication overflows.
static int64_t wrong_disp(const struct window *w, int target)
{
    const struct part *part = &w->parts[target >= 0 && target < w->size ? target : 0];
    const struct area *area = &part->areas[draw(&own, (unsigned)area_count(w))];
    const int64_t end = (area->place + area->bytes) / part->disp_unit;
    const wide round = ((wide)1 << 64) + (int64_t)draw(&own, 200);
    if (w->flavour == DYNAMIC && draw(&own, 3) == 0)
        return detached_place(w, part);
    if (w->flavour == DYNAMIC && draw(&own, 3) == 0)
        return end - 1 - (int64_t)draw(&own, 8);
    switch (draw(&own, 9)) {
    case 0: return -1 - (int64_t)draw(&own, 100);
    case 1: return INT64_MIN;
    case 2: return INT64_MAX - (int64_t)draw(&own, 100);
    case 3: return end;
    case 4: return end - 1 - (int64_t)draw(&own, 8);
    case 5: return end + (int64_t)draw(&own, 5000);
    case 6: return area->place / part->disp_unit - 1;
    case 7: return (int64_t)1 << (20 + draw(&own, 43));
    default: return (int64_t)(round / part->disp_unit);
    }
}

// A place in the stripe of this process for what the call accesses; 0 if there is none.
static int place_in_stripe(struct transfer *t)
{
    const struct window *w = t->win.window;
    const struct part *part = &w->parts[t->target];
    int a = (int)draw(&own, (unsigned)area_count(w));
    for (int tries = 0; tries < 4 && !part->areas[a].attached; tries++)
        a = (int)draw(&own, (unsigned)area_count(w));
    const struct area *area = &part->areas[a];
    wide first, end;
    reach_of(t->type, t->count, &first, &end);
    const wide begins = (wide)area->place + w->rank * stride(w, area);
    const wide low = begins - first, high = begins + stripe_bytes(w, area) - end;
    if (!area->attached || high < low)
        return 0;
    for (int tries = 0; tries < 8; tries++) {
        wide at = low + draw(&own, (unsigned)(high - low + 1));
        at -= at % part->disp_unit;
        const int64_t address = area->address + (int64_t)(at - area->place);
        const int aligned = address % basic_bytes[t->type->basic[0]] == 0;
        if (at >= low && (aligned || !is_accumulate(t))) {
            t->disp = (int64_t)(at / part->disp_unit);
            return 1;
        }
    }
    return 0;
}

// Whether the elements of the call may be accessed now: other operations on them are complete.
static int is_idle(const struct transfer *t)
{
    const struct window *w = t->win.window;
    const int reads_only = t->kind == GET;
    const int64_t place = t->disp * w->parts[t->target].disp_unit;
    struct element elements[ELEMENTS_MAX];
    const int n = elements_of(t->type, t->count, elements);
    for (int i = 0; i < n; i++) {
        const int64_t at = in_stripe(w, t->target, t->area, place + elements[i].offset);
        for (int byte = 0; byte < basic_bytes[elements[i].basic]; byte++) {
            const int busy = w->busy[t->target][t->area][at + byte];
            if (busy & WRITE_BUSY || (busy != 0 && !reads_only))
                return 0;
        }
    }
    return 1;
}

// Whether a right call disturbs nobody.
static int is_allowed(const struct transfer *t)
{
    const struct window *w = t->win.window;
    if (t->unclear)
        return 0;
    if (t->target == MPI_PROC_NULL || t->area < 0 || !t->moves)
        return 1;
    wide first, end;
    const wide place = (wide)t->disp * w->parts[t->target].disp_unit;
    reach_of(t->type, t->count, &first, &end);
    return is_mine(w, t->target, t->area, place + first, place + end) && is_idle(t)
           && (!w->get_only || t->kind == GET);
}

// Types and counts that fit to each other.
static void draw_amounts(struct transfer *t)
{
    const enum basic basic = draw(&own, BASICS);
    t->type = is_single(t) ? &types[basic] : draw_type(basic);
    t->count = is_single(t) ? 1 : draw(&own, 4);
    if (!is_accumulate(t) && draw(&own, 12) == 0)
        t->type = type_named("mixed");
    const int total = (int)t->count * t->type->elements;
    struct side *sides[] = {&t->origin, &t->result, &t->compare};
    for (int i = 0; i < 3; i++) {
        const struct type *type = is_single(t) ? t->type : draw_type(basic);
        if (!is_uniform(t->type))
            type = t->type;
        else if (total % type->elements != 0)
            type = &types[basic];
        sides[i]->type = type;
        sides[i]->count = total / type->elements;
    }
    if (t->kind == GET && draw(&own, 8) == 0)
        t->origin.count++;
    if ((t->kind == PUT || t->kind == ACCUMULATE) && t->origin.count > 0 && draw(&own, 8) == 0)
        t->origin.count--;
}

static void draw_target(struct transfer *t)
{
    const struct window *w = t->win.window;
    t->target = (int)draw(&own, (unsigned)w->size);
    for (int tries = 0; tries < 4 && !is_accessible(w, t->target); tries++)
        t->target = (int)draw(&own, (unsigned)w->size);
    if (!place_in_stripe(t)) {
        t->disp = 0;
        if (draw(&own, 2) == 0 && !is_single(t))
            t->count = t->origin.count = t->result.count = 0;
    }
    if (draw(&own, 16) == 0)
        t->target = MPI_PROC_NULL;
}

static void draw_counter(struct transfer *t, const struct window *w)
{
    const int inside = t->target >= 0 && t->target < w->size;
    const int counters = inside ? w->counters[t->target] : 0;
    t->index = counters > 0 ? (int)draw(&own, (unsigned)counters) : 0;
    if (odd())
        t->index = wrong_index(counters);
}

static void spoil(struct transfer *t, const struct window *w)
{
    struct side *sides[] = {&t->origin, &t->result};
    for (int i = 0; i < 2 && !is_single(t); i++) {
        if (odd())
            sides[i]->type = wrong_type(t, sides[i]->type);
        if (odd())
            sides[i]->count = wrong_count(t, sides[i]->count);
    }
    if (odd())
        t->type = wrong_type(t, t->type);
    if (odd() && !is_single(t))
        t->count = wrong_count(t, t->count);
    if (odd() && !is_single(t))
        t->count = t->origin.count = t->result.count = wrong_count(t, t->count);
    if (odd())
        t->disp = wrong_disp(w, t->target);
    if (odd())
        t->target = wrong_target(w);
    if (odd())
        t->op = &ops[OPS - 1 - draw(&own, 4)];
    if (is_single(t))
        t->origin.type = t->result.type = t->compare.type = t->type;
    t->no_request = odd();
}

// Memory for a buffer, or none. Numbers are such that sums of them are exact.
static void give_slice(struct side *side)
{
    wide first, end;
    reach_of(side->type, side->count, &first, &end);
    if (end - first > 1024)
        first = 0, end = 64;
    side->slice = take((size_t)(end - first) + 16);
    side->slice_first = (int64_t)first;
    side->slice_bytes = (int64_t)(end - first);
    // As far from a multiple of sixteen as in any other buffer of the program.
    side->slice += 8 * draw(&own, 2);
    side->address = side->slice - side->slice_first;
    if (odd() && (side->type->is_basic || side->type->flaw))
        side->address = NULL;
    if (side->type->basic[0] != DOUBLE || !side->type->is_basic || end - first > 1000)
        return;
    for (int64_t i = 0; i + 8 <= side->slice_bytes; i += 8) {
        const double number = 1 + (int)draw(&own, 50) - (draw(&own, 2) ? 60 : 0);
        memcpy(side->slice + i, &number, 8);
        memcpy(should(side->slice) + i, &number, 8);
    }
}

// Sums and products of numbers that are none would depend on the order in which they are computed.
static void avoid_strange_numbers(struct transfer *t)
{
    const struct window *w = t->win.window;
    if (!is_accumulate(t) || t->kind == COMPARE_AND_SWAP || t->type->basic[0] != DOUBLE
        || t->op->kind > MAX || t->area < 0 || call.wrong)
        return;
    const int64_t place = t->disp * w->parts[t->target].disp_unit;
    for (int64_t i = 0; i < t->count; i++) {
        double number;
        const int64_t at = in_stripe(w, t->target, t->area, place + 8 * i);
        memcpy(&number, &w->stripes[t->target][t->area][at], 8);
        if (!is_small(number))
            t->op = &ops[REPLACE];
    }
}

// A right call that must not be made becomes a wrong one.
static void forbid(struct transfer *t)
{
    const struct window *w = t->win.window;
    const unsigned how = draw(&own, 3);
    if (how == 0 && !is_single(t))
        t->count = -1;
    else if (how == 1 && t->moves && t->target != MPI_PROC_NULL)
        t->disp = -1 - (int64_t)draw(&own, 10);
    else
        t->target = w->size + (int)draw(&own, 10);
    judge_transfer(t);
}

// A window, rather one that may be accessed now.
static struct named draw_open_window(void)
{
    struct named win = draw_window();
    for (int tries = 0; tries < 2 && win.window != NULL; tries++) {
        const struct window *w = win.window;
        if (w->locked || w->locked_all || w->fenced || (w->started && w->targets))
            break;
        win = draw_window();
    }
    return win;
}

// Draws a call and says what is right for it.
static void draw_transfer(struct transfer *t)
{
    begin("transfer");
    *t = (struct transfer){.kind = draw(&own, KINDS), .win = draw_open_window()};
    struct named other = t->win;
    if (other.window == NULL)
        t->win.window = any_window(&own);
    const int is_locked = t->win.window->locked || t->win.window->locked_all;
    if (t->win.window->get_only)
        t->kind = GET;
    t->large = !is_single(t) && draw(&own, 4) == 0;
    t->with_request = draw(&own, is_locked ? 2 : 8) == 0;
    t->notifies = !is_single(t) && draw(&own, is_locked ? 3 : 12) == 0;
    t->op = &ops[draw(&own, t->kind == ACCUMULATE ? NO_OP : NO_OP + 1)];
    draw_amounts(t);
    if (is_accumulate(t) && !suits(t->op, t->type->basic[0]) && draw(&own, 4))
        t->op = &ops[REPLACE];
    draw_target(t);
    spoil(t, t->win.window);
    draw_counter(t, t->win.window);
    give_slice(&t->origin);
    give_slice(&t->result);
    give_slice(&t->compare);
    t->win = other;
    judge_transfer(t);
    for (int tries = 0; tries < 8 && call.wrong == 0 && !is_allowed(t); tries++)
        if (t->target != MPI_PROC_NULL && place_in_stripe(t))
            judge_transfer(t);
    avoid_strange_numbers(t);
    if (call.wrong == 0 && !is_allowed(t))
        forbid(t);
}

#endif
