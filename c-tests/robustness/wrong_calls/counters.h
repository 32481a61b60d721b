// Calls on the counters of notified operations (docs/guide/notified-operations.md): their numbers,
// their values, resets, and waits for values that they have. Notified operations are transfers.

#ifndef WRONG_CALLS_COUNTERS_H
#define WRONG_CALLS_COUNTERS_H

#include "collective.h"

// All ranks of a window get counters, other numbers each, or one of them asks for a wrong number:
// then all get an error, and what is there stays. Nobody is in an epoch.
static void change_counters(struct window *w)
{
    const int wrong_numbers[] = {-1, -7, -2147483647 - 1};
    const int wrong_number = wrong_numbers[draw(&all, 3)];
    const int wrong_rank = draw(&all, 4) ? -1 : (int)draw(&all, (unsigned)w->size);
    int numbers[RANKS_MAX] = {0};
    for (int r = 0; r < w->size; r++)
        numbers[r] = r == wrong_rank ? wrong_number : (int)draw(&all, COUNTERS_MAX + 1);
    begin("FOMPI_Win_set_num_notify");
    tell("%d, w%d", numbers[w->rank], index_of(w));
    if (wrong_rank >= 0)
        fault(w->rank == wrong_rank ? ERR_ARG : ANY_ERROR);
    go();
    if (!judge(FOMPI_Win_set_num_notify(w->handle, MPI_INFO_NULL, numbers[w->rank])))
        return;
    memcpy(w->counters, numbers, sizeof numbers);
    memset(w->notified, 0, sizeof w->notified);
    memset(w->taken, 0, sizeof w->taken);
}

// No rank comes along, so no window may be right.
static void change_no_counters(void)
{
    const struct named win = no_window(any_window(&own));
    begin("FOMPI_Win_set_num_notify");
    fault(ERR_WIN);
    judge_foreign(&win);
    tell("1, %s", win.text);
    go();
    judge(FOMPI_Win_set_num_notify(win.handle, MPI_INFO_NULL, 1));
}

static void number_of_counters(void)
{
    struct named win = begin_on_window("FOMPI_Win_get_num_notify");
    const struct window *w = win.window;
    const int target = draw_rank(w ? w : any_window(&own));
    int number = -1, *place = odd() ? NULL : &number;
    judge_foreign(&win);
    if (place == NULL)
        fault(ERR_ARG);
    if (w != NULL && (target < 0 || target >= w->size))
        fault(ERR_RANK);
    tell_rank(target);
    tell("%s%s", win.text, place ? "" : ", NULL");
    go();
    if (judge(FOMPI_Win_get_num_notify(win.handle, target, place)))
        CHECK_ANSWER(number == w->counters[target]);
}

// The calls on one counter, or on several.
enum counter_call { VALUE, RESET, WAIT, WAIT_ANY, REQUEST, COUNTER_CALLS };

static int call_on_counter(enum counter_call which, MPI_Win win, int index, int number,
                           MPI_Count threshold, void *place)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int code;
    switch (which) {
    case VALUE: return FOMPI_Win_get_notify_value(win, index, place);
    case RESET: return FOMPI_Win_reset_notify_value(win, index, place);
    case WAIT: return FOMPI_Win_wait_notify(win, index, threshold);
    case WAIT_ANY: return FOMPI_Win_wait_any_notify(win, index, number, threshold, place);
    default:
        code = FOMPI_Win_notify_request(win, index, threshold, place ? &request : NULL);
        if (code == MPI_SUCCESS)
            wait_for(&request);
        return code;
    }
}

// Thresholds that a counter has reached, which is never below 0.
static MPI_Count draw_threshold(const struct window *w, int index)
{
    const MPI_Count reached[] = {0, -1, INT64_MIN};
    MPI_Count value = 0;
    if (w != NULL && index >= 0 && index < w->counters[w->rank] && draw(&own, 2)) {
        OK(FOMPI_Win_get_notify_value(w->handle, index, &value));
        return value;
    }
    return reached[draw(&own, 3)];
}

static void counter(void)
{
    static const char *const names[] = {
        "FOMPI_Win_get_notify_value", "FOMPI_Win_reset_notify_value", "FOMPI_Win_wait_notify",
        "FOMPI_Win_wait_any_notify", "FOMPI_Win_notify_request"
    };
    const enum counter_call which = draw(&own, COUNTER_CALLS);
    struct named win = begin_on_window(names[which]);
    struct window *w = win.window;
    const int counters = w ? w->counters[w->rank] : 1;
    const int wrong_numbers[] = {0, -1, -2147483647 - 1, 2147483647, counters + 1};
    int index = counters > 0 ? (int)draw(&own, (unsigned)counters) : 0, number = 1, found = -1;
    MPI_Count value = -1;
    if (odd())
        index = wrong_index(counters);
    if (which == WAIT_ANY && index >= 0 && index < counters)
        number += (int)draw(&own, (unsigned)(counters - index));
    if (which == WAIT_ANY && odd())
        number = wrong_numbers[draw(&own, 5)];
    const MPI_Count threshold = draw_threshold(w, index);
    void *place = which == WAIT_ANY ? (void *)&found : (void *)&value;
    if (which != WAIT && odd())
        place = NULL;
    judge_foreign(&win);
    if (place == NULL)
        fault(ERR_ARG | (which == REQUEST ? ERR_REQUEST : 0));
    if (number < 1)
        fault(ERR_ARG);
    if (w != NULL && (index < 0 || (int64_t)index + (number < 1 ? 1 : number) > counters))
        fault(ERR_NOTIFICATION);
    tell("%d", index);
    if (which == WAIT_ANY)
        tell(" and %d", number);
    tell(", threshold %lld, %s%s", (long long)threshold, win.text, place ? "" : ", NULL");
    go();
    const int is_right = judge(call_on_counter(which, win.handle, index, number, threshold, place));
    if (is_right && which == WAIT_ANY)
        CHECK_ANSWER(found >= index && found < index + number);
    if (is_right && which <= RESET)
        CHECK_ANSWER(value >= 0);
    if (is_right && which == RESET)
        w->taken[index] += value;
    if (!is_right && (value != -1 || found != -1))
        fail("has stored an answer");
}

// Each counter has all notifications that were sent to it, and none that was refused. All
// operations are complete, and nobody goes on before all are done.
static void check_counters(struct window *w)
{
    int64_t sent[RANKS_MAX][COUNTERS_MAX], here[COUNTERS_MAX];
    for (int r = 0; r < RANKS_MAX; r++)
        for (int i = 0; i < COUNTERS_MAX; i++)
            sent[r][i] = w->notified[r][i];
    OK(MPI_Reduce_scatter_block(sent, here, COUNTERS_MAX, MPI_INT64_T, MPI_SUM, w->comm));
    for (int i = 0; i < w->counters[w->rank]; i++) {
        MPI_Count value;
        OK(FOMPI_Win_get_notify_value(w->handle, i, &value));
        if (value + w->taken[i] != here[i])
            fail("counter %d of w%d is %lld after resets of %lld, and %lld were sent", i,
                 index_of(w), (long long)value, (long long)w->taken[i], (long long)here[i]);
    }
}

#endif
