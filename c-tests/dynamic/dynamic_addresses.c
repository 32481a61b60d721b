// A displacement in a dynamic window is an address at the target, by MPI_Get_address, and is
// changed by MPI_Aint_add and MPI_Aint_diff; it may be negative where the datatype makes up for it.
// MPI-4.1 sections 12.2.4 and 5.1.5.
// ranks: 1 2 4

#include "dynamic.h"

enum { CELLS = 20 };

struct cell {
    char name;
    int32_t number;
    double weight[3];
};

static struct cell cells[CELLS];

// Each field of each cell is put on its own, at an address counted from that of the first cell.
static void fields(MPI_Win win, MPI_Aint first)
{
    const int target = next_rank();
    static struct cell values[CELLS];
    for (int i = 0; i < CELLS; i++) {
        const MPI_Aint here = address_of(&cells[0]);
        const MPI_Aint cell = MPI_Aint_add(first, i * (MPI_Aint)sizeof(struct cell));
        const MPI_Aint number = MPI_Aint_diff(address_of(&cells[i].number), here);
        const MPI_Aint weight = MPI_Aint_diff(address_of(&cells[i].weight[2]), here);
        values[i].name = (char)('a' + i);
        values[i].number = 100 * rank + i;
        values[i].weight[2] = 0.5 + i;
        CHECK_EQ(number, (char *)&cells[i].number - (char *)cells);
        OK(MPI_Put(&values[i].name, 1, MPI_CHAR, target, cell, 1, MPI_CHAR, win));
        OK(MPI_Put(&values[i].number, 1, MPI_INT32_T, target, MPI_Aint_add(first, number), 1,
                   MPI_INT32_T, win));
        OK(MPI_Put(&values[i].weight[2], 1, MPI_DOUBLE, target, MPI_Aint_add(first, weight), 1,
                   MPI_DOUBLE, win));
    }
    OK(MPI_Win_flush(target, win));
}

static void fields_arrived(void)
{
    for (int i = 0; i < CELLS; i++) {
        CHECK_EQ(cells[i].name, 'a' + i);
        CHECK_EQ(cells[i].number, 100 * previous_rank() + i);
        CHECK(cells[i].weight[0] == -1.0 && cells[i].weight[1] == -1.0);
        CHECK(cells[i].weight[2] == 0.5 + i);
    }
}

// The datatype holds `shift`, the displacement the rest of the address.
static void shifted(MPI_Win win, MPI_Aint place, MPI_Aint shift, int value)
{
    const int target = next_rank();
    MPI_Datatype type;
    int got = -1;
    OK(MPI_Type_create_hindexed_block(1, 1, &shift, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    const MPI_Aint rest = MPI_Aint_diff(place, shift);
    OK(MPI_Put(&value, 1, MPI_INT, target, rest, 1, type, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Get(&got, 1, MPI_INT, target, rest, 1, type, win));
    OK(MPI_Win_flush(target, win));
    CHECK_EQ(got, value);
    OK(MPI_Get(&got, 1, MPI_INT, target, place, 1, MPI_INT, win));
    OK(MPI_Win_flush(target, win));
    CHECK_EQ(got, value);
    OK(MPI_Type_free(&type));
}

int main(int argc, char **argv)
{
    MPI_Aint places[RANKS_MAX];
    check_start(&argc, &argv);
    MPI_Win win = dynamic_window();
    for (int i = 0; i < CELLS; i++)
        cells[i].weight[0] = cells[i].weight[1] = -1.0;
    OK(MPI_Win_attach(win, cells, sizeof cells));
    exchange(cells, places);
    const MPI_Aint first = places[next_rank()];
    OK(MPI_Win_lock_all(0, win));
    fields(win, first);
    settle(win);
    fields_arrived();
    settle(win);
    shifted(win, first, 64, 1);
    shifted(win, first, -64, 2);
    // All of the address is in the datatype, as for MPI_BOTTOM, and more than all.
    shifted(win, first, first, 3);
    shifted(win, first, MPI_Aint_add(first, 4096), 4);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, cells));
    OK(MPI_Win_free(&win));
    return check_end();
}
