// Wrong arguments of communication calls return the error class that names them, move nothing, and
// leave the window usable by everyone. MPI-4.1 sections 12.3 and 12.6.2.
// ranks: 1 2 4
// settings: FOMPI_STRICT=1

#include "check.h"

static MPI_Win win;
static long value = 7, got = -1;

// Each call with one wrong argument of the kind named.
static void wrong_ranks(void)
{
    static const int ranks[] = {-99, 1 << 20};
    MPI_Request request;
    for (int i = 0; i < 3; i++) {
        int target = i < 2 ? ranks[i] : size;
        EXPECT(MPI_Put(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win), MPI_ERR_RANK);
        EXPECT(MPI_Get(&got, 1, MPI_LONG, target, 0, 1, MPI_LONG, win), MPI_ERR_RANK);
        EXPECT(MPI_Accumulate(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, win),
               MPI_ERR_RANK);
        EXPECT(MPI_Get_accumulate(&value, 1, MPI_LONG, &got, 1, MPI_LONG, target, 0, 1, MPI_LONG,
                                  MPI_SUM, win), MPI_ERR_RANK);
        EXPECT(MPI_Fetch_and_op(&value, &got, MPI_LONG, target, 0, MPI_SUM, win), MPI_ERR_RANK);
        EXPECT(MPI_Compare_and_swap(&value, &value, &got, MPI_LONG, target, 0, win),
               MPI_ERR_RANK);
        EXPECT(MPI_Rput(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win, &request),
               MPI_ERR_RANK);
        EXPECT(MPI_Rget(&got, 1, MPI_LONG, target, 0, 1, MPI_LONG, win, &request),
               MPI_ERR_RANK);
    }
}

static void wrong_counts(int target)
{
    EXPECT(MPI_Put(&value, -1, MPI_LONG, target, 0, 1, MPI_LONG, win), MPI_ERR_COUNT);
    EXPECT(MPI_Put(&value, 1, MPI_LONG, target, 0, -1, MPI_LONG, win), MPI_ERR_COUNT);
    EXPECT(MPI_Get(&got, -1, MPI_LONG, target, 0, 1, MPI_LONG, win), MPI_ERR_COUNT);
    EXPECT(MPI_Get(&got, 1, MPI_LONG, target, 0, -5, MPI_LONG, win), MPI_ERR_COUNT);
    EXPECT(MPI_Accumulate(&value, -1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, win),
           MPI_ERR_COUNT);
    EXPECT(MPI_Get_accumulate(&value, 1, MPI_LONG, &got, -1, MPI_LONG, target, 0, 1, MPI_LONG,
                              MPI_SUM, win), MPI_ERR_COUNT);
}

static void wrong_types(int target)
{
    EXPECT(MPI_Put(&value, 1, MPI_DATATYPE_NULL, target, 0, 1, MPI_LONG, win), MPI_ERR_TYPE);
    EXPECT(MPI_Put(&value, 1, MPI_LONG, target, 0, 1, MPI_DATATYPE_NULL, win), MPI_ERR_TYPE);
    EXPECT(MPI_Get(&got, 1, MPI_DATATYPE_NULL, target, 0, 1, MPI_LONG, win), MPI_ERR_TYPE);
    EXPECT(MPI_Accumulate(&value, 1, MPI_LONG, target, 0, 1, MPI_DATATYPE_NULL, MPI_SUM, win),
           MPI_ERR_TYPE);
}

static void add(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)in;
    (void)inout;
    (void)length;
    (void)type;
}

static void wrong_operations(int target)
{
    MPI_Op own;
    OK(MPI_Op_create(add, 1, &own));
    EXPECT(MPI_Accumulate(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_OP_NULL, win),
           MPI_ERR_OP);
    EXPECT(MPI_Accumulate(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, own, win), MPI_ERR_OP);
    EXPECT(MPI_Fetch_and_op(&value, &got, MPI_LONG, target, 0, own, win), MPI_ERR_OP);
    EXPECT(MPI_Get_accumulate(&value, 1, MPI_LONG, &got, 1, MPI_LONG, target, 0, 1, MPI_LONG, own,
                              win), MPI_ERR_OP);
    OK(MPI_Op_free(&own));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    long *base = returning_window_of(64, sizeof(long), &win);
    OK(MPI_Win_lock_all(0, win));
    wrong_ranks();
    wrong_counts(next_rank());
    wrong_types(next_rank());
    wrong_operations(next_rank());
    OK(MPI_Win_unlock_all(win));
    CHECK_EQ(got, -1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 8; i++)
        CHECK_EQ(base[i], 0);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), 0, 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(base[0], 7);
    OK(MPI_Win_free(&win));
    return check_end();
}
