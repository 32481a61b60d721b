// The first move of pages in the life of a process, one kind in each run: whatever a move needs for
// the first time it must have before it takes its pages away. The window is over a part of malloc's
// arena with free chunks of many sizes in it, so that an allocation of the library during the move
// is a store to pages that move.
//
// arguments: created | thread | forked | child | discarded | shared | empty | huge

#define _GNU_SOURCE
#include "robust.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PAGE = 4096, SMALLEST = 24, STEP = 16, SMALL = 120, SIZES = SMALL + 20 };

static char *base;
static MPI_Aint bytes;
static MPI_Win win;

// Small sizes of all steps, and larger ones up to 80 KiB.
static size_t size_of(int n)
{
    return n < SMALL ? (size_t)(SMALLEST + STEP * n) : (size_t)(n - SMALL + 1) * PAGE + 64;
}

// Allocates two chunks of each size in the arena, and frees the second one.
static void make_arena(int rounds)
{
    char *first = NULL, *end = NULL;
    for (int round = 0; round < rounds; round++) {
        char *kept[SIZES], *freed[SIZES];
        for (int n = 0; n < SIZES; n++) {
            kept[n] = malloc(size_of(n));
            freed[n] = malloc(size_of(n));
            CHECK(kept[n] != NULL && freed[n] != NULL);
            memset(kept[n], 1, size_of(n));
            if (first == NULL)
                first = kept[n];
            if (kept[n] > end)
                end = kept[n];
        }
        for (int n = 0; n < SIZES; n++)
            free(freed[n]);
    }
    CHECK(first < end);
    base = first;
    bytes = end - first;
}

static int is_shared(const char *address)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long first, end;
    char rights[5], line[600];
    int shared = 0;
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%lx-%lx %4s", &first, &end, rights) == 3
            && first <= (unsigned long)address && (unsigned long)address < end)
            shared = rights[3] == 's';
    fclose(maps);
    return shared;
}

// Whether pages that may move must have moved: the system refuses some moves of a user without
// privileges.
static int must_move(void) { return geteuid() == 0; }

// Pages go back by a later call if the kernel had no huge page free to check them with.
static void check_private(void)
{
    for (int tries = 0; tries < 100; tries++) {
        int stays = is_shared(base + bytes / 2);
        OK(MPI_Allreduce(MPI_IN_PLACE, &stays, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
        if (!stays)
            return;
        OK(MPI_Win_create(&stays, sizeof stays, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_free(&win));
    }
    wrong(__LINE__, "its pages stay adopted");
}

// A put to the first byte of the window, which is in a chunk that the program has.
static void put_and_free(int expect)
{
    const char value = (char)(rank + 10);
    const int left = (rank + size - 1) % size;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_BYTE, (rank + 1) % size, 0, 1, MPI_BYTE, win));
    OK(MPI_Win_fence(0, win));
    CHECK(*base == left + 10);
    CHECK(!expect || !must_move() || is_shared(base + bytes / 2));
    OK(MPI_Win_free(&win));
    check_private();
    CHECK(*base == left + 10);
}

static void create(void)
{
    OK(MPI_Win_create(base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
}

static void joined(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (status != 0)
        wrong(__LINE__, "a child ended with status %#x", status);
}

static void *create_in_thread(void *unused)
{
    make_arena(1); // a thread has an arena of its own
    create();
    return unused;
}

static void thread(void)
{
    pthread_t maker;
    CHECK(pthread_create(&maker, NULL, create_in_thread, NULL) == 0);
    CHECK(pthread_join(maker, NULL) == 0);
    put_and_free(0); // another thread exists: nothing moves
}

// The child allocates at once, in pages that are copied while it starts.
static void forked(void)
{
    create();
    const pid_t child = fork();
    if (child == 0) {
        char *more = malloc(5000);
        if (more == NULL || *base != 1)
            _exit(1);
        *base = 99;
        free(more);
        _exit(*base != 99);
    }
    joined(child);
    CHECK(*base == 1);
    put_and_free(1);
}

// A child of a process that has moved nothing yet; then the move.
static void child(void)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    joined(child);
    create();
    put_and_free(1);
}

static char *touched_pages(int pages)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *memory = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memset(memory, 1, (size_t)pages * PAGE);
}

static void discarded(void)
{
    base = touched_pages(20);
    bytes = 20 * PAGE;
    create();
    CHECK(madvise(base + 5 * PAGE, 3 * PAGE, MADV_DONTNEED) == 0);
    CHECK(base[5 * PAGE] == 0 && base[7 * PAGE + 9] == 0);
    CHECK(base[4 * PAGE] == 1 && base[8 * PAGE] == 1);
    put_and_free(1);
}

// Two windows over the same pages; the second one shares them.
static void shared(void)
{
    MPI_Win other;
    create();
    OK(MPI_Win_create(base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other));
    OK(MPI_Win_free(&other));
    put_and_free(1);
}

// Pages that were never touched.
static void empty(void)
{
    base = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(base != MAP_FAILED);
    bytes = 64 * PAGE;
    create();
    put_and_free(1);
}

// A huge page, which is split.
static void huge(void)
{
    const uintptr_t unit = 2 << 20;
    char *area = mmap(NULL, 2 * unit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    base = area + (unit - (uintptr_t)area % unit) % unit;
    CHECK(madvise(base, unit, MADV_HUGEPAGE) == 0);
    memset(base, 1, unit);
    bytes = 40 * PAGE;
    create();
    put_and_free(0); // whether it moves depends on its price
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void); } kinds[] = {
        {"thread", thread}, {"forked", forked}, {"child", child},
        {"discarded", discarded}, {"shared", shared}, {"empty", empty}, {"huge", huge},
    };
    int provided;
    alarm(60);
    CHECK(argc > 1);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    make_arena(1);
    void (*run)(void) = NULL;
    for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++)
        if (strcmp(argv[1], kinds[n].name) == 0)
            run = kinds[n].run;
    if (run != NULL) {
        run();
    } else {
        CHECK(strcmp(argv[1], "created") == 0);
        create();
        put_and_free(1);
    }
    MPI_Finalize();
    return 0;
}
