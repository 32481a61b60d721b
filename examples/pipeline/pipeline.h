/* A block of numbers that travels from rank to rank: what the patterns and the program share. */
#ifndef PIPELINE_H
#define PIPELINE_H

#include "../notify.h"

enum { SLOTS = 2 }; /* places for blocks of one sender, used in turns */

/* How a rank learns that a block has come, and its sender that the place is free again. */
typedef enum { MESSAGES, FLAG, NOTIFY } Way;

typedef struct {
    Way way;
    int rank, size, arity;
    int count;      /* numbers of a block */
    int rounds;
    MPI_Win win;    /* flags, then blocks; an epoch of lock_all is open */
    unsigned char *flags;
    double *places; /* of this rank */
    double *block;  /* what this rank makes and sends */
    long wrong;     /* numbers of a result that are not what they must be */
    MPI_Count arrived[SLOTS], freed; /* `notify`: how far the own counters have to be */
} Pipeline;

/* Places and flags by number: those of sender k are at SLOTS * k and the next ones. The flag that the
 * places are free comes behind those of all senders. */
static inline int place_of(int sender, int round) { return SLOTS * sender + round % SLOTS; }
static inline int free_flag(const Pipeline *p) { return SLOTS * p->arity; }
static inline double *place(const Pipeline *p, int sender, int round) {
    return p->places + (size_t)place_of(sender, round) * (size_t)p->count;
}

/* What rank `rank` adds to number i of a block. Sums of these are exact. */
static inline double part(int rank, int round, int i) { return rank + 1 + round % 7 + i % 5; }

/* synchronisation.c. A rank has some senders, which deliver to it, and one receiver. */

/* Before `deliver`: waits until the receiver has freed the place for this round. */
void wait_for_place(Pipeline *p, int receiver, int round);
/* Delivers the block to a receiver, to which this rank is sender number `as`. The block may be changed
 * afterwards. */
void deliver(Pipeline *p, int receiver, int as, int round);
/* Waits until the blocks of all senders are in their places. */
void wait_for_blocks(Pipeline *p, const int senders[], int number, int round);
/* Tells the senders that the places of this round are free. */
void free_places(Pipeline *p, const int senders[], int number, int round);

/* patterns.c. Each runs all rounds. */
void run_chain(Pipeline *p);
void run_tree(Pipeline *p);

#endif
