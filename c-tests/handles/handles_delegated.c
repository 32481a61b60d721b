// A window that the host MPI implements has no memory handles: each call that names it returns
// MPI_ERR_UNSUPPORTED_OPERATION, and MPI_Error_string has the reason. The simulated nodes of this program
// share the memory of one machine, so the MPI makes a shared window for ranks that are on several nodes for
// libfompi. docs/decisions/0033. The plain MPI has none.
// ranks: 2
// settings: FOMPI_RANKS_PER_NODE=1 FOMPI_NET=tcp

#include "handles.h"

static MPI_Win win;

static void refused(const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    EXPECT(code, MPI_ERR_UNSUPPORTED_OPERATION);
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, call) != NULL);
    CHECK(strstr(text, "FOMPI-E155") != NULL);
}

#define REFUSED(call, ...) refused(#call ":", call(__VA_ARGS__))

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (has_handles()) {
        MPI_Comm node;
        FOMPI_Mem mem = FOMPI_MEM_NULL;
        char packed[FOMPI_MEM_BYTES] = "";
        int ranks, *base;
        void *memory = NULL;
        OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
        OK(MPI_Comm_size(node, &ranks));
        OK(MPI_Win_allocate_shared(64, sizeof(int), MPI_INFO_NULL, node, &base, &win));
        OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
        if (ranks > 1) { // else the nodes are not simulated, and the window is the library's
            REFUSED(FOMPI_Mem_expose, base, 4, MPI_INFO_NULL, win, &mem);
            REFUSED(FOMPI_Mem_allocate, 4, MPI_INFO_NULL, win, &memory, &mem);
            REFUSED(FOMPI_Mem_unpack, packed, win, &mem);
            REFUSED(FOMPI_Complete, 0, win);
            REFUSED(FOMPI_Complete, FOMPI_ALL_RANKS, win);
        }
        CHECK(mem == FOMPI_MEM_NULL && memory == NULL);
        OK(MPI_Win_free(&win));
        OK(MPI_Comm_free(&node));
    }
    return check_end();
}
