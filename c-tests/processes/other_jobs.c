// Processes of one job that meet as those of two: by MPI_Comm_accept and MPI_Comm_connect, by
// MPI_Comm_join, and those that MPI_Comm_spawn_multiple starts. All of these calls go on to the MPI,
// and memory of windows made afterwards stays where it is. MPI-4.1 sections 11.8 to 11.10.
// ranks: 2

#define _GNU_SOURCE
#include "adopted.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

// A message each way, between two processes.
static void meet(MPI_Comm inter, int processes)
{
    int others, got = 0;
    const int mine = 10 + rank;
    OK(MPI_Comm_remote_size(inter, &others));
    CHECK_EQ(others, processes);
    if (processes == 1) {
        OK(MPI_Sendrecv(&mine, 1, MPI_INT, 0, 5, &got, 1, MPI_INT, 0, 5, inter, MPI_STATUS_IGNORE));
        CHECK_EQ(got, 11 - rank);
    }
    OK(MPI_Comm_disconnect(&inter));
}

static void by_port(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    if (rank == 0)
        OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD));
    if (rank == 0)
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    else
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    meet(inter, 1);
    if (rank == 0)
        OK(MPI_Close_port(port));
}

static void by_socket(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    MPI_Comm inter;
    int end = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(end >= 0);
    if (rank == 0) {
        CHECK_EQ(bind(end, (struct sockaddr *)&at, bytes), 0);
        CHECK_EQ(listen(end, 1), 0);
        CHECK_EQ(getsockname(end, (struct sockaddr *)&at, &bytes), 0);
    }
    OK(MPI_Bcast(&at, sizeof at, MPI_BYTE, 0, MPI_COMM_WORLD));
    const int listener = end;
    if (rank == 0)
        CHECK((end = accept(listener, NULL, NULL)) >= 0);
    else
        CHECK_EQ(connect(end, (struct sockaddr *)&at, bytes), 0);
    OK(MPI_Comm_join(end, &inter));
    meet(inter, 1);
    close(end);
}

static void by_spawning(char *program)
{
    char *programs[2] = {program, program};
    const int counts[2] = {1, 1};
    const MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
    int codes[2];
    MPI_Comm inter;
    OK(MPI_Comm_spawn_multiple(2, programs, MPI_ARGVS_NULL, counts, infos, 0, MPI_COMM_WORLD, &inter,
                               codes));
    meet(inter, 2);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    check_start(&argc, &argv);
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        meet(parent, 2);
        return check_end();
    }
    by_port();
    by_socket();
    by_spawning(argv[0]);
    char *memory = touched_pages(4);
    MPI_Win win = window_over(memory, 4 * PAGE, 1);
    CHECK(!is_shared(memory));
    OK(MPI_Win_free(&win));
    return check_end();
}
