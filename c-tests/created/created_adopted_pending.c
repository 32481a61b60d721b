// Messages that are pending while MPI_Win_create and MPI_Win_free move the memory that they are
// sent from, or received into: rank 0 begins the message and enters the call, the others enter it
// when the message has arrived, and the other way round. All arrive, and no rank waits forever: a
// rank that waits for the others in the call lets the messages make progress. MPI-4.1 sections 2.9
// and 12.2.1.
// ranks: 2
// settings: FOMPI_ADOPT=always

#define _GNU_SOURCE
#include "adopted.h"

enum { BYTES = 8 << 20, TURNS = 8 };

static void expect_all(const char *memory, int value)
{
    for (int at = 0; at < BYTES; at += 4096)
        CHECK_EQ(memory[at + at / 4096 % 4096], value);
}

// The first rank begins a message from or into its memory, and enters `call` then; the second rank
// ends the message first. `touched`: whether the memory was touched before.
static void around(int first, int sends, int touched, int at_free)
{
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *other = touched_pages(BYTES / PAGE);
    MPI_Request request;
    MPI_Win win = MPI_WIN_NULL;
    CHECK(memory != MAP_FAILED);
    if (touched)
        memset(memory, 3, BYTES);
    if (at_free)
        win = window_over(memory, BYTES, 1);
    if (rank == first && sends)
        OK(MPI_Isend(memory, BYTES, MPI_CHAR, 1 - first, 4, MPI_COMM_WORLD, &request));
    else if (rank == first)
        OK(MPI_Irecv(memory, BYTES, MPI_CHAR, 1 - first, 4, MPI_COMM_WORLD, &request));
    else if (sends)
        OK(MPI_Recv(other, BYTES, MPI_CHAR, first, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    else
        OK(MPI_Send(other, BYTES, MPI_CHAR, first, 4, MPI_COMM_WORLD));
    if (at_free)
        OK(MPI_Win_free(&win));
    else
        win = window_over(memory, BYTES, 1);
    if (rank == first)
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == first && !sends)
        expect_all(memory, 1);
    else if (rank != first && sends)
        expect_all(other, touched ? 3 : 0);
    if (!at_free)
        OK(MPI_Win_free(&win));
    munmap(memory, BYTES);
    munmap(other, BYTES);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    for (int turn = 0; turn < TURNS; turn++)
        for (int kind = 0; kind < 16; kind++)
            around(kind & 1, kind >> 1 & 1, kind >> 2 & 1, kind >> 3);
    return check_end();
}
