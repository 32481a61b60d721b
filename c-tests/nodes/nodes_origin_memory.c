// Memory that the device reads or writes at the origin: memory of MPI_Alloc_mem and of allocated
// windows is registered once, until it is freed, other memory only while operations use it, because
// nobody says when it ends. Whatever lies at an address next is what is sent next, also after a fork
// and under a created window. Rows of registered memory are sent as they lie there. Counted for the
// library; the plain MPI has nothing to count.
// ranks: 2 4

#include "../../include/fompi.h"
#include "check.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 256 << 10, ROUNDS = 5, ROWS = 20, ROW = 2 << 10, APART = 3 << 10 };

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

// The windows of this process alone; the memory of the first one is kept for those after it.
static void of_windows(void)
{
    before = counted();
    for (int i = 0; i < ROUNDS; i++) {
        char *bytes;
        MPI_Win own;
        OK(MPI_Win_allocate(2 * BYTES, 1, MPI_INFO_NULL, MPI_COMM_SELF, &bytes, &own));
        for (int j = 0; j < ROUNDS; j++) {
            there_and_back(bytes + j, 51 + ROUNDS * i + j);
            REGISTERED(1, 1 + i);
        }
        OK(MPI_Win_free(&own));
        REGISTERED(0, 1 + i);
    }
}

// Memory of 8 MiB is registered in pieces of 2 MiB, as it is used.
static void in_pieces(void)
{
    enum { MIB = 1 << 20 };
    char *bytes;
    before = counted();
    OK(MPI_Alloc_mem(8 * MIB, MPI_INFO_NULL, &bytes));
    for (int i = 0; i < 16; i++) {
        there_and_back(bytes + i * (MIB / 2), 1 + i);
        REGISTERED(1 + i / 4, 1 + i / 4);
    }
    if (counted().contacted > 0)
        CHECK_EQ(counted().registered_bytes - before.registered_bytes, 8 * MIB);
    there_and_back(bytes, 77);
    REGISTERED(4, 4);
    OK(MPI_Free_mem(bytes));
    REGISTERED(0, 4);
}

static char *map(void)
{
    char *bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(bytes != MAP_FAILED);
    return bytes;
}

// A child has the bytes of the fork, however often the parent writes and sends meanwhile.
static void forked(char *bytes)
{
    int ends[2], status;
    char byte;
    there_and_back(bytes, 31);
    CHECK_EQ(pipe(ends), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(ends[1]);
        if (read(ends[0], &byte, 1) != 0)
            _exit(1);
        for (int i = 1; i < BYTES; i++)
            if (bytes[i] != 31)
                _exit(2);
        _exit(0);
    }
    close(ends[0]);
    there_and_back(bytes, 32);
    there_and_back(bytes, 33);
    close(ends[1]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    there_and_back(bytes, 34);
}

static void forks(void)
{
    char *allocated, *own = map();
    OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &allocated));
    before = counted();
    forked(allocated);
    REGISTERED(1, 1);
    forked(own);
    OK(MPI_Free_mem(allocated));
    CHECK_EQ(munmap(own, BYTES), 0);
}

// Rows of memory that stays registered, and of other memory.
static void rows(char *bytes)
{
    static char packed[ROWS * ROW];
    MPI_Datatype type;
    OK(MPI_Type_vector(ROWS, ROW, APART, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    for (int i = 0; i < ROWS * APART; i++)
        bytes[i] = (char)(i / APART * 7 + i % 11);
    OK(MPI_Put(bytes, 1, type, target, 0, ROWS * ROW, MPI_BYTE, win));
    OK(MPI_Win_flush(target, win));
    memset(bytes, 0, ROWS * APART);
    OK(MPI_Get(packed, ROWS * ROW, MPI_BYTE, target, 0, ROWS * ROW, MPI_BYTE, win));
    OK(MPI_Get(bytes, 1, type, target, 0, ROWS * ROW, MPI_BYTE, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 0; i < ROWS * APART; i++) {
        const int row = i / APART, column = i % APART;
        const char value = column < ROW ? (char)(row * 7 + i % 11) : 0;
        if (bytes[i] != value || (column < ROW && packed[row * ROW + column] != value)) {
            check_failed(__FILE__, __LINE__, "row %d, column %d: %d, not %d", row, column, bytes[i],
                         value);
            break;
        }
    }
    OK(MPI_Type_free(&type));
}

static void all_rows(void)
{
    char *allocated, *own = map();
    OK(MPI_Alloc_mem(ROWS * APART, MPI_INFO_NULL, &allocated));
    rows(allocated);
    rows(own);
    OK(MPI_Free_mem(allocated));
    CHECK_EQ(munmap(own, BYTES), 0);
}

static void alone(char *bytes, int value)
{
    if (rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        there_and_back(bytes, value);
        OK(MPI_Win_unlock(target, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// The pages of a created window may be moved when it is made and when it is freed.
static void created(void)
{
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "fompi_adopt", "true"));
    char *bytes = map();
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Win over;
        alone(bytes, 3 * i + 1);
        OK(MPI_Win_create(bytes, BYTES, 1, info, MPI_COMM_WORLD, &over));
        alone(bytes, 3 * i + 2);
        OK(MPI_Win_free(&over));
        alone(bytes, 3 * i + 3);
    }
    CHECK_EQ(munmap(bytes, BYTES), 0);
    OK(MPI_Info_free(&info));
}

static void mapped(void)
{
    before = counted();
    for (int i = 0; i < ROUNDS; i++) {
        char *bytes = map();
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
        of_windows();
        in_pieces();
        mapped();
        forks();
        all_rows();
        OK(MPI_Win_unlock(target, win));
    }
    created();
    OK(MPI_Win_free(&win));
    return check_end();
}
