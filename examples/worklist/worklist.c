/* Tasks of uneven cost, which the ranks share: the rows of a picture of the Mandelbrot set. Rows
 * through the set cost a hundred times what those far from it cost, and no rank knows it before.
 *
 * This file has the tasks, the measurement, and the verification: each task has to be done exactly
 * once, with the result of a serial run. The other files share the tasks. */
#include "worklist.h"
#include "../notify.h"
#include <inttypes.h>

static Option options[] = {
    {"variant", "all", "static, counter, stealing, messages or notify, or a list of these"},
    {"tasks", "256", "rows of the picture"},
    {"points", "512", "points of a row"},
    {"depth", "1000", "iterations of a point at most"},
    {"rounds", "3", "times that all tasks are done; the median time counts"},
    {NULL, NULL, NULL}};

/* The word of a rank has a cache line of its own, so that ranks do not slow each other down. (And
 * the plain MPICH 4.0.2 mixes up the ranks of an allocated window with 8 bytes each.) */
enum { ROUNDS_MAX = 99, WORD_BYTES = 64 };

typedef struct {
    const char *name;
    void (*prepare)(Work *w); /* or NULL */
    void (*run)(Work *w);
    int (*is_wanted)(Option *options, const char *name);
} Variant;

/* The upper half of the set, from the real axis upwards: the first rows are the longest. Returns
 * the iterations of all points of the row. */
static int64_t compute_row(const Work *w, int32_t row) {
    double y = 1.25 * (row + 0.5) / w->tasks;
    int64_t iterations = 0;
    for (int32_t point = 0; point < w->points; point++) {
        double x = -2 + 2.5 * (point + 0.5) / w->points, re = 0, im = 0;
        for (int32_t i = 0; i < w->depth && re * re + im * im < 4; i++, iterations++) {
            double next = re * re - im * im + x;
            im = 2 * re * im + y;
            re = next;
        }
    }
    return iterations;
}

void do_task(Work *w, int32_t task) {
    double begin = MPI_Wtime();
    w->results[task] = compute_row(w, task);
    w->done[task]++;
    double seconds = MPI_Wtime() - begin;
    if (seconds > w->longest_task) w->longest_task = seconds;
}

void note_wait(Work *w, double begin) {
    double seconds = MPI_Wtime() - begin;
    if (seconds > w->longest_wait) w->longest_wait = seconds;
    w->waited += seconds;
    w->waits++;
}

void set_word(Work *w, uint64_t value) {
    *w->word = value;
    MPI_Win_sync(w->win); /* the store, before accesses of other ranks */
}

static void run_static(Work *w) {
    for (Range mine = share(w, w->rank); !is_empty(mine); mine.first++) do_task(w, mine.first);
}

/* Tasks that this rank has done outside of its own share. */
static int64_t count_stolen(const Work *w) {
    Range own = share(w, w->rank);
    int64_t stolen = 0;
    for (int32_t task = 0; task < w->tasks; task++)
        if (task < own.first || task >= own.end) stolen += w->done[task];
    return stolen;
}

