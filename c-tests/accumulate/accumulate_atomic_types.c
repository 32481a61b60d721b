// Element-wise atomicity for types of every width, those without an atomic instruction among them:
// all ranks add at once. MPI-4.1 section 12.7.1.
// ranks: 2 4 8
// plain ranks: 2 4

#include "types.h"

enum { ROUNDS = 12, COUNT = 3 };

static void count_up(const struct type *type, MPI_Win win, char *base)
{
    _Alignas(16) char ones[COUNT * ELEMENT_BYTES_MAX], want[COUNT * ELEMENT_BYTES_MAX];
    _Alignas(16) char before[ELEMENT_BYTES_MAX];
    memset(base, 0, COUNT * ELEMENT_BYTES_MAX);
    memset(ones, 0, sizeof ones);
    memset(want, 0, sizeof want);
    for (int i = 0; i < COUNT; i++)
        set_element(type, ones, i, 1);
    for (int i = 0; i < ROUNDS * size; i++)
        OK(MPI_Reduce_local(ones, want, COUNT, type->datatype, MPI_SUM));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < ROUNDS; i++) {
        if ((i + rank) % 3 == 0) {
            // Element by element, by another call.
            for (int k = 0; k < COUNT; k++)
                OK(MPI_Fetch_and_op(ones, before, type->datatype, 0, k * type->bytes, MPI_SUM,
                                    win));
        } else {
            OK(MPI_Accumulate(ones, COUNT, type->datatype, 0, 0, COUNT, type->datatype, MPI_SUM,
                              win));
        }
        OK(MPI_Win_flush(0, win));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; rank == 0 && i < COUNT; i++)
        if (!same_element(type, base, want, i))
            check_failed(__FILE__, __LINE__, "%s: element %d lost updates", type->name, i);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    struct type types[TYPES_MAX];
    MPI_Win win;
    check_start(&argc, &argv);
    char *base = window_of(COUNT * ELEMENT_BYTES_MAX, 1, &win);
    int count = all_types(types);
    for (int t = 0; t < count; t++) {
        MPI_Datatype d = types[t].datatype;
        if (d == MPI_INT8_T || d == MPI_UINT16_T || d == MPI_INT || d == MPI_FLOAT ||
            d == MPI_DOUBLE || d == MPI_LONG_DOUBLE || d == MPI_C_DOUBLE_COMPLEX)
            count_up(&types[t], win, base);
    }
    OK(MPI_Win_free(&win));
    return check_end();
}
