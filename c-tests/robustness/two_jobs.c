// Two jobs that meet by a port: windows of all flavours, and memory handles, over the processes of both. The one
// that is started with `accept` writes the name of its port to a file. usage: two_jobs accept|connect FILE

#include "../spawned.h"

#include <stdio.h>

static void tell(const char *port, const char *path)
{
    char new[4096];
    snprintf(new, sizeof new, "%s.new", path);
    FILE *file = fopen(new, "w");
    CHECK(file != NULL && fputs(port, file) >= 0 && fclose(file) == 0);
    CHECK(rename(new, path) == 0);
}

static void learn(char *port, const char *path)
{
    FILE *file;
    while ((file = fopen(path, "r")) == NULL)
        usleep(10000);
    CHECK(fgets(port, MPI_MAX_PORT_NAME, file) != NULL && fclose(file) == 0);
}

int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter, merged;
    int others;
    check_start(&argc, &argv);
    CHECK_EQ(argc, 3);
    const int connects = strcmp(argv[1], "connect") == 0;
    if (rank == 0 && connects)
        learn(port, argv[2]);
    if (rank == 0 && !connects) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        tell(port, argv[2]);
    }
    if (connects)
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
    else
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
    OK(MPI_Comm_remote_size(inter, &others));
    OK(MPI_Intercomm_merge(inter, connects, &merged));
    struct ring *world = ring_of(MPI_COMM_WORLD), *both = ring_of(merged);
    CHECK_EQ(both->ranks, size + others);
    ring_turn(world, 100);
    ring_turn(both, 200);
    ring_refuses(both, world);
    ring_free(both);
    ring_turn(world, 300);
    ring_free(world);
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_disconnect(&inter));
    return check_end();
}
