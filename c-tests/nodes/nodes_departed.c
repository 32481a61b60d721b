// Processes that have ended leave no state at those that they contacted. One after the other is
// spawned, makes a window with its parents, puts to each of them, and ends. Then the parents destroy
// its queue pairs, although nothing is sent any more. The plain MPI has nothing to count.
// MPI-4.1 sections 11.8, 11.10.4 and 12.2.1.
// ranks: 1 2

#include "../../include/fompi.h"
#include "check.h"

#include <dlfcn.h>
#include <poll.h>

enum { CHILDREN = 2 };

static int (*get_counts)(fompi_verbs_counts *);

static long accepted(void)
{
    fompi_verbs_counts counts;
    return get_counts != NULL && get_counts(&counts) ? (long)counts.accepted : 0;
}

// Each has to do with each.
static void talk(MPI_Comm comm)
{
    int me, ranks;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &ranks));
    long *base = calloc(ranks, sizeof *base);
    const long value = 10 + me;
    MPI_Win win;
    OK(MPI_Win_create(base, ranks * sizeof *base, sizeof *base, MPI_INFO_NULL, comm, &win));
    OK(MPI_Win_fence(0, win));
    for (int target = 0; target < ranks; target++)
        OK(MPI_Put(&value, 1, MPI_LONG, target, me, 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < ranks; i++)
        CHECK_EQ(base[i], 10 + i);
    OK(MPI_Win_free(&win));
    free(base);
}

// The parents and a child, which leaves then.
static void meet(MPI_Comm inter, int is_child)
{
    MPI_Comm merged;
    OK(MPI_Intercomm_merge(inter, is_child, &merged));
    talk(merged);
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_disconnect(&inter));
}

int main(int argc, char **argv)
{
    MPI_Comm parent, inter;
    int code;
    check_start(&argc, &argv);
    *(void **)&get_counts = dlsym(RTLD_DEFAULT, "fompi_get_verbs_counts");
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        meet(parent, 1);
        return check_end();
    }
    talk(MPI_COMM_WORLD);
    const long before = accepted();
    for (int i = 0; i < CHILDREN; i++) {
        OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                          &code));
        meet(inter, 0);
    }
    while (accepted() > before) {
        check_here(__FILE__, __LINE__);
        poll(NULL, 0, 10);
    }
    CHECK_EQ(accepted(), before);
    talk(MPI_COMM_WORLD);
    return check_end();
}
