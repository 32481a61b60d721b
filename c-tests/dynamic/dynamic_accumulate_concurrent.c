// All ranks, the target among them, update the same words of attached memory at once, each with
// another call of the accumulate family, one element and many, and no update is lost: in heap
// memory, in that of MPI_Alloc_mem, and over the border of two regions. MPI-4.1 section 12.7.1.
// ranks: 1 2 4

#include "dynamic.h"

enum { ROUNDS = 60, WIDE = 100, BYTES = WIDE * 8 };

static MPI_Win win;

static void add_by_compare_and_swap(MPI_Aint place)
{
    int64_t seen = 0, wanted, before;
    OK(MPI_Fetch_and_op(NULL, &seen, MPI_INT64_T, 0, place, MPI_NO_OP, win));
    OK(MPI_Win_flush(0, win));
    for (;;) {
        wanted = seen + 1;
        OK(MPI_Compare_and_swap(&wanted, &seen, &before, MPI_INT64_T, 0, place, win));
        OK(MPI_Win_flush(0, win));
        if (before == seen)
            return;
        seen = before;
    }
}

static void add_one(int call, MPI_Aint place)
{
    const int64_t one = 1;
    int64_t before = -1;
    MPI_Request request;
    switch (call % 6) {
    case 0: OK(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, place, 1, MPI_INT64_T, MPI_SUM, win)); break;
    case 1:
        OK(MPI_Get_accumulate(&one, 1, MPI_INT64_T, &before, 1, MPI_INT64_T, 0, place, 1,
                              MPI_INT64_T, MPI_SUM, win));
        break;
    case 2: OK(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, place, MPI_SUM, win)); break;
    case 3: add_by_compare_and_swap(place); break;
    case 4:
        OK(MPI_Raccumulate(&one, 1, MPI_INT64_T, 0, place, 1, MPI_INT64_T, MPI_SUM, win,
                           &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    case 5:
        OK(MPI_Rget_accumulate(&one, 1, MPI_INT64_T, &before, 1, MPI_INT64_T, 0, place, 1,
                               MPI_INT64_T, MPI_SUM, win, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    }
    OK(MPI_Win_flush(0, win));
}

// A long vector, and one of every second word, so that one element and many meet.
static void add_many(MPI_Aint there, MPI_Datatype every_second)
{
    int64_t ones[WIDE];
    for (int i = 0; i < WIDE; i++)
        ones[i] = 1;
    OK(MPI_Accumulate(ones, WIDE, MPI_INT64_T, 0, there, WIDE, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Win_flush(0, win));
    OK(MPI_Accumulate(ones, WIDE / 2, MPI_INT64_T, 0, there, 1, every_second, MPI_SUM, win));
    OK(MPI_Win_flush(0, win));
}

// Word WIDE / 2 is the one that all calls meet at.
static void update(MPI_Aint there)
{
    const MPI_Aint word = MPI_Aint_add(there, WIDE / 2 * 8);
    MPI_Datatype every_second;
    OK(MPI_Type_vector(WIDE / 2, 1, 2, MPI_INT64_T, &every_second));
    OK(MPI_Type_commit(&every_second));
    for (int round = 0; round < ROUNDS; round++) {
        add_one(rank + round, word);
        if (round % 4 == 0)
            add_many(there, every_second);
    }
    OK(MPI_Type_free(&every_second));
}

static void all_arrived(const int64_t *memory)
{
    for (int i = 0; i < WIDE; i++) {
        const int many = ROUNDS / 4 * (i % 2 == 0 ? 2 : 1);
        CHECK_EQ(memory[i], size * (many + (i == WIDE / 2 ? ROUNDS : 0)));
    }
}

static void one_memory(int64_t *memory, int parts)
{
    MPI_Aint places[RANKS_MAX];
    memset(memory, 0, BYTES);
    for (int part = 0; part < parts; part++)
        OK(MPI_Win_attach(win, (char *)memory + BYTES / parts * part, BYTES / parts));
    exchange(memory, places);
    OK(MPI_Win_lock_all(0, win));
    update(places[0]);
    settle(win);
    if (rank == 0)
        all_arrived(memory);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int part = 0; part < parts; part++)
        OK(MPI_Win_detach(win, (char *)memory + BYTES / parts * part));
}

int main(int argc, char **argv)
{
    int64_t *memory;
    check_start(&argc, &argv);
    win = dynamic_window();
    int64_t *heap = malloc(BYTES);
    OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &memory));
    one_memory(heap, 1);
    one_memory(memory, 1);
    one_memory(heap, 2);
    one_memory(memory, 2);
    free(heap);
    OK(MPI_Free_mem(memory));
    OK(MPI_Win_free(&win));
    return check_end();
}
