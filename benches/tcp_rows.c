/* Cost of operations between nodes over TCP, compared with bare TCP. Rank 0 drives the last rank.
 * Both also have a stream of their own, which a blocking thread of the last rank reads: 8 bytes and 8
 * bytes back, or a long stream and 8 bytes back. Operation and bare stream are measured in turns.
 *
 * usage: tcp_rows [ROUNDS]
 *
 * Prints for each row and round, in microseconds: the median and the least of the operation, then
 * those of the bare stream (0 where there is none). Other ranks sleep, but for the fence.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { TIMES_MAX = 100000, CHUNK = 50, MIB = 1 << 20, LONG = 8 * MIB, WORD_AT = 8, MANY = 1000 };
static const double ROW_SECONDS = 0.2;

static int rank, size, target, stream;
static MPI_Win win, active; /* `active` is for fences and for post, start, complete and wait */
static MPI_Comm pair; /* rank 0 and the target */
static char *memory, *source;
static double times[TIMES_MAX], bare_times[TIMES_MAX];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void die(const char *what) {
  perror(what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* --- the bare stream ------------------------------------------------------------------------ */

static void read_all(int fd, void *to, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    ssize_t got = recv(fd, (char *)to + at, bytes - at, 0);
    if (got <= 0) pthread_exit(NULL);
    at += (size_t)got;
  }
}

/* Reads a length and that many bytes, and answers with 8 bytes, forever. */
static void *reader(void *argument) {
  int fd = (int)(intptr_t)argument;
  char *to = calloc(1, LONG);
  for (;;) {
    uint64_t bytes;
    read_all(fd, &bytes, sizeof bytes);
    read_all(fd, to, bytes);
    if (send(fd, &bytes, sizeof bytes, MSG_NOSIGNAL) != sizeof bytes) pthread_exit(NULL);
  }
}

/* This node's address: the first that is not loopback's, if there is one. */
static struct in_addr own_address(void) {
  struct ifaddrs *all;
  struct in_addr found = {htonl(INADDR_LOOPBACK)};
  if (getifaddrs(&all) != 0) die("getifaddrs");
  for (struct ifaddrs *each = all; each; each = each->ifa_next)
    if (each->ifa_addr && each->ifa_addr->sa_family == AF_INET &&
        !(each->ifa_flags & IFF_LOOPBACK) && (each->ifa_flags & IFF_UP)) {
      found = ((struct sockaddr_in *)(void *)each->ifa_addr)->sin_addr;
      break;
    }
  freeifaddrs(all);
  return found;
}

static void connect_stream(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = own_address()};
  socklen_t bytes = sizeof at;
  int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
  pthread_t thread;
  if (rank == target && (bind(fd, (struct sockaddr *)&at, bytes) != 0 || listen(fd, 1) != 0 ||
                         getsockname(fd, (struct sockaddr *)&at, &bytes) != 0))
    die("listen");
  MPI_Bcast(&at, sizeof at, MPI_BYTE, target, MPI_COMM_WORLD);
  if (rank == target) {
    int accepted = accept(fd, NULL, NULL);
    if (accepted < 0) die("accept");
    setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    pthread_create(&thread, NULL, reader, (void *)(intptr_t)accepted);
  } else if (rank == 0) {
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    stream = fd;
    return;
  }
  close(fd);
}

/* Sends 8 bytes, and `bytes` more, and waits for the answer. */
static void bare(uint64_t bytes) {
  uint64_t answer;
  struct iovec pieces[] = {{&bytes, sizeof bytes}, {source, bytes}};
  struct msghdr message = {.msg_iov = pieces, .msg_iovlen = bytes ? 2 : 1};
  ssize_t sent = sendmsg(stream, &message, MSG_NOSIGNAL);
  for (uint64_t left = bytes + sizeof bytes - (uint64_t)sent; sent > 0 && left > 0;) {
    sent = send(stream, source + (bytes - left), left, MSG_NOSIGNAL);
    left -= (uint64_t)sent;
  }
  if (sent < 0) die("send");
  read_all(stream, &answer, sizeof answer);
}

/* --- the rows ------------------------------------------------------------------------------- */

