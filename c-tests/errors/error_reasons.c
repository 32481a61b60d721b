// MPI_Error_string adds to the text of a code what went wrong in this thread's last call that
// returned this code: to a program that handles errors itself, and inside of its error handler.
// MPI-4.1 sections 9.3 and 9.3.4; the reasons are libfompi's.
// ranks: 1 3

#include "created.h"
#include "threads.h"

static MPI_Win win;
static char in_handler[MPI_MAX_ERROR_STRING];

static void says(int code, const char *reason)
{
    char text[MPI_MAX_ERROR_STRING];
    text_of(code, text);
    if (library_is_here() && strstr(text, reason) == NULL)
        check_failed(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", text, reason);
    const char *message = strstr(text, " [FOMPI-E");
    if (library_is_here() && (message == NULL || strcspn(message, "]") + 1 != strlen(message)))
        check_failed(__FILE__, __LINE__, "\"%s\" does not end with a code", text);
}

static int put_to(int target)
{
    long value = 1;
    return MPI_Put(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win);
}

static void *elsewhere(void *number)
{
    char text[MPI_MAX_ERROR_STRING], reason[40];
    const int mine = size + 10 + *(int *)number;
    text_of(MPI_ERR_RANK, text);
    CHECK(strstr(text, "target rank") == NULL);
    EXPECT(put_to(mine), MPI_ERR_RANK);
    snprintf(reason, sizeof reason, "target rank %d is", mine);
    says(MPI_ERR_RANK, reason);
    return NULL;
}

static void note(MPI_Win *at, int *code, ...)
{
    (void)at;
    text_of(*code, in_handler);
}

// Handles are named, not shown as numbers.
static void wrong_handles(void)
{
    MPI_Datatype vector;
    char text[MPI_MAX_ERROR_STRING];
    long value[2] = {1, 2};
    OK(MPI_Type_vector(2, 1, 2, MPI_LONG, &vector));
    const MPI_Datatype wrong[] = {MPI_DATATYPE_NULL, vector};
    const char *const reasons[] = {"MPI_Put: the datatype is MPI_DATATYPE_NULL",
                                   "MPI_Put: datatype is invalid or not committed"};
    for (int i = 0; i < 2; i++)
        says(MPI_Put(value, 1, wrong[i], 0, 0, 1, MPI_LONG, win), reasons[i]);
    OK(MPI_Type_free(&vector));
    says(MPI_Put(value, 2, MPI_LONG, 0, 0, 1, MPI_LONG, win),
         "MPI_Put: data of 16 bytes do not fit into a buffer of 8 bytes");
    says(MPI_Accumulate(value, 1, MPI_LONG, 0, 0, 1, MPI_DOUBLE, MPI_SUM, win),
         "MPI_Accumulate: origin and target have elements of different types");
    says(MPI_Accumulate(value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_OP_NULL, win),
         "MPI_Accumulate: the operation is not predefined");
    says(MPI_Accumulate(value, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_BAND, win),
         "MPI_Accumulate: the operation is not defined for the datatype");
    says(MPI_Put(NULL, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win),
         "MPI_Put: null pointer as the origin address");
    says(MPI_Win_attach(win, value, 8), "MPI_Win_attach: the window is not dynamic");
    says(MPI_Win_post(MPI_GROUP_NULL, 0, win), "MPI_Win_post: the group is MPI_GROUP_NULL");
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    const int null = MPI_Win_fence(0, MPI_WIN_NULL);
    CHECK_EQ(null, MPI_ERR_WIN);
    says(null, "MPI_Win_fence: the window is MPI_WIN_NULL");
    text_of(null, text);
    CHECK(strstr(text, "MPI_Win_sync") == NULL);
}

// A window is named by the name that the program gave it, without what would break a line.
static void named_window(void)
{
    says(put_to(size), "MPI_Put: target rank");
    OK(MPI_Win_set_name(win, "a\ttable\n"));
    says(put_to(size), "MPI_Put on window \"a table \": target rank");
    says(MPI_Win_unlock(0, win), "MPI_Win_unlock on window \"a table \": ");
    OK(MPI_Win_set_name(win, ""));
    says(put_to(size), "MPI_Put: target rank");
}

int main(int argc, char **argv)
{
    long *base;
    char reason[80];
    MPI_Errhandler handler;
    if (!check_start_threads(&argc, &argv))
        return check_end();
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));

    const int unlock = MPI_Win_unlock(0, win);
    EXPECT(unlock, MPI_ERR_RMA_SYNC);
    says(unlock, "MPI_Win_unlock: ");
    OK(MPI_Win_lock_all(0, win));
    const int first = put_to(size), second = put_to(size + 7);
    EXPECT(first, MPI_ERR_RANK);
    EXPECT(second, MPI_ERR_RANK);
    snprintf(reason, sizeof reason, "MPI_Put: target rank %d is invalid: the window has %d ranks", size + 7, size);
    says(second, reason);
    if (library_is_here()) {
        run_numbered_threads(2, elsewhere);
        CHECK_EQ(second, MPI_ERR_RANK); // a class is its own code
    }
    says(second, reason);
    says(unlock, "MPI_Win_unlock: ");

    OK(MPI_Win_create_errhandler(note, &handler));
    OK(MPI_Win_set_errhandler(win, handler));
    put_to(size + 3);
    snprintf(reason, sizeof reason, "target rank %d is invalid: the window has %d ranks", size + 3, size);
    CHECK(!library_is_here() || strstr(in_handler, reason) != NULL);
    OK(MPI_Errhandler_free(&handler));

    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    if (library_is_here()) {
        wrong_handles();
        named_window();
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
