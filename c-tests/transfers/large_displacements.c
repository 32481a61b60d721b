// Places and shapes beyond 2^31 and 2^32 bytes, in created and dynamic windows over address space
// of 8 GiB with only a few pages in use: displacements, displacement units, strides of datatypes at
// both sides, counts of elements that are far apart. MPI-4.1 sections 12.2.1, 12.3 and 19.1.6.
// ranks: 1 2 4

#include "check.h"

#include <sys/mman.h>

static const MPI_Aint gibibyte = (MPI_Aint)1 << 30, total = (MPI_Aint)8 << 30;
static char *memory, *local;

static char *address_space(void)
{
    void *space = mmap(NULL, (size_t)total, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(space != MAP_FAILED);
    return space;
}

static long *at(char *base, MPI_Aint place)
{
    return (long *)(void *)(base + place);
}

// The target's `base` is where displacement 0 leads, with a unit of one byte.
static void far_away(MPI_Win win, MPI_Aint base)
{
    const long value = 1000 + rank, one = 1;
    long got = -1, before = -1;
    const MPI_Aint place = 5 * gibibyte + 4096;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), base + place, 1, MPI_LONG, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Accumulate(&one, 1, MPI_LONG, next_rank(), base + place, 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, next_rank(), base + place, MPI_SUM, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Get(&got, 1, MPI_LONG, next_rank(), base + place, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(next_rank(), win));
    CHECK_EQ(before, value + 1);
    CHECK_EQ(got, value + 2);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(*at(memory, place), 1000 + previous_rank() + 2);
    CHECK_EQ(*at(memory, place - 4 * gibibyte), 0);
}

// Three longs that are 2 GiB and some apart, at both sides, and back into a dense buffer.
static void far_apart(MPI_Win win, MPI_Aint base)
{
    const MPI_Aint stride = 2 * gibibyte + 8192;
    long got[3] = {0};
    MPI_Datatype apart;
    OK(MPI_Type_create_hvector(3, 1, stride, MPI_LONG, &apart));
    OK(MPI_Type_commit(&apart));
    for (int i = 0; i < 3; i++)
        *at(local, i * stride + 64) = 10 * rank + i;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Put(local + 64, 1, apart, next_rank(), base + gibibyte, 1, apart, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Accumulate(local + 64, 1, apart, next_rank(), base + gibibyte, 1, apart, MPI_SUM, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Get(got, 3, MPI_LONG, next_rank(), base + gibibyte, 1, apart, win));
    OK(MPI_Win_unlock(next_rank(), win));
    for (int i = 0; i < 3; i++)
        CHECK_EQ(got[i], 2 * (10 * rank + i));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 3; i++)
        CHECK_EQ(*at(memory, gibibyte + i * stride), 2 * (10 * previous_rank() + i));
    OK(MPI_Type_free(&apart));
}

// Elements of an extent of 1.5 GiB: the fourth is beyond 2^32 bytes, the last beyond 2^32 + 2^31.
static void large_extents(MPI_Win win, MPI_Aint base)
{
    long values[5], got[5] = {0};
    MPI_Datatype wide;
    const MPI_Aint extent = gibibyte + gibibyte / 2;
    OK(MPI_Type_create_resized(MPI_LONG, 0, extent, &wide));
    OK(MPI_Type_commit(&wide));
    for (int i = 0; i < 5; i++)
        values[i] = 100 * rank + i;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Put(values, 5, MPI_LONG, next_rank(), base + 256, 5, wide, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Get(got, 5, MPI_LONG, next_rank(), base + 256, 5, wide, win));
    OK(MPI_Win_unlock(next_rank(), win));
    CHECK(memcmp(values, got, sizeof got) == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 5; i++)
        CHECK_EQ(*at(memory, 256 + i * extent), 100 * previous_rank() + i);
    OK(MPI_Type_free(&wide));
}

static void try(MPI_Win win, MPI_Aint base)
{
    far_away(win, base);
    far_apart(win, base);
    large_extents(win, base);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    CHECK_EQ(munmap(memory, (size_t)total), 0);
    memory = address_space();
}

// Displacement 5 of a unit of 1 GiB, and with large counts of 3 GiB.
static void units(void)
{
    const long value = 7 + rank;
    MPI_Win win;
    OK(MPI_Win_create(memory, total, 1 << 30, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), 5, 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(*at(memory, 5 * gibibyte), 7 + previous_rank());
    OK(MPI_Win_free(&win));
#if MPI_VERSION >= 4
    OK(MPI_Win_create_c(memory, total, 3 * gibibyte, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put_c(&value, 1, MPI_LONG, next_rank(), 2, 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(*at(memory, 6 * gibibyte), 7 + previous_rank());
    OK(MPI_Win_free(&win));
#endif
}

int main(int argc, char **argv)
{
    MPI_Win win;
    MPI_Aint here, there;
    check_start(&argc, &argv);
    memory = address_space();
    local = address_space();
    units();
    OK(MPI_Win_create(memory, total, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    try(win, 0);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_attach(win, memory, total));
    OK(MPI_Get_address(memory, &here));
    OK(MPI_Sendrecv(&here, 1, MPI_AINT, previous_rank(), 0, &there, 1, MPI_AINT, next_rank(), 0,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    try(win, there);
    return check_end();
}
