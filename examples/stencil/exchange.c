/* The halo exchange in five ways. All have the same shape: in each step a rank computes its block
 * from the array `now` into the array `next`, and its neighbours get its new border into the halo
 * of their `next`.
 *
 * Why there are two arrays: neighbours are not in step. While this rank still reads the halo of
 * `now`, a faster neighbour may already deliver the halo of the next step. It writes to the other
 * array. It cannot be two steps ahead, because for that it needs a border that this rank has not
 * computed yet. So one synchronisation in each step is enough. With a single array there would
 * have to be two: "the halo has arrived", and "the halo has been read and may be overwritten".
 *
 * What is needed of the memory model: neighbours put into the halo of an array while this rank
 * stores into its inner points. These are different locations of one window. That is permitted in
 * the unified memory model (MPI-4.1 §12.7), which MPIs provide on machines with coherent caches;
 * main() checks it. In the separate model a window must not be stored to while it can be put to.
 * There, MPI_Win_post would have to stand after the sweep, another fence before the puts, and
 * lock_all would need a window that has nothing but the halos. */
#include "../notify.h"
#include "stencil.h"

/* The puts of all one-sided variants. MPI_Put only starts a transfer: u[next] must not change, and
 * the neighbour must not read its halo, before a synchronisation completes the put. */
static void put_borders(Grid *g, int next) {
    for (int i = 0; i < g->neighbours; i++) {
        const Neighbour *to = &g->neighbour[i];
        MPI_Put(g->u[next], 1, to->border, to->rank, to->their_u[next], 1, to->their_halo, g->win);
    }
}

/* Two-sided, to compare with. The receives are posted before the sweep, so that an early message
 * goes straight into the halo; Irecv does here what MPI_Win_post does below. */
void run_messages(Grid *g, int steps) {
    MPI_Request requests[2 * NEIGHBOURS_MAX];
    for (int step = 0; step < steps; step++) {
        int now = step % 2, next = 1 - now, count = 0;
        for (int i = 0; i < g->neighbours; i++) {
            const Neighbour *from = &g->neighbour[i];
            MPI_Irecv(g->u[next], 1, from->halo, from->rank, 0, g->comm, &requests[count++]);
        }
        sweep(g, g->u[now], g->u[next]);
        for (int i = 0; i < g->neighbours; i++) {
            const Neighbour *to = &g->neighbour[i];
            MPI_Isend(g->u[next], 1, to->border, to->rank, 0, g->comm, &requests[count++]);
        }
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    }
}

/* The simplest one: all ranks of the window call the fence, and after it all puts of all ranks are
 * complete. One fence ends the epoch of this step and begins that of the next.
 *
 * Assertions (MPI-4.1 §12.5.5) are promises. NOPRECEDE: this rank has made no RMA call that the
 * fence must complete. NOSUCCEED: it will make none after it. All ranks have to give these two at
 * the same fence. NOSTORE and NOPUT would be wrong: the sweep stores, and neighbours put. */
void run_fence(Grid *g, int steps) {
    MPI_Win_fence(MPI_MODE_NOPRECEDE, g->win);
    for (int step = 0; step < steps; step++) {
        int now = step % 2, next = 1 - now;
        sweep(g, g->u[now], g->u[next]);
        put_borders(g, next);
        MPI_Win_fence(step + 1 < steps ? 0 : MPI_MODE_NOSUCCEED, g->win);
        /* From here on the halo of u[next] may be read and u[next] may be changed. */
    }
}

/* General active target synchronisation (post, start, complete, wait): as the fence, but only
 * between neighbours. MPI_Win_post exposes our window to them, and they may put as soon as they
 * have called MPI_Win_start; start may wait for their post, and wait waits for their complete.
 *
 * The post stands before the sweep, because the halo of `next` is free: the last step has read it.
 * So the neighbours find it posted when they have computed, and start need not wait.
 *
 * No assertion is possible: NOCHECK needs another synchronisation that makes sure that all posts
 * come before the starts, and NOPUT and NOSTORE are wrong as above. */
