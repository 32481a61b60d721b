// The kinds of memory under a window.
#include "chaos.h"
#include <alloca.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum kind {
    SMALL_MALLOC, LARGE_MALLOC, CALLOC, MEMALIGN, ARENA, MAPPED, MIDDLE, TWO_AREAS, NO_RESERVE,
    HUGE, NO_HUGE, LOCKED, STATIC_ZERO, STATIC_DATA, MAIN_STACK, USER_STACK, USER_STACK_MAPPED,
    USER_STACK_OTHER, THREAD_STACK, SHARED_ANONYMOUS, SHARED_FILE, PRIVATE_FILE, SEALED, MPI_MEMORY,
    KINDS
};

enum { NEW_PAGES = IS_ANONYMOUS | IS_NEW };
enum { MIB = 1 << 20, STACK_BYTES = 256 << 10, STATIC_BYTES = MIB };

const struct memory memories[] = {
    [SMALL_MALLOC] = {"malloc-small", IS_ANONYMOUS | IS_MALLOC, 100000},
    [LARGE_MALLOC] = {"malloc", IS_ANONYMOUS | IS_MALLOC, 16 * MIB},
    [CALLOC] = {"calloc", NEW_PAGES | IS_MALLOC, 16 * MIB},
    [MEMALIGN] = {"posix_memalign", IS_ANONYMOUS | IS_MALLOC, 16 * MIB},
    [ARENA] = {"arena", IS_ANONYMOUS | IS_MALLOC, 100000},
    [MAPPED] = {"mmap", NEW_PAGES, 16 * MIB},
    [MIDDLE] = {"mmap-middle", NEW_PAGES, 16 * MIB},
    [TWO_AREAS] = {"mmap-two-areas", NEW_PAGES, 16 * MIB},
    [NO_RESERVE] = {"mmap-noreserve", NEW_PAGES, 16 * MIB},
    [HUGE] = {"mmap-hugepage", NEW_PAGES, 16 * MIB},
    [NO_HUGE] = {"mmap-nohugepage", NEW_PAGES, 16 * MIB},
    [LOCKED] = {"mmap-locked", IS_ANONYMOUS, MIB},
    [STATIC_ZERO] = {"bss", IS_ANONYMOUS, STATIC_BYTES},
    [STATIC_DATA] = {"data", 0, STATIC_BYTES},
    [MAIN_STACK] = {"stack", IS_STACK, STACK_BYTES},
    [USER_STACK] = {"user-level-stack", IS_STACK | IS_ANONYMOUS | IS_REUSED, STACK_BYTES},
    [USER_STACK_MAPPED] = {"user-level-stack-mmap", IS_STACK | IS_ANONYMOUS, STACK_BYTES},
    [USER_STACK_OTHER] = {"user-level-stack-of-another", IS_STACK | IS_ANONYMOUS, STACK_BYTES},
    [THREAD_STACK] = {"thread-stack", IS_STACK | ON_THREAD, STACK_BYTES},
    [SHARED_ANONYMOUS] = {"mmap-shared", IS_SHARED, 16 * MIB},
    [SHARED_FILE] = {"memfd", IS_SHARED, 16 * MIB},
    [PRIVATE_FILE] = {"file-private", 0, 16 * MIB},
    [SEALED] = {"memfd-sealed", IS_SHARED, 16 * MIB},
    [MPI_MEMORY] = {"MPI_Alloc_mem", IS_SHARED, 16 * MIB},
};

int memory_count(void)
{
    return KINDS;
}

static unsigned char static_zero[STATIC_BYTES], static_data[STATIC_BYTES] = {1};
static int fd_of_memory = -1;

static void run_on(struct round *round, void *base, void (*life)(struct round *))
{
    if (base == NULL || base == MAP_FAILED)
        fail(NULL, "no memory of %zu bytes", round->my->bytes);
    round->base = base;
    life(round);
}

