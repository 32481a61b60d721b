/* A distributed hash table after section 4.1 of "Enabling Highly-Scalable Remote Memory Access
 * Programming with MPI-3 One Sided" (SC'13). Elements are 8-byte integers with random keys, so each
 * goes to a random rank.
 *
 * This file measures the inserts and verifies them: another rank searches for every element
 * than the one that inserted it, and the elements in all local volumes are counted. The table is in
 * table.c, the inserts are in onesided.c, pipelined.c and messages.c. */
#include "../example.h"
#include "table.h"
#include <inttypes.h>

static Option options[] = {
    {"variant", "all", "onesided, pipelined, messages or batched, or a list of these"},
    {"inserts", "16384", "elements that each rank inserts"},
    {"rounds", "3", "times that this is done; the median time counts"},
    {"batch", "256", "elements of a message of batched, and under way of pipelined"},
    {"poll", "1", "inserts from one look for messages to the next"},
    {"memory", "allocated", "or created: MPI_Win_create over memory of malloc"},
    {"seconds", "10", "a rank stops inserting after this time, even if fewer elements are in"},
    {"busy", "0", "1: every second rank computes outside MPI for these seconds instead"},
    {"pause", "0", "microseconds from the start of an insert to the next one, each measured"},
    {"events", "0", "1: with a pause, `event RANK BEGIN END` for each insert and each computing"},
    {NULL, NULL, NULL}};

/* What a run does, and what this rank has done in one round. */
typedef enum { ONESIDED, PIPELINED, MESSAGES, BATCHED, VARIANTS } Variant;
static const char *const names[VARIANTS] = {"onesided", "pipelined", "messages", "batched"};
typedef struct {
    Variant variant;
    uint64_t inserts, batch;
    double seconds_max, pause;
    int poll_every, computes, has_events;
} Plan;
typedef struct {
    uint64_t inserted, collided, found, stored, in_heap;
    double seconds;
} Round;

/* Times of what this rank did, in seconds since the start. */
typedef struct { double begin, end; } Event;
enum { EVENTS_MAX = 100000, ROUNDS_MAX = 99 };
static Event events[EVENTS_MAX];
static int event_count;
static double longest_wait; /* of an insert with a pause */

static void note(double start, double begin, double end) {
    if (event_count < EVENTS_MAX) events[event_count++] = (Event){begin - start, end - start};
}

static void compute(double seconds) {
    volatile double x = 1;
    for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;)
        for (int i = 0; i < 100000; i++) x = x * 1.0000001 + 1e-9;
}

/* What the inserts of a round go through; a variant has one of the two at most. */
typedef struct {
    Table *table;
    Messages *messages;
    Pipeline *pipeline;
} Inserter;

static Inserter inserter_begin(Table *t, const Plan *plan) {
    Inserter inserter = {.table = t};
    if (plan->variant == PIPELINED) inserter.pipeline = pipeline_begin(t, plan->batch);
    if (plan->variant == MESSAGES) inserter.messages = messages_begin(t, 1, plan->poll_every);
    if (plan->variant == BATCHED)
        inserter.messages = messages_begin(t, plan->batch, plan->poll_every);
    return inserter;
}

/* The i-th element of this rank. */
static void insert(const Inserter *to, uint64_t i) {
    uint64_t value = element(to->table->rank, i);
    if (to->pipeline != NULL) insert_pipelined(to->pipeline, value);
    else if (to->messages != NULL) insert_by_message(to->messages, value);
    else insert_onesided(to->table, value);
}

static void inserter_end(const Inserter *inserter) {
    if (inserter->pipeline != NULL) pipeline_end(inserter->pipeline);
    if (inserter->messages != NULL) messages_end(inserter->messages);
}

/* One element after the other, as fast as it goes. Returns how many. */
static uint64_t insert_all(const Inserter *to, const Plan *plan, double end) {
    uint64_t i = 0;
    for (; i < plan->inserts && (i % 16 || MPI_Wtime() < end); i++) insert(to, i);
    return i;
}

/* One element in each pause, as a program that computes in between. */
static uint64_t insert_paced(const Inserter *to, const Plan *plan, double start, double end) {
    uint64_t i = 0;
    for (double next = start; i < plan->inserts && MPI_Wtime() < end; next += plan->pause) {
        while (MPI_Wtime() < next) continue;
        double begin = MPI_Wtime();
        insert(to, i++);
        double wait = MPI_Wtime() - begin;
        if (wait > longest_wait) longest_wait = wait;
        note(start, begin, begin + wait);
    }
    return i;
}

