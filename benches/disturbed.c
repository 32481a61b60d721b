/* What a stream of operations costs its target in time: the last rank computes, a fixed work, while
 * rank 0 sends operations to it, and without them, in turns. The processor time of the service thread
 * is that of the thread's schedstat.
 *
 * usage: disturbed [ROUNDS [one]]    one: the target, its service thread too, has one processor
 *
 * Prints for each stream: how much longer the work takes (median of the rounds, in per cent), the
 * operations in a second, and the processor time of the service thread for each, in microseconds. */
#define _GNU_SOURCE
#include <dirent.h>
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20, MANY = 1000, ROUNDS_MAX = 99, DONE = 1 };
static const double WORK_SECONDS = 0.3;

static int rank, size, target;
static MPI_Win win;
static char *source;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- the streams ---------------------------------------------------------------------------- */

static void put_at(int place) {
  MPI_Put(source, 1, MPI_INT64_T, target, 8 * place, 1, MPI_INT64_T, win);
}
static void put_one(void) { put_at(0), MPI_Win_flush(target, win); }
static void put_many(void) {
  for (int i = 0; i < MANY; i++) put_at(i);
  MPI_Win_flush(target, win);
}
static void add_one(void) {
  static int64_t one = 1, before;
  MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, 0, MPI_SUM, win);
  MPI_Win_flush(target, win);
}
static void add_many(void) {
  static int64_t one = 1;
  for (int i = 0; i < MANY; i++)
    MPI_Accumulate(&one, 1, MPI_INT64_T, target, 8 * i, 1, MPI_INT64_T, MPI_SUM, win);
  MPI_Win_flush(target, win);
}
static void put_mib(void) {
  MPI_Put(source, MIB, MPI_CHAR, target, 0, MIB, MPI_CHAR, win);
  MPI_Win_flush(target, win);
}

static const struct stream {
  const char *name;
  void (*operate)(void);
  int operations; /* of one call */
  unsigned pause_us;
} streams[] = {
    {"put_each_ms", put_one, 1, 1000},
    {"put_each_100_us", put_one, 1, 100},
    {"put_flush", put_one, 1, 0},
    {"fetch_and_op_flush", add_one, 1, 0},
    {"puts_1000_flush", put_many, MANY, 0},
    {"sums_of_longs_1000_flush", add_many, MANY, 0},
    {"put_1_MiB_flush", put_mib, 1, 0},
};

/* --- the target ----------------------------------------------------------------------------- */

static double work(long rounds) {
  double began = now();
  volatile double x = 1;
  for (long i = 0; i < rounds; i++) x = x * 1.0000001 + 1e-9;
  return now() - began;
}

/* Calls `each` with the number of every thread of this process that has this name, or of all. */
static double threads(const char *name, double (*each)(const char *)) {
  DIR *folder = opendir("/proc/self/task");
  double sum = 0;
  for (struct dirent *entry; folder && (entry = readdir(folder));) {
    char path[300], is[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
    FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
    if (file == NULL) continue;
    if (fgets(is, sizeof is, file) == NULL) is[0] = 0;
    fclose(file);
    is[strcspn(is, "\n")] = 0;
    if (name == NULL || strcmp(is, name) == 0) sum += each(entry->d_name);
  }
  if (folder) closedir(folder);
  return sum;
}

static double processor_time(const char *thread) {
  char path[300];
  unsigned long long ns = 0;
  snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", thread);
  FILE *file = fopen(path, "r");
  if (file != NULL) {
    if (fscanf(file, "%llu", &ns) != 1) ns = 0;
    fclose(file);
  }
  return 1e-3 * (double)ns;
}

static double to_one_processor(const char *thread) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET((size_t)sysconf(_SC_NPROCESSORS_ONLN) - 1, &one);
  return sched_setaffinity(atoi(thread), sizeof one, &one);
}

static int in_order(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sends until the target says that its work is done. Returns how many operations that were. */
static double send_until_done(const struct stream *stream) {
  double count = 0;
  for (int done = 0; !done; count += stream->operations) {
    stream->operate();
    if (stream->pause_us) usleep(stream->pause_us);
    MPI_Iprobe(target, DONE, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);
  }
  MPI_Recv(NULL, 0, MPI_CHAR, target, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return count;
}

static void measure(const struct stream *stream, long work_rounds, int rounds) {
  static double slower[ROUNDS_MAX];
  double count = 0, seconds = 0, service_us = 0;
  for (int round = 0; round < rounds; round++) {
    double alone = 0, with, sent = 0, before;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == target) alone = work(work_rounds);
    MPI_Barrier(MPI_COMM_WORLD);
    before = threads("fompi-service", processor_time);
    if (rank == target) {
      with = work(work_rounds);
      MPI_Send(NULL, 0, MPI_CHAR, 0, DONE, MPI_COMM_WORLD);
      slower[round] = 100 * (with / alone - 1);
      seconds += with;
    } else if (rank == 0) {
      sent = send_until_done(stream);
    }
    MPI_Bcast(&sent, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    count += sent;
    service_us += threads("fompi-service", processor_time) - before;
  }
  if (rank != target) return;
  qsort(slower, (size_t)rounds, sizeof *slower, in_order);
  printf("%-26s %10.1f %12.0f %10.3f\n", stream->name, slower[rounds / 2], count / seconds,
         service_us / count);
  fflush(stdout);
}

int main(int argc, char **argv) {
  char *memory;
  int rounds = argc > 1 ? atoi(argv[1]) : 5;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  target = size - 1;
  if (size != 2 || rounds < 1 || rounds > ROUNDS_MAX) {
    fprintf(stderr, "disturbed: two ranks, and up to %d rounds\n", ROUNDS_MAX);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  source = calloc(1, MIB);
  MPI_Win_allocate(MIB, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_lock_all(0, win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) put_one();
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == target && argc > 2) threads(NULL, to_one_processor);
  long work_rounds = 1000000;
  if (rank == target) work_rounds = (long)(1e6 * WORK_SECONDS / work(1000000));
  for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
    measure(&streams[i], work_rounds, rounds);
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  MPI_Finalize();
  return 0;
}
