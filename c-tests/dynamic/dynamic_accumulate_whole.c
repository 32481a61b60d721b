// Elements that are wider than a word are replaced in attached memory while others, and the target
// itself, read them with accumulate calls: nobody sees half of an element. MPI-4.1 section 12.7.1.
// ranks: 2 4

#include "dynamic.h"

#include <complex.h>

enum { ROUNDS = 300, COUNT = 40 };

static MPI_Win win;

static void replace(MPI_Aint there, int round)
{
    double complex values[COUNT];
    const double mark = 1000 * rank + round;
    for (int i = 0; i < COUNT; i++)
        values[i] = mark + mark * I;
    OK(MPI_Accumulate(values, COUNT, MPI_C_DOUBLE_COMPLEX, 0, there, COUNT, MPI_C_DOUBLE_COMPLEX,
                      MPI_REPLACE, win));
    OK(MPI_Win_flush(0, win));
}

static void read_there(MPI_Aint there, int element)
{
    double complex got[COUNT], one = -1;
    const MPI_Aint place = MPI_Aint_add(there, element * (MPI_Aint)sizeof one);
    OK(MPI_Get_accumulate(NULL, 0, MPI_C_DOUBLE_COMPLEX, got, COUNT, MPI_C_DOUBLE_COMPLEX, 0,
                          there, COUNT, MPI_C_DOUBLE_COMPLEX, MPI_NO_OP, win));
    OK(MPI_Fetch_and_op(NULL, &one, MPI_C_DOUBLE_COMPLEX, 0, place, MPI_NO_OP, win));
    OK(MPI_Win_flush(0, win));
    for (int i = 0; i < COUNT; i++)
        CHECK(creal(got[i]) == cimag(got[i]));
    CHECK(creal(one) == cimag(one));
}

static void one_memory(double complex *memory)
{
    MPI_Aint places[RANKS_MAX];
    memset(memory, 0, COUNT * sizeof *memory);
    OK(MPI_Win_attach(win, memory, COUNT * sizeof *memory));
    exchange(memory, places);
    OK(MPI_Win_lock_all(0, win));
    for (int round = 0; round < ROUNDS; round++) {
        if ((rank + round) % 2 == 0)
            replace(places[0], round);
        else
            read_there(places[0], round % COUNT);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, memory));
}

int main(int argc, char **argv)
{
    double complex *memory;
    check_start(&argc, &argv);
    win = dynamic_window();
    double complex *heap = malloc(COUNT * sizeof *heap);
    OK(MPI_Alloc_mem(COUNT * sizeof *memory, MPI_INFO_NULL, &memory));
    one_memory(heap);
    one_memory(memory);
    free(heap);
    OK(MPI_Free_mem(memory));
    OK(MPI_Win_free(&win));
    return check_end();
}
