// The program maps, unmaps and discards pages of the zone. Acts marked as wrong are not permitted
// while a window is over the memory (MPI-4.1 12.2.5), but other MPIs forgive them.
#include "chaos.h"
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_COLD
#define MADV_COLD 20
#define MADV_PAGEOUT 21
#endif
#define DONTNEED_LOCKED 24 // MADV_DONTNEED_LOCKED, Linux 5.18
#define GUARD_INSTALL 102 // MADV_GUARD_INSTALL, Linux 6.13
#define GUARD_REMOVE 103

// Discards pages; locked ones stay.
static bool discard(struct act *act, int advice, const char *name)
{
    if (madvise(act->zone, act->bytes, advice) == 0)
        return true;
    const bool may_fail = advice == DONTNEED_LOCKED || has_flag(act->zone, PAGE, "lo") != 0;
    if (errno != EINVAL || !may_fail)
        fail(act, "%s", name);
    return false;
}

// Pages that are discarded read as zero.
static void discard_once(struct act *act)
{
    refill(act);
    const int advice = percent(&act->chance, 25) ? DONTNEED_LOCKED : MADV_DONTNEED;
    if (!discard(act, advice, "MADV_DONTNEED"))
        return;
    memset(act->want, 0, act->bytes);
    expect(act, "MADV_DONTNEED");
    if (percent(&act->chance, 50))
        refill(act);
}

// Each page has its bytes or zeros, until it is stored to.
static void free_once(struct act *act)
{
    refill(act);
    if (!discard(act, MADV_FREE, "MADV_FREE"))
        return;
    static const unsigned char zeros[PAGE];
    for (size_t at = 0; at < act->bytes; at += PAGE)
        if (memcmp(act->zone + at, zeros, PAGE) != 0)
            expect_bytes(act, act->zone + at, act->want + at, PAGE, "MADV_FREE");
    refill(act);
    expect(act, "stores after MADV_FREE");
}

// Advice under which no byte changes.
static void advise_once(struct act *act)
{
    static const int advices[] = {MADV_WILLNEED, MADV_COLD, MADV_PAGEOUT, MADV_COLLAPSE,
                                  MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_NORMAL};
    const int advice = advices[below(&act->chance, sizeof advices / sizeof *advices)];
    if (percent(&act->chance, 50))
        refill(act);
    madvise(act->zone, act->bytes, advice); // the kernel may not know it
    expect(act, "advice");
}

// MADV_REMOVE is for shared memory: of private memory it changes nothing.
static void remove_once(struct act *act)
{
    if (percent(&act->chance, 50))
        refill(act);
    if (madvise(act->zone, act->bytes, MADV_REMOVE) == 0)
        fail(act, "MADV_REMOVE of private memory succeeded");
    expect(act, "MADV_REMOVE");
}

static bool has_guards(void)
{
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int code = madvise(page, PAGE, GUARD_INSTALL);
    munmap(page, PAGE);
    return code == 0;
}

// A guard discards the bytes. The kernel says EFAULT of a guarded page.
static void begin_guard(struct act *act)
{
    if (madvise(act->zone, act->bytes, GUARD_INSTALL) != 0)
        give_up(act); // locked memory has none
    else
        atomic_store(&act->is_quiet, false);
}

static void check_guard(struct act *act)
{
    int fd[2];
    open_pipe(act, fd);
    if (write_all(fd[1], act->zone, 1) || errno != EFAULT)
        fail(act, "a guarded page can be read");
    close(fd[0]);
    close(fd[1]);
}

static void end_guard(struct act *act)
{
    check_guard(act);
    if (madvise(act->zone, act->bytes, GUARD_REMOVE) != 0)
        fail(act, "MADV_GUARD_REMOVE");
    memset(act->want, 0, act->bytes);
    expect(act, "behind a guard");
    refill(act);
    atomic_store(&act->is_quiet, true);
}

// --- wrong, and forgiven ------------------------------------------------------------------------

