// Calls that all ranks make together: windows are made, changed and freed, and made wrongly
// (MPI-4.1 section 12.2). Numbers come from the source that all ranks share.

#ifndef WRONG_CALLS_COLLECTIVE_H
#define WRONG_CALLS_COLLECTIVE_H

#include "questions.h"

#if MPI_VERSION < 4
int MPI_Win_create_c(void *, MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, MPI_Win *)
    __attribute__((weak));
int MPI_Win_allocate_c(MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void *, MPI_Win *)
    __attribute__((weak));
int MPI_Win_allocate_shared_c(MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void *, MPI_Win *)
    __attribute__((weak));
#endif

enum { GUARD = 256, GUARD_BYTE = 0xa5 };

static MPI_Comm reversed;

// The arguments of a call that makes a window.
struct making {
    enum flavour flavour;
    int large, no_win, no_base;
    MPI_Aint bytes, disp_unit;
    MPI_Comm comm;
    const char *comm_name;
};

static int make_window(const struct making *m, void *memory, void *base, MPI_Win *win)
{
    const MPI_Info none = MPI_INFO_NULL;
    const int unit = (int)m->disp_unit;
    void *answer = m->no_base ? NULL : base;
    if (m->no_win)
        win = NULL;
    switch (m->flavour) {
    case ALLOCATE:
        return m->large ? MPI_Win_allocate_c(m->bytes, m->disp_unit, none, m->comm, answer, win)
                        : MPI_Win_allocate(m->bytes, unit, none, m->comm, answer, win);
    case SHARED:
        return m->large
                   ? MPI_Win_allocate_shared_c(m->bytes, m->disp_unit, none, m->comm, answer, win)
                   : MPI_Win_allocate_shared(m->bytes, unit, none, m->comm, answer, win);
    case CREATE:
        return m->large ? MPI_Win_create_c(memory, m->bytes, m->disp_unit, none, m->comm, win)
                        : MPI_Win_create(memory, m->bytes, unit, none, m->comm, win);
    default:
        return MPI_Win_create_dynamic(none, m->comm, win);
    }
}

static void begin_making(const struct making *m)
{
    begin("MPI_Win_");
    call.length--; // the name goes on
    tell("%s%s(", flavour_names[m->flavour], m->large && m->flavour != DYNAMIC ? "_c" : "");
    if (m->flavour != DYNAMIC)
        tell("%lld bytes, disp_unit %lld, ", (long long)m->bytes, (long long)m->disp_unit);
    tell("%s%s%s", m->comm_name, m->no_base ? ", no place for base" : "",
         m->no_win ? ", no place for win" : "");
}

static void draw_comm(struct making *m)
{
    switch (draw(&all, 5)) {
    case 0: m->comm = MPI_COMM_SELF, m->comm_name = "MPI_COMM_SELF"; break;
    case 1: m->comm = reversed, m->comm_name = "all in reverse order"; break;
    default: m->comm = MPI_COMM_WORLD, m->comm_name = "MPI_COMM_WORLD";
    }
}

static enum flavour draw_flavour(void)
{
    enum flavour flavour;
    do
        flavour = draw(&all, FLAVOURS);
    while (!offered[flavour]);
    return flavour;
}

static int64_t draw_disp_unit(int large)
{
    const int64_t units[] = {1, 1, 4, 8, 8, 24, ((int64_t)1 << 31) + 8, (int64_t)1 << 32};
    return units[draw(&all, large ? 8 : 6)];
}

// What all ranks of a window expose: the same numbers on all ranks.
static void draw_parts(struct window *w, int large)
{
    const int64_t unit = draw_disp_unit(large);
    const int same_unit = draw(&all, 4) != 0;
    for (int r = 0; r < size; r++) {
        int64_t bytes = draw(&all, 8) ? 64 + draw(&all, BYTES_MAX - 64) : draw(&all, 2) * 7;
        const int64_t other_unit = draw_disp_unit(large);
        for (int a = 0; a < AREAS; a++)
            w->parts[r].areas[a] = (struct area){.bytes = a ? 100 + 300 * a : bytes,
                                                 .attached = w->flavour != DYNAMIC};
        w->parts[r].disp_unit = w->flavour == DYNAMIC ? 1 : same_unit ? unit : other_unit;
    }
    if (w->flavour == DYNAMIC)
        for (int r = 0; r < size; r++)
            w->parts[r].areas[0].bytes += 200;
}

// Memory for an area of this process, with guards around it.
static void give_memory(struct window *w, int a, size_t misaligned)
{
    const size_t bytes = (size_t)w->parts[w->rank].areas[a].bytes + 2 * GUARD + 64;
    unsigned char *memory;
    if (w->is_mpi_memory) {
        OK(MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory));
    } else {
        memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    }
    memset(memory, GUARD_BYTE, bytes);
    w->owned[a] = memory;
    w->memory[a] = memory + GUARD + misaligned;
}

