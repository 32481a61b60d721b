// Windows, and memory handles, over the merged communicator of processes and those that they have spawned,
// together with windows of each MPI_COMM_WORLD, before and after; the intercommunicator itself is refused.
// MPI-4.1 sections 11.8 and 12.2.
// ranks: 1 2

#define _GNU_SOURCE
#include "adopted.h"
#include "spawned.h"

enum { CHILDREN = 2 };

// Memory of a window stays where it is: a process of the other job may copy it at any time.
static void stays(void)
{
    char *memory = touched_pages(4);
    MPI_Win win = window_over(memory, 4 * PAGE, 1);
    CHECK(!is_shared(memory));
    OK(MPI_Win_free(&win));
}

static void refused(MPI_Comm inter)
{
    MPI_Win win;
    void *base;
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    EXPECT(MPI_Win_allocate(64, 1, MPI_INFO_NULL, inter, &base, &win), MPI_ERR_COMM);
    EXPECT(MPI_Win_create_dynamic(MPI_INFO_NULL, inter, &win), MPI_ERR_COMM);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, inter, merged;
    int ranks;
    check_start(&argc, &argv);
    OK(MPI_Comm_get_parent(&parent));
    struct ring *world = ring_of(MPI_COMM_WORLD);
    ring_turn(world, 100);
    if (parent == MPI_COMM_NULL) {
        int codes[CHILDREN];
        OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                          &inter, codes));
    } else {
        inter = parent;
    }
    refused(inter);
    OK(MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &merged));
    OK(MPI_Comm_size(merged, &ranks));
    int others;
    OK(MPI_Comm_remote_size(inter, &others));
    CHECK_EQ(ranks, size + others);
    struct ring *all = ring_of(merged);
    ring_turn(all, 200);
    ring_refuses(all, world);
    ring_refuses(world, all);
    ring_turn(world, 300);
    stays();
    ring_turn(all, 400);
    ring_free(all);
    ring_turn(world, 500);
    ring_free(world);
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_disconnect(&inter));
    return check_end();
}
