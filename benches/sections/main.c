/* rma_bench: what one-sided calls cost, by the method of the paper's section 3. Its options and
 * measurements: `rma_bench --help`, `rma_bench --list`. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Job job = {0, 0, 0, 1000, 0.5, "allocate", 1};

static const Measurement *const tables[] = {transfers, atomics, epochs, locks};
enum { VALUES_MAX = 256, SMALL_BYTES = 65536 };

static long given[VALUES_MAX]; /* values of the parameter from the command line */
static int given_count;
static long from, to, by = 2;

static const char *const help =
    "usage: mpirun -n RANKS rma_bench MEASUREMENT[,MEASUREMENT...] [OPTION VALUE]...\n"
    "       mpirun -n 1 rma_bench --list | --help\n"
    "\n"
    "  --values A,B,..  values of the parameter, instead of those that --list shows\n"
    "  --sizes A,B,..   the same\n"
    "  --from A --to B  the values A, 2A, 4A, ... up to B\n"
    "  --by N           the factor between them, instead of 2\n"
    "  --runs N         runs of a point at most (1000)\n"
    "  --seconds S      seconds of a point; three runs at least (0.5)\n"
    "  --window KIND    allocate, create, alloc_mem or dynamic (allocate)\n"
    "  --target RANK    the target of what rank 0 does alone (the last rank)\n"
    "\n"
    "Each point is a line of NAME=VALUE pairs. Exit status 1 if one has verified=0.\n";

static _Noreturn void wrong(const char *what, const char *text) {
    if (is_origin()) fprintf(stderr, "rma_bench: %s: %s\n%s", text, what, help);
    MPI_Finalize();
    exit(2);
}

static const Measurement *found(const char *name, size_t length) {
    for (size_t t = 0; t < COUNT(tables); t++)
        for (const Measurement *m = tables[t]; m->name; m++)
            if (strlen(m->name) == length && strncmp(m->name, name, length) == 0) return m;
    return NULL;
}

static void list(void) {
    for (size_t t = 0; t < COUNT(tables) && is_origin(); t++)
        for (const Measurement *m = tables[t]; m->name; m++)
            printf("%-22s %-11s %s%s%s\n", m->name, m->parameter, m->what, m->values ? ": " : "",
                   m->values ? m->values : "");
}

static int read_values(const char *text, long *values) {
    int count = 0;
    for (char *end; *text && count < VALUES_MAX; text = *end == ',' ? end + 1 : end) {
        values[count++] = strtol(text, &end, 10);
        if (end == text || (*end && *end != ',') || values[count - 1] < 0)
            wrong("not a list of whole numbers", text);
    }
    return count;
}

static void read_option(const char *name, const char *text) {
    long *const numbers[] = {&from, &to, &by, &job.runs_max};
    static const char *const names[] = {"--from", "--to", "--by", "--runs"};
    if (!text) wrong("needs a value", name);
    for (size_t k = 0; k < COUNT(names); k++)
        if (strcmp(name, names[k]) == 0) {
            *numbers[k] = atol(text);
            if (*numbers[k] < 1) wrong("not a whole number of at least 1", text);
            return;
        }
    if (strcmp(name, "--values") == 0 || strcmp(name, "--sizes") == 0) {
        given_count = read_values(text, given);
    } else if (strcmp(name, "--seconds") == 0) {
        job.seconds_max = atof(text);
    } else if (strcmp(name, "--target") == 0) {
        job.target = atoi(text);
        if (job.target < 0 || job.target >= job.ranks) wrong("no such rank", text);
    } else if (strcmp(name, "--window") == 0 && strstr("allocate create alloc_mem dynamic", text)) {
        job.window = text;
    } else {
        wrong("no such option, or no such value of it", name);
    }
}

static void open_scope(const Measurement *m) {
    if (m->bytes) {
        window_open(&wide, m->bytes);
        local = calloc(1, m->bytes);
        fetched = calloc(1, m->bytes);
    }
    for (int k = 0; k < WINDOWS && m->scope == SMALL_WINDOWS; k++)
        window_open(&windows[k], SMALL_BYTES);
    if (m->scope == IN_LOCK_ALL) MPI_Win_lock_all(0, wide.win);
    if (m->scope == IN_FENCES) MPI_Win_fence(0, wide.win);
}

static void close_scope(const Measurement *m) {
    if (m->scope == IN_LOCK_ALL) MPI_Win_unlock_all(wide.win);
    if (m->scope == IN_FENCES) MPI_Win_fence(MPI_MODE_NOSUCCEED, wide.win);
    for (int k = 0; k < WINDOWS && m->scope == SMALL_WINDOWS; k++) window_close(&windows[k]);
    if (m->bytes) {
        window_close(&wide);
        free(local);
        free(fetched);
    }
}

static void measure_point(const Measurement *m, long value) {
    static Series series;
    if (m->point) {
        m->point(value);
        return;
    }
    if (m->prepare) m->prepare(value);
    time_series(&m->timed, value, &series);
    int is_verified = m->verify(value);
    report(m->name, m->parameter, value, &series, is_verified);
}

static void measure(const Measurement *m) {
    long values[VALUES_MAX] = {job.ranks};
    int count = 1;
    if (m->values && from) {
        count = 0;
        for (long v = from; v <= to && count < VALUES_MAX && by > 1; v *= by) values[count++] = v;
    } else if (m->values && given_count) {
        memcpy(values, given, sizeof given);
        count = given_count;
    } else if (m->values) {
        count = read_values(m->values, values);
    }
    open_scope(m);
    for (int k = 0; k < count; k++) measure_point(m, values[k]);
    close_scope(m);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
    job.target = job.ranks - 1;
    const char *names = argc > 1 ? argv[1] : "--help";
    if (strcmp(names, "--list") == 0) list();
    if (strcmp(names, "--help") == 0 && is_origin()) fputs(help, stdout);
    if (strncmp(names, "--", 2) == 0) names = "";
    for (int k = 2; k < argc; k += 2) read_option(argv[k], argv[k + 1]);
    for (const char *at = names; *at; at += strspn(at, ",")) {
        size_t length = strcspn(at, ",");
        const Measurement *m = found(at, length);
        if (!m) wrong("no such measurement", at);
        at += length;
        if (job.ranks >= m->ranks_min) measure(m);
        else if (is_origin()) fprintf(stderr, "rma_bench: %s needs more ranks\n", m->name);
    }
    MPI_Finalize();
    return job.all_verified ? 0 : 1;
}
