// Counts of more than 2^31 bytes, as MPI_Count of MPI_BYTE and of MPI_INT8_T, in every call that
// takes them; on a created window in some of them only, because it takes long. Needs 7 GB of memory, so it runs only when
// FOMPI_TEST_LARGE is 1. MPI-4.1 sections 12.3 and 19.1.6.
// ranks: 2

#include "check.h"

#if MPI_VERSION >= 4

static const MPI_Count count = ((MPI_Count)1 << 31) + 4099;

// A value that depends on the whole place, not on its lower bits alone.
static signed char value_at(MPI_Count place) { return (signed char)(place >> 20 ^ place); }

static void holds(const signed char *memory, int factor)
{
    for (MPI_Count i = 0; i < count; i += 4093)
        CHECK_EQ(memory[i], (signed char)(factor * value_at(i)));
    CHECK_EQ(memory[count - 1], (signed char)(factor * value_at(count - 1)));
}

static void some_transfers(MPI_Win win, signed char *values, signed char *got)
{
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
    OK(MPI_Put_c(values, count, MPI_BYTE, 1, 0, count, MPI_BYTE, win));
    OK(MPI_Win_flush(1, win));
    OK(MPI_Accumulate_c(values, count, MPI_INT8_T, 1, 0, count, MPI_INT8_T, MPI_SUM, win));
    OK(MPI_Win_flush(1, win));
    OK(MPI_Get_c(got, count, MPI_BYTE, 1, 0, count, MPI_BYTE, win));
    OK(MPI_Win_unlock(1, win));
    holds(got, 2);
}

static void all_transfers(MPI_Win win, signed char *values, signed char *got)
{
    MPI_Request request;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
    OK(MPI_Put_c(values, count, MPI_BYTE, 1, 0, count, MPI_BYTE, win));
    OK(MPI_Win_flush(1, win));
    OK(MPI_Get_c(got, count, MPI_BYTE, 1, 0, count, MPI_BYTE, win));
    OK(MPI_Win_flush(1, win));
    holds(got, 1);
    OK(MPI_Accumulate_c(values, count, MPI_INT8_T, 1, 0, count, MPI_INT8_T, MPI_SUM, win));
    OK(MPI_Get_accumulate_c(values, count, MPI_INT8_T, got, count, MPI_INT8_T, 1, 0, count,
                            MPI_INT8_T, MPI_SUM, win));
    OK(MPI_Win_flush(1, win));
    holds(got, 2);
    OK(MPI_Rget_c(got, count, MPI_BYTE, 1, 0, count, MPI_BYTE, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    holds(got, 3);
    OK(MPI_Rput_c(values, count, MPI_BYTE, 1, 0, count, MPI_BYTE, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Win_flush(1, win));
    OK(MPI_Raccumulate_c(values, count, MPI_INT8_T, 1, 0, count, MPI_INT8_T, MPI_SUM, win,
                         &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Rget_accumulate_c(values, count, MPI_INT8_T, got, count, MPI_INT8_T, 1, 0, count,
                             MPI_INT8_T, MPI_REPLACE, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    holds(got, 2);
    OK(MPI_Win_unlock(1, win));
}

static void check(MPI_Win win, const signed char *base, int factor)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    if (rank == 1)
        holds(base, factor);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Win_free(&win));
}

static void large(void)
{
    const MPI_Aint bytes = rank == 1 ? (MPI_Aint)count : 0;
    signed char *values = NULL, *got = NULL, *memory = NULL, *base;
    MPI_Win win;
    if (rank == 0) {
        values = malloc((size_t)count);
        got = malloc((size_t)count);
        CHECK(values != NULL && got != NULL);
        for (MPI_Count i = 0; i < count; i++)
            values[i] = value_at(i);
    }
    OK(MPI_Win_allocate_c(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    if (rank == 0)
        all_transfers(win, values, got);
    check(win, base, 1);
    if (rank == 1) {
        memory = malloc((size_t)count);
        CHECK(memory != NULL);
    }
    OK(MPI_Win_create_c(memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    if (rank == 0)
        some_transfers(win, values, got);
    check(win, memory, 2);
    free(values);
    free(got);
    free(memory);
}

#else

static void large(void) {}

#endif

int main(int argc, char **argv)
{
    const char *wanted = getenv("FOMPI_TEST_LARGE");
    check_start_within(115, &argc, &argv);
    if (wanted != NULL && strcmp(wanted, "1") == 0)
        large();
    return check_end();
}
