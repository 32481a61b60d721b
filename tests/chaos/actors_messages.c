// Messages of the MPI whose buffers are zones. Joint acts: all ranks begin at one point, and each
// may end at another one.
#include "chaos.h"

static MPI_Comm comm_of_threads = MPI_COMM_NULL;

struct message {
    MPI_Request requests[2];
    int peer;
    bool sends;
    size_t bytes;
};

// Pairs of ranks; the last one of an odd number is its own peer.
static int peer_of(const struct act *act)
{
    const int pair = act->rank ^ 1;
    return pair < all_ranks ? pair : act->rank;
}

static bool sends_first(const struct act *act)
{
    return (act->seed_all_ranks / 2 + (uint64_t)act->rank) % 2 == 0;
}

static struct message *begin_message(struct act *act)
{
    struct message *message = state_of(act, sizeof *message);
    message->peer = peer_of(act);
    message->bytes = act->bytes_all_ranks;
    message->sends = sends_first(act);
    message->requests[0] = message->requests[1] = MPI_REQUEST_NULL;
    return message;
}

// Whether the zone of a rank is sent as it is: zeros of pages that were never touched.
static bool is_new(const struct round *round, const struct act *act)
{
    const struct part *part = &round->part[act->rank];
    return !part->act[act->index].is_touched && memories[part->kind].traits & IS_NEW;
}

static void want_message(const struct round *round, const struct act *sender, unsigned char *want,
                         size_t bytes)
{
    memset(want, 0, bytes);
    if (!is_new(round, sender))
        pattern(want, bytes, sender->seed_all_ranks + (uint64_t)sender->rank);
}

static void fill_zone(struct act *act, size_t bytes)
{
    want_message(act->round, act, act->want, bytes);
    if (!is_new(act->round, act))
        memcpy(act->zone, act->want, bytes);
}

static void begin_own_transfer(struct act *act, struct message *message)
{
    const int half = (int)(message->bytes / 2), tag = 100 + act->index;
    fill_zone(act, (size_t)half);
    atomic_store(&act->is_quiet, false);
    memcpy(act->want + half, act->want, (size_t)half);
    MPI_Irecv(act->zone + half, half, MPI_BYTE, act->rank, tag, MPI_COMM_WORLD,
              &message->requests[0]);
    MPI_Isend(act->zone, half, MPI_BYTE, act->rank, tag, MPI_COMM_WORLD, &message->requests[1]);
}

