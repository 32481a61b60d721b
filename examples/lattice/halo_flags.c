/* The halo by flags and gets, as in MILC's one-sided versions (foMPI, section 4.4): a rank packs
 * its halo into a window, adds 1 to a flag in the neighbour's memory, and the neighbour, when it
 * sees the flag, gets the data. One epoch lasts for the whole run.
 *
 * Nothing is overwritten too early, though no rank acknowledges a get. There are two sets of send
 * buffers, used in turns. Before a rank packs for exchange n, it has finished exchange n-1, so it
 * has seen all its neighbours' flags of n-1; a neighbour raises that flag after it has finished
 * exchange n-2, the last one that got data from the same buffers.
 *
 * There are two windows. Where a window has a public and a private copy (MPI_WIN_SEPARATE), a rank
 * must not store into a window while others update it, wherever in it (MPI-4.1 §12.7). Flags are
 * only changed and read by MPI calls; buffers are only stored into by their owner. */
#include <sched.h>
#include <stdlib.h>

#include "halo.h"

typedef struct {
    Halo halo;
    int rank;
    long exchange;        /* the number of this exchange, from 1 */
    MPI_Win buffer_win, flag_win;
    Vector *buffers;      /* for each parity and direction, placed like the ghosts */
    long *flags;          /* for each direction, how often the neighbour there has raised it */
} Flags;

/* Where the buffer for a direction begins. All ranks have the same places. */
static MPI_Aint buffer_at(const Lattice *l, int parity, int direction) {
    return l->ghosts[parity][direction] - l->sites;
}

static void start(Halo *halo, int parity) {
    Flags *f = (Flags *)halo;
    const Lattice *l = halo->lattice;
    const long one = 1;
    long before[DIRECTIONS];
    f->exchange++;
    for (int d = 0; d < DIRECTIONS; d++)
        halo_pack(halo, parity, d, f->buffers + buffer_at(l, parity, d));
    /* The stores above before the flags below, for all ranks (MPI-4.1 §12.7). */
    MPI_Win_sync(f->buffer_win);
    for (int d = 0; d < DIRECTIONS; d++)
        if (l->neighbour[d] >= 0)
            MPI_Fetch_and_op(&one, &before[d], MPI_LONG, l->neighbour[d], opposite(d), MPI_SUM,
                             f->flag_win);
    /* Without a flush an implementation may keep the operation until the epoch ends. */
    for (int d = 0; d < DIRECTIONS; d++)
        if (l->neighbour[d] >= 0) MPI_Win_flush(l->neighbour[d], f->flag_win);
}

/* Waits until the neighbour in a direction has packed its halo. */
static void wait_for_flag(Flags *f, int direction) {
    for (int looks = 1;; looks++) {
        long unused = 0, raised;
        /* A load would not be atomic with the neighbour's addition. */
        MPI_Fetch_and_op(&unused, &raised, MPI_LONG, f->rank, direction, MPI_NO_OP, f->flag_win);
        MPI_Win_flush(f->rank, f->flag_win);
        if (raised >= f->exchange) return;
        if (looks % 100 == 0) {
            /* Some MPIs carry out what other ranks ask of this one only in calls that receive. The
             * yield is for ranks that share a core. */
            int found;
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, f->halo.lattice->comm, &found,
                       MPI_STATUS_IGNORE);
            sched_yield();
        }
    }
}

static void finish(Halo *halo, int parity) {
    Flags *f = (Flags *)halo;
    const Lattice *l = halo->lattice;
    for (int d = 0; d < DIRECTIONS; d++) {
        if (l->neighbour[d] < 0) continue;
        int count = VECTOR_DOUBLES * l->face_sites[d];
        wait_for_flag(f, d);
        /* What is packed there for the opposite direction is meant for this rank. */
        MPI_Get(halo->field + l->ghosts[parity][d], count, MPI_DOUBLE, l->neighbour[d],
                buffer_at(l, parity, opposite(d)), count, MPI_DOUBLE, f->buffer_win);
    }
    /* For a get, local completion is all there is: the data has arrived. */
    for (int d = 0; d < DIRECTIONS; d++)
        if (l->neighbour[d] >= 0) MPI_Win_flush_local(l->neighbour[d], f->buffer_win);
}

static void end(Halo *halo) {
    Flags *f = (Flags *)halo;
    MPI_Win_unlock_all(f->flag_win);
    MPI_Win_unlock_all(f->buffer_win);
    MPI_Win_free(&f->flag_win); /* waits for all ranks */
    MPI_Win_free(&f->buffer_win);
    free(halo->field);
    free(f);
}

Halo *halo_flags(const Lattice *l) {
    Flags *f = calloc(1, sizeof *f);
    f->halo = (Halo){.lattice = l, .start = start, .finish = finish, .end = end};
    f->halo.field = calloc(l->field_sites, sizeof(Vector));
    MPI_Comm_rank(l->comm, &f->rank);
    MPI_Win_allocate((l->field_sites - l->sites) * sizeof(Vector), sizeof(Vector), MPI_INFO_NULL,
                     l->comm, &f->buffers, &f->buffer_win);
    MPI_Win_allocate(DIRECTIONS * sizeof(long), sizeof(long), MPI_INFO_NULL, l->comm, &f->flags,
                     &f->flag_win);
    MPI_Win_lock_all(0, f->buffer_win);
    MPI_Win_lock_all(0, f->flag_win);
    for (int d = 0; d < DIRECTIONS; d++) f->flags[d] = 0;
    MPI_Win_sync(f->flag_win);
    MPI_Barrier(l->comm); /* no flag is raised before all are lowered */
    return &f->halo;
}