void run_pscw(Grid *g, int steps) {
    for (int step = 0; step < steps; step++) {
        int now = step % 2, next = 1 - now;
        MPI_Win_post(g->neighbour_group, 0, g->win);
        sweep(g, g->u[now], g->u[next]);
        MPI_Win_start(g->neighbour_group, 0, g->win);
        put_borders(g, next);
        MPI_Win_complete(g->win); /* our puts: u[next] may be changed */
        MPI_Win_wait(g->win);     /* the puts of the neighbours: our halo may be read */
    }
}

/* Waits until all neighbours have set their flags in our window to the number of this step.
 *
 * The flag is one byte: where a load meets an update of another rank, the standard promises nothing
 * about the order in which the bytes of a larger number change (MPI-4.1 §12.7). Step numbers are
 * counted modulo 256. A fast neighbour may have overwritten the number with the next one already,
 * but not with a later one: for that it needs our next border. */
static void wait_for_flags(Grid *g, unsigned char step) {
    for (int i = 0; i < g->neighbours; i++) {
        const Neighbour *from = &g->neighbour[i];
        const volatile unsigned char *flag = &g->flags[from->side];
        while (*flag != step && *flag != (unsigned char)(step + 1)) {
            /* A plain load makes no progress in MPI, and some MPIs carry out a put of another rank
             * only while its target is in some MPI call: any call, as this one. */
            int is_there;
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, g->comm, &is_there, MPI_STATUS_IGNORE);
            MPI_Win_sync(g->win);
        }
    }
    MPI_Win_sync(g->win); /* a memory barrier: the halos are read after the flags */
}

/* Passive target: one epoch for the whole run, and no call of a neighbour completes our puts. So
 * the neighbours have to be notified by a flag, which is a put of its own. Puts are not ordered,
 * not even to the same rank: without the flush between them a flag could overtake its halo. */
void run_lock_all(Grid *g, int steps) {
    MPI_Win_lock_all(MPI_MODE_NOCHECK, g->win); /* NOCHECK: no rank takes an exclusive lock */
    MPI_Win_sync(g->win);                       /* what fill() stored comes before ... */
    MPI_Barrier(g->comm);                       /* ... what a neighbour puts from here on */
    for (int step = 0; step < steps; step++) {
        int now = step % 2, next = 1 - now;
        unsigned char flag = (unsigned char)(step + 1);
        sweep(g, g->u[now], g->u[next]);
        put_borders(g, next);
        MPI_Win_flush_all(g->win); /* the borders are in the neighbours' halos */
        for (int i = 0; i < g->neighbours; i++) {
            const Neighbour *to = &g->neighbour[i];
            MPI_Put(&flag, 1, MPI_BYTE, to->rank, to->their_side, 1, MPI_BYTE, g->win);
        }
        MPI_Win_flush_all(g->win); /* or an MPI may keep the flags back while we wait */
        wait_for_flags(g, flag);
    }
    MPI_Win_unlock_all(g->win);
}

/* Passive target with notified puts: each border adds 1 to a counter of the neighbour, behind its data.
 * So no flush stands between data and flag, and the wait sleeps until the last border has come. The
 * counters only grow, and so do the thresholds.
 *
 * There are two counters, one for each array: a fast neighbour may have delivered the next border
 * already, which must not count in place of that of a slow one. */
void run_notify(Grid *g, int steps) {
    MPI_Win_lock_all(MPI_MODE_NOCHECK, g->win);
    MPI_Win_sync(g->win); /* as in run_lock_all */
    MPI_Barrier(g->comm);
    for (int step = 0; step < steps; step++) {
        int now = step % 2, next = 1 - now;
        MPI_Win_flush_local_all(g->win); /* the puts from u[next]: the sweep may overwrite it */
        sweep(g, g->u[now], g->u[next]);
        for (int i = 0; i < g->neighbours; i++) {
            const Neighbour *to = &g->neighbour[i];
            FOMPI_Put_notify(g->u[next], 1, to->border, to->rank, to->their_u[next], 1,
                             to->their_halo, next, g->win);
        }
        g->notified[next] += g->neighbours;
        FOMPI_Win_wait_notify(g->win, next, g->notified[next]);
    }
    MPI_Win_unlock_all(g->win);
}
