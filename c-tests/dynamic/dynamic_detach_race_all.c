// Every rank attaches, detaches and gives back memory of several kinds, and between that accesses
// what the others may just have: an access succeeds or is MPI_ERR_RMA_RANGE, nobody waits forever,
// and memory that is not attached keeps its values. MPI-4.1 section 12.2.4.
// ranks: 2 4

#include "dynamic.h"

#include <sys/mman.h>

enum { ROUNDS = 250, SLOTS = 4, WORDS = 700, BYTES = 8 * WORDS };

enum { ANONYMOUS = 0, OF_MPI = 1, HEAP = 2 };

#define SEEN ((int64_t)0x5000000000000000)
#define HIDDEN ((int64_t)0x1234123412341234)

static MPI_Win win;

// Where each rank has its slots now: read by all, of a window of its own.
static MPI_Win board;
static MPI_Aint *announced;

static int64_t *slots[SLOTS];
static int attached[SLOTS];
static long long hits, misses;

static int kind_of(int slot) { return slot % (HEAP + 1); }

static int64_t *new_memory(int kind)
{
    void *memory = NULL;
    if (kind == ANONYMOUS)
        memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else if (kind == OF_MPI)
        OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &memory));
    else
        memory = malloc(BYTES);
    CHECK(memory != NULL && memory != MAP_FAILED);
    return memory;
}

static void give_back(int kind, int64_t *memory)
{
    if (kind == ANONYMOUS)
        CHECK_EQ(munmap(memory, BYTES), 0);
    else if (kind == OF_MPI)
        OK(MPI_Free_mem(memory));
    else
        free(memory);
}

static void fill(int slot, int64_t value)
{
    volatile int64_t *memory = slots[slot];
    for (int i = 0; i < WORDS; i++)
        memory[i] = value;
}

static void announce(int slot)
{
    const MPI_Aint address = address_of(slots[slot]);
    OK(MPI_Accumulate(&address, 1, MPI_AINT, rank, slot, 1, MPI_AINT, MPI_REPLACE, board));
    OK(MPI_Win_flush(rank, board));
}

// Attaches a slot, or detaches it, checks that no rank writes there any more, and moves it
// elsewhere.
static void change(int slot, int move)
{
    volatile int64_t *memory = slots[slot];
    if (!attached[slot]) {
        fill(slot, SEEN);
        OK(MPI_Win_attach(win, slots[slot], BYTES));
    } else {
        OK(MPI_Win_detach(win, slots[slot]));
        fill(slot, HIDDEN);
        OK(MPI_Win_flush_all(win));
        for (int i = 0; i < WORDS; i++)
            CHECK_EQ(memory[i], HIDDEN);
        if (move) {
            give_back(kind_of(slot), slots[slot]);
            slots[slot] = new_memory(kind_of(slot));
            fill(slot, HIDDEN);
            announce(slot);
        }
    }
    attached[slot] = !attached[slot];
}

// The place may be stale; another slot of the same rank may be there now.
static void access_slot(int target, int slot, int way)
{
    static int64_t values[WORDS];
    MPI_Aint place = 0;
    int code = MPI_SUCCESS;
    OK(MPI_Fetch_and_op(NULL, &place, MPI_AINT, target, slot, MPI_NO_OP, board));
    OK(MPI_Win_flush(target, board));
    for (int i = 0; i < WORDS; i++)
        values[i] = way == 2 ? 1 : SEEN;
    if (way == 0)
        code = MPI_Put(values, WORDS, MPI_INT64_T, target, place, WORDS, MPI_INT64_T, win);
    else if (way == 1)
        code = MPI_Get(values, WORDS, MPI_INT64_T, target, place, WORDS, MPI_INT64_T, win);
    else
        code = MPI_Accumulate(values, WORDS, MPI_INT64_T, target, place, WORDS, MPI_INT64_T,
                              MPI_SUM, win);
    EXPECT(code, MPI_SUCCESS, MPI_ERR_RMA_RANGE);
    OK(MPI_Win_flush(target, win));
    *(code == MPI_SUCCESS ? &hits : &misses) += 1;
    if (way == 1)
        for (int i = 0; i < WORDS; i++)
            CHECK(values[i] >= SEEN && values[i] < SEEN + ((int64_t)1 << 40));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    win = dynamic_window();
    OK(MPI_Win_allocate(SLOTS * sizeof(MPI_Aint), sizeof(MPI_Aint), MPI_INFO_NULL, MPI_COMM_WORLD,
                        &announced, &board));
    OK(MPI_Win_lock_all(0, board));
    OK(MPI_Win_lock_all(0, win));
    for (int slot = 0; slot < SLOTS; slot++) {
        slots[slot] = new_memory(kind_of(slot));
        fill(slot, HIDDEN);
        announce(slot);
    }
    // Every first slot is attached, every other is not, when the race begins.
    change(0, 0);
    change(2, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    access_slot(next_rank(), 0, 0);
    access_slot(next_rank(), 1, 0);
    CHECK(hits == 1 && misses == 1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 0; round < ROUNDS; round++) {
        change((round + rank) % SLOTS, round % 7 == 0);
        for (int other = 1; other <= size; other++)
            access_slot((rank + other) % size, (round + other) % SLOTS, (round + other) % 3);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_unlock_all(board));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int slot = 0; slot < SLOTS; slot++) {
        if (attached[slot])
            OK(MPI_Win_detach(win, slots[slot]));
        give_back(kind_of(slot), slots[slot]);
    }
    OK(MPI_Win_free(&board));
    OK(MPI_Win_free(&win));
    return check_end();
}
