// How many round trips calls between nodes wait for, one after the other: at most two for a lock, a
// put and an unlock, and one over TCP where one process has all words of the lock; one for a flush and for a complete with gets, none for a complete with short puts
// and for a fence with such puts or without operations; over TCP none for a call on one element with a
// result, and one for all of them together. What docs/internals/many-nodes-protocols.md and tcp.md
// promise, over an RDMA device and over TCP. The plain MPI has nothing to count.
// ranks: 2 3 4

#include "../../include/fompi.h"
#include "check.h"

#include <dlfcn.h>
#include <stdlib.h>

enum { LONGS = 8 << 10, FETCHES = 20, FENCES = 20 };

static int (*get_counts)(fompi_verbs_counts *);
static uint64_t before;
static MPI_Win win;
static long *base;
static long values[LONGS], got[LONGS];
// Whether processors change the words of their node, so that a rank there waits for nothing.
static int is_coherent;
static int over_tcp, per_node, target;
// Of this rank's counter at each target: what it holds.
static long sums[16];
static long fetched[3 * FETCHES];

static fompi_verbs_counts counted(void)
{
    fompi_verbs_counts counts;
    CHECK(get_counts(&counts));
    return counts;
}

static uint64_t waits(void) { return counted().waits; }

static void begin(void) { before = waits(); }

static void cost_at(int line, uint64_t wanted)
{
    const uint64_t now = waits();
    if (now - before != wanted)
        check_failed(__FILE__, line, "rank %d at rank %d waits %d times, not %d", rank, target,
                     (int)(now - before), (int)wanted);
    before = now;
}

#define COST(...) cost_at(__LINE__, __VA_ARGS__)

static int node_of(int of) { return of / per_node; }

static void put(void)
{
    values[0]++;
    OK(MPI_Put(values, 1, MPI_LONG, target, rank, 1, MPI_LONG, win));
}

// Rank 0 has the word that exclusive locks and lock_all share.
static void locks(void)
{
    const int near_origin = node_of(rank) == 0 && is_coherent, near_target = node_of(target) == 0;
    const int together = over_tcp && (near_origin || near_target);
    begin();
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    put();
    OK(MPI_Win_unlock(target, win));
    COST(over_tcp ? 1 : 2);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    COST(!together);
    put();
    COST(0);
    OK(MPI_Win_unlock(target, win));
    COST(near_origin || near_target ? 1 : 2);
    // Without operations, or after a flush, both words at once.
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    OK(MPI_Win_unlock(target, win));
    COST(together ? 1 : 2);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    put();
    OK(MPI_Win_flush(target, win));
    COST(together ? 1 : 2);
    OK(MPI_Win_unlock(target, win));
    COST(1);
    OK(MPI_Win_lock_all(0, win));
    COST(!near_origin);
    put();
    OK(MPI_Win_flush(target, win));
    COST(1);
    put();
    OK(MPI_Win_unlock_all(win));
    COST(near_origin || near_target ? 1 : 2);
}

// Calls on one element with a result that do not wait.
static void fetch(void)
{
    static const long one = 1;
    const MPI_Aint at = LONGS / 2 + rank;
    begin();
    for (int i = 0; i < FETCHES; i++) {
        const long now = sums[target] + 3 * i + 2, next = now + 1;
        long *found = fetched + 3 * i;
        OK(MPI_Fetch_and_op(&one, found, MPI_LONG, target, at, MPI_SUM, win));
        OK(MPI_Get_accumulate(&one, 1, MPI_LONG, found + 1, 1, MPI_LONG, target, at, 1, MPI_LONG,
                              MPI_SUM, win));
        OK(MPI_Compare_and_swap(&next, &now, found + 2, MPI_LONG, target, at, win));
    }
    COST(0);
}

static void have_fetched(void)
{
    for (int i = 0; i < 3 * FETCHES; i++)
        CHECK_EQ(fetched[i], sums[target]++);
}

