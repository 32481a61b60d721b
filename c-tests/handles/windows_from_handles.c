// FOMPI_Win_from_mem: ordinary calls on a window whose targets are the memory of handles, which owners expose
// and withdraw by local calls. docs/decisions/0035. The plain MPI has none.
// ranks: 1 2 3 4

#include "handles.h"

enum { WORDS = 2000 };

static MPI_Win dynamic;
static FOMPI_Mem mems[64];
static long *base;

static void check_transfers(MPI_Win win)
{
    long values[WORDS], seen[WORDS], one = 1, before, compare;
    const int next = next_rank();
    const MPI_Aint word = sizeof(long);
    MPI_Datatype every_second;
    MPI_Request request;
    for (int i = 0; i < WORDS; i++)
        values[i] = 1000000 * (rank + 1) + i;
    OK(MPI_Put(values, WORDS, MPI_LONG, next, 0, WORDS, MPI_LONG, win));
    OK(MPI_Win_flush(next, win));
    OK(MPI_Get(seen, WORDS - 1, MPI_LONG, next, word, WORDS - 1, MPI_LONG, win)); // displacements are bytes
    OK(MPI_Win_flush_local(next, win));
    CHECK(memcmp(values + 1, seen, sizeof seen - sizeof *seen) == 0);
    OK(MPI_Rget(seen, 1, MPI_LONG, next, 2 * word, 1, MPI_LONG, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(seen[0], values[2]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < WORDS; i++)
        CHECK_EQ(base[i], 1000000 * (previous_rank() + 1) + i);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    memset(base, 0, WORDS * sizeof *base);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Type_vector(WORDS / 2, 1, 2, MPI_LONG, &every_second));
    OK(MPI_Type_commit(&every_second));
    OK(MPI_Put(values, WORDS / 2, MPI_LONG, next, word, 1, every_second, win));
    OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win));
    OK(FOMPI_Mem_accumulate(&one, 1, MPI_LONG, mems[0], 0, MPI_SUM, 0)); // atomic with it
    OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, next, 2 * word, MPI_SUM, win));
    OK(MPI_Win_flush_all(win));
    OK(FOMPI_Complete(FOMPI_ALL_RANKS, dynamic));
    CHECK_EQ(before, 0);
    compare = 1;
    OK(MPI_Compare_and_swap(values, &compare, &before, MPI_LONG, next, 2 * word, win));
    OK(MPI_Get_accumulate(values, 1, MPI_LONG, seen, 1, MPI_LONG, next, 4 * word, 1, MPI_LONG, MPI_REPLACE, win));
    OK(MPI_Win_flush_all(win));
    CHECK_EQ(before, 1);
    CHECK_EQ(seen[0], 0);
    OK(MPI_Type_free(&every_second));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < WORDS / 2; i++)
        CHECK_EQ(base[2 * i + 1], 1000000 * (previous_rank() + 1) + i);
    if (rank == 0)
        CHECK_EQ(base[0], 2 * size);
    CHECK_EQ(base[2], 1000000 * (previous_rank() + 1));
    CHECK_EQ(base[4], 1000000 * (previous_rank() + 1));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void check_errors(MPI_Win win)
{
    long value = 0;
    MPI_Win none = MPI_WIN_NULL, second = dynamic_window();
    FOMPI_Mem two[2] = {mems[rank], mems[rank]}, elsewhere;
    EXPECT(MPI_Put(&value, 1, MPI_LONG, next_rank(), WORDS * (MPI_Aint)sizeof(long) - 4, 1, MPI_LONG, win),
           MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Put(&value, 1, MPI_LONG, next_rank(), -1, 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Put(&value, 1, MPI_LONG, size, 0, 1, MPI_LONG, win), MPI_ERR_RANK);
    OK(MPI_Put(&value, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win));
    EXPECT(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_free(&dynamic), MPI_ERR_RMA_SYNC);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    EXPECT(FOMPI_Win_from_mem(2, two, MPI_INFO_NULL, &none), MPI_ERR_ARG);
    EXPECT(FOMPI_Win_from_mem(0, two, MPI_INFO_NULL, &none), MPI_ERR_ARG);
    EXPECT(FOMPI_Win_from_mem(-1, two, MPI_INFO_NULL, &none), MPI_ERR_COUNT);
    EXPECT(FOMPI_Win_from_mem(1, NULL, MPI_INFO_NULL, &none), MPI_ERR_ARG);
    EXPECT(FOMPI_Win_from_mem(1, two, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    OK(FOMPI_Mem_expose(&value, sizeof value, MPI_INFO_NULL, second, &elsewhere));
    if (size > 1) {
        two[0] = mems[next_rank()], two[1] = elsewhere;
        EXPECT(FOMPI_Win_from_mem(2, two, MPI_INFO_NULL, &none), MPI_ERR_ARG);
    }
    two[0] = FOMPI_MEM_NULL;
    EXPECT(FOMPI_Win_from_mem(1, two, MPI_INFO_NULL, &none), MPI_ERR_ARG);
    CHECK(none == MPI_WIN_NULL);
    OK(FOMPI_Mem_withdraw(&elsewhere));
    OK(MPI_Win_free(&second));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    // The handle of one rank alone.
    OK(FOMPI_Win_from_mem(1, &mems[next_rank()], MPI_INFO_NULL, &none));
    OK(MPI_Put(&value, 0, MPI_LONG, next_rank(), 0, 0, MPI_LONG, none));
    if (size > 1)
        EXPECT(MPI_Put(&value, 1, MPI_LONG, rank, 0, 1, MPI_LONG, none), MPI_ERR_RMA_RANGE);
    OK(MPI_Win_free(&none));
}

int main(int argc, char **argv)
{
    check_start_within(60, &argc, &argv);
    if (has_handles())
        for (int is_private = 0; is_private < 2; is_private++) {
            MPI_Win win;
            long value = 1;
            dynamic = dynamic_window();
            base = is_private ? calloc(WORDS, sizeof *base) : NULL;
            share(dynamic, (void **)&base, WORDS * sizeof *base, mems);
            OK(FOMPI_Win_from_mem(size, mems, MPI_INFO_NULL, &win));
            check_transfers(win);
            check_errors(win);
            // The window goes on when its handles are released, until the owner withdraws.
            unshare(mems);
            OK(MPI_Barrier(MPI_COMM_WORLD));
            int code = MPI_Put(&value, 1, MPI_LONG, next_rank(), 0, 1, MPI_LONG, win);
            if (code == MPI_SUCCESS) // between nodes over TCP
                code = MPI_Win_flush(next_rank(), win);
            EXPECT(code, MPI_ERR_RMA_RANGE);
            OK(MPI_Win_free(&win));
            if (is_private)
                free(base);
            else
                OK(MPI_Free_mem(base));
            OK(MPI_Win_free(&dynamic));
        }
    return check_end();
}
