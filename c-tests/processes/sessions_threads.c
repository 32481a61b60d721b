// MPI_Init_thread gave MPI_THREAD_SINGLE, a session gives MPI_THREAD_MULTIPLE: several threads use
// the windows of the session. MPI-4.1 sections 11.3.1 and 11.6.
// ranks: 2 4
// standard: 4

#include "locking_threads.h"

#if MPI_VERSION >= 4

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
    MPI_Win win;
    int64_t *base;
    check_within(60);
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
        threads_add(comm, win, base);
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
