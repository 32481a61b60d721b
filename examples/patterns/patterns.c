/* Communication patterns of real codes: the elements that move in each array, and a datatype for
 * them. See README.md for the table; pattern.h says what a pattern is, and the file of its
 * family has its layout. Each pattern moves by five variants (exchange.c) and is verified. */
#include "../example.h"
#include "check.h"

static const Pattern *const patterns[] = {
    &wrf_x_sa,     &wrf_x_vec,   &wrf_y_sa,   &wrf_y_vec,  &milc_su3_zdown, &nas_lu_x,
    &nas_lu_y,     &nas_mg_x,    &nas_mg_y,   &nas_mg_z,   &lammps_atomic,  &lammps_full,
    &specfem_oc,   &specfem_cm,  &specfem_mt, &fft_2d,     &multigrid_restrict,
    &matrix_patch, &particles,
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* The median over the rounds of the slowest rank's time. */
static double median(double *seconds, int rounds) {
    MPI_Allreduce(MPI_IN_PLACE, seconds, rounds, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    qsort(seconds, rounds, sizeof *seconds, compare);
    return seconds[rounds / 2];
}

/* Runs one variant and returns whether it is verified. Round 0 is not measured. */
static int measure(Check *c, const Variant *v, int rounds) {
    Exchange *e = c->exchange;
    double *seconds = malloc((rounds + 1) * sizeof *seconds);
    int is_verified = 1;
    if (!e->pattern->is_new) exchange_build_types(e, v);
    check_fill(c);
    for (int round = 0; round <= rounds; round++) {
        example_progress("%s %s, round %d of %d", e->pattern->name, v->name, round, rounds);
        /* What leaves changes after all others have it; the exchange begins with a barrier, too. */
        MPI_Barrier(MPI_COMM_WORLD);
        check_store(c, round + 1);
        seconds[round] = exchange_run(e, v);
        is_verified &= check_arrived(c, round + 1);
    }
    is_verified &= check_all(c, rounds + 1);
    if (!e->pattern->is_new) exchange_free_types(e, v);
    double middle = median(seconds + 1, rounds);
    size_t bytes = e->transfers * e->transfer_bytes;
    is_verified = example_result("patterns", v->name, middle, is_verified,
                                 "pattern=%s size=%d bytes=%zu blocks=%zu origin_blocks=%zu "
                                 "target_blocks=%zu mb_per_second=%.1f",
                                 e->pattern->name, e->domain.n, bytes, c->blocks, c->origin_blocks,
                                 c->target_blocks, bytes / middle * 1e-6);
    free(seconds);
    MPI_Barrier(MPI_COMM_WORLD); /* before the next variant fills the arrays */
    return is_verified;
}

static int measure_pattern(const Pattern *pattern, int n, int rounds, Option *options) {
    Exchange e;
    Check c;
    int all_verified = 1;
    exchange_begin(&e, pattern, n);
    check_begin(&c, &e);
    for (const Variant *v = variants; v->name != NULL; v++)
        if (option_has_variant(options, v->name) && exchange_has(&e, v))
            all_verified &= measure(&c, v, rounds);
    check_end(&c);
    exchange_end(&e);
    return all_verified;
}

/* Ends all ranks with status 2. */
static void refuse(const char *option, const char *value, const char *instead) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) fprintf(stderr, "--%s %s: %s\n", option, value, instead);
    MPI_Finalize();
    exit(2);
}

static int size_of(Option *options) {
    static const char *const names[] = {"small", "medium", "large"};
    static const int sizes[] = {16, 48, 96};
    const char *text = option_text(options, "size");
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) return sizes[i];
    long n = option_number(options, "size", 8);
    if (n % 4 != 0 || n > 512) refuse("size", text, "not a multiple of 4 from 8 to 512");
    return n;
}

int main(int argc, char **argv) {
    Option options[] = {
        {"pattern", "all", "one of README's table"},
        {"size", "medium", "small (16), medium (48), large (96), or a multiple of 4"},
        {"rounds", "20", "measured exchanges"},
        {"variant", "all", "datatypes,datatypes_get,packed,messages,messages_packed"},
        {NULL, NULL, NULL},
    };
    example_begin(&argc, &argv, "Halo and transpose patterns of real codes, by datatypes, by hand "
                  "and by messages.", options);
    const char *name = option_text(options, "pattern");
    int n = size_of(options), rounds = option_number(options, "rounds", 1);
    int found = 0, all_verified = 1;
    for (int i = 0; i < PATTERNS; i++)
        if (strcmp(name, "all") == 0 || strcmp(name, patterns[i]->name) == 0) {
            found = 1;
            all_verified &= measure_pattern(patterns[i], n, rounds, options);
        }
    if (!found) refuse("pattern", name, "no pattern has this name (README.md has the table)");
    return example_end(all_verified);
}
