// MPI_Win_toint and MPI_Win_fromint, where they are there, and MPI_Win_c2f and MPI_Win_f2c: every
// window has a number of its own, by which it is found and can be used, and so has MPI_WIN_NULL.
// MPI-4.1 section 19.3.4 and MPI-5.0 chapter 20.
// ranks: 1 2

#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>

enum { WINDOWS = 5 };

typedef int (*to_integer)(MPI_Win);
typedef MPI_Win (*from_integer)(int);

static int c2f(MPI_Win win) { return (int)MPI_Win_c2f(win); }
static MPI_Win f2c(int number) { return MPI_Win_f2c(number); }

// Puts by the handle that its number stands for.
static void use(MPI_Win win, const long *base, long mark)
{
    const long value = mark + rank;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), 0, 1, MPI_LONG, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_EQ(base[0], mark + previous_rank());
}

static void try(to_integer number_of, from_integer window_of_number)
{
    MPI_Win wins[WINDOWS];
    int numbers[WINDOWS];
    long *bases[WINDOWS];
    const int null = number_of(MPI_WIN_NULL);
    CHECK(window_of_number(null) == MPI_WIN_NULL);
    for (int i = 0; i < WINDOWS; i++) {
        bases[i] = returning_window_of(64, 8, &wins[i]);
        numbers[i] = number_of(wins[i]);
        CHECK(numbers[i] != null);
        for (int j = 0; j < i; j++)
            CHECK(numbers[i] != numbers[j]);
    }
    for (int i = 0; i < WINDOWS; i++) {
        CHECK(window_of_number(numbers[i]) == wins[i]);
        use(window_of_number(numbers[i]), bases[i], 100 * i);
    }
    for (int i = 0; i < WINDOWS; i++) {
        MPI_Win same = window_of_number(numbers[i]);
        OK(MPI_Win_free(&same));
        CHECK(same == MPI_WIN_NULL);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    try(c2f, f2c);
    to_integer toint = (to_integer)dlsym(RTLD_DEFAULT, "MPI_Win_toint");
    from_integer fromint = (from_integer)dlsym(RTLD_DEFAULT, "MPI_Win_fromint");
    CHECK((toint == NULL) == (fromint == NULL));
    if (toint != NULL)
        try(toint, fromint);
    toint = (to_integer)dlsym(RTLD_DEFAULT, "PMPI_Win_toint");
    fromint = (from_integer)dlsym(RTLD_DEFAULT, "PMPI_Win_fromint");
    if (toint != NULL)
        try(toint, fromint);
    return check_end();
}
