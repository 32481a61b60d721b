// The codes that one-sided calls return have the class and the text of their error: the class of
// a class is itself, every class of the chapter has a text of its own, and the code of a failed
// call, too. MPI-4.1 sections 9.4, 9.5 and 12.6.2.
// ranks: 1

#include "check.h"

static const int classes[] = {
    MPI_ERR_WIN, MPI_ERR_BASE, MPI_ERR_SIZE, MPI_ERR_DISP, MPI_ERR_LOCKTYPE, MPI_ERR_ASSERT,
    MPI_ERR_RMA_CONFLICT, MPI_ERR_RMA_SYNC, MPI_ERR_RMA_RANGE, MPI_ERR_RMA_ATTACH,
    MPI_ERR_RMA_SHARED, MPI_ERR_RMA_FLAVOR, MPI_ERR_INFO, MPI_ERR_KEYVAL, MPI_ERR_NO_MEM,
};
enum { CLASSES = sizeof classes / sizeof *classes };

static char texts[CLASSES][MPI_MAX_ERROR_STRING];

static void has_class(int code, int want)
{
    char text[MPI_MAX_ERROR_STRING];
    EXPECT(code, want);
    text_of(code, text);
}

int main(int argc, char **argv)
{
    MPI_Win win, dynamic;
    int *base, value = 1;
    check_start(&argc, &argv);
    for (int i = 0; i < CLASSES; i++) {
        int class = -1;
        OK(MPI_Error_class(classes[i], &class));
        CHECK_EQ(class, classes[i]);
        text_of(classes[i], texts[i]);
        for (int j = 0; j < i; j++)
            CHECK(strcmp(texts[i], texts[j]) != 0);
    }
    OK(MPI_Win_allocate(16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic));
    OK(MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN));
    has_class(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    has_class(MPI_Win_lock(-1, 0, 0, win), MPI_ERR_LOCKTYPE);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    has_class(MPI_Put(&value, 1, MPI_INT, 0, 4, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    has_class(MPI_Put(&value, 1, MPI_INT, 0, -1, 1, MPI_INT, win), MPI_ERR_DISP);
    OK(MPI_Win_unlock(0, win));
    has_class(MPI_Win_detach(dynamic, &value), MPI_ERR_RMA_ATTACH);
    has_class(MPI_Win_attach(win, &value, 4), MPI_ERR_RMA_FLAVOR);
    OK(MPI_Win_free(&dynamic));
    OK(MPI_Win_free(&win));
    return check_end();
}
