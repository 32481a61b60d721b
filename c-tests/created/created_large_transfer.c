// One put and one get of more than 2^31 bytes through a created window, more than the system moves
// in one call. One piece of memory is mapped again and again at the addresses of both sides, so
// that it takes little of it; only three stretches are memory of their own. The MPIs alone send
// messages for a minute, so without the library it runs only when FOMPI_TEST_LARGE is 1. MPI-4.1
// section 12.3.
// ranks: 2
// settings: FOMPI_ADOPT=never

#define _GNU_SOURCE

#include "created.h"

#include <sys/mman.h>

enum { MEBIBYTES = 2200, STRETCHES = 3 };

static const size_t mebibyte = 1 << 20, piece = (size_t)8 << 20;

// The first mebibytes, those around 2^31 - 4096 (what the system moves at most), and the last ones.
static const size_t stretches[STRETCHES] = {0, 2046, MEBIBYTES - 4};
static const size_t stretch_bytes = (size_t)4 << 20;

static unsigned char value_at(size_t place) { return (unsigned char)(place >> 20 ^ place * 7); }

static char *sparse_memory(void)
{
    const size_t bytes = MEBIBYTES * mebibyte;
    const int file = memfd_create("piece", MFD_CLOEXEC);
    CHECK(file >= 0);
    CHECK_EQ(ftruncate(file, (off_t)piece), 0);
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (size_t at = 0; at < bytes; at += piece)
        CHECK(mmap(memory + at, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                   0) == memory + at);
    for (int i = 0; i < STRETCHES; i++) {
        char *own = memory + stretches[i] * mebibyte;
        CHECK(mmap(own, stretch_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == own);
    }
    close(file);
    return memory;
}

static void fill(char *memory, unsigned char salt)
{
    for (int i = 0; i < STRETCHES; i++)
        for (size_t k = 0; k < stretch_bytes; k++)
            memory[stretches[i] * mebibyte + k] =
                (char)(value_at(stretches[i] * mebibyte + k) + salt);
}

static void check_memory(const char *memory, unsigned char salt)
{
    for (int i = 0; i < STRETCHES; i++)
        for (size_t k = 0; k < stretch_bytes; k++) {
            const size_t place = stretches[i] * mebibyte + k;
            if ((unsigned char)memory[place] != (unsigned char)(value_at(place) + salt))
                check_failed(__FILE__, __LINE__, "byte %zu is wrong", place);
        }
}

int main(int argc, char **argv)
{
    const char *wanted = getenv("FOMPI_TEST_LARGE");
    MPI_Datatype block;
    check_start_within(115, &argc, &argv);
    if (!library_is_here() && (wanted == NULL || strcmp(wanted, "1") != 0))
        return check_end();
    char *memory = sparse_memory();
    MPI_Win win = window_over(rank == 1 ? memory : NULL,
                              rank == 1 ? (MPI_Aint)(MEBIBYTES * mebibyte) : 0, 1);
    OK(MPI_Type_contiguous((int)mebibyte, MPI_BYTE, &block));
    OK(MPI_Type_commit(&block));
    fill(memory, rank == 0 ? 1 : 2);
    OK(MPI_Win_fence(0, win));
    if (rank == 0)
        OK(MPI_Put(memory, MEBIBYTES, block, 1, 0, MEBIBYTES, block, win));
    OK(MPI_Win_fence(0, win));
    if (rank == 1) {
        check_memory(memory, 1);
        fill(memory, 3);
    }
    OK(MPI_Win_fence(0, win));
    if (rank == 0)
        OK(MPI_Get(memory, MEBIBYTES, block, 1, 0, MEBIBYTES, block, win));
    OK(MPI_Win_fence(0, win));
    if (rank == 0)
        check_memory(memory, 3);
    OK(MPI_Type_free(&block));
    OK(MPI_Win_free(&win));
    return check_end();
}
