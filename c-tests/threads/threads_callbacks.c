// An error handler that the host MPI calls uses a window, and so does another thread at the same
// time, whose error gets a new code: whatever an MPI holds when it calls back, nobody waits
// forever. MPI-4.1 sections 9.3, 9.5 and 11.6.
// ranks: 2

#include "threads.h"

#include <sys/mman.h>

enum { ROUNDS = 20, PAGE = 4096 };

static MPI_Win bad;
static int turn; // rounds that the handler has begun, and twice as many when it waits no more
static int in_handler, finished;

// An error whose code has a text of its own for each page.
static void wrong(int page)
{
    long got;
    int code = MPI_Get(&got, 1, MPI_LONG, next_rank(), page * PAGE, 1, MPI_LONG, bad);
    if (code == MPI_SUCCESS)
        code = MPI_Win_flush(next_rank(), bad);
    CHECK(code != MPI_SUCCESS);
}

// Called with whatever the MPI holds in a send that fails: MPICH's global lock. The error has a code
// already, so that no call of the MPI is needed.
static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    const int round = in_handler++;
    __atomic_add_fetch(&turn, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) < 2 * (round + 1))
        ;
    wrong(0);
}

static void *other(void *unused)
{
    for (int round = 0; round < ROUNDS; round++) {
        while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) < 2 * round + 1)
            ;
        __atomic_add_fetch(&turn, 1, __ATOMIC_ACQ_REL);
        wrong(1 + round);
        __atomic_add_fetch(&finished, 1, __ATOMIC_RELEASE);
    }
    return unused;
}

int main(int argc, char **argv)
{
    const MPI_Aint bytes = (1 + ROUNDS) * PAGE;
    MPI_Errhandler errhandler;
    MPI_Comm comm;
    pthread_t thread;
    if (!check_start_threads(&argc, &argv))
        return check_end();
    void *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    OK(MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &bad));
    OK(MPI_Win_set_errhandler(bad, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock_all(0, bad));
    wrong(0);
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_create_errhandler(handler, &errhandler));
    OK(MPI_Comm_set_errhandler(comm, errhandler));
    CHECK_EQ(pthread_create(&thread, NULL, other, NULL), 0);
    for (int round = 0; round < ROUNDS; round++) {
        while (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) < round)
            ;
        MPI_Send(NULL, 0, MPI_INT, 7, 0, comm);
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(in_handler, ROUNDS);
    OK(MPI_Win_unlock_all(bad));
    OK(MPI_Win_free(&bad));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Errhandler_free(&errhandler));
    CHECK_EQ(munmap(memory, bytes), 0);
    return check_end();
}
