// One piece of memory in several windows at once: whole, in overlapping parts, with other
// displacement units, over other communicators. What comes through one is seen through the others
// once it is complete. MPI-4.1 section 12.2.1.
// ranks: 1 2 3 4

#include "created.h"

enum { LONGS = 600, WINDOWS = 6 };

struct view {
    MPI_Win win;
    // The longs of the memory that it shows, and the ranks of the next and of this process in it.
    int first, longs, next, self;
};

static long *memory;
static struct view views[WINDOWS];

static struct view view_of(MPI_Comm comm, int first, int longs, int disp_unit)
{
    struct view view = {MPI_WIN_NULL, first, longs, 0, 0};
    int ranks[2] = {next_rank(), rank}, there[2];
    MPI_Group world, group;
    OK(MPI_Win_create(memory + first, longs * (MPI_Aint)sizeof(long), disp_unit, MPI_INFO_NULL,
                      comm, &view.win));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Win_get_group(view.win, &group));
    OK(MPI_Group_translate_ranks(world, 2, ranks, group, there));
    view.next = there[0];
    view.self = there[1];
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
    return view;
}

// Displacement of a long of the memory in a view.
static MPI_Aint place(const struct view *view, int i)
{
    int *unit, flag;
    OK(MPI_Win_get_attr(view->win, MPI_WIN_DISP_UNIT, &unit, &flag));
    return (i - view->first) * (MPI_Aint)sizeof(long) / *unit;
}

// All ranks use one view, then the next one; each writes what it can reach of the next rank's.
static void write_through(const struct view *view, int salt)
{
    OK(MPI_Win_lock(MPI_LOCK_SHARED, view->next, 0, view->win));
    for (int i = view->first; i < view->first + view->longs; i += 7) {
        const long value = 1000 * salt + i + rank, one = 1;
        OK(MPI_Put(&value, 1, MPI_LONG, view->next, place(view, i), 1, MPI_LONG, view->win));
        OK(MPI_Win_flush(view->next, view->win));
        OK(MPI_Accumulate(&one, 1, MPI_LONG, view->next, place(view, i), 1, MPI_LONG, MPI_SUM,
                          view->win));
    }
    OK(MPI_Win_unlock(view->next, view->win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void check_through(const struct view *view, const struct view *writer, int salt)
{
    OK(MPI_Win_lock(MPI_LOCK_SHARED, view->next, 0, view->win));
    for (int i = writer->first; i < writer->first + writer->longs; i += 7) {
        long got = -1;
        if (i < view->first || i >= view->first + view->longs)
            continue;
        OK(MPI_Get(&got, 1, MPI_LONG, view->next, place(view, i), 1, MPI_LONG, view->win));
        OK(MPI_Win_flush(view->next, view->win));
        CHECK_EQ(got, 1000 * salt + i + rank + 1);
    }
    OK(MPI_Win_unlock(view->next, view->win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    MPI_Comm copy, reversed;
    check_start(&argc, &argv);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed));
    memory = heap_memory(LONGS * sizeof(long));
    views[0] = view_of(MPI_COMM_WORLD, 0, LONGS, 8);
    views[1] = view_of(MPI_COMM_WORLD, 0, LONGS, 8);
    views[2] = view_of(MPI_COMM_WORLD, 100, 300, 1);
    views[3] = view_of(copy, 200, 400, 4);
    views[4] = view_of(reversed, 100, LONGS - 100, 8);
    views[5] = view_of(reversed, 300, 2, 2);
    for (int writer = 0; writer < WINDOWS; writer++) {
        write_through(&views[writer], writer + 1);
        for (int reader = 0; reader < WINDOWS; reader++)
            check_through(&views[reader], &views[writer], writer + 1);
    }
    // In another order than they were made; the first one works without the others.
    const int order[WINDOWS - 1] = {1, 3, 5, 2, 4};
    for (int i = 0; i < WINDOWS - 1; i++)
        OK(MPI_Win_free(&views[order[i]].win));
    write_through(&views[0], 9);
    check_through(&views[0], &views[0], 9);
    OK(MPI_Win_free(&views[0].win));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&reversed));
    return check_end();
}
