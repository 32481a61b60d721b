// What the programs of this folder share: checks that end the job with one line, and a watchdog.
// They print what tests/test_robust.py and others ask for on standard output, and errors on standard error.

#ifndef ROBUST_H
#define ROBUST_H

#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))

// This process in MPI_COMM_WORLD.
UNUSED static int rank, size;

UNUSED static void wrong(int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "line %d, rank %d of %d: ", line, rank, size);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

// The condition must hold.
#define CHECK(condition) \
    do { if (!(condition)) wrong(__LINE__, "does not hold: %s", #condition); } while (0)

// The call must return MPI_SUCCESS.
#define OK(call) do { \
    int code_ = (call); \
    if (code_ != MPI_SUCCESS) wrong(__LINE__, "%s: class %d", #call, class_of(code_)); \
} while (0)

// The call must return an error of this class.
#define EXPECT(call, want) do { \
    int class_ = class_of(call); \
    if (class_ != (want)) wrong(__LINE__, "%s: class %d, not %s", #call, class_, #want); \
} while (0)

UNUSED static int class_of(int code)
{
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    return class;
}

// Starts MPI; SIGALRM ends a rank that is still there after `seconds`, and so the job.
UNUSED static void start(unsigned seconds, int *argc, char ***argv)
{
    alarm(seconds);
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

// A window of zeros over MPI_COMM_WORLD, counted in words of eight bytes, that returns its errors.
UNUSED static int64_t *window_of(MPI_Aint words, MPI_Win *win)
{
    int64_t *base;
    OK(MPI_Win_allocate(8 * words, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, win));
    OK(MPI_Win_set_errhandler(*win, MPI_ERRORS_RETURN));
    memset(base, 0, 8 * (size_t)words);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return base;
}

// A number of /proc/self/status, in KiB.
UNUSED static long status_kib(const char *field)
{
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            kib = atol(line + strlen(field));
    if (status != NULL)
        fclose(status);
    return kib;
}

// Tells the others where two words of this rank are; learns where those of the next rank are, and
// those of rank 0.
UNUSED static void share_addresses(int64_t *memory, MPI_Aint of_next[2], MPI_Aint of_first[2])
{
    MPI_Aint at[2];
    OK(MPI_Get_address(&memory[0], &at[0]));
    OK(MPI_Get_address(&memory[1], &at[1]));
    memcpy(of_first, at, sizeof at);
    OK(MPI_Bcast(of_first, 2, MPI_AINT, 0, MPI_COMM_WORLD));
    OK(MPI_Sendrecv(at, 2, MPI_AINT, (rank + size - 1) % size, 0, of_next, 2, MPI_AINT,
                    (rank + 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

#endif
