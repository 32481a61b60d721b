/* A block from a sender to a receiver in three ways. Each has two parts: the data with the news that it
 * is there, and the news that its place is free again. A place is used every SLOTS rounds, so a sender is
 * at most SLOTS rounds ahead. */
#include "pipeline.h"
#include <sched.h>

/* Where flags and blocks are in a window, in bytes. */
static MPI_Aint block_at(const Pipeline *p, int place) {
    MPI_Aint flags = (free_flag(p) + 1 + 63) / 64 * 64;
    return flags + (MPI_Aint)place * p->count * (MPI_Aint)sizeof(double);
}

/* Sets a flag of another rank to the number of a round, from 1, modulo 256, and completes it: an MPI may
 * keep it back until then. */
static void set_flag(Pipeline *p, int rank, int flag, int round) {
    unsigned char value = (unsigned char)(round + 1);
    MPI_Put(&value, 1, MPI_BYTE, rank, flag, 1, MPI_BYTE, p->win);
    MPI_Win_flush(rank, p->win);
}

/* Polls a flag of this rank until it has the number of a round or a later one. Another rank is at most
 * as many rounds ahead as there are slots. */
static void wait_for_flag(Pipeline *p, int flag, int round) {
    const volatile unsigned char *at = &p->flags[flag];
    while ((unsigned char)(*at - (unsigned char)(round + 1)) > SLOTS) {
        /* Some MPIs carry out the puts of others only while this rank is in a call. */
        int is_there;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
        MPI_Win_sync(p->win);
        sched_yield(); /* where there are more ranks than cores */
    }
    MPI_Win_sync(p->win); /* the block is read after the flag */
}

void wait_for_place(Pipeline *p, int receiver, int round) {
    (void)receiver;
    if (round < SLOTS) return; /* it has never been used */
    if (p->way == FLAG) wait_for_flag(p, free_flag(p), round - SLOTS);
    if (p->way == NOTIFY) FOMPI_Win_wait_notify(p->win, SLOTS, ++p->freed);
}

void deliver(Pipeline *p, int receiver, int as, int round) {
    int place = place_of(as, round);
    MPI_Aint at = block_at(p, place);
    switch (p->way) {
    case MESSAGES:
        MPI_Send(p->block, p->count, MPI_DOUBLE, receiver, 0, MPI_COMM_WORLD);
        break;
    case FLAG:
        /* Puts are not ordered: the flush in between is a round trip. */
        MPI_Put(p->block, p->count, MPI_DOUBLE, receiver, at, p->count, MPI_DOUBLE, p->win);
        MPI_Win_flush(receiver, p->win);
        set_flag(p, receiver, place, round);
        break;
    case NOTIFY:
        /* One counter of each slot counts the blocks of all senders. */
        FOMPI_Put_notify(p->block, p->count, MPI_DOUBLE, receiver, at, p->count, MPI_DOUBLE,
                         round % SLOTS, p->win);
        MPI_Win_flush_local(receiver, p->win);
    }
}

void wait_for_blocks(Pipeline *p, const int senders[], int number, int round) {
    switch (p->way) {
    case MESSAGES: {
        MPI_Request *requests = malloc((size_t)number * sizeof *requests);
        for (int k = 0; k < number; k++)
            MPI_Irecv(place(p, k, round), p->count, MPI_DOUBLE, senders[k], 0, MPI_COMM_WORLD,
                      &requests[k]);
        MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
        free(requests);
        break;
    }
    case FLAG:
        for (int k = 0; k < number; k++) wait_for_flag(p, place_of(k, round), round);
        break;
    case NOTIFY:
        p->arrived[round % SLOTS] += number;
        FOMPI_Win_wait_notify(p->win, round % SLOTS, p->arrived[round % SLOTS]);
    }
}

void free_places(Pipeline *p, const int senders[], int number, int round) {
    if (round + SLOTS >= p->rounds) return; /* nobody waits for it */
    for (int k = 0; k < number; k++) {
        if (p->way == FLAG) set_flag(p, senders[k], free_flag(p), round);
        if (p->way == NOTIFY) /* no bytes: the notification alone */
            FOMPI_Put_notify(NULL, 0, MPI_BYTE, senders[k], 0, 0, MPI_BYTE, SLOTS, p->win);
    }
}
