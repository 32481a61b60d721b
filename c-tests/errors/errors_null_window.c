// Every call on MPI_WIN_NULL is MPI_ERR_WIN and does nothing. MPI-4.1 sections 9.4 and 12.2.5.
// ranks: 1 2
// settings: FOMPI_STRICT=1

#include "check.h"

#define REFUSED(name, ...) EXPECT(MPI_##name(__VA_ARGS__), MPI_ERR_WIN)

static const MPI_Win null = MPI_WIN_NULL;

static void transfers(void)
{
    long a = 1, b = 2, c = 3;
    MPI_Request r;
    REFUSED(Put, &a, 1, MPI_LONG, 0, 0, 1, MPI_LONG, null);
    REFUSED(Get, &a, 1, MPI_LONG, 0, 0, 1, MPI_LONG, null);
    REFUSED(Accumulate, &a, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, null);
    REFUSED(Get_accumulate, &a, 1, MPI_LONG, &b, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, null);
    REFUSED(Fetch_and_op, &a, &b, MPI_LONG, 0, 0, MPI_SUM, null);
    REFUSED(Compare_and_swap, &a, &b, &c, MPI_LONG, 0, 0, null);
    REFUSED(Rput, &a, 1, MPI_LONG, 0, 0, 1, MPI_LONG, null, &r);
    REFUSED(Rget, &a, 1, MPI_LONG, 0, 0, 1, MPI_LONG, null, &r);
    REFUSED(Raccumulate, &a, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, null, &r);
    REFUSED(Rget_accumulate, &a, 1, MPI_LONG, &b, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, null,
            &r);
#if MPI_VERSION >= 4
    REFUSED(Put_c, &a, 1, MPI_LONG, 0, 0, 1, MPI_LONG, null);
    REFUSED(Get_c, &a, 1, MPI_LONG, 0, 0, 1, MPI_LONG, null);
    REFUSED(Accumulate_c, &a, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, null);
    REFUSED(Get_accumulate_c, &a, 1, MPI_LONG, &b, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, null);
    REFUSED(Rput_c, &a, 1, MPI_LONG, 0, 0, 1, MPI_LONG, null, &r);
    REFUSED(Rget_c, &a, 1, MPI_LONG, 0, 0, 1, MPI_LONG, null, &r);
    REFUSED(Raccumulate_c, &a, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, null, &r);
    REFUSED(Rget_accumulate_c, &a, 1, MPI_LONG, &b, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, null,
            &r);
#endif
    CHECK(a == 1 && b == 2 && c == 3);
}

static void synchronisation(void)
{
    MPI_Group group;
    int flag = 7;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    REFUSED(Win_fence, 0, null);
    REFUSED(Win_post, group, 0, null);
    REFUSED(Win_start, group, 0, null);
    REFUSED(Win_complete, null);
    REFUSED(Win_wait, null);
    REFUSED(Win_test, null, &flag);
    REFUSED(Win_lock, MPI_LOCK_EXCLUSIVE, 0, 0, null);
    REFUSED(Win_unlock, 0, null);
    REFUSED(Win_lock_all, 0, null);
    REFUSED(Win_unlock_all, null);
    REFUSED(Win_flush, 0, null);
    REFUSED(Win_flush_all, null);
    REFUSED(Win_flush_local, 0, null);
    REFUSED(Win_flush_local_all, null);
    REFUSED(Win_sync, null);
    OK(MPI_Group_free(&group));
}

static void others(void)
{
    long memory[2];
    int keyval, flag, unit;
    MPI_Aint size;
    MPI_Group group;
    MPI_Info info;
    MPI_Errhandler handler;
    MPI_Win copy = null;
    void *base;
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, NULL));
    REFUSED(Win_set_attr, null, keyval, &flag);
    REFUSED(Win_get_attr, null, keyval, &base, &flag);
    REFUSED(Win_get_attr, null, MPI_WIN_BASE, &base, &flag);
    REFUSED(Win_delete_attr, null, keyval);
    OK(MPI_Win_free_keyval(&keyval));
    REFUSED(Win_shared_query, null, 0, &size, &unit, &base);
    REFUSED(Win_attach, null, memory, sizeof memory);
    REFUSED(Win_detach, null, memory);
    REFUSED(Win_get_group, null, &group);
    REFUSED(Win_set_info, null, MPI_INFO_NULL);
    REFUSED(Win_get_info, null, &info);
    REFUSED(Win_set_name, null, "none");
    REFUSED(Win_set_errhandler, null, MPI_ERRORS_RETURN);
    REFUSED(Win_get_errhandler, null, &handler);
    REFUSED(Win_call_errhandler, null, MPI_ERR_OTHER);
    REFUSED(Win_free, &copy);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    transfers();
    synchronisation();
    others();
    return check_end();
}
