// What the program says of its pages: rights, flags, names, locks. It holds until the program says
// something else.
#include "chaos.h"
#include <dlfcn.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

// --- rights -------------------------------------------------------------------------------------

static sigjmp_buf jump;

static void jump_back(int number)
{
    (void)number;
    siglongjmp(jump, 1);
}

// The key of a zone without stores. A handler runs with the rights of a new thread, which a jump out
// of it keeps.
static int live_key = -1;

// Whether a load (or a store of the byte that is there) is permitted.
static bool may_access(volatile unsigned char *at, bool stores)
{
    struct sigaction action = {.sa_handler = jump_back}, before[2];
    sigaction(SIGSEGV, &action, &before[0]);
    sigaction(SIGBUS, &action, &before[1]);
    bool may = false;
    if (sigsetjmp(jump, 1) == 0) {
        unsigned char byte = *at;
        if (stores)
            *at = byte;
        may = true;
    } else if (live_key >= 0) {
        pkey_set(live_key, PKEY_DISABLE_WRITE);
    }
    sigaction(SIGSEGV, &before[0], NULL);
    sigaction(SIGBUS, &before[1], NULL);
    return may;
}

struct rights {
    bool may_read;
};

static void check_rights(struct act *act)
{
    const struct rights *rights = act->state;
    for (size_t at = 0; at < act->bytes; at += act->bytes > PAGE ? act->bytes - PAGE : PAGE) {
        bool reads = may_access(act->zone + at, false);
        if (reads != rights->may_read)
            fail(act, "a page %s be read", reads ? "can" : "cannot");
        if (may_access(act->zone + at, true))
            fail(act, "a page that is protected from stores can be stored to");
    }
}

// Whether an allocator that sets the rights of pages at times has the zone: mimalloc commits memory
// in larger areas than it needs.
static bool allocator_sets_rights(const struct act *act)
{
    bool (*is_mimalloc)(const void *);
    is_mimalloc = (bool (*)(const void *))dlsym(RTLD_DEFAULT, "mi_is_in_heap_region");
    return is_mimalloc != NULL && is_mimalloc(act->zone);
}

static void begin_protection(struct act *act)
{
    struct rights *rights = state_of(act, sizeof *rights);
    if (allocator_sets_rights(act)) {
        give_up(act);
        return;
    }
    refill(act);
    rights->may_read = percent(&act->chance, 50);
    if (mprotect(act->zone, act->bytes, rights->may_read ? PROT_READ : PROT_NONE) != 0)
        fail(act, "mprotect");
    atomic_store(&act->is_quiet, rights->may_read);
}

static void end_protection(struct act *act)
{
    check_rights(act);
    if (mprotect(act->zone, act->bytes, PROT_READ | PROT_WRITE) != 0)
        fail(act, "mprotect");
    expect(act, "under mprotect");
    atomic_store(&act->is_quiet, true);
}

// Rights that come and go, as a write barrier of a collector has them.
static void begin_protections(struct act *act)
{
    if (allocator_sets_rights(act))
        give_up(act);
    else
        refill(act);
}

static void protect_once(struct act *act)
{
    if (mprotect(act->zone, act->bytes, PROT_READ) != 0)
        fail(act, "mprotect");
    expect(act, "under mprotect");
    if (!act->on_thread && may_access(act->zone, true))
        fail(act, "a page that is protected from stores can be stored to");
    if (mprotect(act->zone, act->bytes, PROT_READ | PROT_WRITE) != 0)
        fail(act, "mprotect");
    refill(act);
}

// --- flags --------------------------------------------------------------------------------------

static const struct {
    int advice, undone;
    const char *flag;
} advices[] = {
    {MADV_DONTDUMP, MADV_DODUMP, "dd"},      {MADV_DONTFORK, MADV_DOFORK, "dc"},
    {MADV_WIPEONFORK, MADV_KEEPONFORK, "wf"}, {MADV_NOHUGEPAGE, -1, "nh"},
    {MADV_HUGEPAGE, -1, "hg"},               {MADV_MERGEABLE, MADV_UNMERGEABLE, "mg"},
    {MADV_SEQUENTIAL, MADV_NORMAL, "sr"},    {MADV_RANDOM, MADV_NORMAL, "rr"},
};

struct advice {
    uint64_t number;
};

