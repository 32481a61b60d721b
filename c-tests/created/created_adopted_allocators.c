// Memory of several allocators is adopted and given back to them: glibc's, jemalloc, tcmalloc and
// mimalloc, where they are installed, each on a rank of its own. What they give out afterwards has
// the bytes that it must have, and so have the objects next to the windows. MPI-4.1 section 12.2.1.
// ranks: 4
// settings: FOMPI_ADOPT=always

#define _GNU_SOURCE
#include "adopted.h"
#include <malloc.h>

enum { TURNS = 160, OBJECTS = 40 };

static const size_t sizes[] = {24, 700, 5000, 40000, 300000, 1500000};

static const char *folder_of(const char *library)
{
    static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                          "/usr/lib64", "/usr/lib"};
    char path[200];
    for (int n = 0; n < 4; n++) {
        snprintf(path, sizeof path, "%s/%s", folders[n], library);
        if (access(path, R_OK) == 0)
            return folders[n];
    }
    return NULL;
}

// Begins this program again with the allocator of this rank, behind the library.
static void with_allocator(char **argv)
{
    static const char *const allocators[] = {NULL, "libjemalloc.so.2", "libtcmalloc_minimal.so.4",
                                             "libmimalloc.so.2.0"};
    const char *preloaded = getenv("LD_PRELOAD"), *number = getenv("PMI_RANK");
    char all[2000];
    if (number == NULL)
        number = getenv("OMPI_COMM_WORLD_RANK");
    const char *mine = number == NULL ? NULL : allocators[atoi(number) % 4];
    if (mine == NULL || getenv("CHECK_ALLOCATOR") != NULL)
        return;
    const char *folder = folder_of(mine);
    if (folder == NULL)
        return; // it is not installed
    snprintf(all, sizeof all, "%s%s%s/%s", preloaded == NULL ? "" : preloaded,
             preloaded == NULL ? "" : ":", folder, mine);
    setenv("LD_PRELOAD", all, 1);
    setenv("CHECK_ALLOCATOR", mine, 1);
    execv("/proc/self/exe", argv);
}

static void check_bytes(const char *bytes, size_t count, int value)
{
    for (size_t at = 0; at < count; at++)
        if (bytes[at] != value)
            check_failed(__FILE__, __LINE__, "byte %zu of %zu at %p is %d, not %d", at, count,
                         (const void *)bytes, bytes[at], value);
}

// A window over a new object, between others, into which the rank before puts.
static char *object_of_a_window(size_t bytes, int turn)
{
    static char from[1500000];
    char *objects[OBJECTS], *object = NULL;
    for (int n = 0; n < OBJECTS; n++) {
        if (n == OBJECTS / 2)
            object = memset(malloc(bytes), 7, bytes);
        objects[n] = memset(malloc(60), n, 60);
    }
    MPI_Win win = window_over(object, (MPI_Aint)bytes, 1);
    memset(from, 1 + turn % 100, bytes);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(from, (int)bytes, MPI_BYTE, next_rank(), 0, (int)bytes, MPI_BYTE, win));
    for (int n = 0; n < OBJECTS; n++)
        check_bytes(objects[n], 60, n);
    for (int n = 0; n < OBJECTS; n += 2)
        free(objects[n]);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
    for (int n = 1; n < OBJECTS; n += 2) {
        check_bytes(objects[n], 60, n);
        free(objects[n]);
    }
    return object;
}

int main(int argc, char **argv)
{
    const int turns = library_is_here() ? TURNS : 12;
    with_allocator(argv);
    check_start(&argc, &argv);
    for (int turn = 0; turn < turns; turn++) {
        const size_t bytes = sizes[turn % 6];
        char *object = object_of_a_window(bytes, turn);
        CHECK(!is_shared(object));
        check_bytes(object, bytes, 1 + turn % 100);
        object = realloc(object, bytes + 3000);
        check_bytes(object, bytes, 1 + turn % 100);
        free(object);
        if (turn % 7 == 0 && getenv("CHECK_ALLOCATOR") == NULL)
            malloc_trim(0);
        for (int n = 0; n < 3; n++) {
            char *zeroed = calloc(1, bytes + 1000 * (size_t)n);
            check_bytes(zeroed, bytes + 1000 * (size_t)n, 0);
            memset(zeroed, 5, bytes);
            free(zeroed);
        }
    }
    return check_end();
}
