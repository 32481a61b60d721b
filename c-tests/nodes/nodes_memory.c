// What a process keeps for windows over many nodes, however many ranks there are: queue pairs,
// regions and registered bytes by the formulas of docs/internals/many-nodes.md, and how many bytes of the
// heap the library holds, for a window, for a target, for a queue pair, and for traffic. Each rank
// has to do with four others. Over TCP a connection keeps at most 10 KiB where requests are sent
// and 1 KiB where they are served, whatever it has carried, and a rank needs no connection for words of its own node.
// The plain MPI has nothing to count. With CHECK_SHOW the first and the last rank print what they
// have. MPI-4.1 section 12.2.
// Memory is not adopted: its accumulates would need no connection on the own node.
// ranks: 2 8 32
// settings: FOMPI_ADOPT=never

#define _GNU_SOURCE
#include "../../include/fompi.h"
#include "nodes.h"
#include "heap.h"

enum { NEIGHBOURS = 4, BYTES = 4096, PAGE = 4096, ROUNDS = 50,
       DIRECT_NODES_MAX = 8 };
// Bytes of the node's first control memory: for all, for a rank, and for a rank and each of the 16
// windows that it has room for.
enum { NODE_BYTES = 64, RANK_BYTES = 576, WINDOW_BYTES = 4096, WINDOWS = 16 };
// Of the heap, at most: blocks, answers and what else a process has in any case; a window; a target
// in use; a queue pair that sends, without what the driver keeps for it; one that lets in; what is
// not in these, and what stays behind traffic, which is less than a byte for a call; what a process
// knows of its adopted pages.
enum { HEAP_ANY = 1136 << 10, HEAP_WINDOW = 4 << 10, HEAP_TARGET = 192, HEAP_SENDS = 3712,
       HEAP_ADOPTED = 1 << 10,
       HEAP_LETS_IN = 112, HEAP_CONTACT = 2 << 10, HEAP_TRAFFIC = 512 };
// Over TCP: a connection, the buffer that all connections of a process share, and the service
// thread, which the first connection starts.
enum { HEAP_TCP_SENDS = 10 << 10, HEAP_TCP_SERVES = 1 << 10, HEAP_TCP_SHARED = 64 << 10,
       HEAP_TCP_THREAD = 36 << 10, BURST = 1000 };

static int (*get_counts)(fompi_verbs_counts *);
static int per_node, over_tcp;
static MPI_Win win;

// What this process has.
struct state {
    fompi_verbs_counts counts;
    long heap, private_kib;
};

static long private_kib(void)
{
    char line[200];
    long all = 0, kib;
    FILE *maps = fopen("/proc/self/smaps_rollup", "r");
    if (maps == NULL)
        return 0;
    while (fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "Private_Clean: %ld", &kib) == 1 ||
            sscanf(line, "Private_Dirty: %ld", &kib) == 1)
            all += kib;
    fclose(maps);
    return all;
}

// After all ranks have done what they were at.
static struct state state_now(void)
{
    struct state now;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    now.heap = (long)heap_bytes();
    now.private_kib = private_kib();
    if (!get_counts(&now.counts))
        memset(&now.counts, 0, sizeof now.counts);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return now;
}

// Others near this rank, of this node and of the next ones; nobody else has the same i-th one.
static int neighbour(int i)
{
    const int distances[NEIGHBOURS] = {1, size - 1, per_node + 1, size - per_node - 1};
    return (rank + distances[i]) % size;
}

static int leader_of(int other)
{
    return other / per_node * per_node;
}

// Whether the processor reaches the words of the rank: over TCP those of this node.
static int is_of_node(int other)
{
    return over_tcp && leader_of(other) == leader_of(rank);
}

// How many different numbers there are.
static int different(const int *numbers, int count)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        int j = 0;
        while (numbers[j] != numbers[i])
            j++;
        found += j == i;
    }
    return found;
}

