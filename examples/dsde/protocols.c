/* Five protocols for a dynamic sparse data exchange. Senders know their targets; a target knows
 * neither its senders nor the number of its messages. So each protocol has to answer one question:
 * when has a rank received everything?
 *
 * Exchanges follow each other without a barrier in between: a fast rank may already send for the
 * next round while another one still receives for this round. Each protocol says why a rank does
 * not take such a message for one of this round. */
#include "dsde.h"
#include <stdlib.h>
#include <string.h>

enum { TAG = 2 }; /* nbx uses 0 and 1 */

static void *allocate(long count, size_t size) {
    void *memory = calloc(count > 0 ? (size_t)count : 1, size);
    if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    return memory;
}

/* How many messages this rank has for each rank. This array is as long as the communicator is
 * large, which is why the first two protocols do not scale. */
static int *count_targets(const Exchange *x) {
    int *counts = allocate(x->ranks, sizeof *counts);
    for (int i = 0; i < x->sends; i++) counts[x->targets[i]]++;
    return counts;
}

/* Whether a message has got a slot in its target's window; without a list none has. */
static int has_slot(const Exchange *x, const int *slot, int i) {
    return slot != NULL && slot[i] < x->slot_count;
}

/* Sends the messages that have no slot, and receives this number of messages from any rank. The
 * sends do not block, because all ranks send before they receive. The probe is there for MPICH
 * 5.0.2, where a receive from MPI_ANY_SOURCE between nodes sometimes does not complete. */
static void send_and_receive(Exchange *x, const int *slot, int arriving) {
    MPI_Request *sends = allocate(x->sends, sizeof *sends);
    int count = 0;
    for (int i = 0; i < x->sends; i++)
        if (!has_slot(x, slot, i))
            MPI_Isend(message(x, i), x->bytes, MPI_BYTE, x->targets[i], TAG, MPI_COMM_WORLD,
                      &sends[count++]);
    make_room(x, x->received + arriving);
    for (int i = 0; i < arriving; i++) {
        MPI_Status status;
        MPI_Probe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status);
        MPI_Recv(place(x, x->received++), x->bytes, MPI_BYTE, status.MPI_SOURCE, TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Waitall(count, sends, MPI_STATUSES_IGNORE);
    free(sends);
}

/* Personalised exchange: each rank tells each rank the number of messages that it has for it, which
 * is mostly 0. It is the only protocol by which a rank also learns the senders in advance.
 *
 * Rounds: a rank has the numbers of the next round, and sends, only after all ranks have
 * contributed theirs. They do so when they have received all messages of this round. */
void exchange_alltoall(Exchange *x) {
    int *to = count_targets(x), *from = allocate(x->ranks, sizeof *from), arriving = 0;
    MPI_Alltoall(to, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < x->ranks; rank++) arriving += from[rank];
    free(to);
    free(from);
    send_and_receive(x, NULL, arriving);
}

/* Personalised census: the same numbers are added up on the way, and each rank only gets its sum.
 * Rounds: as above, because all ranks contribute to each sum. */
void exchange_reduce_scatter(Exchange *x) {
    int *to = count_targets(x), arriving;
    MPI_Reduce_scatter_block(to, &arriving, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    free(to);
    send_and_receive(x, NULL, arriving);
}

/* Nonblocking consensus: no rank ever learns the number. A synchronous send is complete when its
 * target has begun to receive the message. A rank whose sends are all complete enters a barrier
 * without waiting in it, and continues to receive. When the barrier is complete, all ranks have
 * entered it, so all messages of all ranks have been received.
 *
 * Rounds: a rank that has left the barrier may send for the next round to a rank that has not
 * noticed yet that the barrier is complete. That rank must not receive it now, so the tag
 * alternates. Two tags are enough, because the next barrier does not complete without that rank. */
void exchange_nbx(Exchange *x) {
    MPI_Request *sends = allocate(x->sends, sizeof *sends), barrier = MPI_REQUEST_NULL;
    int tag = x->round % 2, is_in_barrier = 0, is_done = 0;
    for (int i = 0; i < x->sends; i++)
        MPI_Issend(message(x, i), x->bytes, MPI_BYTE, x->targets[i], tag, MPI_COMM_WORLD,
                   &sends[i]);
    while (!is_done) {
        MPI_Status status;
        int is_there, are_received;
        MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &is_there, &status);
        if (is_there) {
            make_room(x, x->received + 1);
            MPI_Recv(place(x, x->received++), x->bytes, MPI_BYTE, status.MPI_SOURCE, tag,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (is_in_barrier) {
            MPI_Test(&barrier, &is_done, MPI_STATUS_IGNORE);
        } else {
            MPI_Testall(x->sends, sends, &are_received, MPI_STATUSES_IGNORE);
            if (are_received) MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
            is_in_barrier = are_received;
        }
    }
    free(sends);
}

/* Remote summation, the paper's one-sided protocol: each rank adds 1 to a counter of each of its
 * targets. After the fence the counter of a rank is the number of its messages.
 *
 * Active target mode fits: the end of the exchange concerns all ranks anyway. With passive target
 * the additions would be complete after a flush, but a rank would need a barrier after it to know
 * that the others have added, too. That is what the fence is.
 *
 * The first fence separates the store of 0 from the additions of other ranks. It ends no epoch
 * (NOPRECEDE), so an MPI need not make it a barrier (MPI-4.1 §12.5.1). The assertions NOSTORE and
 * NOPUT would be wrong: this rank has stored, and others will add.
 *
 * Rounds: the second fence completes after all ranks have entered it, which they do in the next
 * round when they have received all messages of this round. */
void exchange_accumulate(Exchange *x) {
    const int one = 1;
    *x->counter = 0;
    MPI_Win_fence(MPI_MODE_NOPRECEDE, x->win);
    for (int i = 0; i < x->sends; i++)
        MPI_Accumulate(&one, 1, MPI_INT, x->targets[i], 0, 1, MPI_INT, MPI_SUM, x->win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, x->win);
    send_and_receive(x, NULL, *x->counter);
}

/* One-sided as a whole: the value of the counter before the addition is the number of a free slot
 * in the target's window, and the message is put there. What arrives after all slots are taken is
 * sent as above: the sender sees it in the number that it got, the target in its counter.
 *
 * MPI_Fetch_and_op only starts: slot[i] is there after the fence. So the puts need a second epoch.
 *
 * Rounds: a rank reads its slots before it calls the first fence of the next round, and no other
 * rank can put into them before that call. */
void exchange_slots(Exchange *x) {
    const int one = 1;
    int *slot = allocate(x->sends, sizeof *slot);
    *x->counter = 0;
    MPI_Win_fence(MPI_MODE_NOPRECEDE, x->win);
    for (int i = 0; i < x->sends; i++)
        MPI_Fetch_and_op(&one, &slot[i], MPI_INT, x->targets[i], 0, MPI_SUM, x->win);
    MPI_Win_fence(0, x->win);
    for (int i = 0; i < x->sends; i++)
        if (has_slot(x, slot, i))
            MPI_Put(message(x, i), x->bytes, MPI_BYTE, x->targets[i],
                    SLOTS_AT + (MPI_Aint)slot[i] * x->bytes, x->bytes, MPI_BYTE, x->win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, x->win);
    int all = *x->counter, in_slots = all < x->slot_count ? all : x->slot_count;
    make_room(x, all);
    memcpy(x->incoming, x->slots, (size_t)in_slots * (size_t)x->bytes);
    x->received = in_slots;
    send_and_receive(x, slot, all - in_slots);
    free(slot);
}
