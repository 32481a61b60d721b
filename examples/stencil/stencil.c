/* The heat equation on a square or a cube, divided into blocks among the ranks: how neighbours
 * exchange the borders of their blocks, in five ways. They are in exchange.c; begin there. */
#include "../notify.h"
#include "stencil.h"
#include <math.h>

static Option options[] = {
    {"variant", "all", "of messages, fence, pscw, lock_all, notify; several with commas"},
    {"dims", "2", "dimensions of the grid, 2 or 3"},
    {"points", "128", "points of the whole grid in each dimension"},
    {"steps", "100", "steps in time"},
    {"rounds", "5", "repetitions, of which the result is the median"},
    {NULL, NULL, NULL},
};

static const struct {
    const char *name;
    void (*run)(Grid *g, int steps);
    int (*is_wanted)(Option *options, const char *name);
} variants[] = {
    {"messages", run_messages, option_has_variant}, {"fence", run_fence, option_has_variant},
    {"pscw", run_pscw, option_has_variant}, {"lock_all", run_lock_all, option_has_variant},
    {"notify", run_notify, option_has_notified}
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

/* Ends all ranks for a reason that is the same on all. */
static void refuse(int condition, const char *why) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!condition) return;
    if (rank == 0) fprintf(stderr, "stencil: %s\n", why);
    MPI_Finalize();
    exit(2);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Runs a variant `rounds` times from the same initial state. Sets the largest errors of all rounds
 * and ranks, and returns the median over rounds of the time of the slowest rank. */
static double run_rounds(Grid *g, const Grid *serial, int v, int steps, int rounds,
                         double errors[2]) {
    double *seconds = malloc((size_t)rounds * sizeof *seconds);
    if (seconds == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    errors[0] = errors[1] = 0;
    for (int round = 0; round < rounds; round++) {
        fill(g);
        MPI_Barrier(g->comm);
        double start = MPI_Wtime();
        variants[v].run(g, steps);
        seconds[round] = MPI_Wtime() - start;
        errors[0] = fmax(errors[0], error_of_solution(g, steps));
        if (serial != NULL) errors[1] = fmax(errors[1], error_of_serial(g, serial, steps));
        example_progress("stencil: %s, round %d of %d", variants[v].name, round + 1, rounds);
    }
    MPI_Allreduce(MPI_IN_PLACE, errors, 2, MPI_DOUBLE, MPI_MAX, g->comm);
    MPI_Allreduce(MPI_IN_PLACE, seconds, rounds, MPI_DOUBLE, MPI_MAX, g->comm);
    qsort(seconds, (size_t)rounds, sizeof *seconds, by_size);
    double median = seconds[rounds / 2];
    free(seconds);
    return median;
}

/* Runs a variant, and compares its results with the solution and, if there is one, with the grid
 * that each rank has computed alone. */
static int run_variant(Grid *g, const Grid *serial, int v, int steps, int rounds) {
    double errors[2], seconds = run_rounds(g, serial, v, steps, rounds, errors);
    return example_result("stencil", variants[v].name, seconds,
                          errors[0] <= 1e-12 && errors[1] <= 1e-12,
                          "dims=%d points=%d steps=%d us_per_step=%.3f error=%.1e "
                          "compared_with_serial=%d serial_error=%.1e",
                          g->dims, g->points, steps, seconds / steps * 1e6, errors[0],
                          serial != NULL, errors[1]);
}

int main(int argc, char **argv) {
    example_begin(&argc, &argv, "The heat equation in 2-D or 3-D with a halo exchange.", options);
    int dims = (int)option_number(options, "dims", 2), ranks;
    int points = (int)option_number(options, "points", 2);
    int steps = (int)option_number(options, "steps", 1);
    int rounds = (int)option_number(options, "rounds", 1), all_right = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    refuse(dims > 3, "--dims is 2 or 3");
    refuse(points < ranks, "--points must not be less than the number of ranks");

    Grid grid, serial;
    grid_create(&grid, MPI_COMM_WORLD, dims, points);
    int *model, is_set;
    MPI_Win_get_attr(grid.win, MPI_WIN_MODEL, &model, &is_set);
    refuse(!is_set || *model != MPI_WIN_UNIFIED, "the memory model of this MPI is not unified");

    int is_small = pow(points, dims) * steps <= 1e7;
    if (is_small) { /* each rank computes the whole grid by itself; it has no neighbours then */
        grid_create(&serial, MPI_COMM_SELF, dims, points);
        fill(&serial);
        for (int step = 0; step < steps; step++)
            sweep(&serial, serial.u[step % 2], serial.u[(step + 1) % 2]);
    }
    for (int v = 0; v < VARIANTS; v++)
        if (variants[v].is_wanted(options, variants[v].name))
            all_right &= run_variant(&grid, is_small ? &serial : NULL, v, steps, rounds);
    if (is_small) grid_free(&serial);
    grid_free(&grid);
    return example_end(all_right);
}
