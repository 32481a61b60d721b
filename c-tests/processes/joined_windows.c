// Windows, and memory handles, over two processes that MPI_Comm_join has brought together by a socket.
// MPI-4.1 sections 11.10.7 and 12.2.
// ranks: 2

#include "spawned.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

// A socket between the two ranks.
static int connected(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t bytes = sizeof address;
    int end = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(end >= 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (rank == 0) {
        CHECK_EQ(bind(end, (struct sockaddr *)&address, bytes), 0);
        CHECK_EQ(listen(end, 1), 0);
        CHECK_EQ(getsockname(end, (struct sockaddr *)&address, &bytes), 0);
    }
    OK(MPI_Bcast(&address.sin_port, sizeof address.sin_port, MPI_BYTE, 0, MPI_COMM_WORLD));
    if (rank == 1) {
        CHECK_EQ(connect(end, (struct sockaddr *)&address, bytes), 0);
        return end;
    }
    int accepted = accept(end, NULL, NULL);
    CHECK(accepted >= 0);
    CHECK_EQ(close(end), 0);
    return accepted;
}

int main(int argc, char **argv)
{
    MPI_Comm inter, merged;
    check_start(&argc, &argv);
    int end = connected();
    OK(MPI_Comm_join(end, &inter));
    CHECK(inter != MPI_COMM_NULL);
    OK(MPI_Intercomm_merge(inter, rank, &merged));
    struct ring *ring = ring_of(merged);
    ring_turn(ring, 100);
    ring_turn(ring, 200);
    ring_free(ring);
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_disconnect(&inter));
    CHECK_EQ(close(end), 0);
    return check_end();
}
