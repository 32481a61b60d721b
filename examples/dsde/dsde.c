/* Dynamic sparse data exchange, after section 4.2 of "Enabling Highly-Scalable Remote Memory Access
 * Programming with MPI-3 One Sided" (SC'13): each rank has messages for a few random ranks, and no
 * rank knows from which ranks it gets any. The protocols are in protocols.c; begin there. */
#include "../example.h"
#include "dsde.h"
#include <stdint.h>

static Option options[] = {
    {"variant", "all", "of alltoall, reduce_scatter, nbx, accumulate, slots; several with commas"},
    {"targets", "6", "messages of each rank, each to a random rank"},
    {"bytes", "8", "bytes of a message, at least 8"},
    {"slots", "16", "messages that the window of `slots` has room for"},
    {"rounds", "50", "repetitions, of which the result is the median"},
    {"seed", "1", "of the random targets"},
    {NULL, NULL, NULL},
};

static const struct {
    const char *name;
    void (*exchange)(Exchange *x);
} variants[] = {
    {"alltoall", exchange_alltoall},     {"reduce_scatter", exchange_reduce_scatter},
    {"nbx", exchange_nbx},               {"accumulate", exchange_accumulate},
    {"slots", exchange_slots},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static long seed;

static void *resize(void *memory, long count, size_t size) {
    memory = realloc(memory, (count > 0 ? (size_t)count : 1) * size);
    if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    return memory;
}

void make_room(Exchange *x, int messages) {
    if (messages <= x->room) return;
    x->room = 2 * messages;
    x->incoming = resize(x->incoming, x->room, (size_t)x->bytes);
}

/* A bijection of 64-bit integers that mixes all bits (the finaliser of splitmix64). */
static uint64_t mix(uint64_t n) {
    n = (n ^ (n >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    n = (n ^ (n >> 27)) * UINT64_C(0x94d049bb133111eb);
    return n ^ (n >> 31);
}

/* The first eight bytes of a message: they are different for all messages of a round, and the rest
 * of the message and its target follow from them. So each rank can compute what the others send. */
static uint64_t key_of(int round, int rank, int i) {
    uint64_t round_key = mix(mix((uint64_t)seed + 1) + (uint64_t)round);
    return mix(round_key ^ ((uint64_t)rank << 32 | (uint64_t)i));
}
static int target_of(uint64_t key, int ranks) { return (int)(mix(key) % (uint64_t)ranks); }
static char byte_of(uint64_t key, int at) { return (char)mix(key + (uint64_t)at); }

static void begin_round(Exchange *x, int round) {
    x->round = round;
    x->received = 0;
    for (int i = 0; i < x->sends; i++) {
        uint64_t key = key_of(round, x->rank, i);
        x->targets[i] = target_of(key, x->ranks);
        memcpy(message(x, i), &key, sizeof key);
        for (int at = sizeof key; at < x->bytes; at++) message(x, i)[at] = byte_of(key, at);
    }
}

static int by_key(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Whether exactly the messages have arrived that the ranks have for this one in this round. */
static int is_right(const Exchange *x) {
    uint64_t *expected = resize(NULL, (long)x->ranks * x->sends, sizeof *expected);
    uint64_t *arrived = resize(NULL, x->received, sizeof *arrived);
    int count = 0, right = 1;
    for (int rank = 0; rank < x->ranks; rank++)
        for (int i = 0; i < x->sends; i++) {
            uint64_t key = key_of(x->round, rank, i);
            if (target_of(key, x->ranks) == x->rank) expected[count++] = key;
        }
    for (int i = 0; i < x->received; i++) {
        memcpy(&arrived[i], place(x, i), sizeof *arrived);
        for (int at = sizeof *arrived; at < x->bytes; at++)
            right &= place(x, i)[at] == byte_of(arrived[i], at);
    }
    qsort(expected, (size_t)count, sizeof *expected, by_key);
    qsort(arrived, (size_t)x->received, sizeof *arrived, by_key);
    right = right && count == x->received;
    right = right && memcmp(expected, arrived, (size_t)count * sizeof *arrived) == 0;
    free(expected);
    free(arrived);
    return right;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int run_variant(Exchange *x, int v, int rounds) {
    double *seconds = resize(NULL, rounds, sizeof *seconds);
    int all_right = 1;
    long received = 0;
    for (int round = 0; round < rounds; round++) {
        begin_round(x, round);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        variants[v].exchange(x);
        seconds[round] = MPI_Wtime() - start;
        all_right &= is_right(x);
        received += x->received;
        example_progress("dsde: %s, round %d of %d", variants[v].name, round + 1, rounds);
    }
    MPI_Allreduce(MPI_IN_PLACE, seconds, rounds, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &received, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    qsort(seconds, (size_t)rounds, sizeof *seconds, by_size);
    double median = seconds[rounds / 2];
    free(seconds);
    return example_result("dsde", variants[v].name, median, all_right,
                          "targets=%d bytes=%d slots=%d rounds=%d messages=%ld", x->sends,
                          x->bytes, x->slot_count, rounds, received);
}

int main(int argc, char **argv) {
    example_begin(&argc, &argv, "Messages to random ranks that do not expect them.", options);
    Exchange x = {.bytes = (int)option_number(options, "bytes", 8)};
    int rounds = (int)option_number(options, "rounds", 1), all_right = 1;
    char *memory;
    seed = option_number(options, "seed", 0);
    x.sends = (int)option_number(options, "targets", 0);
    x.slot_count = (int)option_number(options, "slots", 0);
    MPI_Comm_rank(MPI_COMM_WORLD, &x.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &x.ranks);
    x.targets = resize(NULL, x.sends, sizeof *x.targets);
    x.outgoing = resize(NULL, x.sends, (size_t)x.bytes);
    /* Whole cache lines: two ranks of a node share none, and MPICH 4.0.2 puts to a wrong address if
     * the size that a rank asks for is no multiple of 16. */
    MPI_Aint window_bytes = (SLOTS_AT + (MPI_Aint)x.slot_count * x.bytes + 63) / 64 * 64;
    MPI_Win_allocate(window_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &x.win);
    x.counter = (int *)memory;
    x.slots = memory + SLOTS_AT;

    for (int v = 0; v < VARIANTS; v++)
        if (option_has_variant(options, variants[v].name)) all_right &= run_variant(&x, v, rounds);
    MPI_Win_free(&x.win);
    free(x.targets);
    free(x.outgoing);
    free(x.incoming);
    return example_end(all_right);
}
