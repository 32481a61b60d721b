// The null window is refused by every call. MPI-4.1 sections 9.4 and 12.2.5.
// ranks: 1 2
// settings: FOMPI_STRICT=1

#include "check.h"

// Errors without a window go to the handler of MPI_COMM_SELF, or of MPI_COMM_WORLD before MPI-4.
static void refused(MPI_Win win)
{
    long value = 1;
    int length, flag;
    void *answer;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Group group;
    EXPECT(MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win), MPI_ERR_WIN);
    EXPECT(MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win), MPI_ERR_WIN);
    EXPECT(MPI_Fetch_and_op(&value, &value, MPI_LONG, 0, 0, MPI_SUM, win), MPI_ERR_WIN);
    EXPECT(MPI_Win_fence(0, win), MPI_ERR_WIN);
    EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_WIN);
    EXPECT(MPI_Win_lock_all(0, win), MPI_ERR_WIN);
    EXPECT(MPI_Win_flush(0, win), MPI_ERR_WIN);
    EXPECT(MPI_Win_sync(win), MPI_ERR_WIN);
    if (MPI_Win_get_name(win, name, &length) == MPI_SUCCESS) // since MPI-4.1 it has a name
        CHECK(strcmp(name, "MPI_WIN_NULL") == 0);
    EXPECT(MPI_Win_get_group(win, &group), MPI_ERR_WIN);
    EXPECT(MPI_Win_get_attr(win, MPI_WIN_SIZE, &answer, &flag), MPI_ERR_WIN);
    EXPECT(MPI_Win_free(&win), MPI_ERR_WIN);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    refused(MPI_WIN_NULL);
    return check_end();
}
