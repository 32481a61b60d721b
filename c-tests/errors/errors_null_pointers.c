// Where a call wants to store an answer there must be a place for it: a null pointer is an error of
// class MPI_ERR_ARG, and in window creation no rank waits for the one that made it.
// MPI-4.1 sections 9.3 and 12.2.
// ranks: 1 2
// settings: FOMPI_STRICT=1

#include "check.h"

static void creation(MPI_Comm comm)
{
    MPI_Win win;
    void *base;
    int first = rank == 0;
    int code = MPI_Win_allocate(64, 1, MPI_INFO_NULL, comm, &base, first ? NULL : &win);
    CHECK(code != MPI_SUCCESS);
    if (first)
        EXPECT(code, MPI_ERR_ARG, MPI_ERR_WIN);
    code = MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, comm, first ? NULL : (void *)&base, &win);
    CHECK(code != MPI_SUCCESS);
    if (first)
        EXPECT(code, MPI_ERR_ARG);
    EXPECT(MPI_Win_free(NULL), MPI_ERR_ARG, MPI_ERR_WIN);
}

static void questions(MPI_Win win)
{
    MPI_Aint bytes;
    int disp_unit, flag, length;
    char name[MPI_MAX_OBJECT_NAME];
    void *part;
    EXPECT(MPI_Win_shared_query(win, 0, NULL, &disp_unit, &part), MPI_ERR_ARG);
    EXPECT(MPI_Win_shared_query(win, 0, &bytes, NULL, &part), MPI_ERR_ARG);
    EXPECT(MPI_Win_shared_query(win, 0, &bytes, &disp_unit, NULL), MPI_ERR_ARG);
    EXPECT(MPI_Win_get_attr(win, MPI_WIN_SIZE, NULL, &flag), MPI_ERR_ARG);
    EXPECT(MPI_Win_get_attr(win, MPI_WIN_SIZE, &part, NULL), MPI_ERR_ARG);
    EXPECT(MPI_Win_get_name(win, NULL, &length), MPI_ERR_ARG);
    EXPECT(MPI_Win_get_name(win, name, NULL), MPI_ERR_ARG);
    EXPECT(MPI_Win_get_group(win, NULL), MPI_ERR_ARG);
    EXPECT(MPI_Win_get_info(win, NULL), MPI_ERR_ARG);
    EXPECT(MPI_Win_get_errhandler(win, NULL), MPI_ERR_ARG);
    EXPECT(MPI_Win_test(win, NULL), MPI_ERR_ARG, MPI_ERR_RMA_SYNC);
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    MPI_Win win;
    void *base;
    check_start_within(20, &argc, &argv);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    creation(comm);
    // Over several nodes there are no shared windows.
    OK(MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    questions(win);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&comm));
    return check_end();
}
