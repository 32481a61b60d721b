// A library that is loaded while windows exist begins a session, which gives MPI_THREAD_MULTIPLE
// where MPI_Init_thread gave less: several threads use the windows that there were and new ones.
// The program itself names no function of sessions. MPI-4.1 sections 11.3.1 and 11.6.
// ranks: 2 4
// loads: session

#include "locking_threads.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
    char path[4096];
    int provided;
    MPI_Win old, new;
    check_within(60);
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
        threads_add(MPI_COMM_WORLD, old, old_base);
        int64_t *new_base = window_of(64, 8, &new);
        threads_add(MPI_COMM_WORLD, new, new_base);
        OK(MPI_Win_free(&new));
        end();
    }
    OK(MPI_Win_free(&old));
    return check_end();
}
