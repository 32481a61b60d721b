/* How the elements of a pattern move: five variants of one exchange. After each of them a rank has
 * what arrives, and may change what has left. */
#include "exchange.h"
#include <stdlib.h>

/* Tells all targets that what this rank has put is there. Operations on a window are not ordered,
 * but by a flush (MPI-4.1 §12.5.4): without it the notice might be there before the data. */
static void notify_targets(Exchange *e) {
    static const int64_t one = 1;
    for (int i = 0; i < e->transfers; i++) {
        MPI_Win_flush(e->out[i].peer, e->window);
        MPI_Accumulate(&one, 1, MPI_INT64_T, e->out[i].peer, 0, 1, MPI_INT64_T, MPI_SUM, e->window);
    }
    for (int i = 0; i < e->transfers; i++) MPI_Win_flush(e->out[i].peer, e->window);
}

/* Waits for a notice of each source. An atomic read, since others add to the counter meanwhile; an
 * MPI call, since some MPIs make progress for others only in calls (MPI-4.1 §12.7.3). */
static void wait_for_sources(Exchange *e) {
    int64_t notices = 0, unused = 0;
    int rank = e->domain.rank, is_message;
    e->expected += e->transfers;
    for (;;) {
        MPI_Fetch_and_op(&unused, &notices, MPI_INT64_T, rank, 0, MPI_NO_OP, e->window);
        MPI_Win_flush(rank, e->window);
        if (notices >= e->expected) break;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_message, MPI_STATUS_IGNORE);
    }
    /* Before this rank reads by loads what others have put (MPI-4.1 §12.4). */
    MPI_Win_sync(e->window);
}

/* One put from the arrays of this rank into those of the target. The origin says both layouts. */
static void put_datatypes(Exchange *e) {
    for (int i = 0; i < e->transfers; i++) {
        const Transfer *t = &e->out[i];
        MPI_Put(e->arrays + t->mine.at, t->mine.count, t->mine.type, t->peer,
                e->arrays_at + t->theirs.at, t->theirs.count, t->theirs.type, e->window);
    }
    notify_targets(e);
    wait_for_sources(e);
}

/* The same from the other side: a notice says that the data are there to be fetched. A source that
 * has to know when they are fetched needs another notice; here the barrier between rounds does
 * that. */
static void get_datatypes(Exchange *e) {
    MPI_Win_sync(e->window); /* what this rank has stored is there for the gets of others */
    notify_targets(e);
    wait_for_sources(e);
    for (int i = 0; i < e->transfers; i++) {
        const Transfer *t = &e->in[i];
        MPI_Get(e->arrays + t->mine.at, t->mine.count, t->mine.type, t->peer,
                e->arrays_at + t->theirs.at, t->theirs.count, t->theirs.type, e->window);
    }
    for (int i = 0; i < e->transfers; i++) MPI_Win_flush(e->in[i].peer, e->window);
}

static void pack(Exchange *e, int i) {
    e->pattern->pack(&e->domain, e->domain.rank, e->out[i].peer, e->arrays,
                     e->packed + i * e->transfer_bytes);
}

static void unpack_all(Exchange *e) {
    for (int i = 0; i < e->transfers; i++)
        e->pattern->unpack(&e->domain, e->in[i].peer, e->domain.rank, e->arrays,
                           e->received + i * e->transfer_bytes);
}

/* Packed by hand, put as bytes, unpacked by hand. A target has a part of its buffer for each
 * source. */
static void put_packed(Exchange *e) {
    size_t bytes = e->transfer_bytes;
    size_t part = e->pattern->is_all_to_all ? e->domain.rank * bytes : 0;
    for (int i = 0; i < e->transfers; i++) {
        pack(e, i);
        MPI_Put(e->packed + i * bytes, bytes, MPI_BYTE, e->out[i].peer, e->received_at + part,
                bytes, MPI_BYTE, e->window);
    }
    notify_targets(e);
    wait_for_sources(e);
    unpack_all(e);
}

static void messages(Exchange *e) {
    for (int i = 0; i < e->transfers; i++) {
        const Place *p = &e->in[i].mine;
        MPI_Irecv(e->arrays + p->at, p->count, p->type, e->in[i].peer, 0, MPI_COMM_WORLD,
                  &e->requests[i]);
    }
    for (int i = 0; i < e->transfers; i++) {
        const Place *p = &e->out[i].mine;
        MPI_Isend(e->arrays + p->at, p->count, p->type, e->out[i].peer, 0, MPI_COMM_WORLD,
                  &e->requests[e->transfers + i]);
    }
    MPI_Waitall(2 * e->transfers, e->requests, e->statuses);
}

static void messages_packed(Exchange *e) {
    size_t bytes = e->transfer_bytes;
    for (int i = 0; i < e->transfers; i++)
        MPI_Irecv(e->received + i * bytes, bytes, MPI_BYTE, e->in[i].peer, 0, MPI_COMM_WORLD,
                  &e->requests[i]);
    for (int i = 0; i < e->transfers; i++) {
        pack(e, i);
        MPI_Isend(e->packed + i * bytes, bytes, MPI_BYTE, e->out[i].peer, 0, MPI_COMM_WORLD,
                  &e->requests[e->transfers + i]);
    }
    MPI_Waitall(2 * e->transfers, e->requests, e->statuses);
    unpack_all(e);
}

