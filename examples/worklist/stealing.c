/* Each rank has a range of tasks, packed into one word of its window. It takes its next task from
 * the front; a rank whose range is empty takes half of another one's from the end. Both change the
 * word by compare-and-swap, so the owner need not answer, and computes on.
 *
 * The word is the whole state of a range. So a compare-and-swap is right whenever it finds the
 * expected value, also if the word has had other values meanwhile: the tasks are there again, and
 * have not begun.
 *
 * All accesses are compare-and-swaps, or fetch-and-ops with MPI_NO_OP, which read. Concurrent
 * accumulates on one location use the same operation or MPI_NO_OP, unless the info key
 * accumulate_ops says otherwise (MPI-4.1 §12.2.1). MPI_Get would not be atomic. */
#include "worklist.h"

static uint64_t packed(Range r) { return (uint64_t)(uint32_t)r.first << 32 | (uint32_t)r.end; }
static Range unpacked(uint64_t word) {
    return (Range){(int32_t)(word >> 32), (int32_t)(word & UINT32_MAX)};
}

static Range read_range(Work *w, int rank) {
    uint64_t unused = 0, word;
    MPI_Fetch_and_op(&unused, &word, MPI_UINT64_T, rank, 0, MPI_NO_OP, w->win);
    MPI_Win_flush(rank, w->win);
    return unpacked(word);
}

/* Changes the range of a rank from `seen` to `wanted` and returns 1, or returns 0 if it is not
 * `seen` any more. Afterwards `seen` is the range as it is now. */
static int change(Work *w, int rank, Range *seen, Range wanted) {
    uint64_t from = packed(*seen), to = packed(wanted), found;
    MPI_Compare_and_swap(&to, &from, &found, MPI_UINT64_T, rank, 0, w->win);
    MPI_Win_flush(rank, w->win);
    *seen = found == from ? wanted : unpacked(found);
    return found == from;
}

/* Takes the first task of this rank, or returns -1. `mine` is this rank's range as it last saw it;
 * other ranks have only made it shorter since. */
static int32_t take(Work *w, Range *mine) {
    while (!is_empty(*mine)) {
        Range rest = {mine->first + 1, mine->end};
        if (change(w, w->rank, mine, rest)) return rest.first - 1;
    }
    return -1;
}

/* Takes half of a rank's tasks. Returns whether there were any. */
static int steal(Work *w, int victim, Range *stolen) {
    double begin = MPI_Wtime();
    int has_stolen = 0;
    Range seen = read_range(w, victim);
    while (!has_stolen && !is_empty(seen)) {
        Range left = seen;
        *stolen = cut_half(&left);
        has_stolen = change(w, victim, &seen, left);
    }
    note_wait(w, begin);
    return has_stolen;
}

/* Steals from the first rank that has tasks. Returns one of them, or -1 if no rank had any; the
 * others become this rank's own, where further ranks can steal them.
 *
 * A rank that finds nothing is done: tasks beget no tasks here, so what it does not see has been
 * taken by another rank, which will do it. */
static int32_t steal_from_any(Work *w, Range *mine) {
    for (int i = 1; i < w->size; i++) {
        Range stolen;
        if (!steal(w, (w->rank + i) % w->size, &stolen)) continue;
        /* It succeeds: no rank changes an empty range but its owner. */
        change(w, w->rank, mine, (Range){stolen.first + 1, stolen.end});
        return stolen.first;
    }
    return -1;
}

void prepare_stealing(Work *w) { set_word(w, packed(share(w, w->rank))); }

void run_stealing(Work *w) {
    Range mine = share(w, w->rank);
    for (;;) {
        int32_t task = take(w, &mine);
        if (task < 0) task = steal_from_any(w, &mine);
        if (task < 0) return;
        do_task(w, task);
    }
}
