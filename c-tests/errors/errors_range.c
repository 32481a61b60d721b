// A transfer that leaves the target's window in any part is refused before anything moves.
// MPI-4.1 sections 12.2 and 12.6.2.
// ranks: 1 2 4
// settings: FOMPI_STRICT=1

#include "check.h"

enum { LONGS = 8 };

static MPI_Win win;

static void outside(MPI_Aint disp, int count)
{
    static long values[4 * LONGS], got[4 * LONGS];
    int target = next_rank();
    MPI_Request request;
    EXPECT(MPI_Put(values, count, MPI_LONG, target, disp, count, MPI_LONG, win),
           MPI_ERR_RMA_RANGE, MPI_ERR_DISP);
    EXPECT(MPI_Get(got, count, MPI_LONG, target, disp, count, MPI_LONG, win), MPI_ERR_RMA_RANGE,
           MPI_ERR_DISP);
    EXPECT(MPI_Accumulate(values, count, MPI_LONG, target, disp, count, MPI_LONG, MPI_SUM, win),
           MPI_ERR_RMA_RANGE, MPI_ERR_DISP);
    EXPECT(MPI_Get_accumulate(values, count, MPI_LONG, got, count, MPI_LONG, target, disp, count,
                              MPI_LONG, MPI_SUM, win), MPI_ERR_RMA_RANGE, MPI_ERR_DISP);
    EXPECT(MPI_Rput(values, count, MPI_LONG, target, disp, count, MPI_LONG, win, &request),
           MPI_ERR_RMA_RANGE, MPI_ERR_DISP);
    EXPECT(MPI_Rget(got, count, MPI_LONG, target, disp, count, MPI_LONG, win, &request),
           MPI_ERR_RMA_RANGE, MPI_ERR_DISP);
}

static void single_words(MPI_Aint disp)
{
    long value = 1, got = 1;
    int target = next_rank();
    EXPECT(MPI_Fetch_and_op(&value, &got, MPI_LONG, target, disp, MPI_SUM, win),
           MPI_ERR_RMA_RANGE, MPI_ERR_DISP);
    EXPECT(MPI_Compare_and_swap(&value, &value, &got, MPI_LONG, target, disp, win),
           MPI_ERR_RMA_RANGE, MPI_ERR_DISP);
}

// Shapes whose last or first byte lies outside though their place is inside.
static void shapes(void)
{
    MPI_Datatype wide, backwards;
    long values[4 * LONGS] = {0};
    OK(MPI_Type_vector(2, 1, LONGS, MPI_LONG, &wide));
    OK(MPI_Type_commit(&wide));
    OK(MPI_Type_vector(2, 1, -2, MPI_LONG, &backwards));
    OK(MPI_Type_commit(&backwards));
    EXPECT(MPI_Put(values, 2, MPI_LONG, next_rank(), 0, 1, wide, win), MPI_ERR_RMA_RANGE,
           MPI_ERR_DISP);
    EXPECT(MPI_Put(values, 2, MPI_LONG, next_rank(), 1, 1, backwards, win), MPI_ERR_RMA_RANGE,
           MPI_ERR_DISP);
    OK(MPI_Put(values, 2, MPI_LONG, next_rank(), 2, 1, backwards, win));
    OK(MPI_Type_free(&wide));
    OK(MPI_Type_free(&backwards));
}

// A type of one block, at `first` longs from its address, with a byte outside.
static void one_block(int first, int longs, MPI_Aint disp)
{
    MPI_Datatype type;
    long values[4 * LONGS] = {0};
    OK(MPI_Type_indexed(1, &longs, &first, MPI_LONG, &type));
    OK(MPI_Type_commit(&type));
    // The first call finds out what the type is, the second one knows.
    for (int i = 0; i < 2; i++) {
        EXPECT(MPI_Put(values, longs, MPI_LONG, next_rank(), disp, 1, type, win),
               MPI_ERR_RMA_RANGE, MPI_ERR_DISP);
        EXPECT(MPI_Get(values, longs, MPI_LONG, next_rank(), disp, 1, type, win),
               MPI_ERR_RMA_RANGE, MPI_ERR_DISP);
    }
    OK(MPI_Type_free(&type));
}

// As many longs at equal distances, with the last one or the first one outside.
static void row(int longs, int stride, MPI_Aint disp)
{
    MPI_Datatype type;
    long values[4 * LONGS] = {0};
    OK(MPI_Type_vector(longs, 1, stride, MPI_LONG, &type));
    OK(MPI_Type_commit(&type));
    for (int i = 0; i < 2; i++) {
        EXPECT(MPI_Put(values, longs, MPI_LONG, next_rank(), disp, 1, type, win),
               MPI_ERR_RMA_RANGE, MPI_ERR_DISP);
        EXPECT(MPI_Get(values, 1, type, next_rank(), disp, 1, type, win),
               MPI_ERR_RMA_RANGE, MPI_ERR_DISP);
    }
    OK(MPI_Type_free(&type));
}

// Three longs at irregular places, one of them outside.
static void irregular(int second, int third, MPI_Aint disp)
{
    MPI_Datatype type;
    long values[4 * LONGS] = {0};
    const int places[3] = {0, second, third};
    OK(MPI_Type_create_indexed_block(3, 1, places, MPI_LONG, &type));
    OK(MPI_Type_commit(&type));
    for (int i = 0; i < 2; i++) {
        EXPECT(MPI_Put(values, 3, MPI_LONG, next_rank(), disp, 1, type, win), MPI_ERR_RMA_RANGE,
               MPI_ERR_DISP);
        EXPECT(MPI_Get(values, 3, MPI_LONG, next_rank(), disp, 1, type, win), MPI_ERR_RMA_RANGE,
               MPI_ERR_DISP);
        EXPECT(MPI_Put(values, 6, MPI_LONG, next_rank(), disp, 2, type, win), MPI_ERR_RMA_RANGE,
               MPI_ERR_DISP);
        EXPECT(MPI_Get(values, 6, MPI_LONG, next_rank(), disp, 2, type, win), MPI_ERR_RMA_RANGE,
               MPI_ERR_DISP);
    }
    OK(MPI_Type_free(&type));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    long *base = returning_window_of(LONGS * sizeof(long), sizeof(long), &win);
    for (int i = 0; i < LONGS; i++)
        base[i] = 50 + i;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    // The library knows the target from here on.
    const long same = 50;
    OK(MPI_Put(&same, 1, MPI_LONG, next_rank(), 0, 1, MPI_LONG, win));
    OK(MPI_Win_flush(next_rank(), win));
    outside(LONGS, 1);
    outside(LONGS - 1, 2);
    outside(0, LONGS + 1);
    outside(-1, 1);
    outside((MPI_Aint)1 << 60, 1);
    outside(-((MPI_Aint)1 << 60), 1);
    single_words(LONGS);
    single_words(-1);
    one_block(0, LONGS + 1, 0);
    one_block(1, LONGS, 0);
    one_block(-1, 2, 0);
    one_block(-2, 2, 1);
    one_block(LONGS, 1, 0);
    row(2, LONGS, 0);
    row(2, LONGS - 1, 1);
    row(LONGS / 2, 2, 2);
    row(3, -2, 3);
    row(2, 2, LONGS);
    irregular(2, LONGS, 0);
    irregular(LONGS - 1, 2, 1);
    irregular(1, -2, 1);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < LONGS; i++)
        CHECK_EQ(base[i], 50 + i);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    shapes();
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
