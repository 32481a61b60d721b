// Wrong memory handles: withdrawn, released, of another window, truncated, changed in any bit, random, packed
// before and used after the memory was withdrawn and exposed again, once or thousands of times; wrong
// displacements, attributes and windows. Each is an error of its class and touches nothing. docs/decisions/0033. The plain MPI has none.
// ranks: 1 2 3 4

#include "handles.h"

// As many times as there are numbers for keys of one entry of a target over TCP.
enum { BYTES = 4096, TIMES = 4096, KEPT = 64 };

static MPI_Win win;
static FOMPI_Mem mems[64];
static unsigned char memory[BYTES];

static unsigned long state = 88172645463325252UL;

static unsigned long random_number(void)
{
    state ^= state << 13, state ^= state >> 7;
    return state ^= state << 17;
}

// Each byte of the memory is still 0x5a.
static void expect_untouched(void)
{
    for (int i = 0; i < BYTES; i++)
        CHECK_EQ(memory[i], 0x5a);
}

static void wrong_arguments(void)
{
    int to = (rank + 1) % size;
    long word = 7;
    FOMPI_Mem other = FOMPI_MEM_NULL;
    char packed[FOMPI_MEM_BYTES];
    EXPECT(FOMPI_Mem_put(&word, 8, MPI_BYTE, mems[to], -1, 0), MPI_ERR_RMA_RANGE);
    EXPECT(FOMPI_Mem_put(&word, 8, MPI_BYTE, mems[to], BYTES - 7, 0), MPI_ERR_RMA_RANGE);
    EXPECT(FOMPI_Mem_put(&word, 1, MPI_LONG, mems[to], BYTES, 0), MPI_ERR_RMA_RANGE);
    EXPECT(FOMPI_Mem_put(&word, 1, MPI_LONG, mems[to], INTPTR_MAX, 0), MPI_ERR_RMA_RANGE);
    EXPECT(FOMPI_Mem_put(&word, 1, MPI_LONG, mems[to], INTPTR_MIN, 0), MPI_ERR_RMA_RANGE);
    EXPECT(FOMPI_Mem_get(&word, 1, MPI_LONG, mems[to], BYTES - 4, 0), MPI_ERR_RMA_RANGE);
    EXPECT(FOMPI_Mem_fetch_and_op(&word, &word, MPI_LONG, mems[to], BYTES - 4, MPI_SUM, 0), MPI_ERR_RMA_RANGE);
    EXPECT(FOMPI_Mem_accumulate(&word, 1, MPI_LONG, mems[to], -8, MPI_SUM, 0), MPI_ERR_RMA_RANGE);
    EXPECT(FOMPI_Mem_put(&word, -1, MPI_LONG, mems[to], 0, 0), MPI_ERR_COUNT);
    EXPECT(FOMPI_Mem_put(NULL, 1, MPI_LONG, mems[to], 0, 0), MPI_ERR_BUFFER);
    EXPECT(FOMPI_Mem_put(&word, 1, MPI_LONG, mems[to], 0, 64), MPI_ERR_ARG);
    EXPECT(FOMPI_Mem_put(&word, 1, MPI_LONG, mems[to], 0, -1), MPI_ERR_ARG);
    EXPECT(FOMPI_Mem_put(&word, 1, MPI_LONG, mems[to], 0, 256), MPI_ERR_ARG);
    OK(FOMPI_Mem_put(&word, 0, MPI_LONG, mems[to], 0, 0));
    OK(FOMPI_Mem_put(NULL, 0, MPI_LONG, mems[to], 0, 0));
    EXPECT(FOMPI_Mem_pack(mems[to], NULL), MPI_ERR_ARG);
    EXPECT(FOMPI_Mem_unpack(NULL, win, &other), MPI_ERR_ARG);
    OK(FOMPI_Mem_pack(mems[to], packed));
    EXPECT(FOMPI_Mem_unpack(packed, win, NULL), MPI_ERR_ARG);
    EXPECT(FOMPI_Mem_expose(memory, -1, MPI_INFO_NULL, win, &other), MPI_ERR_SIZE);
    EXPECT(FOMPI_Mem_expose(NULL, 1, MPI_INFO_NULL, win, &other), MPI_ERR_ARG);
    EXPECT(FOMPI_Mem_expose(memory, INTPTR_MAX, MPI_INFO_NULL, win, &other), MPI_ERR_SIZE);
    EXPECT(FOMPI_Complete(size, win), MPI_ERR_RANK);
    EXPECT(FOMPI_Complete(-7, win), MPI_ERR_RANK);
    OK(FOMPI_Complete(MPI_PROC_NULL, win));
    // Owners withdraw, and others release.
    if (size > 1) {
        EXPECT(FOMPI_Mem_withdraw(&mems[to]), MPI_ERR_ARG);
        EXPECT(FOMPI_Mem_release(&mems[rank]), MPI_ERR_ARG);
    }
    CHECK(other == FOMPI_MEM_NULL);
    expect_untouched();
    // Memory of no byte.
    OK(FOMPI_Mem_expose(NULL, 0, MPI_INFO_NULL, win, &other));
    EXPECT(FOMPI_Mem_put(&word, 1, MPI_LONG, other, 0, 0), MPI_ERR_RMA_RANGE);
    OK(FOMPI_Mem_put(&word, 0, MPI_LONG, other, 0, 0));
    OK(FOMPI_Mem_withdraw(&other));
}

