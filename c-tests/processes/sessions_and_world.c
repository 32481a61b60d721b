// Windows of a session together with windows of MPI_COMM_WORLD: begun before MPI_Init and used
// after MPI_Finalize; and a session that begins when MPI_Finalize was called. MPI-4.1 section 11.3.
// ranks: 1 2 4

#include "check.h"

#if MPI_VERSION >= 4

static MPI_Comm begin(MPI_Session *session, const char *tag)
{
    MPI_Group group;
    MPI_Comm comm;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session));
    OK(MPI_Group_from_session_pset(*session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    return comm;
}

static void ring(MPI_Win win, const long *base, long mark)
{
    const long value = mark + rank;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), 0, 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(*base, mark + previous_rank());
}

int main(int argc, char **argv)
{
    MPI_Session first, last;
    MPI_Win early, world, late, unused;
    long *early_base, *world_base, *late_base, *unused_base;
    check_within(60);
    MPI_Comm comm = begin(&first, "libfompi.first");
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, &early_base, &early));
    ring(early, early_base, 100);
    MPI_Init(&argc, &argv);
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &world_base, &world));
    // One that is never freed: MPI_Finalize ends the world, not the session.
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &unused_base, &unused));
    ring(world, world_base, 200);
    ring(early, early_base, 300);
    OK(MPI_Win_free(&world));
    MPI_Finalize();
    ring(early, early_base, 400);
    MPI_Comm other = begin(&last, "libfompi.last");
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, other, &late_base, &late));
    ring(late, late_base, 500);
    ring(early, early_base, 600);
    OK(MPI_Win_free(&early));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&first));
    ring(late, late_base, 700);
    OK(MPI_Win_free(&late));
    OK(MPI_Comm_free(&other));
    OK(MPI_Session_finalize(&last));
    return 0;
}

#else

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    return check_end();
}

#endif
