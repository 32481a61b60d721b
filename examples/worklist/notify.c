/* Stealing by notified puts: as in messages.c a rank without tasks asks another one, which answers
 * between two of its own tasks. A request and a grant are notified puts. So a rank that computes sees by
 * one load that nobody asks, and a rank that waits for a grant sleeps until something comes: one call
 * waits for requests, for the grant and for the end.
 *
 * A counter says that there are requests; the bytes `asked` say whose. A byte may be seen ahead of its
 * notification, which then finds nothing: that does no harm.
 *
 * Termination: rank 0 counts the ranks that find no tasks, and tells all when it has counted all. Until
 * then a rank answers. */
#include "../notify.h"
#include "worklist.h"
#include <stddef.h>

enum { REQUESTS, GRANT, END, COUNTERS };

/* What a rank's window holds. */
typedef struct {
    Range granted;
    unsigned char asked[]; /* by each rank: 1 while its request has no answer */
} Mailbox;

static Mailbox *mailbox(const Work *w) { return w->mailbox; }

void create_mailbox(Work *w) {
    MPI_Aint bytes = (MPI_Aint)sizeof(Mailbox) + w->size;
    if (!has_notify()) return;
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->mailbox, &w->mail_win);
    memset(w->mailbox, 0, (size_t)bytes);
    FOMPI_Win_set_num_notify(w->mail_win, MPI_INFO_NULL, COUNTERS);
    MPI_Win_lock_all(0, w->mail_win);
    MPI_Win_sync(w->mail_win);
}

void free_mailbox(Work *w) {
    if (!has_notify()) return;
    MPI_Win_unlock_all(w->mail_win);
    MPI_Win_free(&w->mail_win);
}

/* Puts bytes and notifies; the bytes may be changed at once. */
static void deliver(Work *w, const void *bytes, int count, int rank, size_t at, int counter) {
    FOMPI_Put_notify(bytes, count, MPI_BYTE, rank, (MPI_Aint)at, count, MPI_BYTE, counter,
                     w->mail_win);
    MPI_Win_flush_local(rank, w->mail_win);
}

/* Sets a counter of this rank to 0, and returns how far it was. */
static MPI_Count reset(Work *w, int counter) {
    MPI_Count before;
    FOMPI_Win_reset_notify_value(w->mail_win, counter, &before);
    return before;
}

/* Answers all requests that have come. */
static void answer(Work *w, Range *mine) {
    MPI_Count requests;
    FOMPI_Win_get_notify_value(w->mail_win, REQUESTS, &requests);
    if (requests == 0) return;
    reset(w, REQUESTS);
    for (int rank = 0; rank < w->size; rank++) {
        volatile unsigned char *asked = &mailbox(w)->asked[rank];
        if (!*asked) continue;
        *asked = 0;
        Range half = cut_half(mine);
        deliver(w, &half, sizeof half, rank, offsetof(Mailbox, granted), GRANT);
    }
}

/* Answers requests until another counter of this rank is above 0; returns that counter. */
static int wait_and_answer(Work *w, int first, int number, Range *mine) {
    for (;;) {
        int counter;
        answer(w, mine);
        FOMPI_Win_wait_any_notify(w->mail_win, first, number, 1, &counter);
        if (counter != REQUESTS) return counter;
    }
}

/* Asks a rank for tasks. Returns whether there were any. Rank 0 may be told meanwhile that another rank
 * is done; it looks at that later, so END is not waited for. */
static int ask(Work *w, int victim, Range *mine) {
    const unsigned char one = 1;
    double begin = MPI_Wtime();
    deliver(w, &one, 1, victim, offsetof(Mailbox, asked) + (size_t)w->rank, REQUESTS);
    wait_and_answer(w, REQUESTS, GRANT + 1, mine);
    reset(w, GRANT);
    note_wait(w, begin);
    Range granted = mailbox(w)->granted;
    if (is_empty(granted)) return 0;
    *mine = granted;
    return 1;
}

static int ask_any(Work *w, Range *mine) {
    for (int i = 1; i < w->size; i++)
        if (ask(w, (w->rank + i) % w->size, mine)) return 1;
    return 0;
}

/* Answers until all ranks are done. */
static void wait_for_end(Work *w, Range *mine) {
    MPI_Count done = w->rank == 0, wanted = w->rank == 0 ? w->size : 1;
    if (w->rank != 0) deliver(w, NULL, 0, 0, 0, END);
    while (done < wanted) {
        wait_and_answer(w, REQUESTS, COUNTERS, mine);
        done += reset(w, END);
    }
    for (int rank = 1; w->rank == 0 && rank < w->size; rank++) deliver(w, NULL, 0, rank, 0, END);
}

void run_notify(Work *w) {
    Range mine = share(w, w->rank);
    do {
        while (!is_empty(mine)) {
            do_task(w, mine.first++);
            answer(w, &mine);
        }
    } while (ask_any(w, &mine));
    wait_for_end(w, &mine);
}
