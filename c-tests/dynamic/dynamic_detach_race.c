// One rank attaches and detaches memory, unmaps it and maps other memory in its place, while all
// others access it: each access succeeds or is MPI_ERR_RMA_RANGE, and once MPI_Win_detach has
// returned the memory is neither read nor written. MPI-4.1 section 12.2.4.
// ranks: 2 4

#include "dynamic.h"

#include <sys/mman.h>

enum { ROUNDS = 150, BYTES = 4 * 4096, WORDS = BYTES / 8, FIRST = 1500, COUNT = 100, HITS = 0,
       MISSES = 1, STOP = 2, CONTROL = 3 };

// What a word of the memory can hold: attached, it counts up from SEEN; detached, it is HIDDEN.
#define SEEN ((int64_t)0x5000000000000000)
#define HIDDEN ((int64_t)0x1234123412341234)

static MPI_Win win;
static int64_t control[CONTROL];
static MPI_Aint there, control_there;

// Adds to a word of the control memory of rank 0 and returns what was in it.
static int64_t count(int word, int64_t value)
{
    int64_t before = -1;
    OK(MPI_Fetch_and_op(&value, &before, MPI_INT64_T, 0,
                        MPI_Aint_add(control_there, word * (MPI_Aint)sizeof(int64_t)), MPI_SUM,
                        win));
    OK(MPI_Win_flush(0, win));
    return before;
}

// Whether an access found the memory; no other error may come.
static int found(int code)
{
    if (code == MPI_SUCCESS)
        code = MPI_Win_flush(0, win);
    EXPECT(code, MPI_SUCCESS, MPI_ERR_RMA_RANGE);
    return code == MPI_SUCCESS;
}

static int was_seen(int64_t word) { return word >= SEEN && word < SEEN + ((int64_t)1 << 40); }

static int get(int first, int words)
{
    static int64_t got[WORDS];
    int all_right = 1;
    memset(got, 0, sizeof got);
    if (!found(MPI_Get(got, words, MPI_INT64_T, 0, MPI_Aint_add(there, first * (MPI_Aint)8), words,
                       MPI_INT64_T, win)))
        return 0;
    for (int i = 0; i < words; i++)
        all_right &= was_seen(got[i]);
    CHECK(all_right);
    return 1;
}

static int put(int first, int words)
{
    static int64_t values[WORDS];
    for (int i = 0; i < words; i++)
        values[i] = SEEN + i;
    return found(MPI_Put(values, words, MPI_INT64_T, 0, MPI_Aint_add(there, first * (MPI_Aint)8),
                         words, MPI_INT64_T, win));
}

static int add(int first, int words)
{
    static int64_t ones[WORDS];
    for (int i = 0; i < words; i++)
        ones[i] = 1;
    return found(MPI_Accumulate(ones, words, MPI_INT64_T, 0,
                                MPI_Aint_add(there, first * (MPI_Aint)8), words, MPI_INT64_T,
                                MPI_SUM, win));
}

static int add_one(int first)
{
    const int64_t one = 1;
    int64_t before = 0;
    if (!found(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0,
                                MPI_Aint_add(there, first * (MPI_Aint)8), MPI_SUM, win)))
        return 0;
    CHECK(was_seen(before));
    return 1;
}

static int get_strided(MPI_Datatype type, int words)
{
    static int64_t got[WORDS];
    if (!found(MPI_Get(got, words, MPI_INT64_T, 0, there, 1, type, win)))
        return 0;
    for (int i = 0; i < words; i++)
        CHECK(was_seen(got[i]));
    return 1;
}

static void access_until_stopped(void)
{
    const int strided = WORDS / 4;
    MPI_Datatype type;
    OK(MPI_Type_vector(strided, 1, 4, MPI_INT64_T, &type));
    OK(MPI_Type_commit(&type));
    for (int i = rank; count(STOP, 0) == 0; i++) {
        const int first = 37 * i % FIRST;
        int hit = 0;
        switch (i % 8) {
        case 0: hit = put(first, COUNT); break;
        case 1: hit = get(first, COUNT); break;
        case 2: hit = add(first, COUNT); break;
        case 3: hit = add_one(first); break;
        case 4: hit = get(0, WORDS); break;
        case 5: hit = put(0, WORDS); break;
        case 6: hit = get_strided(type, strided); break;
        case 7: hit = add(0, WORDS); break;
        }
        count(hit ? HITS : MISSES, 1);
    }
    OK(MPI_Type_free(&type));
}

// Waits until the others have counted some more hits or misses.
static void wait_for_more(int word)
{
    const int64_t before = count(word, 0);
    while (count(word, 0) < before + 3)
        ;
}

static void fill(volatile int64_t *memory, int64_t value)
{
    for (int i = 0; i < WORDS; i++)
        memory[i] = value;
}

// First no memory at the place that all know, then other memory than before.
static void map_again(void *place)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    CHECK(mmap(place, BYTES, PROT_NONE, flags, -1, 0) == place);
    CHECK(mmap(place, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0) == place);
}

// Some rounds wait for the others in both states, most do not.
static void attach_and_detach(volatile int64_t *memory)
{
    for (int round = 0; round < ROUNDS; round++) {
        fill(memory, SEEN);
        OK(MPI_Win_attach(win, (void *)memory, BYTES));
        if (round % 10 == 0)
            wait_for_more(HITS);
        OK(MPI_Win_detach(win, (void *)memory));
        fill(memory, HIDDEN);
        if (round % 10 == 5)
            wait_for_more(MISSES);
        for (int i = 0; i < WORDS; i++)
            CHECK_EQ(memory[i], HIDDEN);
        if (round % 3 == 0)
            map_again((void *)memory);
    }
    count(STOP, 1);
}

int main(int argc, char **argv)
{
    MPI_Aint places[RANKS_MAX];
    check_start(&argc, &argv);
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    win = dynamic_window();
    OK(MPI_Win_attach(win, control, sizeof control));
    exchange(memory, places);
    there = places[0];
    exchange(control, places);
    control_there = places[0];
    OK(MPI_Win_lock_all(0, win));
    if (rank == 0)
        attach_and_detach(memory);
    else
        access_until_stopped();
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0)
        CHECK(control[HITS] > 0 && control[MISSES] > 0);
    OK(MPI_Win_detach(win, control));
    OK(MPI_Win_free(&win));
    CHECK_EQ(munmap(memory, BYTES), 0);
    return check_end();
}