/* The inserts of a round, with the time until all elements of all ranks are in the table. */
static Round insert_round(Table *t, const Plan *plan) {
    Round round = {0};
    double start = MPI_Wtime(), end = start + plan->seconds_max;
    Inserter inserter = inserter_begin(t, plan);
    if (plan->computes) {
        compute(plan->seconds_max);
        note(start, start, MPI_Wtime());
    } else {
        round.inserted = plan->pause > 0 ? insert_paced(&inserter, plan, start, end)
                                         : insert_all(&inserter, plan, end);
    }
    inserter_end(&inserter);
    MPI_Win_sync(t->win); /* what this rank stored for messages, before the others search */
    MPI_Barrier(MPI_COMM_WORLD);
    round.seconds = MPI_Wtime() - start;
    return round;
}

/* Every element that the next rank inserted. Returns how many were found. */
static uint64_t find_all(Table *t, uint64_t inserted) {
    int from = (t->rank + 1) % t->size, to = (t->rank + t->size - 1) % t->size;
    uint64_t count, found = 0;
    MPI_Sendrecv(&inserted, 1, MPI_UINT64_T, to, 0, &count, 1, MPI_UINT64_T, from, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (uint64_t i = 0; i < count; i++) found += (uint64_t)find(t, element(from, i));
    return found;
}

/* Collective: a round, summed up over all ranks; its time is the longest one. */
static Round measure_round(Table *t, const Plan *plan) {
    table_clear(t);
    Round mine = insert_round(t, plan), all;
    mine.collided = t->collided;
    mine.found = find_all(t, mine.inserted);
    mine.stored = count_mine(t, &mine.in_heap);
    MPI_Allreduce(&mine, &all, 5, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&mine.seconds, &all.seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static int is_good(const Round *r) {
    return r->found == r->inserted && r->stored == r->inserted && r->in_heap == r->collided;
}

static void print_events(const Table *t) {
    for (int rank = 0; rank < t->size; rank++) {
        if (rank == t->rank)
            for (int i = 0; i < event_count; i++)
                printf("event %d %.6f %.6f\n", rank, events[i].begin, events[i].end);
        fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static int is_faster(const void *a, const void *b) {
    double x = ((const Round *)a)->seconds, y = ((const Round *)b)->seconds;
    return (x > y) - (x < y);
}

/* All rounds of a variant, and its result. Returns whether all of them are verified. */
static int run_variant(Table *t, const Plan *plan, int rounds) {
    Round round[ROUNDS_MAX];
    int good = 1;
    double wait;
    event_count = 0;
    longest_wait = 0;
    for (int i = 0; i < rounds; i++) {
        round[i] = measure_round(t, plan);
        good &= is_good(&round[i]);
        example_progress("%s: round %d of %d", names[plan->variant], i + 1, rounds);
    }
    MPI_Allreduce(&longest_wait, &wait, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    qsort(round, (size_t)rounds, sizeof *round, is_faster);
    const Round *median = &round[rounds / 2];
    good = example_result("hashtable", names[plan->variant], median->seconds, good,
                          "inserts=%" PRIu64 " rate=%.0f collisions=%" PRIu64 " found=%" PRIu64
                          " stored=%" PRIu64 " wait=%.9f", median->inserted,
                          (double)median->inserted / median->seconds, median->collided,
                          median->found, median->stored, wait);
    if (plan->has_events) print_events(t);
    return good;
}

int main(int argc, char **argv) {
    int good = 1;
    Table table = {0};
    example_begin(&argc, &argv, "A distributed hash table, into which all ranks insert.", options);
    Plan plan = {.inserts = (uint64_t)option_number(options, "inserts", 1),
                 .batch = (uint64_t)option_number(options, "batch", 1),
                 .seconds_max = atof(option_text(options, "seconds")),
                 .pause = (double)option_number(options, "pause", 0) / 1e6,
                 .poll_every = (int)option_number(options, "poll", 1),
                 .has_events = (int)option_number(options, "events", 0)};
    long rounds = option_number(options, "rounds", 1);
    rounds = rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    table.is_created = strcmp(option_text(options, "memory"), "created") == 0;
    table_create(&table, plan.inserts);
    plan.computes = option_number(options, "busy", 0) && table.rank % 2 == 1;
    for (plan.variant = ONESIDED; plan.variant < VARIANTS; plan.variant++)
        if (option_has_variant(options, names[plan.variant]))
            good &= run_variant(&table, &plan, (int)rounds);
    table_free(&table);
    return example_end(good);
}
