// A rank may be its own target, and many origins may put into disjoint bytes next to each other
// without harm, down to single bytes. MPI-4.1 sections 12.3.1 and 12.7.
// ranks: 1 2 4 8
// plain ranks: 1 2

#include "check.h"

enum { BYTES = 1024 };

static void own_memory(unsigned char *base, MPI_Win win)
{
    unsigned char sent[64], got[64];
    memset(sent, 40 + rank, sizeof sent);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    OK(MPI_Put(sent, sizeof sent, MPI_BYTE, rank, 3, sizeof sent, MPI_BYTE, win));
    OK(MPI_Win_flush(rank, win));
    OK(MPI_Get(got, sizeof got, MPI_BYTE, rank, 3, sizeof got, MPI_BYTE, win));
    OK(MPI_Win_unlock(rank, win));
    CHECK(memcmp(sent, got, sizeof got) == 0);
    CHECK_EQ(base[3], 40 + rank);
    CHECK_EQ(base[2], 0);
    CHECK_EQ(base[3 + sizeof sent], 0);
}

// Every byte of rank 0's window belongs to one origin, in turn.
static void neighbouring_bytes(unsigned char *base, MPI_Win win)
{
    unsigned char value = (unsigned char)(100 + rank);
    OK(MPI_Win_fence(0, win));
    for (int i = rank; i < BYTES; i += size)
        OK(MPI_Put(&value, 1, MPI_BYTE, 0, i, 1, MPI_BYTE, win));
    OK(MPI_Win_fence(0, win));
    if (rank == 0)
        for (int i = 0; i < BYTES; i++)
            CHECK_EQ(base[i], 100 + i % size);
}

// Unaligned lengths and places, each in its own part of the next rank's window.
static void odd_places(unsigned char *base, MPI_Win win)
{
    unsigned char sent[300], got[300];
    for (int length = 1; length < 200; length += 7) {
        int place = length * 3 % 101;
        for (int i = 0; i < length; i++)
            sent[i] = (unsigned char)(i * 7 + length + rank);
        OK(MPI_Win_fence(0, win));
        OK(MPI_Put(sent, length, MPI_BYTE, next_rank(), place, length, MPI_BYTE, win));
        OK(MPI_Win_fence(0, win));
        for (int i = 0; i < length; i++)
            CHECK_EQ(base[place + i], (unsigned char)(i * 7 + length + previous_rank()));
        OK(MPI_Get(got + 1, length, MPI_BYTE, next_rank(), place, length, MPI_BYTE, win));
        OK(MPI_Win_fence(0, win));
        CHECK(memcmp(sent, got + 1, (size_t)length) == 0);
    }
}

int main(int argc, char **argv)
{
    MPI_Win win;
    check_start(&argc, &argv);
    unsigned char *base = window_of(BYTES, 1, &win);
    own_memory(base, win);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    neighbouring_bytes(base, win);
    odd_places(base, win);
    OK(MPI_Win_free(&win));
    return check_end();
}
