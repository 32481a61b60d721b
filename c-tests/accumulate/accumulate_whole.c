// Ranks add one to all elements of a run by one call while others read the run, or single elements
// of it, by accumulate calls: a run always reads as one number, and nobody ever reads a smaller
// number than before. Bytes are replaced as a whole by one rank. Each call takes effect at one time:
// the examples of MPI-4.1 section 12.7.1 promise it for elements, and every MPI for calls.
// ranks: 1 2 4
// plain ranks: 2

#include "created.h"
#include "dynamic.h"
#include "nodes.h"

#include <complex.h>

enum { BYTES_MAX = 4096, SHIFT = 16, SIZES = 4, KINDS = 5 };

struct kind {
    MPI_Datatype datatype;
    int bytes;
};

static MPI_Win win;
static const struct kind *kind;
// Elements of the run, where it is, in units of displacement, and bytes of the unit.
static int count, unit, between_nodes, rounds = 150;
static MPI_Aint start;
static int64_t last;
static _Alignas(16) char operands[BYTES_MAX], got[BYTES_MAX];

static int is_bytes(void) { return kind->datatype == MPI_BYTE; }

// What all elements of the run are to add, or for bytes the number that each eight of them make.
static void fill(int64_t number)
{
    for (int i = 0; i < count; i++) {
        char *at = operands + i * kind->bytes;
        if (kind->datatype == MPI_INT32_T)
            *(int32_t *)at = (int32_t)number;
        else if (kind->datatype == MPI_INT64_T)
            *(int64_t *)at = number;
        else if (kind->datatype == MPI_DOUBLE)
            *(double *)at = (double)number;
        else if (kind->datatype == MPI_C_DOUBLE_COMPLEX)
            *(double complex *)at = (double)number + (double)number * I;
        else
            *at = ((const char *)&number)[i % 8];
    }
}

// The number that an element, or eight bytes, in `got` make.
static int64_t number(int index)
{
    const char *at = got + index * (is_bytes() ? 8 : kind->bytes);
    if (kind->datatype == MPI_INT32_T)
        return *(const int32_t *)at;
    if (kind->datatype == MPI_DOUBLE)
        return (int64_t)*(const double *)at;
    if (kind->datatype == MPI_C_DOUBLE_COMPLEX) {
        CHECK(creal(*(const double complex *)at) == cimag(*(const double complex *)at));
        return (int64_t)creal(*(const double complex *)at);
    }
    return *(const int64_t *)at;
}

static void saw(const char *what, int numbers)
{
    for (int i = 0; i < numbers; i++)
        if (number(i) != number(0))
            check_failed(__FILE__, __LINE__, "%s of %d bytes: %lld and, at %d, %lld", what,
                         count * kind->bytes, (long long)number(0), i, (long long)number(i));
    if (number(0) < last)
        check_failed(__FILE__, __LINE__, "%s of %d bytes: %lld, and %lld before", what,
                     count * kind->bytes, (long long)number(0), (long long)last);
    last = number(0);
}

static int numbers(void) { return is_bytes() ? count / 8 : count; }

static void change(int round)
{
    MPI_Datatype type = kind->datatype;
    MPI_Op op = is_bytes() ? MPI_REPLACE : MPI_SUM;
    MPI_Request request = MPI_REQUEST_NULL;
    int fetches = round / 2 % 2;
    fill(is_bytes() ? round + 1 : 1);
    switch (round / 2 % 4) {
    case 0:
        OK(MPI_Accumulate(operands, count, type, 0, start, count, type, op, win));
        break;
    case 1:
        OK(MPI_Get_accumulate(operands, count, type, got, count, type, 0, start, count, type, op,
                              win));
        break;
    case 2:
        OK(MPI_Raccumulate(operands, count, type, 0, start, count, type, op, win, &request));
        break;
    case 3:
        OK(MPI_Rget_accumulate(operands, count, type, got, count, type, 0, start, count, type, op,
                               win, &request));
        break;
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Win_flush(0, win));
    if (fetches)
        saw("change", numbers());
}

