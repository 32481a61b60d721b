// Communication calls carried out: the call itself, and what it must have done when it succeeds.

#ifndef WRONG_CALLS_EFFECTS_H
#define WRONG_CALLS_EFFECTS_H

#include "draw.h"

#if MPI_VERSION < 4
// The library has them whatever the MPI has.
int MPI_Put_c(const void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype,
              MPI_Win) __attribute__((weak));
int MPI_Get_c(void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype, MPI_Win)
    __attribute__((weak));
int MPI_Accumulate_c(const void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype,
                     MPI_Op, MPI_Win) __attribute__((weak));
int MPI_Get_accumulate_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype,
                         int, MPI_Aint, MPI_Count, MPI_Datatype, MPI_Op, MPI_Win)
    __attribute__((weak));
int MPI_Rput_c(const void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype,
               MPI_Win, MPI_Request *) __attribute__((weak));
int MPI_Rget_c(void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype, MPI_Win,
               MPI_Request *) __attribute__((weak));
int MPI_Raccumulate_c(const void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count,
                      MPI_Datatype, MPI_Op, MPI_Win, MPI_Request *) __attribute__((weak));
int MPI_Rget_accumulate_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype,
                          int, MPI_Aint, MPI_Count, MPI_Datatype, MPI_Op, MPI_Win, MPI_Request *)
    __attribute__((weak));
#endif

#define FROM t->origin.address, t->origin.count, t->origin.type->handle
#define BACK t->result.address, t->result.count, t->result.type->handle
#define TO t->target, t->disp, t->count, t->type->handle
#define NOTE t->index
#define EITHER(name, ...) (t->large ? name##_c(__VA_ARGS__) : name(__VA_ARGS__))

static int make_notified_call(const struct transfer *t, MPI_Request *request)
{
    const MPI_Win win = t->win.handle;
    if (t->with_request)
        switch (t->kind) {
        case PUT: return EITHER(FOMPI_Rput_notify, FROM, TO, NOTE, win, request);
        case GET: return EITHER(FOMPI_Rget_notify, FROM, TO, NOTE, win, request);
        case ACCUMULATE:
            return EITHER(FOMPI_Raccumulate_notify, FROM, TO, t->op->handle, NOTE, win, request);
        default:
            return EITHER(FOMPI_Rget_accumulate_notify, FROM, BACK, TO, t->op->handle, NOTE, win,
                          request);
        }
    switch (t->kind) {
    case PUT: return EITHER(FOMPI_Put_notify, FROM, TO, NOTE, win);
    case GET: return EITHER(FOMPI_Get_notify, FROM, TO, NOTE, win);
    case ACCUMULATE: return EITHER(FOMPI_Accumulate_notify, FROM, TO, t->op->handle, NOTE, win);
    default:
        return EITHER(FOMPI_Get_accumulate_notify, FROM, BACK, TO, t->op->handle, NOTE, win);
    }
}

static int make_call(const struct transfer *t)
{
    const MPI_Win win = t->win.handle;
    switch (t->kind) {
    case PUT: return EITHER(MPI_Put, FROM, TO, win);
    case GET: return EITHER(MPI_Get, FROM, TO, win);
    case ACCUMULATE: return EITHER(MPI_Accumulate, FROM, TO, t->op->handle, win);
    case GET_ACCUMULATE: return EITHER(MPI_Get_accumulate, FROM, BACK, TO, t->op->handle, win);
    case FETCH_AND_OP:
        return MPI_Fetch_and_op(t->origin.address, t->result.address, t->type->handle, t->target,
                                t->disp, t->op->handle, win);
    default:
        return MPI_Compare_and_swap(t->origin.address, t->compare.address, t->result.address,
                                    t->type->handle, t->target, t->disp, win);
    }
}

static int make_call_with(const struct transfer *t, MPI_Request *request)
{
    const MPI_Win win = t->win.handle;
    switch (t->kind) {
    case PUT: return EITHER(MPI_Rput, FROM, TO, win, request);
    case GET: return EITHER(MPI_Rget, FROM, TO, win, request);
    case ACCUMULATE: return EITHER(MPI_Raccumulate, FROM, TO, t->op->handle, win, request);
    case FETCH_AND_OP:
        return FOMPI_Rfetch_and_op(t->origin.address, t->result.address, t->type->handle, t->target,
                                   t->disp, t->op->handle, win, request);
    case COMPARE_AND_SWAP:
        return FOMPI_Rcompare_and_swap(t->origin.address, t->compare.address, t->result.address,
                                       t->type->handle, t->target, t->disp, win, request);
    default:
        return EITHER(MPI_Rget_accumulate, FROM, BACK, TO, t->op->handle, win, request);
    }
}

