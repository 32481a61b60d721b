/* The command line of rma_bench, and of the programs in benches/layers: measurements by name, each
 * with options, for which it opens the windows and prints the points. */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Job job;
static const Job defaults = {.runs_max = 1000,
                             .seconds_max = 0.5,
                             .window = "allocate",
                             .place = "",
                             .target = -1,
                             .all_verified = 1};

enum { VALUES_MAX = 256, SMALL_BYTES = 65536 };

static long given[VALUES_MAX]; /* values of the parameter from the command line */
static int given_count;
static long from, to, by = 2;

static const char *const help =
    " MEASUREMENT[,MEASUREMENT...] [OPTION VALUE]... [then ...]\n"
    "       the same with --list | --help | about\n"
    "\n"
    "  --values A,B,..  values of the parameter, instead of those that --list shows\n"
    "  --sizes A,B,..   the same\n"
    "  --from A --to B  the values A, 2A, 4A, ... up to B\n"
    "  --by N           the factor between them, instead of 2\n"
    "  --runs N         runs of a point at most (1000)\n"
    "  --seconds S      seconds of a point; three runs at least (0.5)\n"
    "  --window KIND    allocate, create, alloc_mem, mapped or dynamic (allocate)\n"
    "  --target RANK    the target of what rank 0 does alone (the last rank)\n"
    "  --ranks N        the first N ranks take part, and the others sleep (all)\n"
    "  --place WHERE    node: only ranks of rank 0's node; nodes: ranks of all nodes by turns, so\n"
    "                   that two ranks are on two nodes. The measurement is left out where there\n"
    "                   are too few ranks or nodes\n"
    "\n"
    "`then` begins another measurement in the same job, with options of its own. `about` prints\n"
    "what the job runs on.\n"
    "\n"
    "Each point is a line of NAME=VALUE pairs. Exit status 1 if one has verified=0.\n";

static void print_help(FILE *file) {
    if (is_origin())
        fprintf(file, "usage: mpirun -n RANKS %s%s", program_invocation_short_name, help);
}

static _Noreturn void wrong(const char *what, const char *text) {
    if (is_origin()) fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, text, what);
    print_help(stderr);
    leave(2);
}

static const Measurement *found(const char *name, size_t length) {
    for (size_t t = 0; tables[t]; t++)
        for (const Measurement *m = tables[t]; m->name; m++)
            if (strlen(m->name) == length && strncmp(m->name, name, length) == 0) return m;
    return NULL;
}

static void list(void) {
    for (size_t t = 0; tables[t] && is_origin(); t++)
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
    long *const numbers[] = {&from, &to, &by, &job.runs_max, &job.wanted};
    static const char *const names[] = {"--from", "--to", "--by", "--runs", "--ranks"};
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
        if (job.target < 0) wrong("no such rank", text);
    } else if (strcmp(name, "--place") == 0 &&
               (strcmp(text, "node") == 0 || strcmp(text, "nodes") == 0)) {
        job.place = text;
    } else if (strcmp(name, "--window") == 0 &&
               strstr("allocate create alloc_mem mapped dynamic", text)) {
        job.window = text;
    } else {
        wrong("no such option, or no such value of it", name);
    }
}

static void open_scope(const Measurement *m) {
    job.has_window = m->scope != NO_WINDOW;
    if (m->bytes && job.has_window) window_open(&wide, m->bytes);
    if (m->bytes) {
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
    if (m->bytes && job.has_window) window_close(&wide);
    if (m->bytes) {
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

static void measure_all(const char *names) {
    for (const char *at = names; *at; at += strspn(at, ",")) {
        size_t length = strcspn(at, ",");
        const Measurement *m = found(at, length);
        at += length;
        if (is_origin()) printf("begin=%s\n", m->name), fflush(stdout);
        if (job.ranks >= m->ranks_min) measure(m);
        else if (is_origin()) fprintf(stderr, "%s needs more ranks\n", m->name);
    }
}

static void check_names(const char *names) {
    for (const char *at = names; *at; at += strcspn(at, ","), at += strspn(at, ","))
        if (!found(at, strcspn(at, ","))) wrong("no such measurement", at);
}

/* One measurement list with its options; returns how many words it has. */
static int part(int count, char **words) {
    Job before = job;
    int length = 0;
    while (length < count && strcmp(words[length], "then") != 0) length++;
    if (length == 0) wrong("no measurement", "then");
    job = defaults;
    job.comm = before.comm, job.rank = before.rank, job.ranks = before.ranks;
    job.all_verified = before.all_verified;
    from = to = given_count = 0, by = 2;
    if (strcmp(words[0], "--list") == 0) list();
    else if (strcmp(words[0], "--help") == 0) print_help(stdout);
    else if (strcmp(words[0], "about") == 0) group_about();
    else {
        check_names(words[0]);
        for (int k = 1; k < length; k += 2)
            read_option(words[k], k + 1 < length ? words[k + 1] : NULL);
        if (group_open()) {
            if (job.target < 0) job.target = job.ranks - 1;
            if (job.target >= job.ranks) wrong("no such rank", "--target");
            measure_all(words[0]);
        }
        group_close();
    }
    return length;
}

int run_commands(int argc, char **argv) {
    static char *usage[] = {"--help"};
    job = defaults;
    job.comm = MPI_COMM_WORLD;
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
    group_begin();
    if (argc < 2) part(1, usage);
    for (int at = 1; at < argc; at++) at += part(argc - at, argv + at);
    return job.all_verified ? 0 : 1;
}
