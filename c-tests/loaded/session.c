// A library that has sessions, for programs that load it and have none themselves.

#include <mpi.h>
#include <string.h>

#if MPI_VERSION >= 4

static MPI_Session session;

// Begins a session; returns whether it gives MPI_THREAD_MULTIPLE.
int begin_session(void)
{
    char level[64] = "";
    int found = 0;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
    if (MPI_Session_init(info, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS)
        return 0;
    MPI_Info_free(&info);
    MPI_Session_get_info(session, &info);
    MPI_Info_get(info, "thread_level", sizeof level - 1, level, &found);
    MPI_Info_free(&info);
    return found && strcmp(level, "MPI_THREAD_MULTIPLE") == 0;
}

void end_session(void) { MPI_Session_finalize(&session); }

#else

int begin_session(void) { return 0; }
void end_session(void) {}

#endif
