// Over TCP, what an origin sends leaves in as few system calls as can be: one for an operation and
// its flush, or for a lock, a few puts and the unlock; few for many small operations. A put to a
// target that owes no answer leaves at once; those behind it leave together. So in each round trip
// of a series one may leave at once: a slow series takes more calls, and the least of the rounds
// counts. A rank without MPI_THREAD_MULTIPLE sleeps in the call that receives the answer, not in
// ppoll(2) before it. The program has a sendmsg(2) and a ppoll(2) of its own, which count the calls
// of this thread. Does not hold of the plain MPI, and where ranks share memory nothing is sent.
// ranks: 2 4

#define _GNU_SOURCE
#include "nodes.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { MANY = 1000, LONG_BYTES = 12 << 10, ROUNDS = 20, ROUND_TRIP_US = 5 };

static __thread int sends, polls;
static double begin; // of a series of operations, in seconds
static int least_puts = MANY, least_gets = MANY;
static int has_library, over_tcp, target;
static MPI_Win win;

ssize_t sendmsg(int socket, const struct msghdr *message, int flags)
{
    sends++;
    return syscall(SYS_sendmsg, socket, message, flags);
}

int ppoll(struct pollfd *all, nfds_t count, const struct timespec *most, const sigset_t *mask)
{
    struct timespec left = {0};
    polls++;
    if (most != NULL)
        left = *most; // the system call writes the rest of the time
    return (int)syscall(SYS_ppoll, all, count, most != NULL ? &left : NULL, mask, _NSIG / 8);
}

// The service thread may have sent what was gathered, so it may be less.
static void check_at_most(int line, int most)
{
    if (has_library && sends > most)
        check_failed(__FILE__, line, "%d calls of sendmsg, not %d", sends, most);
    if (has_library && polls > 0)
        check_failed(__FILE__, line, "%d calls of ppoll", polls);
    sends = polls = 0;
}

// How many puts or gets of a series may have left at once: one in each round trip, which takes
// longer than ROUND_TRIP_US.
static int first_ones(void)
{
    return 1 + (int)((MPI_Wtime() - begin) * 1e6 / ROUND_TRIP_US);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

// Returns the number of calls.
static int flush_at_most(int line, int most)
{
    OK(MPI_Win_flush(target, win));
    int calls = sends;
    check_at_most(line, most);
    return calls;
}
#define FLUSH_AFTER(most) flush_at_most(__LINE__, most)

// A lock, puts and the unlock.
static void locks(void)
{
    static int64_t value = 1;
    for (int round = 0; over_tcp && round < ROUNDS; round++) {
        OK(MPI_Win_lock(round % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win));
        CHECK_EQ(sends, 0);
        for (int i = 0; i < 10; i++)
            OK(MPI_Put(&value, 1, MPI_INT64_T, target, i, 1, MPI_INT64_T, win));
        CHECK_EQ(sends, 0);
        OK(MPI_Win_unlock(target, win));
        check_at_most(__LINE__, 1);
    }
}

static void work(void)
{
    static char bytes[LONG_BYTES];
    static int64_t value = 1, before[MANY], compare = -1;
    OK(MPI_Put(&value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win));
    OK(MPI_Win_flush(target, win)); // makes the connection
    sends = polls = 0;
    int gathered = 0;
    for (int round = 0; round < ROUNDS; round++) {
        OK(MPI_Put(&value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win));
        FLUSH_AFTER(1);
        OK(MPI_Get(before, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win));
        FLUSH_AFTER(1);
        OK(MPI_Fetch_and_op(&value, before, MPI_INT64_T, target, 0, MPI_SUM, win));
        FLUSH_AFTER(1);
        OK(MPI_Compare_and_swap(&value, &compare, before, MPI_INT64_T, target, 0, win));
        FLUSH_AFTER(1);
        OK(MPI_Put(bytes, LONG_BYTES, MPI_CHAR, target, 0, LONG_BYTES, MPI_CHAR, win));
        FLUSH_AFTER(1);
        begin = MPI_Wtime();
        for (int i = 0; i < 3; i++) {
            OK(MPI_Put(&value, 1, MPI_INT64_T, target, i, 1, MPI_INT64_T, win));
            if (over_tcp)
                CHECK(sends >= 1 && sends <= first_ones());
        }
        gathered += sends == 1;
        FLUSH_AFTER(first_ones() + 1);
        begin = MPI_Wtime();
        for (int i = 0; i < MANY; i++)
            OK(MPI_Put(&value, 1, MPI_INT64_T, target, i, 1, MPI_INT64_T, win));
        least_puts = least(least_puts, FLUSH_AFTER(first_ones() + 3));
        begin = MPI_Wtime();
        for (int i = 0; i < MANY; i++)
            OK(MPI_Get(&before[i], 1, MPI_INT64_T, target, i, 1, MPI_INT64_T, win));
        least_gets = least(least_gets, FLUSH_AFTER(first_ones() + 3));
        CHECK_EQ(before[MANY - 1], value);
    }
    if (over_tcp)
        CHECK(gathered > 0 && least_puts <= 4 && least_gets <= 4);
}

int main(int argc, char **argv)
{
    int64_t *memory;
    setenv("FOMPI_NET_SPIN", "0", 1); /* a rank that spins makes calls that find nothing */
    check_start(&argc, &argv);
    has_library = dlsym(RTLD_DEFAULT, "fompi_get_verbs_counts") != NULL;
    target = size - 1;
    const char *net = getenv("FOMPI_NET");
    over_tcp = has_library && net != NULL && strcmp(net, "tcp") == 0 && ranks_per_node() > 0 &&
               size > ranks_per_node();
    OK(MPI_Win_allocate(LONG_BYTES, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    memset(memory, 0, LONG_BYTES);
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0)
        work();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    sends = polls = 0;
    if (rank == 0)
        locks();
    OK(MPI_Win_free(&win));
    return check_end();
}
