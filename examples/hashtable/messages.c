/* Inserts by active messages: an element is sent to its owner, and the owner inserts it when it
 * receives the message. So each rank receives while it inserts, and until all others are done.
 *
 * Termination: a rank that has sent its last element tells all others by an empty message. MPI
 * keeps the order of messages from one rank to another if a receive could match both (MPI-4.1
 * §3.5), and MPI_Iprobe with MPI_ANY_TAG finds the message that such a receive would get. So the
 * empty message is the last one of its sender, and a rank that has received one of each other rank
 * has received all elements. */
#include "table.h"
#include <sched.h>
#include <stdlib.h>

enum {
    ELEMENTS = 1, DONE = 2, /* tags */
    SENDS = 16              /* messages under way from one rank to another */
};

/* Messages from this rank to one other rank: buffers that are used in turns. The send that is under
 * way from a buffer has to end before the buffer is filled again. */
typedef struct {
    uint64_t *buffers; /* SENDS of them */
    MPI_Request sends[SENDS];
    uint64_t count; /* elements in the buffer that is filled now */
    int buffer;
} Outgoing;

struct Messages {
    Table *table;
    Outgoing *to;       /* one for each rank */
    uint64_t *received; /* room for a batch */
    uint64_t batch;     /* elements of a message */
    int poll_every, until_poll;
    int done; /* ranks that have sent their last element */
};

static void insert_mine(Table *t, uint64_t value) {
    Cell *cell = t->mine + table_cell(t, value);
    if (cell->value == EMPTY) {
        cell->value = value;
        return;
    }
    check_heap(t, t->rank, t->mine[0].value);
    uint64_t next = ++t->mine[0].value;
    t->mine[heap_cell(t, next)] = (Cell){value, cell->next};
    cell->next = next;
    t->collided++;
}

/* The handler: inserts what has arrived. Returns how many messages that were. */
static int receive(Messages *m) {
    for (int messages = 0;; messages++) {
        int has_arrived, count;
        MPI_Status status;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &has_arrived, &status);
        if (!has_arrived) return messages;
        MPI_Recv(m->received, (int)m->batch, MPI_UINT64_T, status.MPI_SOURCE, status.MPI_TAG,
                 MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_UINT64_T, &count);
        for (int i = 0; i < count; i++) insert_mine(m->table, m->received[i]);
        m->done += status.MPI_TAG == DONE;
    }
}

/* The same for a rank that waits: it lets other ranks run where there are more ranks than cores. */
static void receive_or_yield(Messages *m) {
    if (receive(m) == 0) sched_yield();
}

/* Waits for a send, and receives meanwhile: if all ranks only sent, none of the sends might end. */
static void end_send(Messages *m, MPI_Request *send) {
    for (int is_over = 0;;) {
        MPI_Test(send, &is_over, MPI_STATUS_IGNORE);
        if (is_over) return;
        receive_or_yield(m);
    }
}

/* Sends the elements that wait for this rank. */
static void send_elements(Messages *m, int rank) {
    Outgoing *to = m->to + rank;
    uint64_t *buffer = to->buffers + (uint64_t)to->buffer * m->batch;
    if (to->count == 0) return;
    MPI_Isend(buffer, (int)to->count, MPI_UINT64_T, rank, ELEMENTS, MPI_COMM_WORLD,
              &to->sends[to->buffer]);
    to->count = 0;
    to->buffer = (to->buffer + 1) % SENDS;
    end_send(m, &to->sends[to->buffer]);
}

Messages *messages_begin(Table *t, uint64_t batch, int poll_every) {
    Messages *m = malloc(sizeof *m);
    *m = (Messages){
        .table = t, .batch = batch, .poll_every = poll_every, .until_poll = poll_every};
    m->to = malloc((size_t)t->size * sizeof *m->to);
    m->received = malloc(batch * sizeof *m->received);
    for (int rank = 0; rank < t->size; rank++) {
        m->to[rank] = (Outgoing){.buffers = malloc(SENDS * batch * sizeof(uint64_t))};
        for (int i = 0; i < SENDS; i++) m->to[rank].sends[i] = MPI_REQUEST_NULL;
    }
    return m;
}

void insert_by_message(Messages *m, uint64_t value) {
    int owner = owner_of(m->table, value);
    if (owner == m->table->rank) {
        insert_mine(m->table, value);
    } else {
        Outgoing *to = m->to + owner;
        to->buffers[(uint64_t)to->buffer * m->batch + to->count++] = value;
        if (to->count == m->batch) send_elements(m, owner);
    }
    if (--m->until_poll > 0) return;
    m->until_poll = m->poll_every;
    receive(m);
}

void messages_end(Messages *m) {
    Table *t = m->table;
    for (int i = 1; i < t->size; i++) {
        int rank = (t->rank + i) % t->size;
        Outgoing *to = m->to + rank;
        send_elements(m, rank);
        MPI_Isend(NULL, 0, MPI_UINT64_T, rank, DONE, MPI_COMM_WORLD, &to->sends[to->buffer]);
    }
    while (m->done < t->size - 1) receive_or_yield(m);
    for (int rank = 0; rank < t->size; rank++) {
        for (int i = 0; i < SENDS; i++) end_send(m, &m->to[rank].sends[i]);
        free(m->to[rank].buffers);
    }
    free(m->to);
    free(m->received);
    free(m);
}
