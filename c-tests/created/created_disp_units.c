// Every rank has a displacement unit of its own, and places at a target count in the target's unit.
// MPI-4.1 sections 12.2.1 and 12.3.
// ranks: 1 2 3 4

#include "created.h"

enum { BYTES = 1 << 16, UNITS = 6 };

static int unit_of(int target, int turn)
{
    static const int units[UNITS] = {1, 8, 4096, 16, 24, 1 << 15};
    return units[(target + turn) % UNITS];
}

// Slots are the places that are multiples of the unit, and far enough from each other for a long.
static int step_of(int unit) { return unit >= 8 ? 1 : 8 / unit; }

static int slots_of(int unit) { return (BYTES - 8) / (unit * step_of(unit)) + 1; }

// Only the first slots and the last ones are used, by one origin after the other.
static int is_used(int slot, int unit) { return slot < 40 || slot >= slots_of(unit) - 8; }

static void fill_slots(MPI_Win win, int target, int turn)
{
    const int unit = unit_of(target, turn);
    for (int slot = rank; slot < slots_of(unit); slot += size) {
        const long value = 1000 * rank + slot;
        const MPI_Aint disp = (MPI_Aint)slot * step_of(unit);
        if (!is_used(slot, unit))
            continue;
        if (slot % 3 == 0)
            OK(MPI_Put(&value, 1, MPI_LONG, target, disp, 1, MPI_LONG, win));
        else
            OK(MPI_Accumulate(&value, 1, MPI_LONG, target, disp, 1, MPI_LONG, MPI_SUM, win));
        OK(MPI_Win_flush_local(target, win));
    }
}

static void check_memory(const char *memory, int turn)
{
    static _Alignas(8) char image[BYTES];
    const int unit = unit_of(rank, turn);
    memset(image, 0, sizeof image);
    for (int slot = 0; slot < slots_of(unit); slot++)
        if (is_used(slot, unit))
            *(long *)(image + (long)slot * step_of(unit) * unit) = 1000 * (slot % size) + slot;
    for (int i = 0; i < BYTES; i += 8)
        if (*(long *)(memory + i) != *(long *)(image + i))
            check_failed(__FILE__, __LINE__, "unit %d: at byte %d is %ld, not %ld", unit, i,
                         *(long *)(memory + i), *(long *)(image + i));
}

static void attribute_is(MPI_Win win, int unit)
{
    int *found, flag;
    OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &found, &flag));
    CHECK(flag);
    CHECK_EQ(*found, unit);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    char *memory = heap_memory(BYTES);
    for (int turn = 0; turn < UNITS; turn++) {
        memset(memory, 0, BYTES);
        MPI_Win win = window_over(memory, BYTES, unit_of(rank, turn));
        attribute_is(win, unit_of(rank, turn));
        OK(MPI_Win_lock_all(0, win));
        for (int target = 0; target < size; target++)
            fill_slots(win, target, turn);
        OK(MPI_Win_unlock_all(win));
        lock_own_memory(win);
        check_memory(memory, turn);
        unlock_own_memory(win);
        OK(MPI_Win_free(&win));
    }
    return check_end();
}
