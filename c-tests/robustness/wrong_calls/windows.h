// What the model knows of the windows: what each rank exposes, what must be in it, which epochs
// this process is in (MPI-4.1 sections 12.2 and 12.5).
//
// Each area of memory that a rank exposes is divided into stripes, one for each origin, with gaps
// between them. A call that is right accesses the stripe of its origin only. So each origin knows
// what is in its stripes everywhere, and what is in the gaps is what was there in the beginning.

#ifndef WRONG_CALLS_WINDOWS_H
#define WRONG_CALLS_WINDOWS_H

#include "types.h"

enum { WINDOWS = 5, AREAS = 3, RANKS_MAX = 8, STRIPE_MAX = 192, GAP = 16, BYTES_MAX = 1600,
       COUNTERS_MAX = 3 };

enum flavour { ALLOCATE, SHARED, CREATE, DYNAMIC, FLAVOURS };
static const char *const flavour_names[] = {"allocate", "allocate_shared", "create", "dynamic"};
// Whether the library makes such windows itself.
static int offered[FLAVOURS];

// What all ranks do with a window for some time. A rank does not know what the others do meanwhile,
// so it calls nothing that they would have to match or to wait for.
enum mode {
    FENCED,    // fences, all together
    MATCHED,   // post, start, complete, wait
    READING,   // shared locks, any number of them at once
    WRITING    // locks of any kind, in an order in which nobody waits forever
};

// Memory that a rank exposes: how far it is from displacement zero, its bytes, and where it is in
// the memory of that rank.
struct area {
    int64_t place, bytes, address;
    int attached;
};

struct part {
    int64_t disp_unit;
    struct area areas[AREAS];
};

struct window {
    int alive;
    MPI_Win handle;
    enum flavour flavour;
    MPI_Comm comm;
    MPI_Group group;
    const char *comm_name;
    unsigned serial;
    // this process, all of them, and their ranks in MPI_COMM_WORLD
    int rank, size, world[RANKS_MAX];
    struct part parts[RANKS_MAX];
    // the areas of this process, and what they lie in
    unsigned char *memory[AREAS];
    void *owned[AREAS];
    int is_mpi_memory;
    // memory that comes and goes in a dynamic window, and is never accessed
    unsigned char spare[64];
    int spare_attached;
    // what this process has in its stripes, and what of it is under way
    unsigned char stripes[RANKS_MAX][AREAS][STRIPE_MAX];
    unsigned char busy[RANKS_MAX][AREAS][STRIPE_MAX];
    enum mode mode;
    // nobody updates it now (MPI_MODE_NOPUT)
    int get_only;
    // after a fence that an epoch may follow; then, whether one has begun for sure, or perhaps
    int fenced, opened, perhaps_opened;
    // the same, but the window is locked then: what an operation without a lock does is open
    int vague;
    int started, exposed, exposed_to_nobody;
    unsigned targets;
    int locks[RANKS_MAX], locked, locked_all;
    // counters of each rank, notifications of this process for them, and what its resets have taken
    int counters[RANKS_MAX];
    int64_t notified[RANKS_MAX][COUNTERS_MAX], taken[COUNTERS_MAX];
};

enum { UNLOCKED, LOCKED_SHARED, LOCKED_EXCLUSIVE };
enum { READ_BUSY = 1, WRITE_BUSY = 2 };

static struct window windows[WINDOWS];

static int index_of(const struct window *w)
{
    return (int)(w - windows);
}

static int area_count(const struct window *w)
{
    return w->flavour == DYNAMIC ? AREAS : 1;
}

// Bytes of a stripe with the gap after it.
static int64_t stride(const struct window *w, const struct area *area)
{
    return area->bytes / w->size & ~(int64_t)(GAP - 1);
}

static int64_t stripe_bytes(const struct window *w, const struct area *area)
{
    const int64_t bytes = stride(w, area) - GAP;
    return bytes < 0 ? 0 : bytes > STRIPE_MAX ? STRIPE_MAX : bytes;
}

// What is in a byte that nobody has written to, by the rank in MPI_COMM_WORLD.
static unsigned char untouched(const struct window *w, int world_rank, int area, int64_t byte)
{
    const unsigned mixed = w->serial * 131u + (unsigned)world_rank * 29u + (unsigned)area * 53u
                           + (unsigned)byte * 7u + (unsigned)(byte >> 8);
    return (unsigned char)(mixed ^ 0x5a);
}

// What the stripes hold once the memory was filled.
static void reset_stripes(struct window *w, int target, int area)
{
    const struct area *a = &w->parts[target].areas[area];
    for (int64_t i = 0; i < stripe_bytes(w, a); i++)
        w->stripes[target][area][i] =
            untouched(w, w->world[target], area, w->rank * stride(w, a) + i);
    memset(w->busy[target][area], 0, STRIPE_MAX);
}

static void fill_own_memory(struct window *w, int area)
{
    for (int64_t i = 0; i < w->parts[w->rank].areas[area].bytes; i++)
        w->memory[area][i] = untouched(w, w->world[w->rank], area, i);
}

// The area in which bytes of a target lie, -1 if there is none. They are counted from displacement
// zero.
static int area_of(const struct window *w, int target, wide first, wide end)
{
    for (int i = 0; i < area_count(w); i++) {
        const struct area *area = &w->parts[target].areas[i];
        if (area->attached && first >= area->place && end <= (wide)area->place + area->bytes)
            return i;
    }
    return -1;
}

// Whether this process may read or write these bytes of an area.
static int is_mine(const struct window *w, int target, int area, wide first, wide end)
{
    const struct area *a = &w->parts[target].areas[area];
    const wide begins = (wide)a->place + w->rank * stride(w, a);
    return first >= begins && end <= begins + stripe_bytes(w, a);
}

