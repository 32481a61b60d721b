// A random program: windows of all kinds, several at a time, and phases of random operations by all
// ranks under each kind of synchronisation, with threads or without. After each phase every rank
// compares its memory with what the operations of all ranks must have made of it. MPI-4.1 chapter
// 12. scripts/dev/soak runs it with many seeds and settings; without arguments it takes a few
// seeds.
// ranks: 1 2 3 5
// plain ranks: 1 2
//
// arguments: seed [steps]

#define _GNU_SOURCE
#include "plan.h"
#include <pthread.h>
#include <sys/mman.h>

enum flavor { ALLOCATE, SHARED, HEAP, MAPPING, ALLOC_MEM, DYNAMIC, STATIC, FLAVORS };
enum { WINDOWS = 3, STEPS = 24, STATIC_BYTES = 1 << 22, THREAD_COUNT = 3 };

typedef struct {
    int is_open, flavor, unit, me, ranks, color;
    Layout layout;
    long bytes;
    char *base, *model;
    MPI_Comm comm;
    MPI_Win win;
    MPI_Aint places[64]; // of a dynamic window: where the memory of each rank begins
} Window;

static Window windows[WINDOWS];
static char statics[WINDOWS][STATIC_BYTES];
static uint64_t seed;
static int has_threads, spans_nodes;

static void fill(Window *window, int number)
{
    char *constants = window->model + zone_at(&window->layout, window->ranks, CONSTANTS);
    for (int k = 0; k < window->layout.constants; k++) {
        const int value = constant_of(seed, number + window->color, window->me, k);
        memcpy(constants + 4L * k, &value, 4);
    }
}

static void take_memory(Window *window, int index)
{
    const int rights = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_ANONYMOUS;
    const size_t bytes = (size_t)window->bytes;
    switch (window->flavor) {
    case HEAP: case DYNAMIC: window->base = malloc(bytes); break;
    case MAPPING: window->base = mmap(NULL, bytes, rights, flags, -1, 0); break;
    case ALLOC_MEM: OK(MPI_Alloc_mem(window->bytes, MPI_INFO_NULL, &window->base)); break;
    default: window->base = statics[index]; break;
    }
    CHECK(window->base != NULL && window->base != MAP_FAILED);
}

static void give_memory_back(Window *window)
{
    switch (window->flavor) {
    case HEAP: case DYNAMIC: free(window->base); break;
    case MAPPING: CHECK_EQ(munmap(window->base, (size_t)window->bytes), 0); break;
    case ALLOC_MEM: OK(MPI_Free_mem(window->base)); break;
    default: break;
    }
}

static void make_window(Window *window)
{
    const MPI_Aint bytes = window->bytes;
    if (window->flavor == ALLOCATE || window->flavor == SHARED) {
        int (*make)(MPI_Aint, int, MPI_Info, MPI_Comm, void *, MPI_Win *) =
            window->flavor == SHARED ? MPI_Win_allocate_shared : MPI_Win_allocate;
        OK(make(bytes, window->unit, MPI_INFO_NULL, window->comm, &window->base, &window->win));
        return;
    }
    take_memory(window, (int)(window - windows));
    if (window->flavor != DYNAMIC) {
        OK(MPI_Win_create(window->base, bytes, window->unit, MPI_INFO_NULL, window->comm, &window->win));
        return;
    }
    MPI_Aint address;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, window->comm, &window->win));
    OK(MPI_Win_attach(window->win, window->base, bytes));
    OK(MPI_Get_address(window->base, &address));
    OK(MPI_Allgather(&address, 1, MPI_AINT, window->places, 1, MPI_AINT, window->comm));
}

// The world, its ranks in the opposite order, or two halves that each have a window.
static void choose_ranks(Window *window, Stream *common)
{
    const int which = below(common, 4);
    window->color = which == 3 ? rank % 2 : 0;
    OK(MPI_Comm_split(MPI_COMM_WORLD, window->color, which == 2 ? -rank : rank, &window->comm));
    OK(MPI_Comm_rank(window->comm, &window->me));
    OK(MPI_Comm_size(window->comm, &window->ranks));
}

