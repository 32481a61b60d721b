// A library that is loaded while windows exist begins a session, which gives MPI_THREAD_MULTIPLE
// where MPI_Init_thread gave less: several threads use the windows that there were and new ones.
// The program itself names no function of sessions. MPI-4.1 sections 11.3.1 and 11.6.
// ranks: 2 4
// loads: session

#include "nodes.h"
#include "threads.h"

#include <dlfcn.h>

static MPI_Win win;
static int failed, rounds = 20000;

// Each thread locks a target of its own, so that no target is locked twice by one process.
static void *work(void *argument)
{
    const int target = *(int *)argument;
    const int64_t one = 1;
    for (int round = 0; round < rounds; round++) {
        const int type = round % 4 == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
        const int codes[] = {
            MPI_Win_lock(type, target, 0, win),
            MPI_Accumulate(&one, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, win),
            MPI_Win_unlock(target, win),
        };
        for (int call = 0; call < 3; call++)
            if (codes[call] != MPI_SUCCESS)
                __atomic_store_n(&failed, codes[call], __ATOMIC_RELAXED);
    }
    return NULL;
}

static void threads_use(MPI_Win window, int64_t *base)
{
    win = window;
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    *base = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    run_numbered_threads(size, work);
    OK(failed);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(*base, size * rounds);
}

int main(int argc, char **argv)
{
    char path[4096];
    int provided;
    MPI_Win old, new;
    check_within(60);
    if (ranks_per_node() > 0)
        rounds = 2000; // a lock and an unlock are round trips then
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int64_t *old_base = window_of(64, 8, &old);
    // The program has used the window from one thread, and holds no lock.
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, old));
    OK(MPI_Win_unlock(next_rank(), old));
    snprintf(path, sizeof path, "%s.session.so", argv[0]);
    void *library = dlopen(path, RTLD_NOW);
    CHECK(library != NULL);
    int (*begin)(void) = (int (*)(void))dlsym(library, "begin_session");
    void (*end)(void) = (void (*)(void))dlsym(library, "end_session");
    CHECK(begin != NULL && end != NULL);
    if (begin()) {
        threads_use(old, old_base);
        int64_t *new_base = window_of(64, 8, &new);
        threads_use(new, new_base);
        OK(MPI_Win_free(&new));
        end();
    }
    OK(MPI_Win_free(&old));
    return check_end();
}
