/* Rank 0 computes and calls nothing of MPI, while rank 1 puts into its window, rank 2 gets from it,
 * rank 3 adds to it, and so on, an operation each 10 ms. How long does each operation wait?
 *
 * usage: busy_target [SECONDS]      rank 0 computes for SECONDS, 2 without it */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PUT, GET, ADD, KINDS, TIMES_MAX = 100000, PAUSE_US = 10000 };
enum { FOR_PUTS, FOR_GETS, SUM, WORDS }; /* the words of rank 0's window */
static const char *const names[] = {"put", "get", "fetch-and-add"};
static const int64_t constant = 42;
static double times[TIMES_MAX];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void compute(double seconds) {
  volatile double x = 1;
  for (double end = now() + seconds; now() < end;)
    for (int i = 0; i < 1000; i++) x = x * 1.0000001 + 1e-9;
}

/* One operation on rank 0, complete there when this returns. Returns 0 if its result is wrong. */
static int operate(int kind, int64_t number, MPI_Win win) {
  int64_t got = constant, one = 1;
  if (kind == PUT) MPI_Put(&number, 1, MPI_INT64_T, 0, FOR_PUTS, 1, MPI_INT64_T, win);
  if (kind == GET) MPI_Get(&got, 1, MPI_INT64_T, 0, FOR_GETS, 1, MPI_INT64_T, win);
  if (kind == ADD) MPI_Fetch_and_op(&one, &got, MPI_INT64_T, 0, SUM, MPI_SUM, win);
  MPI_Win_flush(0, win);
  return kind == ADD ? got >= number : got == constant;
}

static int in_order(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  double seconds = argc > 1 ? atof(argv[1]) : 2;
  int rank, size, count = 0, good = 1, all_good, adds = 0, all_adds;
  int64_t *memory;
  MPI_Win win;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Win_allocate(WORDS * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                   &win);
  memory[FOR_PUTS] = memory[SUM] = 0;
  memory[FOR_GETS] = constant;
  MPI_Win_lock_all(0, win);
  MPI_Win_sync(win);
  MPI_Barrier(MPI_COMM_WORLD);
  int kind = (rank + KINDS - 1) % KINDS;
  if (rank > 0) operate(kind, 0, win); /* the first one makes the connection */
  MPI_Barrier(MPI_COMM_WORLD);
  double end = now() + seconds;
  if (rank == 0) compute(seconds);
  while (rank > 0 && count < TIMES_MAX && now() < end) {
    usleep(PAUSE_US);
    double began = now();
    good &= operate(kind, count + 1, win);
    times[count++] = now() - began;
  }
  adds = rank > 0 && kind == ADD ? count + 1 : 0;
  MPI_Reduce(&adds, &all_adds, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(win);
  if (rank == 0) good = memory[SUM] == all_adds && (size == 1 || memory[FOR_PUTS] > 0);
  MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  qsort(times, (size_t)count, sizeof *times, in_order);
  if (rank > 0)
    printf("rank=%d operation=%s count=%d median=%.9f longest=%.9f good=%d\n", rank, names[kind],
           count, times[count / 2], times[count - 1], all_good);
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  MPI_Finalize();
  return !all_good;
}