static void know_members(struct window *w)
{
    MPI_Group group;
    int ranks[RANKS_MAX];
    OK(MPI_Comm_rank(w->comm, &w->rank));
    OK(MPI_Comm_size(w->comm, &w->size));
    OK(MPI_Comm_group(w->comm, &w->group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    for (int r = 0; r < w->size; r++)
        ranks[r] = r;
    OK(MPI_Group_translate_ranks(w->group, w->size, ranks, group, w->world));
    OK(MPI_Group_free(&group));
}

// Where the areas of all ranks are.
static void tell_addresses(struct window *w)
{
    int64_t here[AREAS] = {0}, everywhere[RANKS_MAX][AREAS];
    for (int a = 0; a < area_count(w); a++)
        here[a] = (int64_t)(intptr_t)w->memory[a];
    OK(MPI_Allgather(here, AREAS, MPI_INT64_T, everywhere, AREAS, MPI_INT64_T, w->comm));
    for (int r = 0; r < w->size; r++)
        for (int a = 0; a < area_count(w); a++) {
            w->parts[r].areas[a].address = everywhere[r][a];
            w->parts[r].areas[a].place = w->flavour == DYNAMIC ? everywhere[r][a] : 0;
        }
}

// An area of each rank of a dynamic window comes or goes.
static void change_areas(struct window *w)
{
    for (int r = 0; r < w->size; r++) {
        const int a = (int)draw(&all, AREAS);
        struct area *area = &w->parts[r].areas[a];
        area->attached = !area->attached;
        if (r != w->rank)
            continue;
        begin(area->attached ? "MPI_Win_attach" : "MPI_Win_detach");
        tell("w%d, area %d", index_of(w), a);
        go();
        judge(area->attached ? MPI_Win_attach(w->handle, w->memory[a], area->bytes)
                             : MPI_Win_detach(w->handle, w->memory[a]));
    }
}

// A new window in a place where there is none. All ranks meet afterwards, before they use it.
static void make_right(struct window *w)
{
    static unsigned serial;
    void *base = NULL;
    struct making m = {.flavour = draw_flavour(), .large = (int)draw(&all, 2)};
    draw_comm(&m);
    memset(w, 0, sizeof *w);
    w->flavour = m.flavour;
    w->comm = m.comm;
    w->comm_name = m.comm_name;
    w->serial = serial++;
    w->is_mpi_memory = (int)draw(&all, 2);
    know_members(w);
    draw_parts(w, m.large);
    const size_t misaligned = draw(&all, 2) ? draw(&all, 16) : 0;
    m.bytes = w->parts[w->rank].areas[0].bytes;
    m.disp_unit = w->parts[w->rank].disp_unit;
    if (w->flavour == CREATE || w->flavour == DYNAMIC)
        for (int a = 0; a < area_count(w); a++)
            give_memory(w, a, misaligned);
    begin_making(&m);
    tell(" -> w%d", index_of(w));
    go();
    judge(make_window(&m, w->memory[0], &base, &w->handle));
    if (w->flavour == ALLOCATE || w->flavour == SHARED)
        w->memory[0] = base;
    OK(MPI_Win_set_errhandler(w->handle, MPI_ERRORS_RETURN));
    char name[16];
    snprintf(name, sizeof name, "w%d", index_of(w));
    OK(MPI_Win_set_name(w->handle, name));
    tell_addresses(w);
    for (int a = 0; a < area_count(w); a++) {
        fill_own_memory(w, a);
        for (int r = 0; r < w->size; r++)
            reset_stripes(w, r, a);
    }
    w->alive = 1;
    if (w->flavour == DYNAMIC)
        change_areas(w);
}

// A window that cannot be made, for all ranks or, where the library promises that none waits, for
// one of them. The others get some error too.
static void make_wrong(void)
{
    static unsigned char memory[64];
    struct making m = {.flavour = draw_flavour(), .large = (int)draw(&all, 2), .bytes = 64,
                       .disp_unit = 8};
    MPI_Win win = MPI_WIN_NULL;
    void *base;
    const unsigned how = draw(&all, m.flavour == DYNAMIC ? 2 : m.flavour == CREATE ? 4 : 6);
    const MPI_Aint units[] = {0, -1, -8}, huge[] = {(MPI_Aint)1 << 50, INT64_MAX};
    const MPI_Aint unit = units[draw(&all, 3)], bytes = huge[draw(&all, 2)];
    draw_comm(&m);
    // An error that belongs to no communicator is refused at once.
    const int one_alone = how != 0 && draw(&all, 2), odd_one = (int)draw(&all, (unsigned)size);
    const int is_wrong = !one_alone || rank == odd_one || m.comm == MPI_COMM_SELF;
    const unsigned classes[] = {ERR_COMM, ERR_ARG | ERR_WIN, ERR_SIZE, ERR_DISP | ERR_ARG, ERR_ARG,
                                ERR_NO_MEM | ERR_SIZE};
    if (is_wrong)
        switch (how) {
        case 0: m.comm = MPI_COMM_NULL, m.comm_name = "MPI_COMM_NULL"; break;
        case 1: m.no_win = 1; break;
        case 2: m.bytes = -8; break;
        case 3: m.disp_unit = unit; break;
        case 4: m.no_base = 1; break;
        default: m.bytes = bytes;
        }
    begin_making(&m);
    fault(is_wrong ? classes[how] : ANY_ERROR);
    go();
    judge(make_window(&m, memory, &base, &win));
}

static void free_right(struct window *w)
{
    const MPI_Win handle = w->handle;
    begin("MPI_Win_free");
    tell("w%d", index_of(w));
    go();
    judge(MPI_Win_free(&w->handle));
    CHECK_ANSWER(w->handle == MPI_WIN_NULL);
    note_stale(handle);
    OK(MPI_Group_free(&w->group));
    w->alive = 0;
    for (int a = 0; a < area_count(w); a++) {
        if (w->owned[a] == NULL)
            continue;
        if (w->is_mpi_memory)
            OK(MPI_Free_mem(w->owned[a]));
        else
            free(w->owned[a]);
    }
}

// A hint that no MPI knows.
static void hint(struct window *w)
{
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "unheard_of", "yes"));
    begin("MPI_Win_set_info");
    tell("w%d", index_of(w));
    go();
    judge(MPI_Win_set_info(w->handle, info));
    OK(MPI_Info_free(&info));
}

#endif
