// MPI_Init_thread gave MPI_THREAD_SINGLE, a session gives MPI_THREAD_MULTIPLE: several threads use
// the windows of the session. MPI-4.1 sections 11.3.1 and 11.6.
// ranks: 2 4
// standard: 4

#include "nodes.h"
#include "threads.h"

#if MPI_VERSION >= 4

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

// Whether the session gave what was asked for.
static int is_multiple(MPI_Session session)
{
    char level[64] = "";
    int found;
    MPI_Info info;
    OK(MPI_Session_get_info(session, &info));
    OK(MPI_Info_get(info, "thread_level", sizeof level - 1, level, &found));
    OK(MPI_Info_free(&info));
    return found && strcmp(level, "MPI_THREAD_MULTIPLE") == 0;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Info info;
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int64_t *base;
    check_within(60);
    if (ranks_per_node() > 0)
        rounds = 2000; // a lock and an unlock are round trips then
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE"));
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    OK(MPI_Info_free(&info));
    if (is_multiple(session)) {
        OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
        OK(MPI_Comm_create_from_group(group, "libfompi.threads", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                      &comm));
        OK(MPI_Group_free(&group));
        OK(MPI_Comm_rank(comm, &rank));
        OK(MPI_Comm_size(comm, &size));
        OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, &base, &win));
        OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
        *base = 0;
        OK(MPI_Barrier(comm));
        run_numbered_threads(size, work);
        OK(failed);
        OK(MPI_Barrier(comm));
        CHECK_EQ(*base, size * rounds);
        OK(MPI_Win_free(&win));
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Session_finalize(&session));
    return check_end();
}

#else

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    return check_end();
}

#endif
