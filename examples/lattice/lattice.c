/* A solver of lattice QCD as MILC has it: conjugate gradients for staggered fermions on a
 * four-dimensional lattice, with halos in up to eight directions and global sums. */
#include "../notify.h"
#include "check.h"

static Option options[] = {
    {"variant", "all", "messages, flags, datatypes, notify: a list, or all"},
    {"lattice", "4x4x4x8", "extents of each rank's part, even"},
    {"global", "none", "extents of the whole lattice, instead of --lattice"},
    {"grid", "auto", "ranks in each of the four directions"},
    {"field", "random", "random, free (unit links), or gauge (free, transformed)"},
    {"mass", "0.5", "mass of the fermions"},
    {"tolerance", "1e-8", "relative residual at which the solver stops"},
    {"iterations", "1000", "iterations after which the solver stops"},
    {"rounds", "5", "solutions of each variant, in turns; the median counts"},
    {"serial", "32768", "up to this many sites rank 0 solves alone, too, to compare"},
    {NULL, NULL, NULL},
};

static const struct {
    const char *name;
    Halo *(*make)(const Lattice *);
    int (*is_wanted)(Option *options, const char *name);
} variants[] = {{"messages", halo_messages, option_has_variant},
                {"flags", halo_flags, option_has_variant},
                {"datatypes", halo_datatypes, option_has_variant},
                {"notify", halo_notify, option_has_notified}};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

/* How far residuals may differ from those of a serial run. */
static const double DIFFERENCE_MAX = 1e-10;

/* What all variants have in common. */
typedef struct {
    const Lattice *lattice;
    FieldKind kind;
    double all_sites, mass, tolerance;
    int most; /* iterations */
    Links links;
    Vector *source;
    History *reference; /* of rank 0 alone; or NULL */
    double plaquette;
} Problem;

/* A variant and its results. */
typedef struct {
    const char *name;
    Operator a;
    History history;
    double *seconds, *halo_seconds; /* of each round: the largest of all ranks */
    double residual, plaquette, difference, free_error;
    int is_verified;
} Run;

static void refuse(const char *why) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) fprintf(stderr, "lattice: %s\n", why);
    MPI_Finalize();
    exit(2);
}

/* Reads AxBxCxD; returns whether that is what the option has. */
static int four_numbers(const char *name, int numbers[DIMENSIONS]) {
    char rest;
    int *n = numbers;
    const char *text = option_text(options, name);
    return sscanf(text, "%dx%dx%dx%d%c", n, n + 1, n + 2, n + 3, &rest) == 4;
}

static double positive(const char *name) {
    char *end;
    double number = strtod(option_text(options, name), &end);
    if (*end != '\0' || !(number > 0)) refuse("--mass and --tolerance are numbers above 0");
    return number;
}

static Lattice *read_lattice(void) {
    int ranks, local[DIMENSIONS], global[DIMENSIONS], grid[DIMENSIONS] = {0};
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int has_grid = four_numbers("grid", grid);
    if (four_numbers("global", global)) {
        if (!has_grid && !grid_choose(ranks, global, grid))
            refuse("no grid of that many ranks divides the lattice into parts of even extents");
    } else {
        if (!four_numbers("lattice", local)) refuse("--lattice and --global are like 4x4x4x8");
        if (!has_grid) {
            int sorted[DIMENSIONS] = {0};
            MPI_Dims_create(ranks, DIMENSIONS, sorted); /* the largest comes first */
            for (int d = 0; d < DIMENSIONS; d++) grid[d] = sorted[DIMENSIONS - 1 - d];
        }
        for (int d = 0; d < DIMENSIONS; d++) global[d] = local[d] * grid[d];
    }
    double sites = 1;
    for (int d = 0; d < DIMENSIONS; d++) sites *= global[d];
    if (!grid_fits(ranks, global, grid) || !(sites > 0 && sites / ranks < 1e7))
        refuse("--grid has to have as many ranks, and parts even extents and less than 1e7 sites");
    return lattice_make(MPI_COMM_WORLD, global, grid);
}

static FieldKind read_field(void) {
    const char *field = option_text(options, "field");
    if (strcmp(field, "random") == 0) return RANDOM_FIELD;
    if (strcmp(field, "free") == 0) return FREE_FIELD;
    if (strcmp(field, "gauge") != 0) refuse("--field is random, free or gauge");
    return GAUGE_FIELD;
}

static Vector *half_field(const Lattice *l) {
    return calloc(l->sites / 2, sizeof(Vector));
}

/* Solves the same equations on this rank alone. */
static History *solve_alone(const Problem *problem) {
    static const int one[DIMENSIONS] = {1, 1, 1, 1};
    Lattice *l = lattice_make(MPI_COMM_SELF, problem->lattice->global, one);
    Operator a = {halo_messages(l), links_make(l, problem->kind), problem->mass};
    Vector *b = half_field(l), *x = half_field(l);
    History *history = malloc(sizeof *history);
    history->residual = malloc((problem->most + 1) * sizeof(double));
    source_make(l, problem->kind, b);
    cg_solve(&a, b, x, problem->tolerance, problem->most, history);
    a.halo->end(a.halo);
    free(a.links);
    free(b);
    free(x);
    lattice_free(l);
    return history;
}

/* The largest relative difference of the first residuals; 1 if the runs differ in length otherwise.
 * The two runs add numbers in different orders. The effect of rounding on the residual is of the
 * order of 1e-15 |b| at first, and grows fast once the search directions are no longer orthogonal,
 * which was seen after 50 iterations or more, and on small lattices earlier. */
