// ranks: 2 4
// settings: FOMPI_STRICT=1
//
// FOMPI_DISABLE on one rank, which would call the windows of the MPI while the others make their
// own. All ranks get the error, that one too. An MPI alone does not know the setting.

#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int length, last = size - 1, has_library = dlsym(RTLD_DEFAULT, "fompi_version") != NULL;
    char text[MPI_MAX_ERROR_STRING] = "";
    const char *want = rank == last ? "FOMPI_DISABLE is not set on rank 0, 1 here" : NULL;
    char from_others[80];
    snprintf(from_others, sizeof from_others, "FOMPI_DISABLE is 1 on rank %d, not set here", last);
    want = want == NULL ? from_others : want;
    if (rank == last)
        setenv("FOMPI_DISABLE", "1", 1);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int turn = 0; turn < 2; turn++) {
        MPI_Win win = MPI_WIN_NULL;
        int code = MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        if (!has_library) {
            OK(code);
            OK(MPI_Win_free(&win));
            continue;
        }
        CHECK(code != MPI_SUCCESS);
        OK(MPI_Error_string(code, text, &length));
        if (strstr(text, want) == NULL)
            check_failed(__FILE__, __LINE__, "`%s` is not `%s...`", text, want);
    }
    return check_end();
}
