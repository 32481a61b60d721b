// Compare_and_swap on every datatype that it allows: it swaps when equal, leaves alone when not,
// touches no neighbour, and always returns what was there. MPI-4.1 section 12.3.4.
// ranks: 1 2 4

#include "types.h"

static MPI_Win win;
static char *base;

static void try(const struct type *type)
{
    _Alignas(16) char values[3 * ELEMENT_BYTES_MAX], wrong[ELEMENT_BYTES_MAX];
    _Alignas(16) char fresh[ELEMENT_BYTES_MAX], seen[2][ELEMENT_BYTES_MAX];
    int truth = type->group == LOGICAL;
    for (int i = 0; i < 3; i++)
        set_element(type, values, i, truth ? i % 2 : 40 + i);
    set_element(type, wrong, 0, truth ? 0 : 99);
    set_element(type, fresh, 0, truth ? 0 : 77);
    memcpy(base, values, (size_t)(3 * type->bytes));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Compare_and_swap(fresh, wrong, seen[0], type->datatype, next_rank(), type->bytes, win));
    OK(MPI_Compare_and_swap(fresh, values + type->bytes, seen[1], type->datatype, next_rank(),
                            type->bytes, win));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 2; i++)
        if (!same_element(type, seen[i], values + type->bytes, 0))
            check_failed(__FILE__, __LINE__, "%s: result %d is wrong", type->name, i);
    if (!same_element(type, base + type->bytes, fresh, 0))
        check_failed(__FILE__, __LINE__, "%s: not swapped", type->name);
    if (!same_element(type, base, values, 0) || !same_element(type, base, values, 2))
        check_failed(__FILE__, __LINE__, "%s: a neighbour was touched", type->name);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    struct type types[TYPES_MAX];
    check_start(&argc, &argv);
    base = window_of(4 * ELEMENT_BYTES_MAX, 1, &win);
    int count = all_types(types);
    for (int t = 0; t < count; t++) {
        enum group group = types[t].group;
        if (group == C_INTEGER || group == FORTRAN_INTEGER || group == LOGICAL || group == BYTE ||
            group == MULTI_LANGUAGE)
            try(&types[t]);
    }
    OK(MPI_Win_free(&win));
    return check_end();
}