// The elements of the three buffers and of the target, and how many of them move.
struct moving {
    int n;
    struct element origin[ELEMENTS_MAX], result[ELEMENTS_MAX], target[ELEMENTS_MAX];
};

static void find_moving(const struct transfer *t, struct moving *m)
{
    const int there = elements_of(t->type, t->count, m->target);
    const int here = elements_of(t->origin.type, t->origin.count, m->origin);
    m->n = uses_origin(t) && here < there ? here : there;
    if (returns_old(t))
        elements_of(t->result.type, t->result.count, m->result);
}

// One element at the target, `at` in the stripe of this process.
static void move_element(const struct transfer *t, const struct moving *m, int i,
                         unsigned char *at)
{
    const enum basic basic = m->target[i].basic;
    const size_t bytes = (size_t)basic_bytes[basic];
    const unsigned char *from = t->origin.address + m->origin[i].offset;
    if (t->kind == GET)
        memcpy(should(t->origin.address + m->origin[i].offset), at, bytes);
    if (returns_old(t))
        memcpy(should(t->result.address + m->result[i].offset), at, bytes);
    if (t->kind == PUT)
        memcpy(at, from, bytes);
    else if (t->kind == COMPARE_AND_SWAP && memcmp(at, t->compare.address, bytes) == 0)
        memcpy(at, from, bytes);
    else if (t->kind == COMPARE_AND_SWAP)
        return;
    else if (is_accumulate(t))
        combine(t->op->kind, basic, at, from);
}

// Records what the call does, as if it were done: in the stripe, and in the buffer for the result.
static void take_effect(const struct transfer *t)
{
    struct window *w = t->win.window;
    const int64_t place = t->disp * w->parts[t->target].disp_unit;
    const int busy = t->kind == GET ? READ_BUSY : WRITE_BUSY;
    struct moving m;
    find_moving(t, &m);
    for (int i = 0; i < m.n; i++) {
        const int64_t at = in_stripe(w, t->target, t->area, place + m.target[i].offset);
        move_element(t, &m, i, &w->stripes[t->target][t->area][at]);
        memset(&w->busy[t->target][t->area][at], busy, (size_t)basic_bytes[m.target[i].basic]);
    }
}

static void note_result(const struct transfer *t)
{
    const struct side *into = t->kind == GET ? &t->origin : &t->result;
    struct result result = {t->win.window, t->target, into->slice, (size_t)into->slice_bytes,
                            call.number};
    if (t->kind != GET && !returns_old(t))
        return;
    if (t->with_request)
        check_result(&result);
    else if (result_count == RESULTS_MAX)
        fail("the model has no place for results left");
    else
        results[result_count++] = result;
}

// Half of the time a Compare_and_swap finds what it compares with.
static void fill_compare(const struct transfer *t)
{
    if (t->kind != COMPARE_AND_SWAP || call.wrong || t->area < 0 || draw(&own, 2))
        return;
    const struct window *w = t->win.window;
    const size_t bytes = (size_t)basic_bytes[t->type->basic[0]];
    const int64_t place = t->disp * w->parts[t->target].disp_unit;
    const int64_t at = in_stripe(w, t->target, t->area, place);
    memcpy(t->compare.address, &w->stripes[t->target][t->area][at], bytes);
    memcpy(should(t->compare.address), t->compare.address, bytes);
}

static void wait_for(MPI_Request *request)
{
    int done = 0;
    if (draw(&own, 2))
        OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    else
        while (!done)
            OK(MPI_Test(request, &done, MPI_STATUS_IGNORE));
    CHECK_ANSWER(*request == MPI_REQUEST_NULL);
}

// A communication call, right or wrong.
static void transfer(void)
{
    struct transfer t;
    MPI_Request request = MPI_REQUEST_NULL;
    if (!has_room(8192))
        return;
    draw_transfer(&t);
    fill_compare(&t);
    tell_transfer(&t);
    go();
    MPI_Request *place = t.no_request ? NULL : &request;
    const int code = t.notifies ? make_notified_call(&t, place)
                     : t.with_request ? make_call_with(&t, place) : make_call(&t);
    if (!judge(code))
        return;
    if (t.with_request)
        wait_for(&request);
    struct window *w = t.win.window;
    if (t.target == MPI_PROC_NULL) {
        w->perhaps_opened |= w->fenced && !in_access_epoch(w);
        return;
    }
    w->opened |= w->fenced && !in_access_epoch(w);
    if (t.notifies)
        w->notified[t.target][t.index]++;
    if (t.moves && t.area >= 0) {
        take_effect(&t);
        note_result(&t);
    }
}

#endif
