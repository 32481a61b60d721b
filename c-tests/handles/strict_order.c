// FOMPI_ORDER=strict: each window behaves as with fompi_attributes=ordered, which MPI_Win_get_info says; memory
// handles, too. The plain MPI has no such setting.
// ranks: 2 3
// settings: FOMPI_ORDER=strict

#include "handles.h"

enum { COUNT = 3000, ROUNDS = 200 };

static long loaded(MPI_Win win, const long *at)
{
    OK(MPI_Win_sync(win));
    return *(const volatile long *)at;
}

// A small put to memory of the heap, which may wait, and a long one behind it.
static void check_window(void)
{
    const MPI_Aint bytes = (COUNT + 1) * (MPI_Aint)sizeof(long);
    long *base = calloc(COUNT + 1, sizeof *base), values[COUNT];
    char value[64] = "";
    int is_there;
    MPI_Info info;
    MPI_Win win;
    OK(MPI_Win_create(base, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_get(info, "fompi_attributes", 63, value, &is_there));
    CHECK(is_there && strcmp(value, "ordered") == 0);
    OK(MPI_Info_free(&info));
    OK(MPI_Win_lock_all(0, win));
    for (long round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            values[i] = round;
        OK(MPI_Put(&round, 1, MPI_LONG, next_rank(), COUNT, 1, MPI_LONG, win));
        OK(MPI_Put(values, COUNT, MPI_LONG, next_rank(), 0, COUNT, MPI_LONG, win));
        while (loaded(win, &base[COUNT - 1]) != round)
            ;
        CHECK_EQ(base[COUNT], round);
        OK(MPI_Win_flush_all(win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    free(base);
}

// An accumulate and a put behind it.
static void check_handles(void)
{
    FOMPI_Mem mems[64];
    MPI_Win win = dynamic_window();
    long *base = NULL, one = 1;
    share(win, (void **)&base, 2 * sizeof(long), mems);
    base[0] = base[1] = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (long round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < size; i++)
            OK(FOMPI_Mem_accumulate(&one, 1, MPI_LONG, mems[next_rank()], 0, MPI_SUM, 0));
        OK(FOMPI_Mem_put(&round, 1, MPI_LONG, mems[next_rank()], sizeof(long), FOMPI_BLOCKING));
        while (loaded(win, &base[1]) < round)
            ;
        CHECK(*(const volatile long *)base >= size * round);
    }
    OK(FOMPI_Complete(FOMPI_ALL_RANKS, win));
    unshare(mems);
    OK(MPI_Free_mem(base));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    check_start_within(60, &argc, &argv);
    if (has_handles()) {
        check_window();
        check_handles();
    }
    return check_end();
}
