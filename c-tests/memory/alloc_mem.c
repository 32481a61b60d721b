// Memory from MPI_Alloc_mem can be used, as a buffer and as a window, and given back. What is not
// given back can be used until the process ends. MPI-4.1 sections 9.2 and 12.2.1.
// ranks: 2 4

#include "check.h"

enum { BYTES = 1 << 20, LONGS = BYTES / sizeof(long) };

static void check_as_window(long *memory)
{
    MPI_Win win;
    long value = 11 + rank;
    memset(memory, 0, BYTES);
    OK(MPI_Win_create(memory, BYTES, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), 1000, 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(memory[1000], 11 + previous_rank());
    OK(MPI_Win_free(&win));
}

static void check_as_buffers(long *sent, long *received)
{
    for (int i = 0; i < LONGS; i++)
        sent[i] = 1000L * rank + i;
    OK(MPI_Sendrecv(sent, LONGS, MPI_LONG, next_rank(), 0, received, LONGS, MPI_LONG,
                    previous_rank(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < LONGS; i++)
        CHECK_EQ(received[i], 1000L * previous_rank() + i);
    OK(MPI_Sendrecv_replace(sent, LONGS, MPI_LONG, next_rank(), 0, previous_rank(), 0,
                            MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(memcmp(sent, received, BYTES) == 0);
}

int main(int argc, char **argv)
{
    long *memory, *other, *last;
    char *none[2];
    check_start(&argc, &argv);
    OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &memory));
    OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &other));
    OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &last));
    CHECK((uintptr_t)memory % sizeof(long double) == 0);
    check_as_window(memory);
    check_as_buffers(memory, other);
    OK(MPI_Free_mem(memory));
    OK(MPI_Free_mem(other));
    // No bytes are an address that can be given back, or NULL.
    OK(MPI_Alloc_mem(0, MPI_INFO_NULL, &none[0]));
    OK(MPI_Alloc_mem(0, MPI_INFO_NULL, &none[1]));
    CHECK(none[0] == NULL || none[0] != none[1]);
    OK(MPI_Free_mem(none[0]));
    OK(MPI_Free_mem(none[1]));
    for (int i = 0; i < LONGS; i++)
        last[i] = i;
    check_end();
    for (int i = 0; i < LONGS; i++)
        if (last[i] != i)
            return 1;
    memset(last, 1, BYTES);
    return 0;
}
