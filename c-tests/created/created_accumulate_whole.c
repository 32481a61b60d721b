// Ranks replace the same elements by values of their own while others read and swap them: what any
// accumulate call sees is one of these values as a whole. Every byte of a value is the same, so
// that a part of another one shows. MPI-4.1 section 12.7.1.
// ranks: 1 2 3 4
// plain ranks: 2 4

#include "created.h"

// The element that is swapped lies across two pages where the base is odd.
enum { COUNT = 2100, BYTES_MAX = 16, ROUNDS = 20, KINDS = 4, PAGE = 4096 };

struct kind {
    MPI_Datatype datatype;
    int bytes, is_integer;
};

static MPI_Win win;
static _Alignas(16) signed char values[COUNT * BYTES_MAX], got[COUNT * BYTES_MAX];

// The byte of a value that a rank writes.
static signed char mark(int origin, int round)
{
    return (signed char)(1 + origin * ROUNDS + round);
}

static void whole(const struct kind *kind, int elements)
{
    for (int i = 0; i < elements; i++) {
        const signed char *at = got + i * kind->bytes;
        for (int k = 0; k < kind->bytes; k++)
            if (at[k] != at[0] || at[0] < 0 || at[0] > mark(size - 1, ROUNDS - 1))
                check_failed(__FILE__, __LINE__, "%d bytes wide: element %d has %d and %d",
                             kind->bytes, i, at[0], at[k]);
    }
}

static void swap(const struct kind *kind, int target, int hot)
{
    _Alignas(16) signed char seen[BYTES_MAX];
    OK(MPI_Fetch_and_op(values, got, kind->datatype, target, hot, MPI_REPLACE, win));
    OK(MPI_Win_flush(target, win));
    whole(kind, 1);
    if (!kind->is_integer)
        return;
    // Against what was there a moment ago, which may be there no longer.
    memcpy(seen, got, sizeof seen);
    OK(MPI_Compare_and_swap(values, seen, got, kind->datatype, target, hot, win));
    OK(MPI_Win_flush(target, win));
    whole(kind, 1);
}

static void replace(const struct kind *kind, int target, int hot, int round)
{
    MPI_Datatype type = kind->datatype;
    memset(values, mark(rank, round), sizeof values);
    switch ((rank + round) % 4) {
    case 0:
        OK(MPI_Accumulate(values, COUNT, type, target, 0, COUNT, type, MPI_REPLACE, win));
        OK(MPI_Win_flush(target, win));
        break;
    case 1:
        OK(MPI_Get_accumulate(values, COUNT, type, got, COUNT, type, target, 0, COUNT, type,
                              MPI_REPLACE, win));
        OK(MPI_Win_flush(target, win));
        whole(kind, COUNT);
        break;
    case 2:
        for (int i = 0; i < 5; i++)
            swap(kind, target, hot);
        break;
    case 3:
        OK(MPI_Get_accumulate(NULL, 0, type, got, COUNT, type, target, 0, COUNT, type, MPI_NO_OP,
                              win));
        OK(MPI_Win_flush(target, win));
        whole(kind, COUNT);
        break;
    }
}

static void try(const struct kind *kind, char *memory, int shift)
{
    memset(memory, 0, 2 * PAGE + COUNT * BYTES_MAX);
    win = window_over(memory + shift, COUNT * kind->bytes, kind->bytes);
    OK(MPI_Win_lock_all(0, win));
    for (int round = 0; round < ROUNDS; round++)
        replace(kind, round % 3 == 0 ? next_rank() : 0, (PAGE - 1) / kind->bytes, round);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    const struct kind kinds[KINDS] = {{MPI_INT16_T, 2, 1}, {MPI_INT32_T, 4, 1},
                                      {MPI_INT64_T, 8, 1}, {MPI_C_DOUBLE_COMPLEX, 16, 0}};
    void *memory = NULL;
    check_start(&argc, &argv);
    char *from_mpi = mpi_memory(2 * PAGE + COUNT * BYTES_MAX);
    CHECK_EQ(posix_memalign(&memory, PAGE, 2 * PAGE + COUNT * BYTES_MAX), 0);
    for (int i = 0; i < KINDS; i++) {
        try(&kinds[i], memory, 0);
        try(&kinds[i], memory, 1);
        try(&kinds[i], memory, PAGE - 3);
        try(&kinds[i], rank % 2 == 0 ? from_mpi : memory, i % 2);
    }
    OK(MPI_Free_mem(from_mpi));
    return check_end();
}