// Errors of calls without a window go to the handler of MPI_COMM_SELF, or of MPI_COMM_WORLD.
static void no_handles(void)
{
    long word = 7;
    FOMPI_Mem none = FOMPI_MEM_NULL;
    char packed[FOMPI_MEM_BYTES];
    EXPECT(FOMPI_Mem_put(&word, 1, MPI_LONG, none, 0, 0), MPI_ERR_ARG);
    EXPECT(FOMPI_Mem_get(&word, 1, MPI_LONG, none, 0, 0), MPI_ERR_ARG);
    EXPECT(FOMPI_Mem_pack(none, packed), MPI_ERR_ARG);
    EXPECT(FOMPI_Mem_withdraw(&none), MPI_ERR_ARG);
    EXPECT(FOMPI_Mem_withdraw(NULL), MPI_ERR_ARG);
    EXPECT(FOMPI_Mem_release(&none), MPI_ERR_ARG);
    OK(FOMPI_Mem_expose(memory, 16, MPI_INFO_NULL, win, &none));
    FOMPI_Mem copy = none;
    OK(FOMPI_Mem_withdraw(&none));
    EXPECT(FOMPI_Mem_put(&word, 1, MPI_LONG, copy, 0, 0), MPI_ERR_ARG);
    EXPECT(FOMPI_Mem_query(copy, NULL, NULL, NULL), MPI_ERR_ARG);
    EXPECT(FOMPI_Mem_withdraw(&copy), MPI_ERR_ARG);
}

static void expect_no_handle(const unsigned char *packed)
{
    FOMPI_Mem mem = FOMPI_MEM_NULL;
    EXPECT(FOMPI_Mem_unpack(packed, win, &mem), MPI_ERR_ARG);
    CHECK(mem == FOMPI_MEM_NULL);
}

static void forged(void)
{
    unsigned char packed[FOMPI_MEM_BYTES], changed[FOMPI_MEM_BYTES];
    int to = (rank + 1) % size;
    OK(FOMPI_Mem_pack(mems[to], packed));
    for (int bit = 0; bit < 8 * FOMPI_MEM_BYTES; bit++) {
        memcpy(changed, packed, sizeof changed);
        changed[bit / 8] ^= (unsigned char)(1 << bit % 8);
        expect_no_handle(changed);
    }
    for (int length = 0; length < FOMPI_MEM_BYTES - 1; length++) {
        memset(changed, 0, sizeof changed);
        memcpy(changed, packed, (size_t)length);
        if (memcmp(changed, packed, sizeof changed))
            expect_no_handle(changed);
    }
    for (int turn = 0; turn < 5000; turn++) {
        // Random bytes, some behind a right begin.
        size_t kept = turn % 2 ? random_number() % FOMPI_MEM_BYTES : 0;
        for (size_t i = 0; i < sizeof changed; i++)
            changed[i] = i < kept ? packed[i] : (unsigned char)random_number();
        if (memcmp(changed, packed, sizeof changed))
            expect_no_handle(changed);
    }
}

static void other_windows(void)
{
    MPI_Win another = dynamic_window(), created;
    char packed[FOMPI_MEM_BYTES];
    FOMPI_Mem mem = FOMPI_MEM_NULL;
    int to = (rank + 1) % size;
    OK(FOMPI_Mem_pack(mems[to], packed));
    EXPECT(FOMPI_Mem_unpack(packed, another, &mem), MPI_ERR_ARG);
    // A handle lives as long as its window.
    OK(FOMPI_Mem_expose(memory, BYTES, MPI_INFO_NULL, another, &mem));
    OK(FOMPI_Mem_pack(mem, packed));
    EXPECT(FOMPI_Mem_unpack(packed, win, &mem), MPI_ERR_ARG);
    OK(MPI_Win_free(&another));
    EXPECT(FOMPI_Mem_query(mem, NULL, NULL, NULL), MPI_ERR_ARG);
    OK(MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &created));
    OK(MPI_Win_set_errhandler(created, MPI_ERRORS_RETURN));
    EXPECT(FOMPI_Mem_expose(memory, BYTES, MPI_INFO_NULL, created, &mem), MPI_ERR_RMA_FLAVOR);
    EXPECT(FOMPI_Mem_unpack(packed, created, &mem), MPI_ERR_RMA_FLAVOR);
    // FOMPI_Complete is for all windows.
    OK(FOMPI_Complete(FOMPI_ALL_RANKS, created));
    OK(MPI_Win_free(&created));
}

