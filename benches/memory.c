// What memory costs, in microseconds (medians): allocated, one byte or all of it used, and freed, again
// and again; windows that are made and freed; the first put to pages that nobody has touched.
//
//     mpicc -O2 memory.c -o memory && mpirun -n 2 ./memory

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 11, MIB = 1 << 20, PAGE = 4096 };

static int rank;
static char buffer[MIB];

static int compare(const void *one, const void *other)
{
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static void say(const char *what, long kib, double *seconds)
{
    qsort(seconds, ROUNDS, sizeof *seconds, compare);
    if (rank == 0)
        printf("%s_%ld_KiB %.2f\n", what, kib, 1e6 * seconds[ROUNDS / 2]);
}

static void allocations(long kib, int all)
{
    double seconds[ROUNDS];
    const size_t bytes = (size_t)kib << 10;
    for (int i = 0; i < ROUNDS; i++) {
        char *memory;
        double began = MPI_Wtime();
        MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory);
        if (all)
            memset(memory, i, bytes);
        else
            *(volatile char *)(memory + bytes / 2) = 1;
        MPI_Free_mem(memory);
        seconds[i] = MPI_Wtime() - began;
    }
    say(all ? "use_all_of" : "use_a_byte_of", kib, seconds);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void windows(long kib)
{
    double seconds[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Win win;
        void *base;
        MPI_Barrier(MPI_COMM_WORLD);
        double began = MPI_Wtime();
        MPI_Win_allocate(kib << 10, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
        MPI_Win_free(&win);
        seconds[i] = MPI_Wtime() - began;
    }
    say("window_of", kib, seconds);
}

static void touched_windows(long kib, int each)
{
    enum { WINDOWS = 101 };
    double seconds[WINDOWS], all = 0;
    for (int i = 0; i < WINDOWS; i++) {
        MPI_Win win;
        void *base;
        MPI_Barrier(MPI_COMM_WORLD);
        double began = MPI_Wtime();
        MPI_Win_allocate(kib << 10, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
        double made = MPI_Wtime();
        if (each || i == 0)
            memset(base, i + 1, (size_t)kib << 10);
        MPI_Barrier(MPI_COMM_WORLD);
        double touched = MPI_Wtime();
        MPI_Win_free(&win);
        double freed = MPI_Wtime();
        seconds[i] = made - began + freed - touched;
        all += i > 0 ? freed - began : 0;
    }
    qsort(seconds, WINDOWS, sizeof *seconds, compare);
    const char *which = each ? "each" : "first";
    if (rank == 0)
        printf("%s_touched_window_of_%ld_KiB %.2f\n%s_touched_mean_of_%ld_KiB %.2f\n", which, kib,
               1e6 * seconds[WINDOWS / 2], which, kib, 1e6 * all / (WINDOWS - 1));
}

static void put(MPI_Win win, int bytes, int times, MPI_Aint first, double *seconds)
{
    double began = MPI_Wtime();
    for (int i = 0; i < times; i++)
        MPI_Put(buffer, bytes, MPI_CHAR, 1, first + (MPI_Aint)i * PAGE, bytes, MPI_CHAR, win);
    MPI_Win_flush(1, win);
    *seconds = MPI_Wtime() - began;
}

static void puts_to_untouched(void)
{
    double first[ROUNDS], second[ROUNDS], small[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Win win;
        void *base;
        MPI_Win_allocate(16 * MIB, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
        MPI_Win_lock_all(0, win);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            put(win, MIB, 1, 0, &first[i]);
            put(win, MIB, 1, 0, &second[i]);
            put(win, 8, 256, 4 * MIB, &small[i]);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_unlock_all(win);
        MPI_Win_free(&win);
    }
    if (rank == 0) {
        say("first_put_of", 1024, first);
        say("second_put_of", 1024, second);
        say("first_small_puts_to", 1024, small);
    }
}

int main(int argc, char **argv)
{
    const long sizes[] = {64, 1024, 16384, 24576, 40960};
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int all = 0; all < 2; all++)
        for (int i = 0; i < 5; i++)
            allocations(sizes[i], all);
    for (int i = 0; i < 3; i++)
        windows(sizes[i]);
    touched_windows(16384, 0);
    touched_windows(16384, 1);
    puts_to_untouched();
    return MPI_Finalize();
}