static double compare(const Problem *problem, const History *one) {
    const History *other = problem->reference;
    int n = one->iterations < other->iterations ? one->iterations : other->iterations;
    double most = fmin(50, problem->all_sites / 5);
    double worst = n < most && one->iterations != other->iterations;
    for (int i = 0; i <= n && i <= most; i++) {
        double difference = fabs(one->residual[i] - other->residual[i]);
        worst = fmax(worst, difference / (other->residual[i] + 1e-15 / DIFFERENCE_MAX));
    }
    return worst;
}

static double largest(double mine) {
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *numbers, int count) {
    qsort(numbers, count, sizeof *numbers, by_size);
    return numbers[count / 2];
}

static void begin_run(Run *run, const Problem *problem, int variant, int rounds) {
    run->name = variants[variant].name;
    run->a = (Operator){variants[variant].make(problem->lattice), problem->links, problem->mass};
    run->history.residual = malloc((problem->most + 1) * sizeof(double));
    run->seconds = malloc(rounds * sizeof(double));
    run->halo_seconds = malloc(rounds * sizeof(double));
    run->plaquette = plaquette_by_halo(&run->a);
    run->is_verified = plaquette_is_plausible(problem->lattice, problem->kind, run->plaquette) &&
                       fabs(run->plaquette - problem->plaquette) < 1e-12;
}

/* Solves once, and checks the solution. */
static void run_round(Run *run, const Problem *problem, int round) {
    const Lattice *l = problem->lattice;
    Halo *halo = run->a.halo;
    Vector *x = half_field(l);
    MPI_Barrier(l->comm);
    halo->seconds = halo->exchanges = 0;
    cg_solve(&run->a, problem->source, x, problem->tolerance, problem->most, &run->history);
    run->seconds[round] = largest(run->history.seconds);
    run->halo_seconds[round] = largest(halo->seconds / (halo->exchanges + !halo->exchanges));
    run->residual = true_residual(&run->a, problem->source, x);
    /* The solver's own residual drifts from the true one by rounding only. */
    run->is_verified &= run->residual < 1.01 * problem->tolerance + 1e-12;
    if (problem->reference != NULL) {
        run->difference = compare(problem, &run->history);
        run->is_verified &= run->difference < DIFFERENCE_MAX;
    }
    if (problem->kind != RANDOM_FIELD) {
        /* A has no eigenvalue below m^2, and the source has the length 1. */
        double bound = run->residual / (problem->mass * problem->mass);
        run->free_error = free_field_error(l, problem->kind, problem->mass, x);
        run->is_verified &= run->free_error < bound + 1e-10;
    }
    free(x);
}

static int end_run(Run *run, const Problem *problem, int rounds) {
    double seconds = median(run->seconds, rounds), halo = median(run->halo_seconds, rounds);
    const int *grid = problem->lattice->grid;
    int n = run->history.iterations;
    char known[128] = "";
    if (problem->kind != RANDOM_FIELD)
        snprintf(known, sizeof known, " free_field_error=%.1e", run->free_error);
    if (problem->reference != NULL)
        snprintf(known + strlen(known), sizeof known - strlen(known), " serial_difference=%.1e",
                 run->difference);
    int is_verified = example_result(
        "lattice", run->name, seconds, run->is_verified,
        "grid=%dx%dx%dx%d iterations=%d iteration_us=%.2f exchange_us=%.2f residual=%.3e "
        "plaquette=%.6f%s",
        grid[0], grid[1], grid[2], grid[3], n, 1e6 * seconds / (n + !n), 1e6 * halo,
        run->residual, run->plaquette, known);
    run->a.halo->end(run->a.halo);
    free(run->history.residual);
    free(run->seconds);
    free(run->halo_seconds);
    return is_verified;
}

static void read_problem(Problem *problem) {
    Lattice *l = read_lattice();
    int rank;
    *problem = (Problem){.lattice = l, .kind = read_field(), .mass = positive("mass")};
    problem->tolerance = positive("tolerance");
    problem->most = option_number(options, "iterations", 1);
    problem->links = links_make(l, problem->kind);
    problem->source = half_field(l);
    source_make(l, problem->kind, problem->source);
    problem->plaquette = plaquette_by_definition(l, problem->kind);
    MPI_Comm_rank(l->comm, &rank);
    problem->all_sites = (double)l->global[0] * l->global[1] * l->global[2] * l->global[3];
    int is_small = problem->all_sites <= option_number(options, "serial", 0);
    if (is_small && rank == 0) problem->reference = solve_alone(problem);
}

int main(int argc, char **argv) {
    example_begin(&argc, &argv,
                  "Conjugate gradients for staggered fermions on a four-dimensional lattice.",
                  options);
    Problem problem;
    Run runs[VARIANTS] = {0};
    int rounds = option_number(options, "rounds", 1), count = 0, all_verified = 1;
    read_problem(&problem);
    int is_unitary = unitarity_error(problem.lattice, problem.links) < 1e-13;
    for (int i = 0; i < VARIANTS; i++)
        if (variants[i].is_wanted(options, variants[i].name))
            begin_run(&runs[count++], &problem, i, rounds);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count; i++) run_round(&runs[i], &problem, round);
    for (int i = 0; i < count; i++) {
        runs[i].is_verified &= is_unitary;
        all_verified &= end_run(&runs[i], &problem, rounds);
    }
    return example_end(all_verified && count > 0);
}
