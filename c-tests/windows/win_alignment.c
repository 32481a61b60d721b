// The key mpi_minimum_memory_alignment is honoured for the memory of windows, on every process: of
// each part where parts need not follow each other, otherwise of the first one. A value that is no
// power of two does not matter. MPI-4.1 sections 9.2, 12.2.2 and 12.2.3.
// ranks: 1 2 4

#include "check.h"

static const MPI_Aint sizes[] = {1, 1000, 100000, 6 << 20};
enum { SIZES = sizeof sizes / sizeof *sizes };

static MPI_Info info;

static void ask_for(const char *key, const char *value) { OK(MPI_Info_set(info, key, value)); }

// Whether all of this rank's part can be used by the next rank, at both ends.
static void check_usable(MPI_Win win, char *base, MPI_Aint bytes)
{
    char mine[2] = {(char)(10 + rank), (char)(60 + rank)};
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&mine[0], 1, MPI_CHAR, next_rank(), 0, 1, MPI_CHAR, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(base[0], 10 + previous_rank());
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&mine[1], 1, MPI_CHAR, next_rank(), bytes - 1, 1, MPI_CHAR, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_EQ(base[bytes - 1], 60 + previous_rank());
}

// How a part of another rank is aligned where this rank sees it.
static uintptr_t seen(MPI_Win win, int of)
{
    MPI_Aint bytes;
    char *base;
    int disp_unit;
    OK(MPI_Win_shared_query(win, of, &bytes, &disp_unit, &base));
    return (uintptr_t)base;
}

static void check_allocated(MPI_Aint bytes, uintptr_t alignment)
{
    MPI_Win win;
    char *base;
    OK(MPI_Win_allocate(bytes, 1, info, MPI_COMM_WORLD, &base, &win));
    CHECK_EQ((uintptr_t)base % alignment, 0);
    check_usable(win, base, bytes);
    OK(MPI_Win_free(&win));
}

static void check_shared(MPI_Aint bytes, uintptr_t alignment, int contiguous)
{
    MPI_Win win;
    char *base;
    ask_for("alloc_shared_noncontig", contiguous ? "false" : "true");
    OK(MPI_Win_allocate_shared(bytes, 1, info, MPI_COMM_WORLD, &base, &win));
    if (contiguous) {
        CHECK_EQ(seen(win, 0) % alignment, 0);
        CHECK_EQ(seen(win, size - 1), seen(win, 0) + (uintptr_t)(bytes * (size - 1)));
    } else {
        CHECK_EQ((uintptr_t)base % alignment, 0);
        CHECK_EQ(seen(win, next_rank()) % alignment, 0);
    }
    check_usable(win, base, bytes);
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    char text[20];
    check_start(&argc, &argv);
    OK(MPI_Info_create(&info));
    ask_for("mpi_minimum_memory_alignment", "24");
    check_allocated(1000, 8);
    for (int alignment = 1; alignment <= 4 << 20; alignment *= 16)
        for (int i = 0; i < SIZES; i++) {
            snprintf(text, sizeof text, "%d", alignment);
            ask_for("mpi_minimum_memory_alignment", text);
            check_allocated(sizes[i], (uintptr_t)alignment);
            check_shared(sizes[i], (uintptr_t)alignment, 0);
            check_shared(sizes[i], (uintptr_t)alignment, 1);
        }
    OK(MPI_Info_free(&info));
    return check_end();
}
