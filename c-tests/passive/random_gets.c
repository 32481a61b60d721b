// 65,536 gets of 8 bytes from random ranks are complete though every second rank computes and calls
// nothing of MPI until the others are done. It is the access pattern of a global address space
// language. MPI-4.1 section 12.7.3.
// ranks: 2 4

#include "check.h"

#include <stdint.h>

enum { WORDS = 1024, GETS = 65536, BATCH = 256, DONE = WORDS };

static uint64_t value_of(int owner, int i) { return (uint64_t)owner << 32 | (uint64_t)i; }

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void get_all(MPI_Win win)
{
    static uint64_t got[BATCH], want[BATCH];
    uint64_t state = (uint64_t)rank;
    for (int i = 0; i < GETS; i++) {
        int owner = (int)(next_random(&state) % (uint64_t)size);
        int at = (int)(next_random(&state) % WORDS);
        want[i % BATCH] = value_of(owner, at);
        OK(MPI_Get(&got[i % BATCH], 1, MPI_UINT64_T, owner, at, 1, MPI_UINT64_T, win));
        if (i % BATCH == BATCH - 1) {
            OK(MPI_Win_flush_local_all(win));
            CHECK(memcmp(got, want, sizeof got) == 0);
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Win win;
    const uint64_t one = 1;
    check_start_within(15, &argc, &argv);
    uint64_t *base = window_of((WORDS + size) * (MPI_Aint)sizeof *base, sizeof *base, &win);
    for (int i = 0; i < WORDS; i++)
        base[i] = value_of(rank, i);
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank % 2 == 0) {
        get_all(win);
        for (int other = 1; other < size; other += 2)
            OK(MPI_Put(&one, 1, MPI_UINT64_T, other, DONE + rank / 2, 1, MPI_UINT64_T, win));
        OK(MPI_Win_flush_all(win));
    } else {
        check_here(__FILE__, __LINE__);
        for (int other = 0; other < size; other += 2)
            while (*(volatile uint64_t *)&base[DONE + other / 2] == 0)
                ;
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
