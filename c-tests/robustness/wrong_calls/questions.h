// Calls that ask a window for something or keep something with it, and calls that are for dynamic
// windows (MPI-4.1 sections 7.7.3, 7.8, 9.2, 9.3.2, 12.2.3 to 12.2.7). None concerns other ranks.

#ifndef WRONG_CALLS_QUESTIONS_H
#define WRONG_CALLS_QUESTIONS_H

#include "synchronise.h"

#if MPI_VERSION < 4
int MPI_Win_shared_query_c(MPI_Win, int, MPI_Aint *, MPI_Aint *, void *) __attribute__((weak));
#endif

// A place for an answer, or none, which is wrong.
static void *place_or_none(void *place)
{
    if (!odd())
        return place;
    fault(ERR_ARG);
    return NULL;
}

// What MPI_Win_shared_query says of a rank that exposes memory: how much, and that it is mapped.
static void check_part(const struct window *w, int target, MPI_Aint bytes, MPI_Aint disp_unit,
                       const unsigned char *base)
{
    const struct part *part = &w->parts[target];
    const int always = w->flavour == ALLOCATE || w->flavour == SHARED;
    if (w->flavour == DYNAMIC || (bytes == 0 && !always))
        return;
    CHECK_ANSWER(bytes == part->areas[0].bytes);
    CHECK_ANSWER(disp_unit == part->disp_unit);
    CHECK_ANSWER(bytes == 0 || base != NULL);
    if (bytes > 0) { // the last byte belongs to nobody
        const unsigned char last = *(const volatile unsigned char *)(base + bytes - 1);
        CHECK_ANSWER(last == untouched(w, w->world[target], 0, bytes - 1));
    }
}

static void shared_query(void)
{
    const int large = (int)draw(&own, 2);
    struct named win = begin_on_window(large ? "MPI_Win_shared_query_c" : "MPI_Win_shared_query");
    const struct window *w = win.window;
    const int target = draw_rank(w ? w : any_window(&own));
    MPI_Aint bytes = -1, large_unit = -1, *bytes_place = place_or_none(&bytes);
    int unit = -1, *unit_place = place_or_none(&unit);
    void *base = NULL, *base_place = place_or_none(&base);
    const int inside = w != NULL && target >= 0 && target < w->size;
    if (w != NULL && !inside && target != MPI_PROC_NULL)
        fault(ERR_RANK);
    if (w != NULL && w->flavour > SHARED)
        doubt(ERR_RMA_FLAVOR);
    tell("%s, ", win.text);
    tell_rank(target);
    tell("%s, %s, %s", bytes_place ? "size" : "NULL", unit_place ? "disp_unit" : "NULL",
         base_place ? "base" : "NULL");
    go();
    const int code =
        large ? MPI_Win_shared_query_c(win.handle, target, bytes_place,
                                       unit_place ? &large_unit : NULL, base_place)
              : MPI_Win_shared_query(win.handle, target, bytes_place, unit_place, base_place);
    if (!judge(code) || !inside)
        return;
    // A unit that is no int must not be told as another one.
    const int64_t right = w->parts[target].disp_unit;
    if (!large && right > INT32_MAX && w->flavour <= SHARED)
        CHECK_ANSWER(unit == MPI_UNDEFINED);
    check_part(w, target, bytes, large ? large_unit : right > INT32_MAX ? right : unit, base);
}

