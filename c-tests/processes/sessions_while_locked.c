// A thread begins a session with MPI_THREAD_MULTIPLE, as a library may do, while the main thread is
// in epochs of windows that were made at MPI_THREAD_FUNNELED: both go on, each with its windows.
// MPI-4.1 sections 11.3.1, 11.6 and 12.5.3.
// ranks: 2 4
// standard: 4

#include "threads.h"

#if MPI_VERSION >= 4

enum { ROUNDS = 500 };

static int done;

static void *library(void *unused)
{
    MPI_Info info;
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Win win;
    int64_t *base;
    const int64_t one = 1;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE"));
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    OK(MPI_Info_free(&info));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "libfompi.library", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                  &comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, &base, &win));
    *base = 0;
    OK(MPI_Barrier(comm));
    for (int round = 0; round < ROUNDS; round++) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, round % size, 0, win));
        OK(MPI_Accumulate(&one, 1, MPI_INT64_T, round % size, 0, 1, MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Win_unlock(round % size, win));
    }
    OK(MPI_Barrier(comm));
    CHECK_EQ(*base, size * ROUNDS / size);
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&session));
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    MPI_Win win, locked;
    int provided;
    int64_t count = 0, before = -1, got;
    const int64_t one = 1;
    check_within(60);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int64_t *base = window_of(64, 8, &win), *other = window_of(64, 8, &locked);
    OK(MPI_Win_lock_all(0, win));
    for (int target = 0; rank == 0 && target < 2; target++)
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, locked));
    CHECK_EQ(pthread_create(&thread, NULL, library, NULL), 0);
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
        OK(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, next_rank(), 0, MPI_SUM, win));
        OK(MPI_Win_flush(next_rank(), win));
        CHECK_EQ(before, count++);
        OK(MPI_Put(&count, 1, MPI_INT64_T, next_rank(), 1, 1, MPI_INT64_T, win));
        OK(MPI_Win_flush(next_rank(), win));
        OK(MPI_Get(&got, 1, MPI_INT64_T, next_rank(), 1, 1, MPI_INT64_T, win));
        OK(MPI_Win_flush(next_rank(), win));
        CHECK_EQ(got, count);
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    for (int target = 0; rank == 0 && target < 2; target++) {
        OK(MPI_Put(&one, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, locked));
        OK(MPI_Win_unlock(target, locked));
    }
    OK(MPI_Win_unlock_all(win));
    // All locks are free again, and they exclude each other as before.
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(base[1] > 0 && base[0] == base[1]);
    OK(MPI_Win_lock_all(0, locked));
    OK(MPI_Win_unlock_all(locked));
    for (int round = 0; round < 20; round++) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, locked));
        OK(MPI_Get(&got, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, locked));
        OK(MPI_Win_flush(0, locked));
        got++;
        OK(MPI_Put(&got, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, locked));
        OK(MPI_Win_unlock(0, locked));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, locked));
    CHECK_EQ(other[0], rank < 2);
    CHECK_EQ(other[1], rank == 0 ? 20 * size : 0);
    OK(MPI_Win_unlock(rank, locked));
    OK(MPI_Win_free(&win));
    OK(MPI_Win_free(&locked));
    return check_end();
}

#else

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    return check_end();
}

#endif