static void put(void) { MPI_Put(source, 1, MPI_INT64_T, target, WORD_AT, 1, MPI_INT64_T, win); }
static void put_flush(void) { put(), MPI_Win_flush(target, win); }
static void get_flush(void) {
  MPI_Get(source, 1, MPI_INT64_T, target, WORD_AT, 1, MPI_INT64_T, win);
  MPI_Win_flush(target, win);
}
static void fetch_flush(void) {
  static int64_t one = 1, before;
  MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, 0, MPI_SUM, win);
  MPI_Win_flush(target, win);
}
static void many_puts(void) {
  for (int i = 0; i < MANY; i++)
    MPI_Put(source, 1, MPI_INT64_T, target, 8 * i, 1, MPI_INT64_T, win);
  MPI_Win_flush(target, win);
}
static void sums(int count, MPI_Datatype type) {
  static int64_t bits; /* zero, as a long and as a double */
  for (int i = 0; i < count; i++)
    MPI_Accumulate(&bits, 1, type, target, 8 * i, 1, type, MPI_SUM, win);
  MPI_Win_flush(target, win);
}
static void many_sums(void) { sums(MANY, MPI_INT64_T); }
static void sums_of_doubles(void) { sums(MANY / 10, MPI_DOUBLE); }
static void put_mib(void) {
  MPI_Put(source, MIB, MPI_CHAR, target, 0, MIB, MPI_CHAR, win);
  MPI_Win_flush(target, win);
}
static void put_8_mib(void) {
  for (int i = 0; i < 8; i++)
    MPI_Put(source + i * MIB, MIB, MPI_CHAR, target, i * MIB, MIB, MPI_CHAR, win);
  MPI_Win_flush(target, win);
}
static void lock_put_unlock(void) {
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, active);
  MPI_Put(source, 1, MPI_INT64_T, target, WORD_AT, 1, MPI_INT64_T, active);
  MPI_Win_unlock(target, active);
}

enum { NO_STREAM = -1 };
static const struct row {
  const char *name;
  void (*operate)(void);
  int64_t bare_bytes;
  int computes; /* whether the target computes, or waits in MPI_Barrier */
} rows[] = {
    {"put_flush", put_flush, 0, 0},
    {"put_flush_computing", put_flush, 0, 1},
    {"get_flush", get_flush, 0, 0},
    {"get_flush_computing", get_flush, 0, 1},
    {"fetch_and_op_flush", fetch_flush, 0, 0},
    {"fetch_and_op_flush_computing", fetch_flush, 0, 1},
    {"lock_put_unlock", lock_put_unlock, 0, 0},
    {"puts_1000_flush", many_puts, NO_STREAM, 0},
    {"sums_of_longs_1000_flush", many_sums, NO_STREAM, 0},
    {"sums_of_doubles_100_flush", sums_of_doubles, NO_STREAM, 0},
    {"put_1_MiB_flush", put_mib, MIB, 0},
    {"puts_8_x_1_MiB_flush", put_8_mib, LONG, 0},
};

static int in_order(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* scale: how many operations one time is of */
static void print(const char *name, int count, double scale, int bare_count) {
  double ours[2] = {0}, of_bare[2] = {0};
  qsort(times, (size_t)count, sizeof *times, in_order);
  qsort(bare_times, (size_t)bare_count, sizeof *bare_times, in_order);
  if (count) ours[0] = times[count / 2] / scale, ours[1] = times[0] / scale;
  if (bare_count) of_bare[0] = bare_times[bare_count / 2], of_bare[1] = bare_times[0];
  printf("%-30s %12.2f %12.2f %12.2f %12.2f\n", name, ours[0], ours[1], of_bare[0], of_bare[1]);
  fflush(stdout);
}

static void compute(double seconds) {
  volatile double x = 1;
  for (double end = now() + 1e6 * seconds; now() < end;)
    for (int i = 0; i < 1000; i++) x = x * 1.0000001 + 1e-9;
}

/* What the ranks that do not take part do: they sleep until all have called it. */
static void rest(void) {
  MPI_Request request;
  int done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (!done) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done) usleep(500);
  }
}

/* Takes the operation and the bare stream in turns, for ROW_SECONDS. */
static void measure(const struct row *row) {
  int count = 0, bare_count = 0;
  /* Where the target computes, the first operation may wait for it, and is the one to measure. */
  if (!row->computes) row->operate();
  double end = now() + 1e6 * ROW_SECONDS, chunk = now();
  while (count < TIMES_MAX - CHUNK && now() < end) {
    /* Long operations change turns at each. */
    chunk = now() + 500;
    for (int i = 0; i < CHUNK && (i == 0 || now() < chunk); i++) {
      double began = now();
      row->operate();
      times[count++] = now() - began;
    }
    chunk = now() + 500;
    for (int i = 0; row->bare_bytes >= 0 && i < CHUNK && (i == 0 || now() < chunk); i++) {
      double began = now();
      bare((uint64_t)row->bare_bytes);
      bare_times[bare_count++] = now() - began;
    }
  }
  print(row->name, count, 1, bare_count);
}