const Variant variants[] = {
    {.name = "datatypes", .run = put_datatypes, .out_mine = 1, .out_theirs = 1},
    {.name = "datatypes_get", .run = get_datatypes, .in_mine = 1, .in_theirs = 1},
    {.name = "packed", .run = put_packed},
    {.name = "messages", .run = messages, .out_mine = 1, .in_mine = 1},
    {.name = "messages_packed", .run = messages_packed},
    {.name = NULL},
};

/* Where elements are others each time, a reader would have to ask the source each time which. */
int exchange_has(const Exchange *e, const Variant *v) {
    return !(e->pattern->is_new && v->in_theirs);
}

void exchange_build_types(Exchange *e, const Variant *v) {
    const Pattern *p = e->pattern;
    const Domain *d = &e->domain;
    for (int i = 0; i < e->transfers; i++) {
        Transfer *out = &e->out[i], *in = &e->in[i];
        if (v->out_mine) out->mine = p->leaving(d, d->rank, out->peer);
        if (v->out_theirs) out->theirs = p->arriving(d, d->rank, out->peer);
        if (v->in_mine) in->mine = p->arriving(d, in->peer, d->rank);
        if (v->in_theirs) in->theirs = p->leaving(d, in->peer, d->rank);
    }
}

void exchange_free_types(Exchange *e, const Variant *v) {
    for (int i = 0; i < e->transfers; i++) {
        if (v->out_mine) MPI_Type_free(&e->out[i].mine.type);
        if (v->out_theirs) MPI_Type_free(&e->out[i].theirs.type);
        if (v->in_mine) MPI_Type_free(&e->in[i].mine.type);
        if (v->in_theirs) MPI_Type_free(&e->in[i].theirs.type);
    }
}

double exchange_run(Exchange *e, const Variant *v) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    if (e->pattern->is_new) exchange_build_types(e, v);
    v->run(e);
    if (e->pattern->is_new) exchange_free_types(e, v);
    return MPI_Wtime() - begin;
}

/* The peers, and the bytes of a transfer, which all have the same. */
static void find_transfers(Exchange *e) {
    Domain *d = &e->domain;
    e->transfers = e->pattern->is_all_to_all ? d->ranks : 1;
    e->out = calloc(e->transfers, sizeof *e->out);
    e->in = calloc(e->transfers, sizeof *e->in);
    e->requests = malloc(2 * e->transfers * sizeof *e->requests);
    e->statuses = malloc(2 * e->transfers * sizeof *e->statuses);
    for (int i = 0; i < e->transfers; i++) {
        e->out[i].peer = e->pattern->is_all_to_all ? i : d->next;
        e->in[i].peer = e->pattern->is_all_to_all ? i : d->previous;
    }
    int size;
    Place first = e->pattern->leaving(d, d->rank, e->out[0].peer);
    MPI_Type_size(first.type, &size);
    MPI_Type_free(&first.type);
    e->transfer_bytes = (size_t)first.count * size;
}

/* One window has all arrays, so one put reaches all of them; each begins at the same displacement
 * at all ranks. The memory is MPI_Win_allocate's: other processes of the node may map it. */
static void make_window(Exchange *e) {
    size_t line = 64, buffer = e->transfers * e->transfer_bytes;
    char *memory;
    e->arrays_bytes = e->pattern->bytes(&e->domain);
    e->received_at = line;
    e->arrays_at = line + (buffer + line - 1) / line * line;
    MPI_Win_allocate(e->arrays_at + e->arrays_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &e->window);
    e->received = memory + e->received_at;
    e->arrays = memory + e->arrays_at;
    e->packed = malloc(buffer);
    *(int64_t *)memory = 0;
    MPI_Win_lock_all(0, e->window);
    MPI_Win_sync(e->window);
    MPI_Barrier(MPI_COMM_WORLD);
}

void exchange_begin(Exchange *e, const Pattern *pattern, int n) {
    Domain *d = &e->domain;
    *e = (Exchange){.pattern = pattern, .domain = {.n = n, .kind = pattern->kind}};
    MPI_Comm_rank(MPI_COMM_WORLD, &d->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &d->ranks);
    d->next = (d->rank + 1) % d->ranks;
    d->previous = (d->rank + d->ranks - 1) % d->ranks;
    if (pattern->prepare != NULL) pattern->prepare(d);
    find_transfers(e);
    make_window(e);
}

void exchange_end(Exchange *e) {
    MPI_Win_unlock_all(e->window);
    MPI_Win_free(&e->window);
    for (int i = 0; i < 2; i++) {
        free(e->domain.leaving[i]);
        free(e->domain.arriving[i]);
    }
    free(e->packed);
    free(e->requests);
    free(e->statuses);
    free(e->out);
    free(e->in);
}