// Wrong: other pages come to the place.
static void remap(struct act *act)
{
    void *at = mmap(act->zone, act->bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (at != act->zone)
        fail(act, "mmap (MAP_FIXED)");
    refill(act);
}

static void check_remapped(struct act *act)
{
    expect(act, "pages that were mapped over those of the window");
    if (percent(&act->chance, 50))
        refill(act);
}

// The bare call: UCX leaves the fifth argument of the C library's mremap out.
static void *move_pages(void *from, size_t bytes, void *to, int flags)
{
    flags |= MREMAP_MAYMOVE | MREMAP_FIXED;
    return (void *)syscall(SYS_mremap, from, bytes, bytes, flags, to);
}

// Wrong: the pages move away, and come back. The place stays mapped, or it would be another's.
static void move_away(struct act *act)
{
    if (has_flag(act->zone, act->bytes, "lo") != 0) {
        give_up(act); // Linux 6.18 unlocks all of the mapping of which a part moves
        return;
    }
    void *to = mmap(NULL, act->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    refill(act);
    act->state = calloc(1, sizeof(void *));
    if (move_pages(act->zone, act->bytes, to, 4 /* MREMAP_DONTUNMAP */) != to) {
        if (errno != EFAULT)
            fail(act, "mremap");
        munmap(to, act->bytes);
        give_up(act); // Linux 6.1 wants one mapping
        return;
    }
    memcpy(act->state, &to, sizeof to);
    atomic_store(&act->is_quiet, false);
}

static void come_back(struct act *act)
{
    void *to;
    memcpy(&to, act->state, sizeof to);
    expect_bytes(act, to, act->want, act->bytes, "pages that were moved away");
    if (move_pages(to, act->bytes, act->zone, 0) != act->zone)
        fail(act, "mremap");
    expect(act, "pages that came back");
    atomic_store(&act->is_quiet, true);
}

// --- blocks that are freed under a window -------------------------------------------------------

enum { KEPT_MAX = 24 };
static struct kept {
    unsigned char *at;
    size_t bytes;
    uint64_t seed;
} kept[KEPT_MAX];
static unsigned kept_next;

static void check_block(struct act *act, const struct kept *block)
{
    unsigned char *want = malloc(block->bytes);
    pattern(want, block->bytes, block->seed);
    expect_bytes(act, block->at, want, block->bytes, "a block of an earlier round");
    free(want);
}

void check_kept(void)
{
    struct act shown = {.actor = &(struct actor){.name = "realloc"}};
    for (int i = 0; i < KEPT_MAX; i++)
        if (kept[i].at)
            check_block(&shown, &kept[i]);
}

static void keep(struct act *act, unsigned char *at, size_t bytes)
{
    struct kept *place = &kept[kept_next++ % KEPT_MAX];
    if (place->at) {
        check_block(act, place);
        free(place->at);
    }
    *place = (struct kept){at, bytes, act->seed + act->round->number};
    pattern(at, bytes, place->seed);
}

// Wrong: realloc, or free and malloc, of the memory before MPI_Win_free.
static void reallocate(struct act *act)
{
    struct round *round = act->round;
    const size_t bytes = round->my->bytes;
    unsigned char *other;
    if (percent(&act->chance, 60)) {
        other = realloc(round->base, 2 * bytes);
        memset(other + bytes, 0x33, bytes);
    } else {
        free(round->base);
        other = malloc(bytes);
        memcpy(other, round->want, bytes);
    }
    if (!other)
        fail(act, "no memory");
    round->base = other;
    for (int i = 0; i < round->my->acts; i++)
        round->my->act[i].zone = other + round->my->act[i].offset;
}

// The block stays with the program, and a window that comes and goes must not change it.
static void end_reallocated(struct act *act)
{
    struct round *round = act->round;
    const size_t bytes = round->my->bytes;
    expect_bytes(act, round->base, round->want, bytes, "a block that was reallocated");
    void *at;
    MPI_Win win;
    MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_SELF, &at, &win);
    memset(at, 0xee, bytes);
    MPI_Win_free(&win);
    unsigned char *next = malloc(bytes);
    memcpy(next, round->want, bytes);
    keep(act, round->base, bytes);
    round->base = next;
    check_kept();
}

// --- the heap beside it -------------------------------------------------------------------------

// Blocks around the window's come and go, and the heap gives memory back.
static void churn_once(struct act *act)
{
    unsigned char *blocks[16];
    size_t bytes[16];
    refill(act);
    for (int i = 0; i < 16; i++) {
        bytes[i] = 16 + below(&act->chance, percent(&act->chance, 70) ? 5000 : 400000);
        blocks[i] = percent(&act->chance, 30) ? calloc(1, bytes[i]) : malloc(bytes[i]);
        memset(blocks[i], i + 1, bytes[i]);
    }
    for (int i = 0; i < 16; i += 3) {
        blocks[i] = realloc(blocks[i], 2 * bytes[i]);
        memset(blocks[i], i + 1, bytes[i]);
    }
    if (percent(&act->chance, 30))
        malloc_trim(0);
    for (int i = 0; i < 16; i++)
        for (size_t at = 0; at < bytes[i]; at += 64)
            if (blocks[i][at] != i + 1)
                fail(act, "a block of the heap has changed");
    for (int i = 0; i < 16; i++)
        free(blocks[i]);
    if (percent(&act->chance, 30))
        malloc_trim(0);
    expect(act, "beside a heap at work");
}

// --- what is left of many windows ---------------------------------------------------------------

enum { WINDOWS = 48, LEFT_MAX = 24 };

// Windows over every other page of a block, one after the other: the process has as many mappings
// afterwards as before them, but for a few of the MPI's own.
static void make_many(struct act *act)
{
    unsigned char *block = aligned_alloc(PAGE, 2 * WINDOWS * PAGE);
    const int peer = (my_rank + 1) % all_ranks;
    memset(block, 0x11, 2 * WINDOWS * PAGE);
    const int before = mappings();
    for (int i = 0; i < WINDOWS; i++) {
        const unsigned char byte = (unsigned char)(i + 1);
        unsigned char *at = block + 2 * (size_t)i * PAGE;
        MPI_Win win;
        MPI_Win_create(at, PAGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
        MPI_Put(&byte, 1, MPI_BYTE, peer, 100, 1, MPI_BYTE, win);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        MPI_Win_free(&win);
        if (at[100] != byte || at[101] != 0x11)
            fail(act, "a put did not arrive");
    }
    const int left = mappings() - before;
    if (left > LEFT_MAX)
        fail(act, "%d windows leave %d mappings", WINDOWS, left);
    free(block);
}

enum { MAPPED = PAGES | ANONYMOUS };

const struct actor actors_maps[] = {
    {"madvise-dontneed", MAPS, MAPPED, PAGE, NULL, NULL, discard_once, NULL},
    {"madvise-free", MAPS, MAPPED, PAGE, NULL, NULL, free_once, NULL},
    {"madvise-remove", MAPS, MAPPED, PAGE, NULL, NULL, remove_once, NULL},
    {"madvise", MAPS, PAGES, PAGE, NULL, NULL, advise_once, NULL},
    {"guard", MAPS | RIGHTS, MAPPED | STATE_ENDS, PAGE, has_guards, begin_guard, check_guard,
     end_guard},
    {"mmap-fixed", MAPS, MAPPED | ON_MAIN | NOT_ALIVE, PAGE, NULL, remap, check_remapped, NULL},
    {"mremap", MAPS, MAPPED | STATE_ENDS | ON_MAIN | NOT_ALIVE, PAGE, NULL, move_away, NULL, come_back},
    {"realloc", MAPS, WHOLE | STATE_ENDS | ON_MAIN, 64, NULL, reallocate, NULL, end_reallocated},
    {"many-windows", MAPS, JOINT | AT_END | ON_MAIN, 64, NULL, make_many, NULL, NULL},
    {"heap", MAPS, 0, 64, NULL, NULL, churn_once, NULL},
    {NULL, 0, 0, 0, NULL, NULL, NULL, NULL},
};