// One element, or eight bytes, of the run: one of the first, and then one of the last, in the order
// in which other ranks change them.
static void look_at_one(int round)
{
    MPI_Datatype type = is_bytes() ? MPI_INT64_T : kind->datatype;
    const int bytes = is_bytes() ? 8 : kind->bytes;
    const int n = numbers(), index = round % 2 == 0 ? round / 2 % n : n - 1 - round / 2 % n;
    const MPI_Aint at = start + (MPI_Aint)index * bytes / unit;
    const int64_t never = -1;
    if (round % 3 == 0) {
        OK(MPI_Get_accumulate(NULL, 0, type, got, 1, type, 0, at, 1, type, MPI_NO_OP, win));
    } else if (round % 3 == 1 && (type == MPI_INT64_T || type == MPI_INT32_T)) {
        OK(MPI_Compare_and_swap(&never, &never, got, type, 0, at, win));
    } else {
        OK(MPI_Fetch_and_op(NULL, got, type, 0, at, MPI_NO_OP, win));
    }
    OK(MPI_Win_flush(0, win));
    saw("one", 1);
}

static void look_at_all(void)
{
    MPI_Datatype type = kind->datatype;
    OK(MPI_Get_accumulate(NULL, 0, type, got, count, type, 0, start, count, type, MPI_NO_OP, win));
    OK(MPI_Win_flush(0, win));
    saw("all", numbers());
}

static void one_run(void)
{
    last = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 0; round < rounds; round++) {
        const int changes = is_bytes() ? rank == size - 1 : (rank + round) % 2 == 0;
        if (changes)
            change(round);
        // Between nodes eight bytes of MPI_BYTE are no word.
        for (int i = 0; i < (between_nodes && is_bytes() ? 0 : 4); i++)
            look_at_one(4 * round + i);
        if (round % 4 == 0)
            look_at_all();
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// All kinds and sizes on memory of rank 0, which begins at `zero`.
static void all_runs(char *memory, MPI_Aint zero)
{
    const struct kind kinds[KINDS] = {{MPI_BYTE, 1},
                                      {MPI_INT32_T, 4},
                                      {MPI_INT64_T, 8},
                                      {MPI_DOUBLE, 8},
                                      {MPI_C_DOUBLE_COMPLEX, 16}};
    const int sizes[SIZES] = {16, 24, 64, BYTES_MAX};
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < KINDS * SIZES; i++) {
        kind = &kinds[i / SIZES];
        count = sizes[i % SIZES] / kind->bytes;
        // Runs of four bytes each begin in the middle of a word.
        start = zero + (kind->bytes == 4 ? 4 : SHIFT) / unit;
        if (rank == 0) {
            OK(MPI_Win_sync(win));
            memset(memory, 0, BYTES_MAX + SHIFT);
            OK(MPI_Win_sync(win));
        }
        one_run();
    }
    OK(MPI_Win_unlock_all(win));
}

int main(int argc, char **argv)
{
    MPI_Aint places[RANKS_MAX];
    void *base;
    check_start(&argc, &argv);
    between_nodes = ranks_per_node() > 0;
    if (between_nodes)
        rounds = 20;
    unit = 4;
    OK(MPI_Win_allocate(BYTES_MAX + SHIFT, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    all_runs(base, 0);
    OK(MPI_Win_free(&win));

    char *memories[] = {heap_memory(BYTES_MAX + SHIFT), mpi_memory(BYTES_MAX + SHIFT)};
    for (int i = 0; i < 2; i++) {
        unit = 4;
        win = window_over(memories[i], BYTES_MAX + SHIFT, unit);
        all_runs(memories[i], 0);
        OK(MPI_Win_free(&win));

        unit = 1;
        win = dynamic_window();
        OK(MPI_Win_attach(win, memories[i], BYTES_MAX + SHIFT));
        exchange(memories[i], places);
        all_runs(memories[i], places[0]);
        OK(MPI_Win_detach(win, memories[i]));
        OK(MPI_Win_free(&win));
    }
    OK(MPI_Free_mem(memories[1]));
    return check_end();
}
