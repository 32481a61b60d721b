/* A list of tasks that the ranks share: what the variants have in common. */
#ifndef WORKLIST_H
#define WORKLIST_H

#include <mpi.h>
#include <stdint.h>

/* Tasks have numbers. A range has `first`, and those up to `end` without it. */
typedef struct { int32_t first, end; } Range;

typedef struct {
    MPI_Win win;    /* one word of each rank; an epoch of lock_all is open */
    uint64_t *word; /* this rank's word */
    MPI_Win mail_win; /* of `notify`: what other ranks tell this one; an epoch is open there, too */
    void *mailbox;    /* this rank's memory in it */
    int rank, size;
    int32_t tasks, points, depth;
    int64_t *results; /* of the tasks that this rank has done, 0 elsewhere */
    int64_t *done;    /* how often this rank has done a task */
    double longest_task;
    /* How long this rank waited for tasks of another rank: at most, in all, how often. */
    double longest_wait, waited;
    int64_t waits;
} Work;

/* The tasks that a rank has at first; the variant `static` leaves it at that. */
static inline Range share(const Work *w, int rank) {
    return (Range){(int32_t)((int64_t)w->tasks * rank / w->size),
                   (int32_t)((int64_t)w->tasks * (rank + 1) / w->size)};
}

static inline int is_empty(Range r) { return r.first >= r.end; }

/* Cuts the second half off, and more than half of an odd number. */
static inline Range cut_half(Range *r) {
    Range half = {r->first + (r->end - r->first) / 2, r->end};
    r->end = half.first;
    return half;
}

/* Does a task: computes for a while, without a call of MPI. */
void do_task(Work *w, int32_t task);
/* Records that this rank has waited since `begin` for tasks of another rank. */
void note_wait(Work *w, double begin);
/* Local: stores this rank's word. The other ranks see it after the next barrier. */
void set_word(Work *w, uint64_t value);

/* The variants. `prepare` is local, and a barrier follows. `run` returns when no task is left that
 * this rank could do. */
void prepare_counter(Work *w);
void run_counter(Work *w);
void prepare_stealing(Work *w);
void run_stealing(Work *w);
void run_messages(Work *w);
void run_notify(Work *w);

/* Collective: the window of `notify`, where there are notified operations. */
void create_mailbox(Work *w);
void free_mailbox(Work *w);

#endif