static void check_attribute(const struct window *w, int keyval, const void *value)
{
    const struct part *part = &w->parts[w->rank];
    const int flavours[] = {MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED, MPI_WIN_FLAVOR_CREATE,
                            MPI_WIN_FLAVOR_DYNAMIC};
    if (keyval == MPI_WIN_BASE && w->flavour != DYNAMIC && part->areas[0].bytes > 0)
        CHECK_ANSWER(value == w->memory[0]);
    if (keyval == MPI_WIN_SIZE && w->flavour != DYNAMIC)
        CHECK_ANSWER(*(const MPI_Aint *)value == part->areas[0].bytes);
    // The standard does not say what the attribute, an int, is for a unit that is none.
    if (keyval == MPI_WIN_DISP_UNIT && part->disp_unit <= INT32_MAX && w->flavour != DYNAMIC)
        CHECK_ANSWER(*(const int *)value == part->disp_unit);
    if (keyval == MPI_WIN_CREATE_FLAVOR)
        CHECK_ANSWER(*(const int *)value == flavours[w->flavour]);
    if (keyval == MPI_WIN_MODEL)
        CHECK_ANSWER(*(const int *)value == MPI_WIN_UNIFIED
                     || *(const int *)value == MPI_WIN_SEPARATE);
}

static void get_attribute(void)
{
    const int keyvals[] = {MPI_WIN_BASE, MPI_WIN_SIZE, MPI_WIN_DISP_UNIT, MPI_WIN_CREATE_FLAVOR,
                           MPI_WIN_MODEL, MPI_KEYVAL_INVALID, 0x7ffffff0};
    struct named win = begin_on_window("MPI_Win_get_attr");
    const unsigned which = draw(&own, oddness ? 7 : 5);
    void *value = NULL, *value_place = place_or_none(&value);
    int flag = 0, *flag_place = place_or_none(&flag);
    if (which >= 5)
        fault(ERR_KEYVAL);
    tell("%s, keyval %d, %s, %s", win.text, keyvals[which], value_place ? "value" : "NULL",
         flag_place ? "flag" : "NULL");
    go();
    if (judge(MPI_Win_get_attr(win.handle, keyvals[which], value_place, flag_place))) {
        CHECK_ANSWER(flag);
        check_attribute(win.window, keyvals[which], value);
    }
}

// Keyvals that nobody may set or delete, and calls about keyvals that have no place for the answer.
static void wrong_attribute(void)
{
    const int keyvals[] = {MPI_WIN_BASE, MPI_WIN_SIZE, MPI_KEYVAL_INVALID, 0x7ffffff0};
    const int keyval = keyvals[draw(&own, 4)];
    int none = MPI_KEYVAL_INVALID;
    if (draw(&own, 3) == 0) {
        begin("MPI_Win_create_keyval");
        fault(ERR_ARG | ERR_KEYVAL);
        tell("keyval NULL");
        go();
        judge(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, NULL, NULL));
        begin("MPI_Win_free_keyval");
        fault(ERR_ARG | ERR_KEYVAL);
        const int with_place = (int)draw(&own, 2);
        tell(with_place ? "MPI_KEYVAL_INVALID" : "NULL");
        go();
        judge(MPI_Win_free_keyval(with_place ? &none : NULL));
        return;
    }
    const int sets = (int)draw(&own, 2);
    struct named win = begin_on_window(sets ? "MPI_Win_set_attr" : "MPI_Win_delete_attr");
    fault(ERR_KEYVAL);
    tell("%s, keyval %d", win.text, keyval);
    go();
    judge(sets ? MPI_Win_set_attr(win.handle, keyval, &none)
               : MPI_Win_delete_attr(win.handle, keyval));
}

static void get_group(void)
{
    struct named win = begin_on_window("MPI_Win_get_group");
    MPI_Group group = MPI_GROUP_NULL, *place = place_or_none(&group);
    int members = -1;
    tell("%s, %s", win.text, place ? "group" : "NULL");
    go();
    if (judge(MPI_Win_get_group(win.handle, place))) {
        OK(MPI_Group_size(group, &members));
        CHECK_ANSWER(members == win.window->size);
        OK(MPI_Group_free(&group));
    }
}

static void get_info(void)
{
    struct named win = begin_on_window("MPI_Win_get_info");
    MPI_Info info = MPI_INFO_NULL, *place = place_or_none(&info);
    tell("%s, %s", win.text, place ? "info" : "NULL");
    go();
    if (judge(MPI_Win_get_info(win.handle, place)))
        OK(MPI_Info_free(&info));
}