static void passive_row(const struct row *row) {
  int locks = row->operate == lock_put_unlock;
  if (!locks && rank == 0) MPI_Win_lock_all(0, win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == target && row->computes) compute(1.2 * ROW_SECONDS);
  if (rank == 0) {
    if (row->computes) usleep(20000);
    measure(row);
  }
  if (pair != MPI_COMM_NULL) MPI_Barrier(pair); /* a target that does not compute waits here */
  rest();
  if (!locks && rank == 0) MPI_Win_unlock_all(win);
}

/* Bare ping-pongs for comparison with a row in which both sides take part. */
static int bare_ping_pongs(int bare_count) {
  for (int i = 0; rank == 0 && i < CHUNK; i++) {
    double began = now();
    bare(0);
    bare_times[bare_count++] = now() - began;
  }
  return bare_count;
}

/* A put and the notice of it, there and back: half of it is one way. */
static void put_and_notify(void) {
  enum { TURNS = 20 };
  int bare_count = 0, other = rank == 0 ? target : 0;
  MPI_Group all, one;
  MPI_Win_get_group(active, &all);
  MPI_Group_incl(all, 1, &other, &one);
  for (int turn = 0; turn < TURNS && (rank == 0 || rank == target); turn++) {
    bare_count = bare_ping_pongs(bare_count);
    MPI_Barrier(pair);
    MPI_Win_post(one, 0, active);
    for (int i = 0; i < CHUNK; i++) {
      double began = now();
      if (rank == target) {
        MPI_Win_wait(active);
        MPI_Win_post(one, 0, active);
      }
      MPI_Win_start(one, 0, active);
      MPI_Put(source, 1, MPI_INT64_T, other, WORD_AT, 1, MPI_INT64_T, active);
      MPI_Win_complete(active);
      if (rank == 0) {
        MPI_Win_wait(active);
        MPI_Win_post(one, 0, active);
      }
      times[turn * CHUNK + i] = now() - began;
    }
    /* The exposures that are left. */
    MPI_Win_start(one, 0, active);
    MPI_Win_complete(active);
    MPI_Win_wait(active);
  }
  if (rank == 0) print("put_notify_one_way", TURNS * CHUNK, 2, bare_count);
  MPI_Group_free(&all);
  MPI_Group_free(&one);
  rest();
}

static void fences(int puts) {
  enum { TURNS = 10 };
  int bare_count = 0;
  for (int turn = 0; turn < TURNS; turn++) {
    bare_count = bare_ping_pongs(bare_count);
    MPI_Win_fence(0, active);
    for (int i = 0; i < CHUNK; i++) {
      double began = now();
      if (puts && size > 1)
        MPI_Put(source, 1, MPI_INT64_T, (rank + 1) % size, WORD_AT, 1, MPI_INT64_T, active);
      MPI_Win_fence(0, active);
      times[turn * CHUNK + i] = now() - began;
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, active);
  }
  if (rank == 0) print(puts ? "fence_with_puts" : "fence_empty", TURNS * CHUNK, 1, bare_count);
  rest();
}

int main(int argc, char **argv) {
  void *of_active;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  target = size - 1;
  if (target == 0) {
    fprintf(stderr, "tcp_rows: needs two ranks\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int in_pair = rank == 0 || rank == target;
  MPI_Comm_split(MPI_COMM_WORLD, in_pair ? 0 : MPI_UNDEFINED, rank, &pair);
  source = calloc(1, LONG);
  MPI_Win_allocate(LONG, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &of_active, &active);
  memset(memory, 0, LONG);
  memset(of_active, 0, 4096);
  connect_stream();
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = argc > 1 ? atoi(argv[1]) : 3; round > 0; round--) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) passive_row(&rows[i]);
    put_and_notify();
    fences(0);
    fences(1);
  }
  MPI_Win_free(&active);
  MPI_Win_free(&win);
  MPI_Finalize();
  return 0;
}