// Without a lock word: a rank that waits for one contacts the other waiting ranks, too.
static void talk(int rounds)
{
    for (int i = 0; i < rounds * NEIGHBOURS; i++) {
        const int target = neighbour(i % NEIGHBOURS);
        const MPI_Aint here = 2 * (i % NEIGHBOURS);
        const long value = i + rank;
        long back = -1, before = -1;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, target, MPI_MODE_NOCHECK, win));
        OK(MPI_Put(&value, 1, MPI_LONG, target, here, 1, MPI_LONG, win));
        OK(MPI_Fetch_and_op(&value, &before, MPI_LONG, target, here + 1, MPI_SUM, win));
        OK(MPI_Win_flush(target, win));
        OK(MPI_Get(&back, 1, MPI_LONG, target, here, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(target, win));
        CHECK_EQ(back, value);
    }
}

// Many requests under way to each other rank at once: small and long puts, and gets.
static void burst(void)
{
    static char bytes[BYTES];
    static long values[BURST];
    for (int i = 0; i < NEIGHBOURS; i++) {
        const int target = neighbour(i);
        OK(MPI_Win_lock(MPI_LOCK_SHARED, target, MPI_MODE_NOCHECK, win));
        for (int j = 0; j < BURST; j++)
            OK(MPI_Put(values, 1, MPI_LONG, target, 2 * NEIGHBOURS, 1, MPI_LONG, win));
        for (int j = 0; j < BURST / 10; j++)
            OK(MPI_Put(bytes, BYTES / 2, MPI_BYTE, target, BYTES / 16, BYTES / 2, MPI_BYTE, win));
        OK(MPI_Win_flush(target, win));
        for (int j = 0; j < BURST; j++)
            OK(MPI_Get(values + j, 1, MPI_LONG, target, 2 * NEIGHBOURS, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(target, win));
    }
}

static void show(const char *what, struct state before, struct state now)
{
    if (getenv("CHECK_SHOW") == NULL || (rank > 0 && rank < size - 1))
        return;
    printf("%3d ranks, %d a node, rank %3d, %-14s sends %3d lets in %3d regions %d registered %7d "
           "heap %+8ld private KiB %+6ld\n", size, per_node, rank, what, (int)now.counts.contacted,
           (int)now.counts.accepted, (int)now.counts.regions, (int)now.counts.registered_bytes,
           now.heap - before.heap, now.private_kib - before.private_kib);
    fflush(stdout);
}

// The heap has grown by no more than `bytes`, and what the queue pairs since then take.
static void grown(const char *what, struct state before, struct state now, long bytes)
{
    show(what, before, now);
    const long sends = over_tcp ? HEAP_TCP_SENDS : HEAP_SENDS;
    const long lets_in = over_tcp ? HEAP_TCP_SERVES : HEAP_LETS_IN;
    bytes += sends * (long)(now.counts.contacted - before.counts.contacted);
    bytes += lets_in * (long)(now.counts.accepted - before.counts.accepted);
    if (now.heap - before.heap > bytes)
        check_failed(__FILE__, __LINE__, "%s: %ld bytes of the heap, and at most %ld are right",
                     what, now.heap - before.heap, bytes);
}

// Bytes of the memory of a node, which its leader registers, with `windows` windows.
static long node_bytes(int windows)
{
    const int here = size - leader_of(rank) < per_node ? size - leader_of(rank) : per_node;
    long control = NODE_BYTES + here * (RANK_BYTES + WINDOWS * (long)WINDOW_BYTES);
    return (control + PAGE - 1) / PAGE * PAGE + windows * here * (long)BYTES;
}

// Traffic on a window that has just been made.
static void in_use(void)
{
    struct state made = state_now();
    talk(1);
    struct state known = state_now();
    const long contact = HEAP_CONTACT + (over_tcp ? HEAP_TCP_THREAD : 0);
    grown("first contact", made, known, NEIGHBOURS * HEAP_TARGET + contact);
    talk(ROUNDS);
    if (over_tcp)
        burst();
    struct state then = state_now();
    if (over_tcp) {
        // What all connections keep now, and not only those that are new.
        made.counts.contacted = made.counts.accepted = 0;
        grown("traffic", made, then, NEIGHBOURS * HEAP_TARGET + contact + HEAP_TCP_SHARED);
    } else {
        grown("traffic", known, then, HEAP_TRAFFIC);
    }
    CHECK_EQ(then.counts.contacted, known.counts.contacted);
    CHECK_EQ(then.counts.regions, known.counts.regions);
    CHECK_EQ(then.counts.registered_bytes, known.counts.registered_bytes);
}

// The memory of a node belongs to its leader: a queue pair for each node. 0 where no window is the
// library's.
static int allocated(void)
{
    const int is_leader = rank == leader_of(rank);
    const int nodes = (size + per_node - 1) / per_node;
    int leaders[NEIGHBOURS + 1], count = 0;
    void *memory;
    MPI_Win first;
    struct state before = state_now();
    OK(MPI_Win_allocate(BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &first));
    struct state one = state_now();
    int regions = (int)one.counts.regions;
    OK(MPI_Bcast(&regions, 1, MPI_INT, 0, MPI_COMM_WORLD));
    if (regions == 0) {
        OK(MPI_Win_free(&first));
        return 0;
    }
    grown("first window", before, one, HEAP_ANY);
    OK(MPI_Win_allocate(BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    struct state two = state_now();
    grown("second window", one, two, HEAP_WINDOW);
    CHECK_EQ(two.counts.regions, is_leader ? 3 : 0);
    CHECK_EQ(two.counts.registered_bytes, is_leader ? node_bytes(2) : 0);
    // The leader of each node has met that of the next.
    CHECK_EQ(two.counts.contacted, is_leader);
    in_use();
    for (int i = 0; i < NEIGHBOURS; i++)
        if (!is_of_node(neighbour(i)))
            leaders[count++] = leader_of(neighbour(i));
    if (is_leader)
        leaders[count++] = (rank / per_node + 1) % nodes * per_node;
    CHECK_EQ(state_now().counts.contacted, different(leaders, count));
    OK(MPI_Win_free(&win));
    OK(MPI_Win_free(&first));
    return 1;
}

// Each rank registers its own memory and words: a queue pair for each rank, too.
static void created(void)
{
    static char memory[BYTES] __attribute__((aligned(PAGE)));
    const int is_leader = rank == leader_of(rank);
    int others[2 * NEIGHBOURS + 32], count = 0;
    struct state before = state_now();
    OK(MPI_Win_create(memory, BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    struct state one = state_now();
    grown("created window", before, one, HEAP_WINDOW + HEAP_ADOPTED);
    CHECK_EQ(one.counts.contacted, before.counts.contacted);
    CHECK_EQ(one.counts.regions, 2 + is_leader);
    const long own = BYTES + WINDOW_BYTES;
    CHECK_EQ(one.counts.registered_bytes, own + (is_leader ? node_bytes(0) : 0));
    in_use();
    for (int i = 0; i < NEIGHBOURS; i++) {
        others[count++] = neighbour(i);
        if (!is_of_node(neighbour(i)))
            others[count++] = leader_of(neighbour(i));
    }
    // The barrier that freed the allocated windows: of few leaders all know each other.
    const int nodes = (size + per_node - 1) / per_node, all = nodes <= DIRECT_NODES_MAX;
    for (int step = 1; is_leader && step < nodes; step += all ? 1 : step)
        others[count++] = (rank / per_node + step) % nodes * per_node;
    CHECK_EQ(state_now().counts.contacted, different(others, count));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    *(void **)&get_counts = dlsym(RTLD_DEFAULT, "fompi_get_verbs_counts");
    per_node = ranks_per_node();
    const char *net = getenv("FOMPI_NET");
    over_tcp = net != NULL && strcmp(net, "tcp") == 0;
    if (get_counts == NULL || per_node == 0)
        return check_end();
    heap_watch(*(void **)&get_counts);
    if (allocated())
        created();
    return check_end();
}