static void begin_transfer(struct act *act)
{
    struct message *message = begin_message(act);
    const int count = (int)message->bytes, tag = 100 + act->index, peer = message->peer;
    const bool is_late = act->last > act->first;
    MPI_Request *request = &message->requests[0];
    if (peer == act->rank) { // the first half to the second one
        begin_own_transfer(act, message);
    } else if (message->sends) {
        fill_zone(act, message->bytes);
        if (!is_late)
            MPI_Send(act->zone, count, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
        else if (act->seed_all_ranks / 8 % 3 == 0)
            MPI_Issend(act->zone, count, MPI_BYTE, peer, tag, MPI_COMM_WORLD, request);
        else
            MPI_Isend(act->zone, count, MPI_BYTE, peer, tag, MPI_COMM_WORLD, request);
    } else {
        atomic_store(&act->is_quiet, false);
        want_message(act->round, &act->round->part[peer].act[act->index], act->want,
                     message->bytes);
        if (is_late)
            MPI_Irecv(act->zone, count, MPI_BYTE, peer, tag, MPI_COMM_WORLD, request);
        else
            MPI_Recv(act->zone, count, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void end_transfer(struct act *act)
{
    struct message *message = act->state;
    if (MPI_Waitall(2, message->requests, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
        fail(act, "MPI_Waitall");
    expect(act, "a message");
    atomic_store(&act->is_quiet, true);
}

// --- collectives --------------------------------------------------------------------------------

static void begin_broadcast(struct act *act)
{
    struct message *message = begin_message(act);
    const int root = (int)(act->seed_all_ranks % (uint64_t)all_ranks);
    if (act->rank == root) {
        pattern(act->want, message->bytes, act->seed_all_ranks);
        memcpy(act->zone, act->want, message->bytes);
    } else {
        atomic_store(&act->is_quiet, false);
    }
    MPI_Ibcast(act->zone, (int)message->bytes, MPI_BYTE, root, MPI_COMM_WORLD,
               &message->requests[0]);
}

static void end_broadcast(struct act *act)
{
    struct message *message = act->state;
    if (MPI_Waitall(2, message->requests, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
        fail(act, "MPI_Ibcast");
    pattern(act->want, message->bytes, act->seed_all_ranks);
    expect(act, "MPI_Ibcast");
    atomic_store(&act->is_quiet, true);
}

// Sums of all ranks' zones, in place.
static void begin_sum(struct act *act)
{
    struct message *message = begin_message(act);
    const size_t words = message->bytes / 8;
    uint64_t *numbers = malloc(message->bytes + 8);
    for (size_t i = 0; i < words; i++)
        numbers[i] = (uint64_t)act->rank + i;
    memcpy(act->zone, numbers, words * 8);
    for (size_t i = 0; i < words; i++)
        numbers[i] = (uint64_t)all_ranks * i + (uint64_t)all_ranks * (uint64_t)(all_ranks - 1) / 2;
    memcpy(act->want, numbers, words * 8);
    free(numbers);
    atomic_store(&act->is_quiet, false);
    MPI_Iallreduce(MPI_IN_PLACE, act->zone, (int)words, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD,
                   &message->requests[0]);
}

static void end_sum(struct act *act)
{
    struct message *message = act->state;
    if (MPI_Waitall(2, message->requests, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
        fail(act, "MPI_Iallreduce");
    expect(act, "MPI_Iallreduce");
    atomic_store(&act->is_quiet, true);
}

// --- threads in the MPI -------------------------------------------------------------------------

enum { MESSAGES_OF_THREAD = 12 };

static void *exchange(void *argument)
{
    struct act *act = argument;
    struct message *message = act->state;
    const int count = (int)message->bytes, tag = 200 + act->index;
    unsigned char *bytes = malloc(message->bytes);
    for (int i = 0; i < MESSAGES_OF_THREAD; i++) {
        pattern(bytes, message->bytes, act->seed_all_ranks + (uint64_t)i);
        if (message->sends) {
            // Every other one from the zone.
            if (i % 2)
                memcpy(act->zone, bytes, message->bytes);
            MPI_Send(i % 2 ? act->zone : bytes, count, MPI_BYTE, message->peer, tag,
                     comm_of_threads);
        } else {
            MPI_Recv(act->zone, count, MPI_BYTE, message->peer, tag, comm_of_threads,
                     MPI_STATUS_IGNORE);
            expect_bytes(act, act->zone, bytes, message->bytes, "a message that a thread received");
        }
    }
    free(bytes);
    return NULL;
}

static void begin_threads(struct act *act)
{
    struct message *message = begin_message(act);
    if (message->peer == act->rank)
        return;
    atomic_store(&act->is_quiet, false);
    start_thread(act, exchange);
}

static void end_threads(struct act *act)
{
    struct message *message = act->state;
    if (message->peer == act->rank)
        return;
    pthread_join(act->thread, NULL);
    pattern(act->want, message->bytes, act->seed_all_ranks + MESSAGES_OF_THREAD - 1);
    expect(act, "the last message of a thread");
    atomic_store(&act->is_quiet, true);
}

static bool has_threads(void)
{
    if (settings.thread_level < MPI_THREAD_MULTIPLE)
        return false;
    if (comm_of_threads == MPI_COMM_NULL)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm_of_threads);
    return true;
}

const struct actor actors_messages[] = {
    {"message", MESSAGES, JOINT, 8, NULL, begin_transfer, NULL, end_transfer},
    {"broadcast", MESSAGES, JOINT, 8, NULL, begin_broadcast, NULL, end_broadcast},
    {"sum", MESSAGES, JOINT, 64, NULL, begin_sum, NULL, end_sum},
    {"thread-messages", MESSAGES | THREADS, JOINT | MULTIPLE | STATE_ENDS, 8, has_threads,
     begin_threads, NULL, end_threads},
    {NULL, 0, 0, 0, NULL, NULL, NULL, NULL},
};
