// ranks: 2 3
// settings: FOMPI_STRICT=1
//
// A rank has another value of a setting that must be identical on all ranks. All of them learn
// which one it is, on which rank, and both values, at each window of such a communicator; one whose
// ranks agree has windows. An MPI alone knows no such setting.

#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    const char *set = getenv("FOMPI_RANKS_PER_NODE");
    char text[MPI_MAX_ERROR_STRING] = "", want[200], others[20];
    int length, has_library = dlsym(RTLD_DEFAULT, "fompi_version") != NULL;
    snprintf(others, sizeof others, "%s", set == NULL ? "not set" : set);
    if (rank == 1)
        setenv("FOMPI_RANKS_PER_NODE", "77", 1);
    snprintf(want, sizeof want, "FOMPI_RANKS_PER_NODE is %s on rank %d, %s here",
             rank == 1 ? others : "77", rank == 1 ? 0 : 1, rank == 1 ? "77" : others);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int turn = 0; turn < 2; turn++) {
        MPI_Win win = MPI_WIN_NULL;
        int64_t memory = 0, *base = NULL;
        int code = turn == 0
            ? MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win)
            : MPI_Win_create(&memory, 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        if (!has_library) {
            OK(code);
            OK(MPI_Win_free(&win));
            continue;
        }
        CHECK(code != MPI_SUCCESS);
        CHECK(win == MPI_WIN_NULL);
        OK(MPI_Error_string(code, text, &length));
        if (strstr(text, want) == NULL)
            check_failed(__FILE__, __LINE__, "`%s` is not `%s...`", text, want);
    }
    MPI_Comm part;
    MPI_Win win;
    int64_t *base;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 1, 0, &part));
    OK(MPI_Win_allocate(8, 8, MPI_INFO_NULL, part, &base, &win));
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&part));
    return check_end();
}
