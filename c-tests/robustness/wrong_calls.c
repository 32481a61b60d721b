// Random calls of the whole chapter on one-sided communication, right and wrong, on windows of all
// kinds at once: wrong arguments, handles that are no more, calls in the wrong epoch. A model of
// MPI-4.1 sections 12.2 to 12.7, which knows nothing of the library, says which answers are right
// (sections 9.4 and 12.6.2) and what is in all memory; it is held against both. A failure ends the
// job with the call, its number and the seed.
//
// usage: wrong_calls SEED CALLS [FIRST]
//   CALLS   so many calls on each rank, at least
//   FIRST   prints the calls from this number on
//
// For libfompi alone: a plain MPI crashes. Windows of MPI_Win_create and MPI_Win_create_dynamic are
// made where FOMPI_FALLBACK=error says that the library makes them itself.
//
// The numbers come from two sources. Collective calls are drawn identically on all ranks, so that
// calls which wait for each other match; between those, each rank calls what it likes, but nothing
// that would wait for the others. One seed and one number of ranks always give the same.

#include "wrong_calls/memory.h"

// What a rank calls by itself, and how often.
static const struct { void (*call)(void); unsigned weight; } local_calls[] = {
    {transfer, 60}, {lock, 9}, {unlock, 6}, {lock_all, 2}, {unlock_all, 1}, {flush, 4},
    {flush_all, 2}, {sync_window, 1}, {fence, 1}, {post, 1}, {start_access, 1}, {complete, 1},
    {wait_or_test, 1}, {free_window, 1}, {shared_query, 1}, {get_attribute, 1},
    {wrong_attribute, 1}, {get_group, 1}, {get_info, 1}, {get_name, 1}, {set_name, 1},
    {error_handlers, 1}, {attach_wrong, 1}, {attach_spare, 2}, {detach_wrong, 1},
    {allocate_wrong, 1}, {convert, 1}, {counter, 4}, {number_of_counters, 1},
    {change_no_counters, 1},
};

static void local_call(void)
{
    unsigned total = 0, chosen;
    const size_t count = sizeof local_calls / sizeof *local_calls;
    for (size_t i = 0; i < count; i++)
        total += local_calls[i].weight;
    chosen = draw(&own, total);
    draw_oddness();
    for (size_t i = 0; i < count; i++) {
        if (chosen < local_calls[i].weight) {
            local_calls[i].call();
            return;
        }
        chosen -= local_calls[i].weight;
    }
}

// Windows come and go; one is always there.
static void change_windows(void)
{
    struct window *w = &windows[draw(&all, WINDOWS)];
    FOR_ALIVE(dynamic)
        if (dynamic->flavour == DYNAMIC && draw(&all, 2))
            change_areas(dynamic);
    if (!w->alive) {
        make_right(w);
    } else if (draw(&all, 3) == 0) {
        free_right(w);
        if (w == &windows[0])
            make_right(w);
    } else {
        hint(w);
    }
    FOR_ALIVE(counted)
        if (draw(&all, 3) == 0)
            change_counters(counted);
    if (draw(&all, 4) == 0)
        make_wrong();
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void one_round(unsigned calls)
{
    const unsigned steps = 1 + draw(&all, 3);
    change_windows();
    open_epochs();
    for (unsigned step = 0; step < steps; step++) {
        if (step > 0)
            meet();
        for (unsigned i = 0; i < calls / steps; i++)
            local_call();
    }
    close_epochs();
    check_memory();
}

// Whether the library makes windows over memory of the program: otherwise it says that it does not.
static void look_what_is_offered(void)
{
    static char memory[64];
    MPI_Win win;
    const char *fallback = getenv("FOMPI_FALLBACK");
    offered[ALLOCATE] = offered[SHARED] = 1;
    if (fallback == NULL || strcmp(fallback, "error") != 0)
        return;
    for (enum flavour flavour = CREATE; flavour <= DYNAMIC; flavour++) {
        const int code =
            flavour == CREATE
                ? MPI_Win_create(memory, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win)
                : MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        const int class = class_of(code);
        CHECK(class == MPI_SUCCESS || class == MPI_ERR_UNSUPPORTED_OPERATION);
        offered[flavour] = code == MPI_SUCCESS;
        if (code == MPI_SUCCESS)
            OK(MPI_Win_free(&win));
    }
}

static void prepare(void)
{
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed));
    OK(MPI_Comm_set_errhandler(reversed, MPI_ERRORS_RETURN));
    CHECK(size <= RANKS_MAX);
    know_classes();
    make_types();
    make_ops();
    look_what_is_offered();
    start_arena();
    for (int i = 0; i < WINDOWS - 1; i++)
        make_right(&windows[i]);
}

static void finish(void)
{
    FOR_ALIVE(w)
        free_right(w);
    OK(MPI_Comm_free(&reversed));
    OK(MPI_Op_free(&ops[OPS - 1].handle));
    free_types();
    // A generator that hardly ever makes a right call, or a wrong one, proves nothing.
    CHECK(call.done > call.number / 5 && call.refused > call.number / 5);
    if (rank != 0)
        return;
    printf("seed %llu, %d ranks: %ld calls on rank 0, %ld right, %ld refused; windows:",
           (unsigned long long)call.seed, size, call.number, call.done, call.refused);
    for (int flavour = 0; flavour < FLAVOURS; flavour++)
        printf(offered[flavour] ? " %s" : " no %s", flavour_names[flavour]);
    printf("\n");
}

int main(int argc, char **argv)
{
    start(60, &argc, &argv);
    watch_signals();
    if (argc < 3)
        wrong(__LINE__, "usage: wrong_calls SEED CALLS [FIRST]");
    call.seed = strtoull(argv[1], NULL, 10);
    call.trace = argc > 3 ? atol(argv[3]) : 0;
    seed_sources(call.seed);
    prepare();
    const long calls = atol(argv[2]);
    for (long made = 0; made < calls;) {
        const unsigned now = 60 + draw(&all, 240);
        one_round(now);
        made += now;
    }
    finish();
    return MPI_Finalize();
}
