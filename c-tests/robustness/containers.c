// Ranks that may not open each other's files, nor copy each other's memory: each in namespaces of
// its own, as containers are. All kinds of windows give the right results, and no call of a target
// is needed.
// usage: containers          runs as the ranks of a job
//        containers also messages, and sends short messages only: what the MPI must carry itself
//        containers strangers SECONDS   is no rank: connects to the sockets of all jobs, sends
//            bytes that are no messages, and must get none; ends with 3 if there was no socket

#include "robust.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

enum { SHORT = 100, WORDS = 8, LARGE = 3 << 20, WINDOWS = 40 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// Puts to the next rank, gets it back, and adds to a counter of rank 0 in several ways; `at` and
// `counter_at` are displacements there, in bytes. The window has zeros there before.
static void use(MPI_Win win, MPI_Aint at, MPI_Aint counter_at, int64_t *counter)
{
    int next = (rank + 1) % size;
    int64_t value = 1000 + rank, seen = 0, one = 1, before = -1, sums[2] = {1, 1}, swapped;
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Put(&value, 1, MPI_INT64_T, next, at, 1, MPI_INT64_T, win));
    OK(MPI_Win_flush_all(win));
    OK(MPI_Get(&seen, 1, MPI_INT64_T, next, at, 1, MPI_INT64_T, win));
    OK(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, counter_at, 1, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Accumulate(sums, 2, MPI_INT64_T, 0, counter_at, 2, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Win_flush_all(win));
    OK(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, counter_at, MPI_SUM, win));
    OK(MPI_Win_flush(0, win));
    CHECK(seen == value && before >= 2 && before < 3 * size);
    OK(MPI_Compare_and_swap(&one, &before, &swapped, MPI_INT64_T, 0, counter_at, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CHECK(rank > 0 || (counter[0] == 3 * size && counter[1] == size));
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    // Under an exclusive lock nobody else changes the counter between the get and the put.
    for (int turn = 0; turn < 20; turn++) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Get(&seen, 1, MPI_INT64_T, 0, counter_at, 1, MPI_INT64_T, win));
        OK(MPI_Win_flush(0, win));
        seen++;
        OK(MPI_Put(&seen, 1, MPI_INT64_T, 0, counter_at, 1, MPI_INT64_T, win));
        OK(MPI_Win_unlock(0, win));
    }
    OK(MPI_Win_fence(0, win));
    CHECK(rank > 0 || counter[0] == 23 * size);
    OK(MPI_Win_fence(0, win));
}

static void use_and_free(MPI_Win win, int64_t *memory)
{
    use(win, 0, 8, &memory[1]);
    CHECK(memory[0] == 1000 + (rank + size - 1) % size);
    OK(MPI_Win_free(&win));
}