static void open_window(Window *window, Stream *common, int number)
{
    const int flavor = below(common, FLAVORS);
    window->layout = layout_of(common);
    window->unit = below(common, 2) ? 1 : 4;
    choose_ranks(window, common);
    window->flavor = flavor == SHARED && spans_nodes ? ALLOCATE : flavor;
    window->bytes = zone_at(&window->layout, window->ranks, ZONES);
    if (window->flavor == STATIC && window->bytes > STATIC_BYTES)
        window->flavor = HEAP;
    window->unit = window->flavor == DYNAMIC ? 1 : window->unit;
    make_window(window);
    window->model = calloc(1, (size_t)window->bytes);
    CHECK(window->model != NULL);
    fill(window, number);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, window->me, 0, window->win));
    memcpy(window->base, window->model, (size_t)window->bytes);
    OK(MPI_Win_unlock(window->me, window->win));
    OK(MPI_Barrier(window->comm));
    window->is_open = 1 + number;
}

static void close_window(Window *window)
{
    if (window->flavor == DYNAMIC)
        OK(MPI_Win_detach(window->win, window->base));
    OK(MPI_Win_free(&window->win));
    give_memory_back(window);
    OK(MPI_Comm_free(&window->comm));
    free(window->model);
    window->is_open = 0;
}

// What a thread does in a phase: every `stride`-th operation from `first` on. Buffers stay until the
// phase has ended.
typedef struct {
    Window *window;
    const Phase *phase;
    const Operation *all;
    int count, first, stride;
    char *sent[OPS_MAX], *got[OPS_MAX];
    MPI_Request requests[OPS_MAX];
} Work;

static MPI_Aint disp_of(const Window *window, int target, long offset)
{
    return window->flavor == DYNAMIC ? window->places[target] + offset : offset / window->unit;
}

// The operands of an operation, in every element or in every second one; the caller frees them.
static char *operands_of(const Operation *operation, int type, int steps)
{
    const int bytes = type_bytes[type];
    char *operands = malloc((size_t)operation->count * (size_t)(bytes * steps) + 8);
    CHECK(operands != NULL);
    for (int k = 0; k < operation->count; k++) {
        const int64_t integer = operand(operation, k);
        const double number = (double)integer;
        memcpy(operands + (long)k * bytes * steps, type == OF_DOUBLE ? (const void *)&number : &integer,
               (size_t)bytes);
    }
    return operands;
}

static MPI_Datatype every_second(int count, MPI_Datatype type)
{
    MPI_Datatype strided;
    OK(MPI_Type_vector(count, 1, 2, type, &strided));
    OK(MPI_Type_commit(&strided));
    return strided;
}

// A put, with a request if there is a place for one. Returns the origin's buffer.
static char *put(const Work *work, const Operation *operation, MPI_Request *request)
{
    const Window *window = work->window;
    const int steps = operation->strided ? 2 : 1, simple = operation->blocks == 1;
    const long slot = 4L * window->me * window->layout.slot;
    if (operation->count == 0)
        return NULL;
    char *operands = operands_of(operation, 2, steps);
    MPI_Datatype from = MPI_INT, to = MPI_INT;
    if (operation->strided)
        from = every_second(operation->count, MPI_INT);
    if (!simple) {
        OK(MPI_Type_indexed(operation->blocks, operation->lengths, operation->places, MPI_INT, &to));
        OK(MPI_Type_commit(&to));
    }
    const MPI_Aint disp = disp_of(window, operation->target, slot + (simple ? 4L * operation->places[0] : 0));
    const int sent = operation->strided ? 1 : operation->count, got = simple ? operation->count : 1;
    if (request != NULL)
        OK(MPI_Rput(operands, sent, from, operation->target, disp, got, to, window->win, request));
    else
        OK(MPI_Put(operands, sent, from, operation->target, disp, got, to, window->win));
    if (operation->strided)
        OK(MPI_Type_free(&from));
    if (!simple)
        OK(MPI_Type_free(&to));
    return operands;
}

