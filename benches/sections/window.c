/* Windows of the kind that `--window` names. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

Window wide, windows[WINDOWS];
char *local, *fetched;

static int is_kind(const char *kind) { return strcmp(job.window, kind) == 0; }

/* Whole pages, as programs have them that care for the cost of a transfer. */
static char *pages(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return aligned_alloc(page, (bytes + page - 1) / page * page);
}

/* Memory of the program that libfompi never adopts: the program shares it already. */
static char *mapping(size_t bytes) {
    int rights = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_ANONYMOUS;
    char *base = mmap(NULL, bytes, rights, flags, -1, 0);
    if (base == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 2);
    return base;
}

void window_open(Window *window, size_t bytes) {
    MPI_Aint start = 0, length = (MPI_Aint)bytes;
    window->bytes = bytes;
    if (is_kind("create") || is_kind("dynamic")) window->base = pages(bytes);
    if (is_kind("alloc_mem")) MPI_Alloc_mem(length, MPI_INFO_NULL, &window->base);
    if (is_kind("mapped")) window->base = mapping(bytes);
    /* Programs fill their memory before they make a window over it. */
    if (!is_kind("allocate")) memset(window->base, 0, bytes);
    if (is_kind("allocate")) {
        MPI_Win_allocate(length, 1, MPI_INFO_NULL, job.comm, &window->base, &window->win);
    } else if (is_kind("dynamic")) {
        MPI_Win_create_dynamic(MPI_INFO_NULL, job.comm, &window->win);
        MPI_Win_attach(window->win, window->base, length);
        MPI_Get_address(window->base, &start);
    } else {
        MPI_Win_create(window->base, length, 1, MPI_INFO_NULL, job.comm, &window->win);
    }
    window->starts = malloc((size_t)job.ranks * sizeof *window->starts);
    MPI_Allgather(&start, 1, MPI_AINT, window->starts, 1, MPI_AINT, job.comm);
    /* Every page is in memory before the first run. */
    memset(window->base, 0, bytes);
    MPI_Barrier(job.comm);
}

void window_close(Window *window) {
    MPI_Barrier(job.comm);
    if (is_kind("dynamic")) MPI_Win_detach(window->win, window->base);
    MPI_Win_free(&window->win);
    if (is_kind("create") || is_kind("dynamic")) free(window->base);
    if (is_kind("alloc_mem")) MPI_Free_mem(window->base);
    if (is_kind("mapped")) munmap(window->base, window->bytes);
    free(window->starts);
}