static void allocated(size_t words)
{
    int64_t *memory;
    MPI_Win win;
    OK(MPI_Win_allocate((MPI_Aint)(8 * words), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    memset(memory, 0, 8 * words);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    use_and_free(win, memory);
}

static void shared(void)
{
    int64_t *memory, *other;
    int unit, next = (rank + 1) % size;
    MPI_Aint bytes;
    MPI_Win win;
    OK(MPI_Win_allocate_shared(8 * WORDS, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    memset(memory, 0, 8 * WORDS);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_shared_query(win, next, &bytes, &unit, &other));
    CHECK(bytes == 8 * WORDS && unit == 1);
    other[5] = 77 + rank;
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    CHECK(memory[5] == 77 + (rank + size - 1) % size);
    OK(MPI_Win_unlock_all(win));
    use_and_free(win, memory);
}

static void over_alloc_mem(void)
{
    int64_t *memory;
    MPI_Win win;
    OK(MPI_Alloc_mem(8 * WORDS, MPI_INFO_NULL, &memory));
    memset(memory, 0, 8 * WORDS);
    OK(MPI_Win_create(memory, 8 * WORDS, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    use_and_free(win, memory);
    OK(MPI_Free_mem(memory));
}

static void created(int on_stack)
{
    int64_t *memory = calloc(WORDS, 8), stack[WORDS] = {0};
    int64_t *exposed = on_stack ? stack : memory;
    MPI_Win win;
    OK(MPI_Win_create(exposed, 8 * WORDS, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    use_and_free(win, exposed);
    CHECK(rank > 0 || exposed[1] == 23 * size);
    free(memory);
}

static void dynamic(void)
{
    int64_t *memory = calloc(WORDS, 8);
    MPI_Aint of_next[2], of_first[2];
    MPI_Win win;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_attach(win, memory, 8 * WORDS));
    share_addresses(memory, of_next, of_first);
    use(win, of_next[0], of_first[1], &memory[1]);
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Win_free(&win));
    free(memory);
}

// A target that computes takes a put without a call.
static void passive(void *base, MPI_Win win)
{
    int64_t *memory = base;
    int64_t value = 5;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, win));
        OK(MPI_Put(&value, 1, MPI_INT64_T, size - 1, 16, 1, MPI_INT64_T, win));
        OK(MPI_Win_unlock(size - 1, win));
    }
    if (rank == size - 1) {
        double until = now() + 20;
        while (__atomic_load_n(&memory[2], __ATOMIC_ACQUIRE) != 5)
            CHECK(now() < until);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
}

static void without_calls(void)
{
    int64_t *memory = calloc(WORDS, 8), *of_window;
    MPI_Win win;
    OK(MPI_Win_create(memory, 8 * WORDS, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    passive(memory, win);
    OK(MPI_Win_allocate(8 * WORDS, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &of_window, &win));
    memset(of_window, 0, 8 * WORDS); // `passive` begins with a barrier
    passive(of_window, win);
    free(memory);
}

// More windows than the first chunk of control memory holds, and all ranks check the memory of all
// others at the same time.
static void many(void)
{
    int64_t *memory[WINDOWS];
    MPI_Win win[WINDOWS];
    for (int at = 0; at < WINDOWS; at++) {
        OK(MPI_Alloc_mem(8 * WORDS, MPI_INFO_NULL, &memory[at]));
        memset(memory[at], 0, 8 * WORDS);
        OK(MPI_Win_create(memory[at], 8 * WORDS, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win[at]));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int at = 0; at < WINDOWS; at++) {
        int64_t one = 1;
        OK(MPI_Win_lock_all(0, win[at]));
        for (int target = 0; target < size; target++)
            OK(MPI_Accumulate(&one, 1, MPI_INT64_T, (rank + target) % size, 3, 1, MPI_INT64_T,
                              MPI_SUM, win[at]));
        OK(MPI_Win_unlock_all(win[at]));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int at = 0; at < WINDOWS; at++) {
        CHECK(memory[at][3] == size);
        OK(MPI_Win_free(&win[at]));
        OK(MPI_Free_mem(memory[at]));
    }
}

// Communicators ask anew.
static void of_other_communicators(void)
{
    for (int turn = 0; turn < 3; turn++) {
        MPI_Comm comm;
        MPI_Win win;
        int64_t *memory = calloc(WORDS, 8), one = 1;
        int own, others;
        OK(MPI_Comm_split(MPI_COMM_WORLD, turn == 2 ? rank % 2 : 0, rank, &comm));
        OK(MPI_Comm_rank(comm, &own));
        OK(MPI_Comm_size(comm, &others));
        OK(MPI_Win_create(memory, 8 * WORDS, 8, MPI_INFO_NULL, comm, &win));
        OK(MPI_Win_fence(0, win));
        OK(MPI_Accumulate(&one, 1, MPI_INT64_T, (own + 1) % others, 1, 1, MPI_INT64_T, MPI_SUM,
                          win));
        OK(MPI_Win_fence(0, win));
        CHECK(memory[1] == 1);
        OK(MPI_Win_free(&win));
        OK(MPI_Comm_free(&comm));
        free(memory);
    }
}

// Returns how many sockets of libfompi there are, and sends nonsense to each.
static int bother(unsigned *seed)
{
    char line[512], bytes[200];
    int found = 0;
    FILE *all = fopen("/proc/net/unix", "r");
    if (all == NULL)
        return 0;
    while (fgets(line, sizeof line, all) != NULL) {
        struct sockaddr_un to = {.sun_family = AF_UNIX};
        struct timeval patience = {.tv_sec = 5};
        char *name = strstr(line, "@fompi-");
        if (name == NULL)
            continue;
        name[strcspn(name, "\n")] = 0;
        memcpy(to.sun_path + 1, name + 1, strlen(name + 1));
        socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (fd < 0)
            break;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        if (connect(fd, (struct sockaddr *)&to, length) == 0) {
            size_t count = (size_t)(rand_r(seed) % 200);
            found++;
            for (size_t at = 0; at < count; at++)
                bytes[at] = (char)rand_r(seed);
            if (count > 0)
                send(fd, bytes, count, MSG_NOSIGNAL);
            if (count % 3 == 0 && recv(fd, bytes, sizeof bytes, 0) > 0) {
                fprintf(stderr, "a stranger got an answer\n");
                exit(1);
            }
        }
        if (fd % 2 == 0 || fd > 200)
            close(fd); // the others stay open, and say nothing more
    }
    fclose(all);
    return found;
}

static void messages(void)
{
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    int sent[SHORT] = {rank}, got[SHORT] = {-1};
    for (int turn = 0; turn < 100; turn++) {
        OK(MPI_Sendrecv(sent, SHORT, MPI_INT, next, 0, got, SHORT, MPI_INT, previous, 0,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(got[0] == previous);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

static int strangers(double seconds)
{
    unsigned seed = 4711;
    int found = 0;
    for (double until = now() + seconds; now() < until; usleep(1000))
        found += bother(&seed);
    return found > 0 ? 0 : 3;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "strangers") == 0)
        return strangers(atof(argv[2]));
    start(90, &argc, &argv);
    if (argc > 1 && strcmp(argv[1], "messages") == 0) {
        messages();
        return MPI_Finalize();
    }
    for (int again = 0; again < 3; again++) {
        allocated(WORDS);
        allocated(LARGE / (size_t)size);
        shared();
        over_alloc_mem();
        created(0);
        created(1);
        dynamic();
    }
    many();
    without_calls();
    of_other_communicators();
    return MPI_Finalize();
}
