// Memory handles: puts, gets, accumulates, fetch-and-op, compare-and-swap and FOMPI_Xfer without any epoch,
// on private memory and memory of FOMPI_Mem_allocate, with derived types, attributes, requests and
// notifications. docs/decisions/0033. The plain MPI has none.
// ranks: 1 2 3 4

#include "handles.h"
#include "notified_weak.h"

enum { WORDS = 4096 };

static MPI_Win win;
static FOMPI_Mem mems[64];
static int *words;

static void wait_for_all(void)
{
    OK(FOMPI_Complete(FOMPI_ALL_RANKS, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void query(MPI_Aint bytes, int is_mapped)
{
    for (int i = 0; i < size; i++) {
        int owner = -1;
        MPI_Aint found = -1;
        void *at = &owner;
        OK(FOMPI_Mem_query(mems[i], &owner, &found, &at));
        CHECK_EQ(owner, i);
        CHECK_EQ(found, bytes);
        if (i == rank)
            CHECK(at == words);
        OK(FOMPI_Mem_query(mems[i], NULL, NULL, NULL));
    }
    (void)is_mapped;
}

// Each rank has a slot of `each` words in the memory of each rank.
static void puts_and_gets(int count, int attributes)
{
    int slot = WORDS / size, *out = malloc(sizeof(int) * (size_t)count), *in = malloc(sizeof(int) * (size_t)count);
    for (int i = 0; i < size; i++) {
        for (int k = 0; k < count; k++)
            out[k] = 1000 * rank + 10 * i + k + attributes;
        MPI_Aint at = (MPI_Aint)(rank * slot) * (MPI_Aint)sizeof(int);
        OK(FOMPI_Mem_put(out, count, MPI_INT, mems[i], at, attributes));
        if (!(attributes & FOMPI_REMOTE)) // FOMPI_BLOCKING does not order the get behind it
            OK(FOMPI_Complete(i, win));
        memset(in, 0, sizeof(int) * (size_t)count);
        OK(FOMPI_Mem_get(in, count, MPI_INT, mems[i], at, attributes));
        if (!(attributes & (FOMPI_BLOCKING | FOMPI_REMOTE)))
            OK(FOMPI_Complete(i, win));
        for (int k = 0; k < count; k++)
            CHECK_EQ(in[k], out[k]);
    }
    wait_for_all();
    for (int i = 0; i < size; i++)
        for (int k = 0; k < count; k++)
            CHECK_EQ(words[i * slot + k], 1000 * i + 10 * rank + k + attributes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    free(out);
    free(in);
}

static void shaped(void)
{
    MPI_Datatype every_second;
    int out[16], in[16], slot = WORDS / size;
    OK(MPI_Type_vector(8, 1, 2, MPI_INT, &every_second));
    OK(MPI_Type_commit(&every_second));
    for (int k = 0; k < 16; k++)
        out[k] = 7 * rank + k, in[k] = -1;
    memset(words, 0, WORDS * sizeof *words);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int to = (rank + 1) % size;
    MPI_Aint at = (MPI_Aint)(rank * slot) * (MPI_Aint)sizeof(int);
    OK(FOMPI_Mem_put(out, 1, every_second, mems[to], at, FOMPI_REMOTE));
    OK(FOMPI_Mem_get(in, 1, every_second, mems[to], at, FOMPI_BLOCKING));
    for (int k = 0; k < 16; k++)
        CHECK_EQ(in[k], k % 2 ? -1 : out[k]);
    wait_for_all();
    int from = (rank + size - 1) % size;
    for (int k = 0; k < 16; k++)
        CHECK_EQ(words[from * slot + k], k % 2 ? 0 : 7 * from + k);
    OK(MPI_Type_free(&every_second));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void accumulates(void)
{
    enum { TURNS = 50, MANY = 100 };
    int one = 1, many[MANY], before, expected, desired;
    memset(words, 0, WORDS * sizeof *words);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int k = 0; k < MANY; k++)
        many[k] = k;
    long sum = 0;
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < size; i++) {
            OK(FOMPI_Mem_accumulate(&one, 1, MPI_INT, mems[i], 0, MPI_SUM, 0));
            OK(FOMPI_Mem_accumulate(many, MANY, MPI_INT, mems[i], 64, MPI_SUM, FOMPI_ORDERED));
            OK(FOMPI_Mem_fetch_and_op(&one, &before, MPI_INT, mems[i], 4, MPI_SUM, FOMPI_BLOCKING));
            CHECK(before >= turn && before < TURNS * size);
            sum += before;
        }
    wait_for_all();
    CHECK_EQ(words[0], TURNS * size);
    CHECK_EQ(words[1], TURNS * size);
    for (int k = 0; k < MANY; k++)
        CHECK_EQ(words[16 + k], k * TURNS * size);
    // All sums that were fetched are different.
    long all = 0, each = (long)TURNS * size;
    OK(MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQ(all, size * (each * (each - 1) / 2));
    // A counter by compare-and-swap.
    for (int turn = 0; turn < TURNS; turn++)
        do {
            OK(FOMPI_Mem_fetch_and_op(NULL, &expected, MPI_INT, mems[0], 8, MPI_NO_OP, FOMPI_BLOCKING));
            desired = expected + 1;
            OK(FOMPI_Mem_compare_and_swap(&desired, &expected, &before, MPI_INT, mems[0], 8,
                                          FOMPI_BLOCKING));
        } while (before != expected);
    wait_for_all();
    if (rank == 0)
        CHECK_EQ(words[2], TURNS * size);
    EXPECT(FOMPI_Mem_accumulate(&one, 1, MPI_INT, mems[0], 0, MPI_SUM, FOMPI_ATOMIC),
           MPI_ERR_UNSUPPORTED_OPERATION);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// Puts of a whole block by all ranks, each atomic as a whole: no get sees parts of two.
static void atomic_blocks(void)
{
    enum { BLOCK = 512, TURNS = 30 };
    static int out[BLOCK], in[BLOCK];
    memset(words, 0, WORDS * sizeof *words);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int turn = 0; turn < TURNS; turn++) {
        for (int k = 0; k < BLOCK; k++)
            out[k] = 100 * turn + rank;
        OK(FOMPI_Mem_put(out, BLOCK, MPI_INT, mems[0], 0, FOMPI_ATOMIC));
        OK(FOMPI_Mem_get(in, BLOCK, MPI_INT, mems[0], 0, FOMPI_ATOMIC | FOMPI_BLOCKING));
        for (int k = 1; k < BLOCK; k++)
            CHECK_EQ(in[k], in[0]);
        OK(FOMPI_Complete(0, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void transfers_with_requests(void)
{
    int out[4], in[4], zero[4] = {0}, slot = WORDS / size;
    MPI_Request requests[2];
    for (int i = 0; i < size; i++) {
        MPI_Aint at = (MPI_Aint)(rank * slot) * (MPI_Aint)sizeof(int);
        for (int k = 0; k < 4; k++)
            out[k] = 500 * rank + 7 * i + k;
        fompi_buffers put = {out, 4, MPI_INT, NULL, 0, MPI_INT, NULL};
        fompi_buffers get = {NULL, 0, MPI_INT, in, 4, MPI_INT, NULL};
        fompi_buffers both = {zero, 4, MPI_INT, in, 4, MPI_INT, NULL};
        OK(FOMPI_Xfer(FOMPI_PUT, MPI_OP_NULL, &put, mems[i], at, 4, MPI_INT, FOMPI_REMOTE, &requests[0]));
        OK(FOMPI_Xfer(FOMPI_GET, MPI_OP_NULL, &get, mems[i], at, 4, MPI_INT, 0, &requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        for (int k = 0; k < 4; k++)
            CHECK_EQ(in[k], out[k]);
        memset(in, 0, sizeof in);
        OK(FOMPI_Xfer(FOMPI_GET_ACCUMULATE, MPI_SUM, &both, mems[i], at, 4, MPI_INT, 0, requests));
        OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
        for (int k = 0; k < 4; k++)
            CHECK_EQ(in[k], out[k]);
        OK(FOMPI_Xfer(FOMPI_ACCUMULATE, MPI_SUM, &put, mems[i], at, 4, MPI_INT, FOMPI_BLOCKING, NULL));
        int was = 0, desired = -3, compared = 2 * out[0];
        fompi_buffers swap = {&desired, 1, MPI_INT, &was, 1, MPI_INT, &compared};
        OK(FOMPI_Xfer(FOMPI_COMPARE_AND_SWAP, MPI_OP_NULL, &swap, mems[i], at, 1, MPI_INT, 0, requests));
        OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
        CHECK_EQ(was, 2 * out[0]);
        OK(FOMPI_Xfer(FOMPI_GET, MPI_OP_NULL, &get, mems[i], at, 4, MPI_INT, FOMPI_ORDERED | FOMPI_BLOCKING, NULL));
        CHECK_EQ(in[0], -3);
        CHECK_EQ(in[3], 2 * out[3]);
        EXPECT(FOMPI_Xfer(FOMPI_PUT, MPI_OP_NULL, &put, mems[i], at, 4, MPI_INT, FOMPI_BLOCKING, requests),
               MPI_ERR_ARG);
        EXPECT(FOMPI_Xfer(9, MPI_OP_NULL, &put, mems[i], at, 4, MPI_INT, 0, NULL), MPI_ERR_ARG);
        EXPECT(FOMPI_Xfer(FOMPI_PUT, MPI_OP_NULL, NULL, mems[i], at, 4, MPI_INT, 0, NULL), MPI_ERR_ARG);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// A put with a notification: the target waits for its counter and finds the data.
static void notifications(void)
{
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Count value;
    OK(FOMPI_Win_set_num_notify(win, MPI_INFO_NULL, 3));
    for (int turn = 1; turn <= 20; turn++) {
        int out = 1000 * turn + rank, zero = 0;
        OK(FOMPI_Mem_put(&out, 1, MPI_INT, mems[to], 8, FOMPI_NOTIFY(2) | FOMPI_BLOCKING));
        OK(FOMPI_Win_wait_notify(win, 2, turn));
        CHECK_EQ(words[2], 1000 * turn + from);
        OK(FOMPI_Mem_accumulate(&zero, 1, MPI_INT, mems[to], 12, MPI_SUM, FOMPI_NOTIFY(0)));
        OK(FOMPI_Win_wait_notify(win, 0, turn));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(FOMPI_Win_get_notify_value(win, 1, &value));
    CHECK_EQ(value, 0);
    EXPECT(FOMPI_Mem_put(&to, 1, MPI_INT, mems[to], 8, FOMPI_NOTIFY(3)), FOMPI_ERR_RMA_NOTIFICATION);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void all_transfers(void *base)
{
    int is_allocated = base == NULL;
    share(win, &base, WORDS * (MPI_Aint)sizeof(int), mems);
    words = base;
    memset(words, 0, WORDS * sizeof *words);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    query(WORDS * (MPI_Aint)sizeof(int), is_allocated);
    const int attributes[] = {0, FOMPI_BLOCKING, FOMPI_REMOTE, FOMPI_ORDERED, FOMPI_ATOMIC,
                              FOMPI_ORDERED | FOMPI_REMOTE | FOMPI_BLOCKING};
    for (int i = 0; i < (int)(sizeof attributes / sizeof *attributes); i++) {
        puts_and_gets(1, attributes[i]);
        puts_and_gets(3, attributes[i]);
        puts_and_gets(WORDS / size, attributes[i]);
    }
    shaped();
    accumulates();
    atomic_blocks();
    transfers_with_requests();
    notifications();
    unshare(mems);
    if (is_allocated)
        OK(MPI_Free_mem(base));
}

// A call on the window itself and one by a handle meet in the same memory.
static void together_with_the_window(void)
{
    static int memory[4];
    void *base = memory;
    int one = 1;
    MPI_Aint own, at[64];
    OK(MPI_Win_attach(win, memory, sizeof memory));
    share(win, &base, sizeof memory, mems);
    OK(MPI_Get_address(memory, &own));
    OK(MPI_Allgather(&own, 1, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int turn = 0; turn < 100; turn++) {
        OK(FOMPI_Mem_accumulate(&one, 1, MPI_INT, mems[0], 4, MPI_SUM, 0));
        OK(MPI_Accumulate(&one, 1, MPI_INT, 0, at[0] + 4, 1, MPI_INT, MPI_SUM, win));
    }
    OK(MPI_Win_unlock_all(win));
    OK(FOMPI_Complete(0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0)
        CHECK_EQ(memory[1], 200 * size);
    unshare(mems);
    OK(MPI_Win_detach(win, memory));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (has_handles()) {
        static int private_words[WORDS];
        win = dynamic_window();
        all_transfers(private_words);
        all_transfers(NULL);
        together_with_the_window();
        OK(MPI_Win_free(&win));
    }
    return check_end();
}