static char *accumulate(const Work *work, const Operation *operation, MPI_Request *request, char **got)
{
    const Window *window = work->window;
    const int type = work->phase->type, count = operation->count, to = operation->target;
    const long zone = zone_at(&window->layout, window->ranks, type == OF_DOUBLE ? DOUBLES : WORDS);
    const MPI_Aint disp = disp_of(window, to, zone + (long)type_bytes[type] * operation->first);
    const MPI_Datatype element = type_of(type);
    const MPI_Op op = op_of(work->phase->op);
    char *operands = operands_of(operation, type, 1);
    *got = malloc((size_t)count * 8);
    CHECK(*got != NULL);
    if (operation->kind == FETCH_AND_OP)
        OK(MPI_Fetch_and_op(operands, *got, element, to, disp, op, window->win));
    else if (operation->kind == ACCUMULATE && request != NULL)
        OK(MPI_Raccumulate(operands, count, element, to, disp, count, element, op, window->win, request));
    else if (operation->kind == ACCUMULATE)
        OK(MPI_Accumulate(operands, count, element, to, disp, count, element, op, window->win));
    else if (request != NULL)
        OK(MPI_Rget_accumulate(operands, count, element, *got, count, element, to, disp, count, element,
                               op, window->win, request));
    else
        OK(MPI_Get_accumulate(operands, count, element, *got, count, element, to, disp, count, element,
                              op, window->win));
    return operands;
}

static void get(const Work *work, const Operation *operation, MPI_Request *request, char **got)
{
    const Window *window = work->window;
    const long zone = zone_at(&window->layout, window->ranks, CONSTANTS);
    const MPI_Aint disp = disp_of(window, operation->target, zone + 4L * operation->first);
    const int count = operation->count;
    *got = calloc((size_t)count * 2, 4);
    CHECK(*got != NULL);
    MPI_Datatype into = MPI_INT;
    if (operation->strided)
        into = every_second(count, MPI_INT);
    const int filled = operation->strided ? 1 : count;
    if (request != NULL)
        OK(MPI_Rget(*got, filled, into, operation->target, disp, count, MPI_INT, window->win, request));
    else
        OK(MPI_Get(*got, filled, into, operation->target, disp, count, MPI_INT, window->win));
    if (operation->strided)
        OK(MPI_Type_free(&into));
}

static void check_got(const Work *work, const Operation *operation, const char *got)
{
    const Window *window = work->window;
    const int steps = operation->strided ? 2 : 1;
    for (int k = 0; k < operation->count; k++) {
        int value;
        memcpy(&value, got + 4L * k * steps, 4);
        const int number = window->is_open - 1 + window->color;
        CHECK_EQ(value, constant_of(seed, number, operation->target, operation->first + k));
    }
}

static void carry_out(Work *work, int n)
{
    const Operation *operation = &work->all[n];
    MPI_Request *request = work->phase->mode == REQUESTS ? &work->requests[n] : NULL;
    if (operation->kind == PUT)
        work->sent[n] = put(work, operation, request);
    else if (operation->kind == GET)
        get(work, operation, request, &work->got[n]);
    else
        work->sent[n] = accumulate(work, operation, request, &work->got[n]);
}

static void *work_on(void *argument)
{
    Work *work = argument;
    const MPI_Win win = work->window->win;
    const enum mode mode = work->phase->mode;
    const int type = work->phase->exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
    for (int n = work->first; n < work->count; n += work->stride) {
        const int to = work->all[n].target, value = work->all[n].value;
        work->requests[n] = MPI_REQUEST_NULL;
        if (mode == LOCKS)
            OK(MPI_Win_lock(type, to, 0, win));
        carry_out(work, n);
        if (mode == LOCKS)
            OK(MPI_Win_unlock(to, win));
        if (value % 3 == 0)
            OK(MPI_Wait(&work->requests[n], MPI_STATUS_IGNORE));
        if ((mode == LOCK_ALL || mode == THREADS) && value % 4 == 0)
            OK(value % 8 ? MPI_Win_flush(to, win) : MPI_Win_flush_local_all(win));
    }
    return NULL;
}

static void end_work(Work *work)
{
    for (int n = work->first; n < work->count; n += work->stride) {
        if (work->all[n].kind == GET)
            check_got(work, &work->all[n], work->got[n]);
        free(work->sent[n]);
        free(work->got[n]);
    }
}