// Where a byte of a target, counted from displacement zero, is in the stripe of this process.
static int64_t in_stripe(const struct window *w, int target, int area, int64_t byte)
{
    const struct area *a = &w->parts[target].areas[area];
    return byte - a->place - w->rank * stride(w, a);
}

// Memory of this process that calls get as their buffers, and what must be in it.
enum { ARENA = 1 << 19, ARENA_EDGE = 4096 };
static unsigned char arena[ARENA], arena_should[ARENA];
static size_t arena_used;

static void start_arena(void)
{
    for (int i = 0; i < ARENA; i += 8) {
        const uint64_t word = draw_word(&own);
        memcpy(arena + i, &word, 8);
    }
    memcpy(arena_should, arena, ARENA);
    arena_used = ARENA_EDGE;
}

static int has_room(size_t bytes)
{
    return arena_used + bytes + ARENA_EDGE <= ARENA;
}

// Bytes that no call uses before the next check of all memory.
static unsigned char *take(size_t bytes)
{
    unsigned char *taken = arena + arena_used;
    if (!has_room(bytes))
        fail("the model has no buffers left");
    arena_used += (bytes + 31) & ~(size_t)15;
    return taken;
}

static unsigned char *should(const unsigned char *in_arena)
{
    return arena_should + (in_arena - arena);
}

// Results of calls that are not complete yet.
struct result {
    const struct window *window;
    int target;
    unsigned char *at;
    size_t bytes;
    long number;
};
enum { RESULTS_MAX = 4096 };
static struct result results[RESULTS_MAX];
static int result_count;

static void check_result(const struct result *result)
{
    if (memcmp(result->at, should(result->at), result->bytes) != 0)
        fail("completes call %ld, whose result is wrong", result->number);
}

// Operations on a target, or on all with -1, are complete at the origin, and with `everywhere` at
// the target too.
static void completed(struct window *w, int target, int everywhere)
{
    int kept = 0;
    for (int i = 0; i < result_count; i++) {
        const struct result *result = &results[i];
        if (result->window == w && (target < 0 || result->target == target))
            check_result(result);
        else
            results[kept++] = *result;
    }
    result_count = kept;
    if (everywhere)
        for (int r = 0; r < w->size; r++)
            if (target < 0 || r == target)
                memset(w->busy[r], 0, sizeof w->busy[r]);
}

// Whether this process is in an access epoch, other than after a fence.
static int in_access_epoch(const struct window *w)
{
    return w->started || w->locked > 0 || w->locked_all;
}

static int is_passive(const struct window *w, int target)
{
    return w->locked_all || w->locks[target] != UNLOCKED;
}

static int is_accessible(const struct window *w, int target)
{
    if (in_access_epoch(w))
        return is_passive(w, target) || (w->started && w->targets >> target & 1);
    return w->fenced;
}

static void forget_fence(struct window *w)
{
    w->fenced = w->opened = w->perhaps_opened = w->vague = w->get_only = 0;
}

// A window handle, and the window that it names, if any.
struct named {
    MPI_Win handle;
    struct window *window;
    char text[64];
};

enum { STALE = 8 };
static MPI_Win stale[STALE];
static int stale_count;

static void note_stale(MPI_Win handle)
{
    stale[stale_count++ % STALE] = handle;
}

// A handle that names no window. How handles are made is in docs/decisions/0002: what has not that
// form goes to the host MPI, which has to refuse it.
static struct named no_window(const struct window *like)
{
    const int generations = 0x1ff << 17;
    const int number = MPI_Win_c2f(like->handle);
    struct named name = {MPI_WIN_NULL, NULL, "MPI_WIN_NULL"};
    switch (draw(&own, 5)) {
    case 0:
        break;
    case 4:
        name.handle = (MPI_Win)0;
        snprintf(name.text, sizeof name.text, "zero");
        break;
    case 1: {
        const int other = number + (int)((1 + draw(&own, 510)) << 17);
        name.handle = MPI_Win_f2c((number & ~generations) | (other & generations));
        snprintf(name.text, sizeof name.text, "w%d in another generation", index_of(like));
        break;
    }
    case 2: {
        const int slot = 40000 + (int)draw(&own, 20000);
        name.handle = MPI_Win_f2c(0x20000001 | slot << 1 | (int)(draw(&own, 512) << 17));
        snprintf(name.text, sizeof name.text, "never made");
        break;
    }
    default:
        if (stale_count > 0) {
            const int known = stale_count < STALE ? stale_count : STALE;
            name.handle = stale[draw(&own, (unsigned)known)];
            snprintf(name.text, sizeof name.text, "freed window");
        }
    }
    return name;
}

// The host MPI has no function with a name of libfompi's own, so that nothing refuses a handle that
// has not libfompi's form.
static void judge_foreign(const struct named *win)
{
    if (win->window == NULL && strcmp(win->text, "zero") == 0)
        doubt(ERR_UNSUPPORTED_OPERATION);
}

// An index that a rank with this number of counters does not have.
static int wrong_index(int counters)
{
    const int indices[] = {-1, -2147483647 - 1, 2147483647, counters, counters + 1};
    return indices[draw(&own, 5)];
}

static struct window *any_window(struct source *from)
{
    struct window *alive[WINDOWS];
    unsigned count = 0;
    for (int i = 0; i < WINDOWS; i++)
        if (windows[i].alive)
            alive[count++] = &windows[i];
    return alive[draw(from, count)];
}

// The window of a call: one that lives, or now and then none.
static struct named draw_window(void)
{
    struct window *w = any_window(&own);
    if (draw(&own, 24) == 0)
        return no_window(w);
    struct named name = {w->handle, w, ""};
    snprintf(name.text, sizeof name.text, "w%d", index_of(w));
    return name;
}

#endif
