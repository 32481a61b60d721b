// Memory that the device reads or writes at the origin: memory of MPI_Alloc_mem is registered once,
// until MPI_Free_mem, other memory only while operations use it, because nobody says when it ends.
// Whatever lies at an address next is what is sent next. Counted for the library; the plain MPI has
// nothing to count.
// ranks: 2 4

#include "../../include/fompi.h"
#include "check.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES = 256 << 10, ROUNDS = 5 };

static int (*get_counts)(fompi_verbs_counts *);
static fompi_verbs_counts before;
static MPI_Win win;
static int target;

static fompi_verbs_counts counted(void)
{
    fompi_verbs_counts counts = {0};
    if (get_counts != NULL)
        get_counts(&counts);
    return counts;
}

// Regions that there are more than before, and registrations since then.
static void registered_at(int line, long regions, long registrations)
{
    const fompi_verbs_counts now = counted();
    const long more = (long)(now.regions - before.regions);
    const long times = (long)(now.registrations - before.registrations);
    if (now.contacted > 0 && (more != regions || times != registrations))
        check_failed(__FILE__, line, "%ld regions, %ld registrations, not %ld, %ld", more, times,
                     regions, registrations);
}

#define REGISTERED(...) registered_at(__LINE__, __VA_ARGS__)

static void there_and_back(char *bytes, int value)
{
    memset(bytes, value, BYTES);
    OK(MPI_Put(bytes, BYTES, MPI_BYTE, target, 0, BYTES, MPI_BYTE, win));
    OK(MPI_Win_flush(target, win));
    memset(bytes, 0, BYTES);
    OK(MPI_Get(bytes + 1, BYTES - 1, MPI_BYTE, target, 1, BYTES - 1, MPI_BYTE, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 1; i < BYTES; i++)
        if (bytes[i] != value) {
            check_failed(__FILE__, __LINE__, "byte %d is %d, not %d", i, bytes[i], value);
            break;
        }
}

static void allocated(void)
{
    before = counted();
    for (int i = 0; i < ROUNDS; i++) {
        char *bytes;
        OK(MPI_Alloc_mem(2 * BYTES, MPI_INFO_NULL, &bytes));
        for (int j = 0; j < ROUNDS; j++) {
            there_and_back(bytes + j, 1 + ROUNDS * i + j);
            REGISTERED(1, 1 + i);
        }
        OK(MPI_Free_mem(bytes));
        REGISTERED(0, 1 + i);
    }
}

static void mapped(void)
{
    before = counted();
    for (int i = 0; i < ROUNDS; i++) {
        char *bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(bytes != MAP_FAILED);
        there_and_back(bytes, 101 + i);
        REGISTERED(0, 2 + 2 * i);
        CHECK_EQ(munmap(bytes, BYTES), 0);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    *(void **)&get_counts = dlsym(RTLD_DEFAULT, "fompi_get_verbs_counts");
    char *base;
    OK(MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    target = size - 1;
    if (rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        allocated();
        mapped();
        OK(MPI_Win_unlock(target, win));
    }
    OK(MPI_Win_free(&win));
    return check_end();
}
