// With the info key fompi_symmetric, the memory of an allocated window begins at one address in all
// processes, whatever their sizes, also where one of them uses addresses that were free in the
// others; and it is the memory that others access. MPI_Win_get_info tells whether it does. An MPI
// that does not know the key may choose any addresses. MPI-4.1 sections 12.2.2 and 12.2.7.
// ranks: 1 2 4

#define _GNU_SOURCE
#include "check.h"

#include <sys/mman.h>

enum { WINDOWS = 5, COUNT = 3000, STEP = 1 << 30 };

static MPI_Info info;

// The window reports the value of a key.
static int reports(MPI_Win win, const char *key, const char *want)
{
    char value[MPI_MAX_INFO_VAL + 1] = "";
    MPI_Info used;
    int flag;
    OK(MPI_Win_get_info(win, &used));
    OK(MPI_Info_get(used, key, MPI_MAX_INFO_VAL, value, &flag));
    OK(MPI_Info_free(&used));
    return flag && (want == NULL || strcmp(value, want) == 0);
}

static int is_ours(MPI_Win win) { return reports(win, "fompi_transport", NULL); }

// The base is that of rank 0 and of MPI_WIN_BASE, and rank 0 has one.
static void check_base(MPI_Win win, int *base, int count)
{
    uintptr_t first = (uintptr_t)base;
    void *attribute;
    int flag;
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &attribute, &flag));
    CHECK(flag && attribute == base);
    OK(MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD));
    if (is_ours(win)) {
        MPI_Aint bytes;
        void *queried;
        int disp_unit;
        CHECK(reports(win, "fompi_symmetric", "true"));
        CHECK(count == 0 || (uintptr_t)base == first);
        OK(MPI_Win_shared_query(win, rank, &bytes, &disp_unit, &queried));
        CHECK_EQ(bytes, count * (MPI_Aint)sizeof(int));
        CHECK(queried == base);
    }
}

// Each rank accesses the next one that has memory by put, get and accumulate, at both ends.
static void use(MPI_Win win, int *base, int count, int target, int target_count)
{
    const int mine[2] = {100 + rank, 200 + rank}, one = 1;
    int got = -1;
    if (count > 0)
        base[0] = base[count - 1] = base[count / 2] = 7;
    OK(MPI_Win_fence(0, win));
    if (target >= 0) {
        OK(MPI_Put(&mine[0], 1, MPI_INT, target, 0, 1, MPI_INT, win));
        OK(MPI_Accumulate(&one, 1, MPI_INT, target, target_count - 1, 1, MPI_INT, MPI_SUM, win));
        OK(MPI_Get(&got, 1, MPI_INT, target, target_count / 2, 1, MPI_INT, win));
    }
    OK(MPI_Win_fence(0, win));
    if (target >= 0)
        CHECK_EQ(got, 7);
    if (count > 0) {
        CHECK(base[0] >= 100 && base[0] < 100 + size);
        CHECK_EQ(base[count - 1], 8);
        CHECK_EQ(base[count / 2], 7);
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

static void occupy(char *at, size_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    CHECK(mmap(at, bytes, PROT_NONE, flags, -1, 0) != MAP_FAILED);
}

// The elements of a rank; the last of several ranks has none.
static int count_of(int of) { return size > 1 && of == size - 1 ? 0 : COUNT + of * 1500; }

int main(int argc, char **argv)
{
    MPI_Win wins[WINDOWS];
    int *bases[WINDOWS];
    check_start(&argc, &argv);
    const int count = count_of(rank), users = size > 1 ? size - 1 : 1;
    const int target = count > 0 ? (rank + 1) % users : -1;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "fompi_symmetric", "true"));
    for (int i = 0; i < WINDOWS; i++) {
        OK(MPI_Win_allocate(count * (MPI_Aint)sizeof(int), sizeof(int), info, MPI_COMM_WORLD,
                            &bases[i], &wins[i]));
        check_base(wins[i], bases[i], count);
        // One process uses the next addresses, another one those that are free there.
        if (rank > 0 && rank == size - 2 && is_ours(wins[i]) && i % 2 == 0)
            occupy((char *)bases[i] + STEP, 3L * STEP);
        if (rank == 0 && is_ours(wins[i]) && i % 2 == 0)
            occupy((char *)bases[i] + 4L * STEP, STEP);
    }
    for (int i = 0; i < WINDOWS; i++)
        use(wins[i], bases[i], count, target, target >= 0 ? count_of(target) : 0);
    // Those that stay are as they were when others are freed.
    for (int i = 0; i < WINDOWS; i += 2)
        OK(MPI_Win_free(&wins[i]));
    for (int i = 1; i < WINDOWS; i += 2) {
        use(wins[i], bases[i], count, target, target >= 0 ? count_of(target) : 0);
        OK(MPI_Win_free(&wins[i]));
    }
    // Without the key nothing is promised.
    OK(MPI_Info_set(info, "fompi_symmetric", "false"));
    OK(MPI_Win_allocate(sizeof(int), sizeof(int), info, MPI_COMM_WORLD, &bases[0], &wins[0]));
    CHECK(!is_ours(wins[0]) || reports(wins[0], "fompi_symmetric", "false"));
    OK(MPI_Win_free(&wins[0]));
    OK(MPI_Info_free(&info));
    return check_end();
}
