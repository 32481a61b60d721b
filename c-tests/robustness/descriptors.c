// Processes that have no file descriptor left when they make a window. All ranks agree on what
// becomes of it, and windows made when there are descriptors again are as ever.
// usage: descriptors [RANK|-1]; RANK alone has none left, -1: none has
//   before the first window, and again when the slots of the first windows are used up

#define _GNU_SOURCE
#include "robust.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

enum { FILES_MAX = 256, SLOTS = 18 };

static int files[FILES_MAX], count, only_rank = -1;

// Takes all descriptors that are left; gives them back.
static void take_all(void)
{
    if (only_rank >= 0 && rank != only_rank)
        return;
    while (count < FILES_MAX && (files[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        count++;
    CHECK(count < FILES_MAX && errno == EMFILE);
}

static void give_back(void)
{
    while (count > 0)
        close(files[--count]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// Puts to the next rank's memory at `at`, and has got what the one before has put.
static void use(MPI_Win win, MPI_Aint at, volatile int64_t *memory)
{
    int64_t value = 1000 + rank;
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Put(&value, 1, MPI_INT64_T, (rank + 1) % size, at, 1, MPI_INT64_T, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CHECK(*memory == 1000 + (rank + size - 1) % size);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void created(MPI_Win *win)
{
    int64_t *memory = calloc(1, sizeof *memory);
    OK(MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, win));
    use(*win, 0, memory);
}

static void allocated(MPI_Win *win)
{
    int64_t *memory;
    OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, win));
    use(*win, 0, memory);
}

// There is no room for the memory of such a window, and no rank waits forever.
static void refused(void)
{
    MPI_Win win;
    void *memory;
    EXPECT(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win), MPI_ERR_OTHER);
    EXPECT(MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win),
           MPI_ERR_OTHER);
}

int main(int argc, char **argv)
{
    MPI_Win some[SLOTS], win;
    struct rlimit limit;
    only_rank = argc > 1 ? atoi(argv[1]) : -1;
    start(60, &argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_cur < 128 ? limit.rlim_cur : 128;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD)); // all that it takes is there
    take_all();
    refused();
    created(&win); // needs none, and so works with the host MPI
    OK(MPI_Win_free(&win));
    give_back();
    allocated(&win);
    OK(MPI_Win_free(&win));
    take_all();
    for (int i = 0; i < SLOTS; i++)
        created(&some[i]); // as long as there are slots they are ours
    give_back();
    for (int i = 0; i < SLOTS; i++)
        OK(MPI_Win_free(&some[i]));
    for (int i = 0; i < SLOTS; i++)
        created(&some[i]);
    for (int i = 0; i < SLOTS; i++)
        OK(MPI_Win_free(&some[i]));
    return MPI_Finalize();
}