// The access fails now, or within a node and between nodes at the latest when it is completed.
static void expect_withdrawn(FOMPI_Mem mem, int owner)
{
    long word = 7, result = 0;
    int code = FOMPI_Mem_put(&word, 1, MPI_LONG, mem, 0, 0);
    if (code == MPI_SUCCESS)
        code = FOMPI_Complete(owner, win);
    EXPECT(code, MPI_ERR_RMA_RANGE);
    EXPECT(FOMPI_Mem_put(&word, 1, MPI_LONG, mem, 0, FOMPI_REMOTE), MPI_ERR_RMA_RANGE);
    EXPECT(FOMPI_Mem_get(&result, 1, MPI_LONG, mem, 8, FOMPI_BLOCKING), MPI_ERR_RMA_RANGE);
    EXPECT(FOMPI_Mem_accumulate(&word, 1, MPI_LONG, mem, 16, MPI_SUM, FOMPI_REMOTE), MPI_ERR_RMA_RANGE);
    EXPECT(FOMPI_Mem_fetch_and_op(&word, &result, MPI_LONG, mem, 16, MPI_SUM, FOMPI_REMOTE), MPI_ERR_RMA_RANGE);
    EXPECT(FOMPI_Mem_compare_and_swap(&word, &word, &result, MPI_LONG, mem, 16, FOMPI_REMOTE),
           MPI_ERR_RMA_RANGE);
    EXPECT(FOMPI_Mem_put(memory, BYTES, MPI_BYTE, mem, 0, FOMPI_REMOTE | FOMPI_ATOMIC), MPI_ERR_RMA_RANGE);
    OK(FOMPI_Complete(FOMPI_ALL_RANKS, win));
}

// Memory that is withdrawn, and exposed again with the same address and length: old handles stay errors,
// packed or not, and other windows and handles between the same processes are as before.
static void withdrawn(void *base)
{
    static int data[4];
    MPI_Win created;
    FOMPI_Mem again[64];
    char old[FOMPI_MEM_BYTES];
    int to = (rank + 1) % size, value = 5 + rank;
    OK(MPI_Win_create(data, sizeof data, sizeof *data, MPI_INFO_NULL, MPI_COMM_WORLD, &created));
    share(win, &base, BYTES, mems);
    memset(base, 0x5a, BYTES);
    OK(FOMPI_Mem_pack(mems[to], old));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(FOMPI_Mem_withdraw(&mems[rank]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (size > 1)
        expect_withdrawn(mems[to], to);
    for (int turn = 0; turn < 3; turn++) {
        FOMPI_Mem replayed;
        memset(again, 0, sizeof again);
        share(win, &base, BYTES, again);
        OK(FOMPI_Mem_unpack(old, win, &replayed));
        expect_withdrawn(replayed, to);
        OK(FOMPI_Mem_release(&replayed));
        // All else goes on.
        int got = -1;
        OK(FOMPI_Mem_get(&got, 1, MPI_INT, again[to], 8, FOMPI_BLOCKING));
        CHECK_EQ(got, 0x5a5a5a5a);
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, created));
        OK(MPI_Put(&value, 1, MPI_INT, to, turn, 1, MPI_INT, created));
        OK(MPI_Win_unlock(to, created));
        unshare(again);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int turn = 0; turn < 3; turn++)
        CHECK_EQ(data[turn], 5 + (rank + size - 1) % size);
    for (int i = 0; i < BYTES; i++)
        CHECK_EQ(((unsigned char *)base)[i], 0x5a);
    for (int i = 0; i < size; i++)
        if (i != rank)
            OK(FOMPI_Mem_release(&mems[i]));
    OK(MPI_Win_free(&created));
}

// Handles of memory that was withdrawn and exposed thousands of times, and is exposed now.
static void replayed(void)
{
    static char own[KEPT][FOMPI_MEM_BYTES], theirs[KEPT][FOMPI_MEM_BYTES];
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    void *base = memory;
    FOMPI_Mem mem;
    for (int i = 0; i < TIMES; i++) {
        OK(FOMPI_Mem_expose(memory, BYTES, MPI_INFO_NULL, win, &mem));
        // The first one of each 64. The very first one had the key of the memory that is exposed next, if
        // the target gave keys again.
        if (i % (TIMES / KEPT) == 0)
            OK(FOMPI_Mem_pack(mem, own[i / (TIMES / KEPT)]));
        OK(FOMPI_Mem_withdraw(&mem));
    }
    OK(MPI_Sendrecv(own, sizeof own, MPI_BYTE, from, 0, theirs, sizeof theirs, MPI_BYTE, to, 0,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    share(win, &base, BYTES, mems);
    for (int i = 0; i < KEPT; i++) {
        OK(FOMPI_Mem_unpack(theirs[i], win, &mem));
        expect_withdrawn(mem, to);
        OK(FOMPI_Mem_release(&mem));
    }
    unshare(mems);
    expect_untouched();
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (has_handles()) {
        void *base = memory, *heap;
        OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
        OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
        win = dynamic_window();
        memset(memory, 0x5a, BYTES);
        share(win, &base, BYTES, mems);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        wrong_arguments();
        no_handles();
        forged();
        other_windows();
        OK(MPI_Barrier(MPI_COMM_WORLD));
        expect_untouched();
        unshare(mems);
        withdrawn(memory);
        replayed();
        OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &heap));
        withdrawn(heap);
        OK(MPI_Free_mem(heap));
        OK(MPI_Win_free(&win));
    }
    return check_end();
}
