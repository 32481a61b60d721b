// What every test shares: start and end, checks that name file and line, a watchdog that does the
// same for a rank that hangs, and small helpers around windows.
//
// A test prints nothing when all is right. The first check that fails prints one line and ends the
// job through MPI_Abort. A rank that is still running after its time prints the line of its last
// check and exits, which makes mpiexec end the others.

#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))

// This process in MPI_COMM_WORLD.
UNUSED static int rank, size;

// Where the last check or checked call stands; the watchdog reports it.
static const char *volatile check_file = "before the first check";
static volatile int check_line;

UNUSED static void check_failed(const char *file, int line, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s:%d: rank %d of %d: %s\n", file, line, rank, size, text);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

UNUSED static void check_here(const char *file, int line)
{
    check_file = file;
    check_line = line;
}

// The condition must hold.
#define CHECK(condition) do { \
    check_here(__FILE__, __LINE__); \
    if (!(condition)) \
        check_failed(__FILE__, __LINE__, "does not hold: %s", #condition); \
} while (0)

// Two integers must be equal; both are printed when they are not.
#define CHECK_EQ(got, want) do { \
    check_here(__FILE__, __LINE__); \
    long long got_ = (long long)(got), want_ = (long long)(want); \
    if (got_ != want_) \
        check_failed(__FILE__, __LINE__, "%s is %lld, not %lld", #got, got_, want_); \
} while (0)

// The call must return MPI_SUCCESS.
#define OK(call) do { \
    check_here(__FILE__, __LINE__); \
    check_ok((call), #call, __FILE__, __LINE__); \
} while (0)

// The call must return an error of one of the classes listed.
#define EXPECT(call, ...) do { \
    check_here(__FILE__, __LINE__); \
    const int classes_[] = {__VA_ARGS__}; \
    check_class((call), classes_, (int)(sizeof classes_ / sizeof *classes_), #call, \
                __FILE__, __LINE__); \
} while (0)

UNUSED static void check_ok(int code, const char *call, const char *file, int line)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    check_failed(file, line, "%s: %s", call, text);
}

UNUSED static void check_class(int code, const int *classes, int count, const char *call,
                               const char *file, int line)
{
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    for (int i = 0; i < count; i++)
        if (class == classes[i])
            return;
    check_failed(file, line, "%s: error class is %d, not %d", call, class, classes[0]);
}

// Only what is safe in a signal handler.
static void check_watchdog(int signal_number)
{
    char line[220];
    (void)signal_number;
    int length = snprintf(line, sizeof line, "%s:%d: rank %d of %d: still there when time was up\n",
                          check_file, check_line, rank, size);
    if (write(2, line, (size_t)length) < 0)
        _exit(2);
    _exit(1);
}

// Gives the program `seconds`, or fewer if CHECK_SECONDS says so, or CHECK_TIMES as many where the
// machine is slow.
UNUSED static void check_within(unsigned seconds)
{
    const char *fewer = getenv("CHECK_SECONDS"), *times = getenv("CHECK_TIMES");
    if (times != NULL)
        seconds *= (unsigned)atoi(times);
    if (fewer != NULL && (unsigned)atoi(fewer) < seconds)
        seconds = (unsigned)atoi(fewer);
    signal(SIGALRM, check_watchdog);
    alarm(seconds);
}

// Starts MPI with that watchdog.
UNUSED static void check_start_within(unsigned seconds, int *argc, char ***argv)
{
    check_within(seconds);
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

UNUSED static void check_start(int *argc, char ***argv)
{
    check_start_within(60, argc, argv);
}

UNUSED static int check_end(void)
{
    check_here("in MPI_Finalize", 0);
    MPI_Finalize();
    return 0;
}

// An allocated window over MPI_COMM_WORLD, zeroed on every rank before any rank goes on.
UNUSED static void *window_of(MPI_Aint bytes, int disp_unit, MPI_Win *win)
{
    void *base = NULL;
    OK(MPI_Win_allocate(bytes, disp_unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, win));
    memset(base, 0, (size_t)bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return base;
}

// The same, whose errors return instead of ending the job.
UNUSED static void *returning_window_of(MPI_Aint bytes, int disp_unit, MPI_Win *win)
{
    void *base = window_of(bytes, disp_unit, win);
    OK(MPI_Win_set_errhandler(*win, MPI_ERRORS_RETURN));
    return base;
}

// The text of an error code, whose length must be right.
UNUSED static void text_of(int code, char *text)
{
    int length = -1;
    memset(text, 'z', MPI_MAX_ERROR_STRING);
    OK(MPI_Error_string(code, text, &length));
    CHECK(length > 0 && length < MPI_MAX_ERROR_STRING);
    CHECK_EQ(strlen(text), length);
}

// The neighbours of this rank in the ring of all ranks.
UNUSED static int next_rank(void) { return (rank + 1) % size; }
UNUSED static int previous_rank(void) { return (rank + size - 1) % size; }

#endif