static void *mapped(size_t bytes, int flags, int fd)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
}

// A page on each side that cannot be accessed, or that belongs to the same area.
static void on_mapping(struct round *round, void (*life)(struct round *))
{
    const enum kind kind = (enum kind)round->my->kind;
    size_t bytes = (round->my->bytes + PAGE - 1) / PAGE * PAGE;
    int flags = kind == NO_RESERVE ? MAP_NORESERVE : 0;
    size_t huge = kind == HUGE ? 2 * MIB : 0;
    flags |= MAP_PRIVATE | MAP_ANONYMOUS;
    unsigned char *all = mapped(bytes + 2 * PAGE + 2 * huge, flags, -1);
    if (all == MAP_FAILED)
        fail(NULL, "mmap");
    unsigned char *base = all + PAGE;
    if (kind == HUGE) {
        base = (unsigned char *)(((uintptr_t)all + huge) / huge * huge);
        madvise(base, bytes, MADV_HUGEPAGE);
    } else if (kind == NO_HUGE) {
        madvise(base, bytes, MADV_NOHUGEPAGE);
    } else if (kind == LOCKED) {
        if (mlock(base, bytes) != 0)
            munlock(base, bytes);
    } else if (kind == TWO_AREAS) {
        madvise(base + bytes / 2 / PAGE * PAGE, PAGE, MADV_SEQUENTIAL);
    }
    if (kind == MIDDLE) {
        memset(all, 0x5a, PAGE);
        memset(base + bytes, 0x5a, PAGE);
    } else {
        mprotect(all, PAGE, PROT_NONE);
        mprotect(base + bytes, PAGE, PROT_NONE);
    }
    run_on(round, base, life);
    for (int i = 0; kind == MIDDLE && i < PAGE; i++)
        if (all[i] != 0x5a || base[bytes + (size_t)i] != 0x5a)
            fail(NULL, "a page beside the window has changed");
    munmap(all, bytes + 2 * PAGE + 2 * huge);
}

static void on_file(struct round *round, void (*life)(struct round *))
{
    size_t bytes = (round->my->bytes + PAGE - 1) / PAGE * PAGE;
    bool is_private = round->my->kind == PRIVATE_FILE;
    int fd = (int)syscall(SYS_memfd_create, "chaos", 2u /* MFD_ALLOW_SEALING */);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        fail(NULL, "memfd_create");
    void *base = mapped(bytes, is_private ? MAP_PRIVATE : MAP_SHARED, fd);
    if (round->my->kind == SEALED && fcntl(fd, F_ADD_SEALS, 0x2 | 0x4 /* no resizing */) != 0)
        fail(NULL, "seals");
    fd_of_memory = is_private ? -1 : fd;
    run_on(round, base, life);
    if (round->my->kind == SEALED && fcntl(fd, F_GET_SEALS) != (0x2 | 0x4))
        fail(NULL, "the seals of the file have changed");
    fd_of_memory = -1;
    munmap(base, bytes);
    close(fd);
}

// What is in shared memory is in its file.
void check_fd_of_memory(struct round *round)
{
    if (fd_of_memory < 0)
        return;
    unsigned char *have = malloc(round->my->bytes);
    if (pread(fd_of_memory, have, round->my->bytes, 0) != (ssize_t)round->my->bytes)
        fail(NULL, "pread of the memory's file");
    bool all_quiet = true;
    for (int i = 0; i < round->my->acts; i++)
        all_quiet = all_quiet && (round->my->act[i].is_quiet || round->my->act[i].is_inert);
    struct act shown = {.actor = &(struct actor){.name = "file of the memory"}};
    if (all_quiet)
        expect_bytes(&shown, have, round->want, round->my->bytes, "pread");
    free(have);
}

// --- stacks -------------------------------------------------------------------------------------

static struct round *round_of_stack;
static void (*life_of_stack)(struct round *);

