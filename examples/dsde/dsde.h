/* One exchange of a rank, and what the files of this example call of each other. */
#ifndef DSDE_H
#define DSDE_H

#include <mpi.h>

/* Message i, of `bytes` bytes, goes to rank targets[i]. A target may occur more than once, and may
 * be this rank. */
typedef struct {
    int rank, ranks, round; /* `round` counts the exchanges */
    int sends, bytes;
    int *targets;
    char *outgoing;
    /* The result: the messages that have arrived, one after the other, in any order. */
    int received;
    char *incoming;
    int room; /* of `incoming`, in messages */
    /* For the one-sided protocols: a window with a counter, and slots for some messages. */
    MPI_Win win;
    int *counter;
    const char *slots;
    int slot_count;
} Exchange;

enum { SLOTS_AT = 64 }; /* where the slots begin in the window; the counter is at 0 */

static inline char *message(const Exchange *x, int i) { return x->outgoing + (long)i * x->bytes; }
static inline char *place(const Exchange *x, int i) { return x->incoming + (long)i * x->bytes; }

/* protocols.c */
void exchange_alltoall(Exchange *x);
void exchange_reduce_scatter(Exchange *x);
void exchange_nbx(Exchange *x);
void exchange_accumulate(Exchange *x);
void exchange_slots(Exchange *x);

/* dsde.c: `incoming` gets room for this number of messages, and keeps those that it has. */
void make_room(Exchange *x, int messages);

#endif