// The name of each window is its number; since MPI-4.1 MPI_WIN_NULL has a name too (section 7.8).
static void get_name(void)
{
    struct named win = begin_on_window("MPI_Win_get_name");
    char name[MPI_MAX_OBJECT_NAME] = "", expected[16], *place = place_or_none(name);
    int length = -1, *length_place = place_or_none(&length);
    if (win.handle == MPI_WIN_NULL || win.handle == (MPI_Win)0)
        call.wrong = 0, doubt(ERR_WIN | ERR_ARG);
    tell("%s, %s, %s", win.text, place ? "name" : "NULL", length_place ? "length" : "NULL");
    go();
    if (judge(MPI_Win_get_name(win.handle, place, length_place)) && win.window != NULL) {
        snprintf(expected, sizeof expected, "w%d", index_of(win.window));
        CHECK_ANSWER(strcmp(name, expected) == 0 && length == (int)strlen(expected));
    }
}

static void set_name(void)
{
    struct named win = begin_on_window("MPI_Win_set_name");
    char name[16] = "w", *place = place_or_none(name);
    if (win.window != NULL)
        snprintf(name, sizeof name, "w%d", index_of(win.window));
    tell("%s, %s", win.text, place ? name : "NULL");
    go();
    judge(MPI_Win_set_name(win.handle, place));
}

static void user_handler(MPI_Win *win, int *code, ...)
{
    (void)win, (void)code;
}

static void error_handlers(void)
{
    MPI_Errhandler handler = MPI_ERRORS_RETURN;
    const unsigned which = draw(&own, 4);
    if (which == 3) {
        begin("MPI_Win_create_errhandler");
        const int no_place = (int)draw(&own, 2);
        fault(ERR_ARG);
        tell(no_place ? "function, NULL" : "NULL, handler");
        go();
        judge(MPI_Win_create_errhandler(no_place ? user_handler : NULL,
                                        no_place ? NULL : &handler));
        return;
    }
    const char *const names[] = {"MPI_Win_set_errhandler", "MPI_Win_get_errhandler",
                                 "MPI_Win_call_errhandler"};
    struct named win = begin_on_window(names[which]);
    if (which == 0) {
        handler = odd() ? MPI_ERRHANDLER_NULL : MPI_ERRORS_RETURN;
        if (handler == MPI_ERRHANDLER_NULL)
            fault(ERR_ARG);
        tell("%s, %s", win.text, handler == MPI_ERRORS_RETURN ? "return" : "null");
        go();
        judge(MPI_Win_set_errhandler(win.handle, handler));
    } else if (which == 1) {
        MPI_Errhandler *place = place_or_none(&handler);
        tell("%s, %s", win.text, place ? "handler" : "NULL");
        go();
        if (judge(MPI_Win_get_errhandler(win.handle, place)))
            OK(MPI_Errhandler_free(&handler));
    } else {
        tell("%s, MPI_ERR_OTHER", win.text);
        go();
        judge(MPI_Win_call_errhandler(win.handle, MPI_ERR_OTHER));
    }
}