__attribute__((noinline)) static void live_on_stack(void)
{
    struct round *round = round_of_stack;
    unsigned char *array = alloca(round->my->bytes + 64);
    array += (64 - (uintptr_t)array % 64) % 64;
    run_on(round, array, life_of_stack);
}

static void *live_on_thread(void *unused)
{
    (void)unused;
    live_on_stack();
    return NULL;
}

static ucontext_t back, user_level;

static void on_other_stack(struct round *round, bool is_mapped)
{
    size_t bytes = (size_t)STACK_BYTES * 4;
    unsigned char *stack = is_mapped ? mapped(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1)
                                     : malloc(bytes);
    if (stack == NULL || stack == MAP_FAILED)
        fail(NULL, "no stack");
    if (round->my->kind == USER_STACK_OTHER) {
        // The memory lies on the stack of a user-level thread that does not run.
        run_on(round, stack + bytes - STACK_BYTES - 1008, life_of_stack);
    } else {
        getcontext(&user_level);
        user_level.uc_stack.ss_sp = stack;
        user_level.uc_stack.ss_size = bytes;
        user_level.uc_link = &back;
        makecontext(&user_level, live_on_stack, 0);
        swapcontext(&back, &user_level);
    }
    if (is_mapped)
        munmap(stack, bytes);
    else
        free(stack);
}

static void on_stack(struct round *round, void (*life)(struct round *))
{
    round_of_stack = round;
    life_of_stack = life;
    if (round->my->kind == MAIN_STACK) {
        live_on_stack();
    } else if (round->my->kind == THREAD_STACK) {
        pthread_attr_t attributes;
        pthread_t thread;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, (size_t)STACK_BYTES * 8);
        if (pthread_create(&thread, &attributes, live_on_thread, NULL) != 0)
            fail(NULL, "pthread_create");
        pthread_join(thread, NULL);
        pthread_attr_destroy(&attributes);
    } else {
        on_other_stack(round, round->my->kind == USER_STACK_MAPPED);
    }
}

// --- all ----------------------------------------------------------------------------------------

static void *of_another_arena(void *bytes)
{
    return malloc(*(size_t *)bytes);
}

static void *allocated(struct round *round)
{
    size_t bytes = round->my->bytes;
    void *base = NULL;
    pthread_t thread;
    switch (round->my->kind) {
    case CALLOC:
        return calloc(bytes, 1);
    case MEMALIGN:
        return posix_memalign(&base, PAGE, bytes) == 0 ? base : NULL;
    case ARENA:
        if (pthread_create(&thread, NULL, of_another_arena, &bytes) != 0)
            return NULL;
        pthread_join(thread, &base);
        return base;
    default:
        return malloc(bytes);
    }
}

void with_memory(struct round *round, void (*life)(struct round *))
{
    void *base;
    switch (round->my->kind) {
    case STATIC_ZERO:
        run_on(round, static_zero, life);
        return;
    case STATIC_DATA:
        run_on(round, static_data, life);
        return;
    case MAIN_STACK:
    case USER_STACK:
    case USER_STACK_MAPPED:
    case USER_STACK_OTHER:
    case THREAD_STACK:
        on_stack(round, life);
        return;
    case SHARED_ANONYMOUS:
        base = mapped(round->my->bytes, MAP_SHARED | MAP_ANONYMOUS, -1);
        run_on(round, base, life);
        munmap(base, round->my->bytes);
        return;
    case SHARED_FILE:
    case SEALED:
    case PRIVATE_FILE:
        on_file(round, life);
        return;
    case MPI_MEMORY:
        MPI_Alloc_mem((MPI_Aint)round->my->bytes, MPI_INFO_NULL, &base);
        run_on(round, base, life);
        MPI_Free_mem(base);
        return;
    default:
        break;
    }
    if (memories[round->my->kind].traits & IS_MALLOC) {
        run_on(round, allocated(round), life);
        free(round->base); // an act may have replaced it
    } else {
        on_mapping(round, life);
    }
}
