// Windows, and memory handles, over processes that came together by MPI_Comm_accept and MPI_Comm_connect.
// The two halves of MPI_COMM_WORLD meet as if they were strangers.
// MPI-4.1 sections 11.10 and 12.2.
// ranks: 2 4

#include "spawned.h"

// Windows over both sides of an intercommunicator.
static void meet(MPI_Comm inter, int high, long mark)
{
    MPI_Comm merged;
    OK(MPI_Intercomm_merge(inter, high, &merged));
    struct ring *ring = ring_of(merged);
    ring_turn(ring, mark);
    ring_turn(ring, mark + 50);
    ring_free(ring);
    OK(MPI_Comm_free(&merged));
}

int main(int argc, char **argv)
{
    MPI_Comm half, inter;
    char port[MPI_MAX_PORT_NAME] = "";
    check_start(&argc, &argv);
    const int high = rank >= size / 2;
    OK(MPI_Comm_split(MPI_COMM_WORLD, high, rank, &half));
    if (rank == 0)
        OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD));
    for (int turn = 0; turn < 2; turn++) {
        if (high)
            OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter));
        else
            OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter));
        meet(inter, high, 1000 * (turn + 1));
        OK(MPI_Comm_disconnect(&inter));
    }
    if (rank == 0)
        OK(MPI_Close_port(port));
    OK(MPI_Comm_free(&half));
    return check_end();
}