static void results(void)
{
    static const long one = 1;
    const int near_origin = node_of(rank) == 0, near_target = node_of(target) == 0;
    MPI_Request request;
    OK(MPI_Win_lock_all(0, win));
    fetch();
    OK(MPI_Win_flush_local(target, win));
    COST(1);
    have_fetched();
    OK(MPI_Win_flush(target, win));
    COST(0);
    fetch();
    OK(MPI_Win_flush_local_all(win));
    COST(1);
    have_fetched();
    OK(MPI_Win_flush_all(win));
    COST(0);
    fetch();
    OK(MPI_Win_flush(target, win));
    COST(1);
    have_fetched();
    begin();
    OK(MPI_Rget_accumulate(&one, 1, MPI_LONG, fetched, 1, MPI_LONG, target, LONGS / 2 + rank, 1,
                           MPI_LONG, MPI_SUM, win, &request));
    COST(1);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(fetched[0], sums[target]++);
    fetch();
    OK(MPI_Win_unlock_all(win));
    COST(1 + !near_origin);
    have_fetched();
    // Nobody else accumulates, so that the release may follow the calls at once.
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    OK(MPI_Win_flush(target, win)); // takes the lock
    fetch();
    OK(MPI_Win_flush_local(target, win));
    COST(1);
    have_fetched();
    fetch();
    OK(MPI_Win_unlock(target, win));
    COST(near_origin || near_target ? 1 : 2);
    have_fetched();
}

// A rank works on each target of another node, the others are in a barrier of the MPI.
static void by(int worker)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (target = 0; rank == worker && target < size; target++) {
        if (node_of(target) == node_of(rank))
            continue;
        // The first contact is counted apart.
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        put();
        OK(MPI_Win_unlock(target, win));
        locks();
        if (over_tcp)
            results();
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// A leader tells each other leader of a fence, and sends nothing else, though puts came before.
static void empty_fences(MPI_Win of)
{
    const int nodes = (size + per_node - 1) / per_node, told = rank % per_node == 0 ? nodes - 1 : 0;
    OK(MPI_Win_fence(0, of));
    const uint64_t sent = counted().atomics;
    begin();
    for (int i = 0; i < FENCES; i++)
        OK(MPI_Win_fence(0, of));
    COST(0);
    CHECK_EQ(counted().atomics - sent, FENCES * told);
}

static void fences(void)
{
    OK(MPI_Win_fence(0, win));
    target = (rank + per_node) % size;
    put();
    empty_fences(win);
    put();
    OK(MPI_Win_fence(0, win));
    COST(0);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    // The origin waits for answers of such a window, but fences have none.
    MPI_Win created;
    OK(MPI_Win_create(values, sizeof values, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &created));
    empty_fences(created);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, created));
    OK(MPI_Win_free(&created));
}

// Only gets and the buffers of long puts are waited for, all at once.
static void completes(MPI_Group world)
{
    MPI_Group group;
    target = (rank + per_node) % size;
    const int origin = (rank + size - per_node) % size, is_far = node_of(target) != node_of(rank);
    for (int i = 0; i < 3; i++) {
        OK(MPI_Group_incl(world, 1, &origin, &group));
        OK(MPI_Win_post(group, 0, win));
        OK(MPI_Group_free(&group));
        OK(MPI_Group_incl(world, 1, &target, &group));
        OK(MPI_Win_start(group, 0, win));
        OK(MPI_Group_free(&group));
        put();
        if (i == 2) {
            begin();
            OK(MPI_Win_complete(win));
            COST(0);
            OK(MPI_Win_wait(win));
            break;
        }
        OK(MPI_Put(values, LONGS, MPI_LONG, target, LONGS, LONGS, MPI_LONG, win));
        OK(MPI_Get(got, LONGS, MPI_LONG, target, 2 * LONGS, LONGS, MPI_LONG, win));
        begin();
        OK(MPI_Win_complete(win));
        COST(is_far);
        for (int k = 0; is_far && k < LONGS; k++)
            CHECK_EQ(got[k], target);
        OK(MPI_Win_wait(win));
    }
}

int main(int argc, char **argv)
{
    MPI_Group world;
    check_start(&argc, &argv);
    *(void **)&get_counts = dlsym(RTLD_DEFAULT, "fompi_get_verbs_counts");
    const char *ranks = getenv("FOMPI_RANKS_PER_NODE"), *net = getenv("FOMPI_NET");
    const char *atomic = getenv("ADAPTER_ATOMIC");
    OK(MPI_Win_allocate(3 * LONGS * (MPI_Aint)sizeof(long), sizeof(long), MPI_INFO_NULL,
                        MPI_COMM_WORLD, &base, &win));
    for (int i = 0; i < LONGS; i++)
        base[2 * LONGS + i] = rank;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    fompi_verbs_counts counts;
    if (get_counts != NULL && ranks != NULL && get_counts(&counts)) {
        per_node = atoi(ranks);
        over_tcp = net && strcmp(net, "tcp") == 0;
        is_coherent = over_tcp || (atomic && strcmp(atomic, "glob") == 0);
        for (int worker = 0; worker < size; worker++)
            by(worker);
        OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
        fences();
        completes(world);
        OK(MPI_Group_free(&world));
    }
    OK(MPI_Win_free(&win));
    return check_end();
}
