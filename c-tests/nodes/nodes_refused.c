// A window for which the RDMA device of one rank may not keep the memory in place is refused with
// MPI_ERR_NO_MEM on all ranks, leaves nothing over, and others can be made. The limit is that of
// the software adapter (ADAPTER_MEMLOCK, in bytes): 8 MiB refuse large windows, what is below 2 MiB
// refuses all of them. Without one, and for the plain MPI, there is nothing to refuse. MPI-4.1
// sections 12.2.1, 12.2.2 and 9.5.
// ranks: 2 4
// plain ranks: 2

#include "created.h"

enum { LARGE = 16 << 20, SMALL = 4096, TIMES = 20, OFTEN = 1100 };

static MPI_Comm comm;

static void is_whole(MPI_Win win, const long *base)
{
    const long value = 70 + rank;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), 0, 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(base[0], 70 + previous_rank());
    OK(MPI_Win_free(&win));
}

// The text names the rank that refuses, and on that rank the remedy.
static void refused(int code, int culprit)
{
    char text[MPI_MAX_ERROR_STRING], wanted[60];
    int length;
    EXPECT(code, MPI_ERR_NO_MEM);
    OK(MPI_Error_string(code, text, &length));
    snprintf(wanted, sizeof wanted, "MPI_ERR_NO_MEM on rank %d", culprit);
    if (strstr(text, rank == culprit ? "locked memory" : wanted) == NULL)
        check_failed(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", text, wanted);
}

// Only the last rank has much memory to expose.
static void created(int is_refused, void *memory)
{
    MPI_Win win = MPI_WIN_NULL;
    MPI_Aint bytes = rank == size - 1 ? LARGE : SMALL;
    int code = MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, comm, &win);
    if (is_refused)
        refused(code, size - 1);
    else
        OK(code);
    if (win != MPI_WIN_NULL)
        is_whole(win, memory);
}

static void allocated(int is_refused, MPI_Aint bytes)
{
    MPI_Win win = MPI_WIN_NULL;
    void *base;
    int code = MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, comm, &base, &win);
    if (is_refused)
        EXPECT(code, MPI_ERR_NO_MEM);
    else
        OK(code);
    if (win != MPI_WIN_NULL)
        is_whole(win, base);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    const char *limit = getenv("ADAPTER_MEMLOCK");
    const int is_refused = library_is_here() && limit != NULL;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    // So often that what each left behind would be missed: MPICH has 2,000 communicators.
    for (int i = 0; is_refused && atol(limit) < 2 << 20 && i < OFTEN; i++)
        allocated(1, SMALL);
    void *memory = heap_memory(LARGE);
    for (int i = 0; !(is_refused && atol(limit) < 2 << 20) && i < TIMES; i++) {
        created(is_refused, memory);
        allocated(is_refused, LARGE);
        allocated(0, SMALL);
    }
    OK(MPI_Comm_free(&comm));
    return check_end();
}