// Attaches of memory that cannot be attached, to whatever window.
static void attach_wrong(void)
{
    struct named win = begin_on_window("MPI_Win_attach");
    const struct window *w = win.window;
    static unsigned char unattached[64];
    unsigned char *base = unattached;
    MPI_Aint bytes = sizeof unattached;
    if (w != NULL && w->flavour != DYNAMIC)
        fault(ERR_RMA_FLAVOR);
    const int a = (int)draw(&own, AREAS);
    const struct area *area = w ? &w->parts[w->rank].areas[a] : NULL;
    if (w != NULL && w->flavour == DYNAMIC && area->attached && draw(&own, 2)) {
        // From some bytes before the region or some inside, by at least one byte over it.
        const int64_t from = (int64_t)draw(&own, 3) * (area->bytes - 1) / 2;
        const int64_t before = from == 0 ? (int64_t)draw(&own, 20) : 0;
        base = w->memory[a] + from - before;
        bytes = before + 1 + (MPI_Aint)(draw(&own, 2) * draw(&own, (unsigned)area->bytes));
        fault(ERR_RMA_ATTACH);
    } else if (draw(&own, 2)) {
        bytes = draw(&own, 2) ? -1 - (MPI_Aint)draw(&own, 100) : INT64_MAX;
        fault(ERR_SIZE | ERR_ARG | (bytes > 0 ? ERR_RMA_ATTACH : 0));
    } else {
        base = NULL;
        fault(ERR_BASE | ERR_BUFFER | ERR_ARG | ERR_RMA_ATTACH);
    }
    tell("%s, %s, %lld", win.text, base == NULL ? "NULL" : base == unattached ? "memory"
                                                                             : "attached memory",
         (long long)bytes);
    go();
    judge(MPI_Win_attach(win.handle, base, bytes));
}

// Memory that nobody else knows of comes and goes while others access the window.
static void attach_spare(void)
{
    struct window *w = any_window(&own);
    if (w->flavour != DYNAMIC)
        return;
    const MPI_Aint bytes = (MPI_Aint)draw(&own, sizeof w->spare + 1);
    w->spare_attached = !w->spare_attached;
    begin(w->spare_attached ? "MPI_Win_attach" : "MPI_Win_detach");
    tell("w%d, spare memory", index_of(w));
    if (w->spare_attached)
        tell(", %lld", (long long)bytes);
    go();
    judge(w->spare_attached ? MPI_Win_attach(w->handle, w->spare, bytes)
                            : MPI_Win_detach(w->handle, w->spare));
}

// Detaches of what was never attached.
static void detach_wrong(void)
{
    struct named win = begin_on_window("MPI_Win_detach");
    const struct window *w = win.window;
    const int a = (int)draw(&own, AREAS);
    const unsigned char *base = NULL;
    if (w != NULL && w->flavour != DYNAMIC)
        fault(ERR_RMA_FLAVOR);
    else if (w != NULL && draw(&own, 4))
        base = w->memory[a] + (w->parts[w->rank].areas[a].attached ? 1 + draw(&own, 50) : 0);
    fault(ERR_RMA_ATTACH | ERR_BASE | ERR_BUFFER | ERR_ARG);
    tell("%s, %s", win.text, base ? "not the base of a region" : "NULL");
    go();
    judge(MPI_Win_detach(win.handle, base));
}

// Memory that there cannot be, and no place for its address.
static void allocate_wrong(void)
{
    const MPI_Aint sizes[] = {-1, INT64_MIN, (MPI_Aint)1 << 60, INT64_MAX};
    void *base = NULL, *place = &base;
    MPI_Aint bytes = 64;
    begin("MPI_Alloc_mem");
    if (draw(&own, 4) == 0) {
        place = NULL;
        fault(ERR_ARG);
    } else {
        // As long as this is the MPI's own affair: some take more than there can be.
        bytes = sizes[draw(&own, offered[CREATE] ? 4 : 2)];
        fault(bytes < 0 ? ERR_ARG | ERR_SIZE | ERR_NO_MEM : ERR_NO_MEM | ERR_SIZE);
    }
    tell("%lld, %s", (long long)bytes, place ? "base" : "NULL");
    go();
    judge(MPI_Alloc_mem(bytes, MPI_INFO_NULL, place));
}

// Handles as integers and back.
static void convert(void)
{
    begin("MPI_Win_c2f");
    struct named win = draw_window();
    tell("%s", win.text);
    go();
    CHECK_ANSWER(MPI_Win_f2c(MPI_Win_c2f(win.handle)) == win.handle);
    judge(MPI_SUCCESS);
}

#endif
