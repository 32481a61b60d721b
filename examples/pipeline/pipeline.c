/* Producers and consumers: blocks go along a chain of ranks, or up a tree that adds them. The ranks
 * synchronise by messages, by a flag behind each block, or by notified puts. patterns.c has chain and
 * tree, synchronisation.c the three ways. */
#include "pipeline.h"

static Option options[] = {
    {"variant", "all", "chain-WAY or tree-WAY, with WAY messages, flag or notify; or a list"},
    {"count", "64", "numbers of a block, 8 bytes each"},
    {"arity", "4", "children of a rank of the tree"},
    {"rounds", "1000", "blocks that each rank makes"},
    {NULL, NULL, NULL},
};

static const struct {
    const char *name;
    void (*run)(Pipeline *p);
    Way way;
    int (*is_wanted)(Option *options, const char *name);
} variants[] = {
    {"chain-messages", run_chain, MESSAGES, option_has_variant},
    {"chain-flag", run_chain, FLAG, option_has_variant},
    {"chain-notify", run_chain, NOTIFY, option_has_notified},
    {"tree-messages", run_tree, MESSAGES, option_has_variant},
    {"tree-flag", run_tree, FLAG, option_has_variant},
    {"tree-notify", run_tree, NOTIFY, option_has_notified},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static Pipeline create(void) {
    Pipeline p = {.arity = (int)option_number(options, "arity", 1),
                  .count = (int)option_number(options, "count", 1),
                  .rounds = (int)option_number(options, "rounds", 1)};
    MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p.size);
    size_t flags = ((size_t)free_flag(&p) + 1 + 63) / 64 * 64;
    size_t places = (size_t)free_flag(&p) * (size_t)p.count * sizeof(double);
    char *memory;
    MPI_Win_allocate((MPI_Aint)(flags + places), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &p.win);
    p.flags = (unsigned char *)memory;
    p.places = (double *)(memory + flags);
    p.block = malloc((size_t)p.count * sizeof(double));
    if (has_notify()) FOMPI_Win_set_num_notify(p.win, MPI_INFO_NULL, SLOTS + 1);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, p.win);
    return p;
}

/* Lowers the flags and spoils the places, so that a block that never comes is seen. The counters of
 * notifications go on from where they are. */
static void prepare(Pipeline *p) {
    size_t numbers = (size_t)free_flag(p) * (size_t)p->count;
    memset(p->flags, 0, (size_t)free_flag(p) + 1);
    for (size_t i = 0; i < numbers; i++) p->places[i] = -1;
    MPI_Win_sync(p->win);
    MPI_Barrier(MPI_COMM_WORLD);
}

static int run_variant(Pipeline *p, int v) {
    p->way = variants[v].way;
    p->wrong = 0;
    prepare(p);
    double begin = MPI_Wtime();
    variants[v].run(p);
    double seconds = MPI_Wtime() - begin;
    MPI_Barrier(MPI_COMM_WORLD);
    return example_result("pipeline", variants[v].name, seconds, p->wrong == 0,
                          "count=%d arity=%d rounds=%d us_per_round=%.3f", p->count, p->arity,
                          p->rounds, seconds / p->rounds * 1e6);
}

int main(int argc, char **argv) {
    example_begin(&argc, &argv, "Blocks along a chain of ranks, and up a tree.", options);
    Pipeline p = create();
    int all_right = 1;
    int *model, is_set;
    MPI_Win_get_attr(p.win, MPI_WIN_MODEL, &model, &is_set);
    if (!is_set || *model != MPI_WIN_UNIFIED) {
        fprintf(stderr, "pipeline: the memory model of this MPI is not unified\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int v = 0; v < VARIANTS; v++)
        if (variants[v].is_wanted(options, variants[v].name)) {
            all_right &= run_variant(&p, v);
            example_progress("pipeline: %s", variants[v].name);
        }
    MPI_Win_unlock_all(p.win);
    MPI_Win_free(&p.win);
    free(p.block);
    return example_end(all_right);
}
