// Memory of every kind can be attached: heap, static, stack, mapped memory and files, that of
// MPI_Alloc_mem, at any alignment; the ranks of one window attach different kinds.
// MPI-4.1 section 12.2.4.
// ranks: 1 2 4

#include "dynamic.h"

#include <sys/mman.h>

enum { KINDS = 10, BYTES = 3 * 4096 + 40, WORD = 4096, FIRST = 17, COUNT = 2 * 4096 + 5 };

static unsigned char zeroed[BYTES], filled[BYTES] = {1, 2, 3};
static FILE *file;

static unsigned char *mapped(int flags, int descriptor)
{
    void *base = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, descriptor, 0);
    CHECK(base != MAP_FAILED);
    return base;
}

// Memory of one kind; `stack` is memory of a function that has not returned.
static unsigned char *memory_of(int kind, unsigned char *stack)
{
    unsigned char *memory = NULL;
    switch (kind) {
    case 0: memory = malloc(BYTES); break;
    case 1: memory = zeroed; break;
    case 2: memory = filled; break;
    case 3: memory = stack; break;
    case 4: memory = mapped(MAP_PRIVATE | MAP_ANONYMOUS, -1); break;
    case 5: memory = mapped(MAP_SHARED | MAP_ANONYMOUS, -1); break;
    case 6: memory = mapped(MAP_SHARED, fileno(file)); break;
    case 7: memory = mapped(MAP_PRIVATE, fileno(file)); break;
    case 8: OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &memory)); break;
    // No multiple of anything.
    case 9:
        memory = malloc(BYTES + 3);
        CHECK(memory != NULL);
        memory += 3;
        break;
    }
    CHECK(memory != NULL);
    return memory;
}

static void give_back(int kind, unsigned char *memory)
{
    if (kind == 0)
        free(memory);
    else if (kind >= 4 && kind <= 7)
        CHECK_EQ(munmap(memory, BYTES), 0);
    else if (kind == 8)
        OK(MPI_Free_mem(memory));
    else if (kind == 9)
        free(memory - 3);
}

static unsigned char mark(int owner, int kind, int i)
{
    return (unsigned char)(31 * owner + 7 * kind + i);
}

// Reads all of the next rank's memory, writes a part of it and counts in one word.
static void reach(MPI_Win win, int kind, MPI_Aint there)
{
    static unsigned char got[BYTES], values[COUNT];
    const int target = next_rank();
    const int64_t five = 5;
    int64_t before = -1;
    OK(MPI_Get(got, BYTES, MPI_BYTE, target, there, BYTES, MPI_BYTE, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 0; i < BYTES; i++)
        CHECK_EQ(got[i], mark(target, kind, i));
    for (int i = 0; i < COUNT; i++)
        values[i] = mark(rank + 100, kind, i);
    OK(MPI_Put(values, COUNT, MPI_BYTE, target, MPI_Aint_add(there, FIRST), COUNT, MPI_BYTE, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Put(&five, 1, MPI_INT64_T, target, MPI_Aint_add(there, WORD), 1, MPI_INT64_T, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Fetch_and_op(&five, &before, MPI_INT64_T, target, MPI_Aint_add(there, WORD), MPI_SUM,
                        win));
    OK(MPI_Accumulate(&five, 1, MPI_INT64_T, target, MPI_Aint_add(there, WORD), 1, MPI_INT64_T,
                      MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    CHECK_EQ(before, 5);
}

static void was_reached(int kind, const unsigned char *memory)
{
    int64_t word;
    memcpy(&word, memory + WORD, sizeof word);
    CHECK_EQ(word, 15);
    for (int i = 0; i < BYTES; i++) {
        if (i >= WORD && i < WORD + (int)sizeof word)
            continue;
        if (i >= FIRST && i < FIRST + COUNT)
            CHECK_EQ(memory[i], mark(previous_rank() + 100, kind, i - FIRST));
        else
            CHECK_EQ(memory[i], mark(rank, kind, i));
    }
}

// What was put into a mapped file is in the file.
static void file_holds(const unsigned char *memory)
{
    static unsigned char stored[BYTES];
    CHECK_EQ(pread(fileno(file), stored, BYTES, 0), BYTES);
    CHECK(memcmp(stored, memory, BYTES) == 0);
}

static void one_round(MPI_Win win, int round)
{
    unsigned char stack[BYTES];
    MPI_Aint places[RANKS_MAX];
    const int kind = (round + 3 * rank) % KINDS;
    unsigned char *memory = memory_of(kind, stack);
    for (int i = 0; i < BYTES; i++)
        memory[i] = mark(rank, round, i);
    OK(MPI_Win_attach(win, memory, BYTES));
    exchange(memory, places);
    OK(MPI_Win_lock_all(0, win));
    reach(win, round, places[next_rank()]);
    settle(win);
    was_reached(round, memory);
    if (kind == 6)
        file_holds(memory);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, memory));
    give_back(kind, memory);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Win win = dynamic_window();
    file = tmpfile();
    CHECK(file != NULL);
    CHECK_EQ(ftruncate(fileno(file), BYTES), 0);
    for (int round = 0; round < KINDS; round++)
        one_round(win, round);
    OK(MPI_Win_free(&win));
    return check_end();
}