// Starts threads for the operations, which are over when it returns.
static void work_in_threads(Work *work)
{
    pthread_t threads[THREAD_COUNT];
    for (int t = 0; t < THREAD_COUNT; t++) {
        work[t] = work[0];
        work[t].first = t;
        work[t].stride = THREAD_COUNT;
    }
    for (int t = 0; t < THREAD_COUNT; t++)
        CHECK_EQ(pthread_create(&threads[t], NULL, work_on, &work[t]), 0);
    for (int t = 0; t < THREAD_COUNT; t++)
        CHECK_EQ(pthread_join(threads[t], NULL), 0);
}

static void work_between_posts(Work *work)
{
    MPI_Group all;
    OK(MPI_Comm_group(work->window->comm, &all));
    OK(MPI_Win_post(all, 0, work->window->win));
    OK(MPI_Win_start(all, 0, work->window->win));
    work_on(work);
    OK(MPI_Win_complete(work->window->win));
    OK(MPI_Win_wait(work->window->win));
    OK(MPI_Group_free(&all));
}

static void work_under_lock_all(Work *work)
{
    const MPI_Win win = work->window->win;
    OK(MPI_Win_lock_all(0, win));
    if (work->phase->mode == THREADS)
        work_in_threads(work);
    else
        work_on(work);
    if (work->phase->mode == REQUESTS)
        OK(MPI_Waitall(work->count, work->requests, MPI_STATUSES_IGNORE));
    OK(MPI_Win_unlock_all(win));
}

static void synchronised(Work *work)
{
    switch (work->phase->mode) {
    case FENCE:
        OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, work->window->win));
        work_on(work);
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, work->window->win));
        break;
    case LOCKS: work_on(work); break;
    case PSCW: work_between_posts(work); break;
    default: work_under_lock_all(work); break;
    }
}

// Compares this rank's memory with its model.
static void check_memory(Window *window)
{
    OK(MPI_Barrier(window->comm));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, window->me, 0, window->win));
    if (memcmp(window->base, window->model, (size_t)window->bytes) != 0)
        for (long at = 0; at < window->bytes; at++)
            CHECK_EQ(window->base[at], window->model[at]);
    OK(MPI_Win_unlock(window->me, window->win));
    OK(MPI_Barrier(window->comm));
}

static void phase(Window *window, Stream *common, int number)
{
    const Phase phase = phase_of(common, has_threads);
    Operation all[OPS_MAX];
    static Work work[THREAD_COUNT];
    const int count =
        operations_of(seed, number, window->me, window->ranks, &window->layout, &phase, all);
    const int threads = phase.mode == THREADS ? THREAD_COUNT : 1;
    memset(work, 0, sizeof work);
    work[0] = (Work){.window = window, .phase = &phase, .all = all, .count = count, .stride = 1};
    synchronised(work);
    for (int t = 0; t < threads; t++)
        end_work(&work[t]);
    model_phase(seed, number, window->me, window->ranks, &window->layout, &phase, window->model);
    check_memory(window);
}

static void run(int steps)
{
    Stream common = stream_of(seed, 0, 0, 0);
    for (int step = 0; step < steps; step++) {
        Window *window = &windows[below(&common, WINDOWS)];
        if (!window->is_open)
            open_window(window, &common, step);
        else if (below(&common, 6) == 0)
            close_window(window);
        else
            phase(window, &common, step);
    }
    for (int n = 0; n < WINDOWS; n++)
        if (windows[n].is_open)
            close_window(&windows[n]);
}

int main(int argc, char **argv)
{
    const int steps = argc > 2 ? atoi(argv[2]) : STEPS;
    const char *asked = getenv("SOAK_THREADS");
    int provided;
    check_within(120);
    OK(MPI_Init_thread(&argc, &argv, asked ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    has_threads = asked != NULL && provided == MPI_THREAD_MULTIPLE;
    spans_nodes = getenv("FOMPI_RANKS_PER_NODE") != NULL;
    CHECK(size <= 64);
    const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, count = argc > 1 ? 1 : 4;
    for (seed = first; seed < first + count; seed++)
        run(steps);
    return check_end();
}
