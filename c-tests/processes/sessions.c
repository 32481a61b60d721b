// Windows on communicators of sessions, without MPI_Init: of several sessions at once, of all
// flavours, used after other sessions have ended.
// MPI-4.1 sections 11.3 and 12.2.
// ranks: 1 2 4

#include "nodes.h"

#if MPI_VERSION >= 4

enum { SESSIONS = 3, LONGS = 8 };

struct of_session {
    MPI_Session session;
    MPI_Comm comm;
    MPI_Win wins[4];
    long *bases[4], memory[LONGS], attached[LONGS];
    MPI_Aint there;
};

static void start(struct of_session *s, int number)
{
    char tag[32];
    MPI_Group group;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s->session));
    OK(MPI_Group_from_session_pset(s->session, "mpi://WORLD", &group));
    snprintf(tag, sizeof tag, "libfompi.sessions.%d", number);
    OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &s->comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_rank(s->comm, &rank));
    OK(MPI_Comm_size(s->comm, &size));
}

static void make_windows(struct of_session *s)
{
    const MPI_Aint bytes = LONGS * sizeof(long);
    MPI_Aint here;
    OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, s->comm, &s->bases[0], &s->wins[0]));
    allocate_shared_if_possible(bytes, s->comm, &s->bases[1], &s->wins[1]);
    OK(MPI_Win_create(s->memory, bytes, sizeof(long), MPI_INFO_NULL, s->comm, &s->wins[2]));
    s->bases[2] = s->memory;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, s->comm, &s->wins[3]));
    OK(MPI_Win_attach(s->wins[3], s->attached, bytes));
    s->bases[3] = s->attached;
    OK(MPI_Get_address(s->attached, &here));
    OK(MPI_Sendrecv(&here, 1, MPI_AINT, previous_rank(), 0, &s->there, 1, MPI_AINT, next_rank(), 0,
                    s->comm, MPI_STATUS_IGNORE));
}

static void use_windows(const struct of_session *s, long mark)
{
    for (int w = 0; w < 4; w++) {
        const MPI_Aint disp = w == 3 ? s->there : 0;
        const long value = mark + 10 * w + rank, one = 1;
        long before = -1;
        OK(MPI_Win_fence(0, s->wins[w]));
        OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), disp, 1, MPI_LONG, s->wins[w]));
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, s->wins[w]));
        CHECK_EQ(s->bases[w][0], mark + 10 * w + previous_rank());
        OK(MPI_Barrier(s->comm));
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, s->wins[w]));
        OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, next_rank(), disp, MPI_SUM, s->wins[w]));
        OK(MPI_Win_unlock(next_rank(), s->wins[w]));
        CHECK_EQ(before, value);
        OK(MPI_Barrier(s->comm));
    }
}

static void end(struct of_session *s)
{
    for (int w = 0; w < 4; w++)
        OK(MPI_Win_free(&s->wins[w]));
    OK(MPI_Comm_free(&s->comm));
    OK(MPI_Session_finalize(&s->session));
}

int main(int argc, char **argv)
{
    static struct of_session all[SESSIONS];
    int initialized = 1;
    (void)argc;
    (void)argv;
    check_within(60);
    for (int i = 0; i < SESSIONS; i++) {
        start(&all[i], i);
        make_windows(&all[i]);
    }
    OK(MPI_Initialized(&initialized));
    CHECK(!initialized);
    for (int i = 0; i < SESSIONS; i++)
        use_windows(&all[i], 1000 * i);
    end(&all[0]);
    use_windows(&all[1], 5000);
    end(&all[2]);
    use_windows(&all[1], 6000);
    // All sessions but one have ended; a new one begins, and then the last ones end.
    start(&all[0], SESSIONS);
    make_windows(&all[0]);
    use_windows(&all[0], 7000);
    use_windows(&all[1], 8000);
    end(&all[1]);
    use_windows(&all[0], 9000);
    end(&all[0]);
    return 0;
}

#else

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    return check_end();
}

#endif