static void check_flag(struct act *act)
{
    const struct advice *advice = act->state;
    const char *flag = advices[advice->number].flag;
    if (has_flag(act->zone, act->bytes, flag) == 0)
        fail(act, "the flag %s of the pages is gone", flag);
}

static void undo_flag(struct act *act)
{
    const struct advice *advice = act->state;
    if (advices[advice->number].undone >= 0)
        madvise(act->zone, act->bytes, advices[advice->number].undone);
}

static void begin_flag(struct act *act)
{
    struct advice *advice = state_of(act, sizeof *advice);
    advice->number = below(&act->chance, sizeof advices / sizeof *advices);
    // A flag that cannot be taken back is for memory that goes away with the round.
    const unsigned traits = memories[act->round->my->kind].traits;
    if (advices[advice->number].undone < 0 && !(traits & IS_NEW && !(traits & IS_MALLOC)))
        advice->number = 0;
    if (madvise(act->zone, act->bytes, advices[advice->number].advice) != 0 ||
        has_flag(act->zone, act->bytes, advices[advice->number].flag) != 1) {
        undo_flag(act); // a part of the pages may have it
        give_up(act);
    }
}

static void end_flag(struct act *act)
{
    check_flag(act);
    undo_flag(act);
    expect(act, "under flags");
}

static void begin_lock(struct act *act)
{
    if (mlock(act->zone, act->bytes) != 0)
        give_up(act); // RLIMIT_MEMLOCK
}

static void check_lock(struct act *act)
{
    if (has_flag(act->zone, act->bytes, "lo") == 0)
        fail(act, "the pages are no longer locked");
}

static void end_lock(struct act *act)
{
    check_lock(act);
    munlock(act->zone, act->bytes);
}

// --- names --------------------------------------------------------------------------------------

static int set_name(void *at, size_t bytes, const char *name)
{
    return prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, bytes, name);
}

static bool has_names(void)
{
    void *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int code = set_name(page, PAGE, "chaos");
    munmap(page, PAGE);
    return code == 0;
}

static void begin_name(struct act *act)
{
    if (set_name(act->zone, act->bytes, "chaos") != 0)
        give_up(act);
}

static void check_name(struct act *act)
{
    if (has_name(act->zone, act->bytes, "chaos") == 0)
        fail(act, "the name of the pages is gone");
}

static void end_name(struct act *act)
{
    check_name(act);
    set_name(act->zone, act->bytes, NULL);
}

// --- keys ---------------------------------------------------------------------------------------

static bool has_keys(void)
{
    int key = pkey_alloc(0, 0);
    if (key >= 0)
        pkey_free(key);
    return key >= 0;
}

static void begin_key(struct act *act)
{
    live_key = pkey_alloc(0, PKEY_DISABLE_WRITE);
    if (live_key < 0)
        give_up(act);
    else if (pkey_mprotect(act->zone, act->bytes, PROT_READ | PROT_WRITE, live_key) != 0)
        fail(act, "pkey_mprotect");
}

static void check_key(struct act *act)
{
    if (may_access(act->zone, true))
        fail(act, "pages of a key without stores can be stored to");
}

static void end_key(struct act *act)
{
    check_key(act);
    pkey_mprotect(act->zone, act->bytes, PROT_READ | PROT_WRITE, 0);
    pkey_free(live_key);
    live_key = -1;
}

enum { SAID = PAGES | ANONYMOUS | STATE_ENDS | ON_MAIN };

const struct actor actors_rights[] = {
    {"mprotect", RIGHTS, SAID, PAGE, NULL, begin_protection, check_rights, end_protection},
    {"mprotect-often", RIGHTS, PAGES, PAGE, NULL, begin_protections, protect_once, NULL},
    {"madvise-flag", RIGHTS, SAID | NO_FORK, PAGE, NULL, begin_flag, check_flag, end_flag},
    {"mlock", RIGHTS | PINS, SAID, PAGE, NULL, begin_lock, check_lock, end_lock},
    {"name", RIGHTS, SAID, PAGE, has_names, begin_name, check_name, end_name},
    {"pkey", RIGHTS, SAID | SINGLE, PAGE, has_keys, begin_key, check_key, end_key},
    {NULL, 0, 0, 0, NULL, NULL, NULL, NULL},
};
