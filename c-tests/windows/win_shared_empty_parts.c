// A part of 0 bytes of a contiguous shared window begins where the part before ends: each rank
// computes the addresses of all parts from its own address and the sizes. MPI-4.1 section 12.2.3.
// ranks: 1 2 3 4
// between nodes: shared windows are left to the host MPI

#include "check.h"

enum { RANKS_MAX = 8, PATTERNS = 6 };

// Bytes of a rank: the first, the last, all but one or none without memory; odd lengths; pages.
static MPI_Aint bytes_of(int pattern, int r)
{
    switch (pattern) {
    case 0: return r % 2 == 0 ? 0 : 64;
    case 1: return r % 2 == 0 ? 64 : 0;
    case 2: return r == size - 1 ? 3 : 0;
    case 3: return r == 0 ? 4099 : 0;
    case 4: return r % 3 == 1 ? 0 : 2097152 + r;
    default: return 0;
    }
}

static MPI_Win shared_window(int pattern, MPI_Info info, char **base)
{
    MPI_Win win;
    OK(MPI_Win_allocate_shared(bytes_of(pattern, rank), 1 + rank, info, MPI_COMM_WORLD, base,
                               &win));
    return win;
}

static char *query(MPI_Win win, int r, MPI_Aint *bytes, int *unit)
{
    char *part = (char *)-1;
    *bytes = *unit = -1;
    OK(MPI_Win_shared_query(win, r, bytes, unit, &part));
    return part;
}

// Which ranks have memory, the units, and MPI_PROC_NULL, which stands for the lowest rank with
// memory. Returns whether there is such a rank.
static int answers_of_query(MPI_Win win, int pattern)
{
    MPI_Aint bytes;
    int unit, lowest = -1;
    for (int r = 0; r < size; r++) {
        query(win, r, &bytes, &unit);
        CHECK_EQ(bytes > 0, bytes_of(pattern, r) > 0);
        CHECK_EQ(unit, 1 + r);
        if (lowest < 0 && bytes > 0)
            lowest = r;
    }
    const char *part = query(win, MPI_PROC_NULL, &bytes, &unit);
    CHECK_EQ(bytes > 0, lowest >= 0);
    if (lowest >= 0) {
        CHECK_EQ(unit, 1 + lowest);
        CHECK(part == query(win, lowest, &bytes, &unit));
    }
    return lowest >= 0;
}

// Each rank stores through the address that it has computed, the owner through its own.
static void store_through(MPI_Win win, int pattern, char *first, char *base)
{
    MPI_Aint place = 0;
    OK(MPI_Win_fence(0, win));
    for (int r = 0; r < size; r++) {
        if (r == next_rank() && bytes_of(pattern, r) > 0)
            first[place] = (char)(r + 1);
        place += bytes_of(pattern, r);
    }
    OK(MPI_Win_fence(0, win));
    if (bytes_of(pattern, rank) > 0)
        CHECK_EQ(*base, rank + 1);
    OK(MPI_Win_fence(0, win));
}

static void consecutive(int pattern)
{
    char *base = (char *)-1, **of_window;
    MPI_Aint bytes, place = 0;
    int unit, flag;
    MPI_Win win = shared_window(pattern, MPI_INFO_NULL, &base);
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &of_window, &flag));
    CHECK(flag && (char *)of_window == base);
    if (answers_of_query(win, pattern)) {
        for (int r = 0; r < rank; r++)
            place += bytes_of(pattern, r);
        char *first = base - place;
        CHECK(first == query(win, MPI_PROC_NULL, &bytes, &unit));
        place = 0;
        for (int r = 0; r < size; r++) {
            CHECK(query(win, r, &bytes, &unit) == first + place);
            CHECK_EQ(bytes, bytes_of(pattern, r));
            place += bytes;
        }
        store_through(win, pattern, first, base);
    }
    OK(MPI_Win_free(&win));
}

// The parts may lie anywhere. The address of an empty one is null, as all MPIs have it: MPICH's own
// test win_shared_noncontig_put requires that.
static void apart(int pattern)
{
    MPI_Info info;
    MPI_Aint bytes;
    int unit;
    char *base;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
    MPI_Win win = shared_window(pattern, info, &base);
    OK(MPI_Info_free(&info));
    answers_of_query(win, pattern);
    for (int r = 0; r < size; r++)
        CHECK_EQ(query(win, r, &bytes, &unit) == NULL, bytes_of(pattern, r) == 0);
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    // A window may get the memory of the one before.
    for (int pattern = 0; pattern < 2 * PATTERNS; pattern++)
        consecutive(pattern / 2);
    for (int pattern = 0; pattern < PATTERNS; pattern++)
        apart(pattern);
    return check_end();
}
