/* What all examples share: options, a line of result for each variant, and a line of progress on
 * long runs. It needs only MPI: copy it along with an example.
 *
 * An option is `--NAME VALUE`. A result is one line of NAME=VALUE pairs, which people and scripts
 * can read. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An option: `value` is its default, which the command line replaces. A list of options ends with
 * one whose name is NULL. */
typedef struct {
    const char *name, *value, *what;
} Option;

/* Prints how the program is used, with all options and their defaults. */
static inline void example_usage(FILE *to, const char *program, const char *about,
                                 const Option *options) {
    fprintf(to, "usage: mpirun -n RANKS %s [--OPTION VALUE]...\n\n%s\n\n", program, about);
    for (const Option *o = options; o->name != NULL; o++)
        fprintf(to, "  --%-12s %s (%s)\n", o->name, o->what, o->value);
    fprintf(to, "  --%-12s this text\n", "help");
}

static inline Option *example_option(Option *options, const char *name) {
    for (Option *o = options; o->name != NULL; o++)
        if (strcmp(o->name, name) == 0) return o;
    return NULL;
}

/* Starts MPI and reads the options. `--help` prints the usage and ends the program; a wrong option
 * ends all ranks with status 2. */
static inline void example_begin(int *argc, char ***argv, const char *about, Option *options) {
    for (int i = 1; i < *argc; i++)
        if (strcmp((*argv)[i], "--help") == 0) {
            example_usage(stdout, (*argv)[0], about, options);
            exit(0);
        }
    MPI_Init(argc, argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i < *argc; i += 2) {
        const char *name = (*argv)[i];
        Option *found = strncmp(name, "--", 2) == 0 ? example_option(options, name + 2) : NULL;
        if (found == NULL || i + 1 == *argc) {
            if (rank == 0) {
                fprintf(stderr, "%s: %s %s\n", (*argv)[0], name,
                        found == NULL ? "is no option" : "needs a value");
                example_usage(stderr, (*argv)[0], about, options);
            }
            MPI_Finalize();
            exit(2);
        }
        found->value = (*argv)[i + 1];
    }
}

static inline const char *option_text(Option *options, const char *name) {
    return example_option(options, name)->value;
}

/* The value as a whole number of at least `least`; anything else ends all ranks with status 2. */
static inline long option_number(Option *options, const char *name, long least) {
    const char *text = option_text(options, name);
    char *end;
    long number = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || number < least) {
        int rank;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == 0)
            fprintf(stderr, "--%s %s: not a whole number of at least %ld\n", name, text, least);
        MPI_Finalize();
        exit(2);
    }
    return number;
}

/* Whether `--variant` names this one: it is a list with commas, or `all`. */
static inline int option_has_variant(Option *options, const char *variant) {
    const char *list = option_text(options, "variant");
    size_t length = strlen(variant);
    if (strcmp(list, "all") == 0) return 1;
    for (const char *at = list; (at = strstr(at, variant)) != NULL; at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) return 1;
    return 0;
}

/* Collective. Prints the result of a variant: `seconds` is the largest one of all ranks, and the
 * variant is verified if it is on all ranks. `more` are further NAME=VALUE pairs of rank 0. Returns
 * whether the variant is verified. */
static inline int example_result(const char *example, const char *variant, double seconds,
                                 int is_verified, const char *more, ...) {
    int rank, size, all_verified;
    double longest;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&is_verified, &all_verified, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    MPI_Allreduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("example=%s variant=%s ranks=%d seconds=%.9f verified=%d ", example, variant, size,
               longest, all_verified);
        va_list values;
        va_start(values, more);
        vprintf(more, values);
        va_end(values);
        printf("\n");
        fflush(stdout);
    }
    return all_verified;
}

/* Rank 0 says on stderr how far the run is, once in two seconds at most; the first line comes after
 * two seconds. */
static inline void example_progress(const char *text, ...) {
    static double last = -1;
    double now = MPI_Wtime();
    if (last < 0) last = now;
    if (now - last < 2) return;
    last = now;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0) return;
    va_list values;
    va_start(values, text);
    fprintf(stderr, "... ");
    vfprintf(stderr, text, values);
    va_end(values);
    fprintf(stderr, "\n");
}

/* Ends MPI. Returns the exit status: 0 if all variants were verified. */
static inline int example_end(int all_verified) {
    MPI_Finalize();
    return all_verified ? 0 : 1;
}

#endif