/* Collective: whether each task was done once, with the serial result. */
static int is_good(const Work *w, const int64_t *serial) {
    int64_t *all = malloc(2 * (size_t)w->tasks * sizeof *all);
    int64_t *done = all + w->tasks;
    int good = 1;
    MPI_Allreduce(w->results, all, w->tasks, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(w->done, done, w->tasks, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int32_t task = 0; task < w->tasks; task++)
        good &= done[task] == 1 && all[task] == serial[task];
    free(all);
    return good;
}

static void forget_results(Work *w) {
    memset(w->results, 0, (size_t)w->tasks * sizeof *w->results);
    memset(w->done, 0, (size_t)w->tasks * sizeof *w->done);
}

/* Rank 0 does all tasks. Returns how long that takes; all ranks have the results. */
static double run_serial(Work *w, int64_t *serial) {
    double begin = MPI_Wtime(), seconds;
    if (w->rank == 0) run_static(&(Work){.size = 1, .tasks = w->tasks, .points = w->points,
                                         .depth = w->depth, .results = serial, .done = w->done});
    seconds = MPI_Wtime() - begin;
    MPI_Bcast(serial, w->tasks, MPI_INT64_T, 0, MPI_COMM_WORLD);
    MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return seconds;
}

/* Collective: a round from a common start until all ranks are done, on the slowest clock. */
static double measure_round(Work *w, const Variant *variant) {
    double seconds;
    forget_results(w);
    if (variant->prepare != NULL) variant->prepare(w);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    variant->run(w);
    MPI_Barrier(MPI_COMM_WORLD);
    seconds = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

static int is_less(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* All rounds of a variant, and its result. Returns whether all of them are verified. */
static int run_variant(Work *w, const Variant *variant, int rounds, const int64_t *serial,
                       double serial_seconds) {
    double seconds[ROUNDS_MAX], longest[2], waited;
    int64_t counts[2] = {0};
    int good = 1;
    w->longest_task = w->longest_wait = w->waited = 0;
    w->waits = 0;
    for (int i = 0; i < rounds; i++) {
        seconds[i] = measure_round(w, variant);
        good &= is_good(w, serial);
        counts[0] += count_stolen(w);
        example_progress("%s: round %d of %d", variant->name, i + 1, rounds);
    }
    qsort(seconds, (size_t)rounds, sizeof *seconds, is_less);
    counts[1] = w->waits;
    longest[0] = w->longest_wait;
    longest[1] = w->longest_task;
    MPI_Allreduce(MPI_IN_PLACE, counts, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, longest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&w->waited, &waited, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double median = seconds[rounds / 2];
    return example_result("worklist", variant->name, median, good,
                          "serial=%.9f speedup=%.2f stolen=%" PRId64 " waits=%" PRId64
                          " mean_wait=%.9f longest_wait=%.9f longest_task=%.9f", serial_seconds,
                          serial_seconds / median, counts[0] / rounds, counts[1] / rounds,
                          counts[1] > 0 ? waited / (double)counts[1] : 0, longest[0], longest[1]);
}

static Work work_create(void) {
    Work w = {.tasks = (int32_t)option_number(options, "tasks", 1),
              .points = (int32_t)option_number(options, "points", 1),
              .depth = (int32_t)option_number(options, "depth", 1)};
    MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w.size);
    w.results = calloc((size_t)w.tasks, sizeof *w.results);
    w.done = calloc((size_t)w.tasks, sizeof *w.done);
    MPI_Win_allocate(WORD_BYTES, sizeof *w.word, MPI_INFO_NULL, MPI_COMM_WORLD, &w.word, &w.win);
    MPI_Win_lock_all(0, w.win); /* shared, for the whole run: no rank waits for a lock */
    create_mailbox(&w);
    return w;
}

static void work_free(Work *w) {
    free_mailbox(w);
    MPI_Win_unlock_all(w->win);
    MPI_Win_free(&w->win);
    free(w->results);
    free(w->done);
}

int main(int argc, char **argv) {
    static const Variant variants[] = {
        {"static", NULL, run_static, option_has_variant},
        {"counter", prepare_counter, run_counter, option_has_variant},
        {"stealing", prepare_stealing, run_stealing, option_has_variant},
        {"messages", NULL, run_messages, option_has_variant},
        {"notify", NULL, run_notify, option_has_notified}};
    int good = 1;
    example_begin(&argc, &argv, "Tasks of uneven cost, which the ranks share.", options);
    long rounds = option_number(options, "rounds", 1);
    rounds = rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    Work work = work_create();
    int64_t *serial = calloc((size_t)work.tasks, sizeof *serial);
    double serial_seconds = run_serial(&work, serial);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (variants[i].is_wanted(options, variants[i].name))
            good &= run_variant(&work, &variants[i], (int)rounds, serial, serial_seconds);
    free(serial);
    work_free(&work);
    return example_end(good);
}
