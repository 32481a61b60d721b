// What calls between nodes cost in requests to the device, an RDMA device or TCP, and in waits for
// it, and what a process has: connections, regions. Formulas of docs/internals/many-nodes.md, which
// hold for the library; the plain MPI has nothing to count.
// ranks: 2 4 8

#include "../../include/fompi.h"
#include "check.h"

#include <dlfcn.h>
#include <stdlib.h>

static int (*get_counts)(fompi_verbs_counts *);
static fompi_verbs_counts before;
// Up to so many nodes the leaders tell each other of a fence at once.
enum { DIRECT_NODES_MAX = 8 };

static MPI_Win win;
static int nodes, node, target;
// Whether the processor of rank 0 changes the word of its locks, and not the device.
static int is_coherent;

static fompi_verbs_counts counted(void)
{
    fompi_verbs_counts counts;
    CHECK(get_counts(&counts));
    return counts;
}

static void begin(void)
{
    before = counted();
}

// Since `begin`: WRITEs, READs of data, atomics, READs of words, READs as proofs, waits.
static void cost_at(int line, unsigned puts, unsigned gets, unsigned atomics, unsigned reads,
                    unsigned proofs, unsigned waits)
{
    const fompi_verbs_counts now = counted();
    const unsigned is[] = {now.puts - before.puts,       now.gets - before.gets,
                           now.atomics - before.atomics, now.reads - before.reads,
                           now.proofs - before.proofs,   now.waits - before.waits};
    const unsigned wants[] = {puts, gets, atomics, reads, proofs, waits};
    for (int i = 0; i < 6; i++)
        if (is[i] != wants[i])
            check_failed(__FILE__, line,
                         "%u %u %u %u %u %u (puts gets atomics reads proofs waits), not "
                         "%u %u %u %u %u %u",
                         is[0], is[1], is[2], is[3], is[4], is[5], wants[0], wants[1], wants[2],
                         wants[3], wants[4], wants[5]);
    before = now;
}

#define COST(...) cost_at(__LINE__, __VA_ARGS__)

// A thread that waits for a request polls it, and does not wait for the device. The device may be so
// quick that a call finds its transfer complete, so one pair of requests would prove little.
static void requests(char *bytes)
{
    MPI_Request request[2];
    for (int i = 0; i < 20; i++) {
        OK(MPI_Rget(bytes, 32 << 10, MPI_BYTE, target, 0, 32 << 10, MPI_BYTE, win, &request[0]));
        COST(0, 1, 0, 0, 0, 0);
        OK(MPI_Rput(bytes + (32 << 10), 32 << 10, MPI_BYTE, target, 0, 32 << 10, MPI_BYTE, win,
                    &request[1]));
        COST(1, 0, 0, 0, 0, 0);
        OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
        COST(0, 0, 0, 0, 0, 0);
        OK(MPI_Win_flush(target, win));
        COST(0, 0, 0, 0, 1, 1);
    }
}

// One rank works, the others are in a barrier of the MPI.
static void puts_and_gets(void)
{
    static char bytes[64 << 10];
    long value = 1;
    OK(MPI_Put(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
    COST(1, 0, 0, 0, 0, 0);
    OK(MPI_Put(bytes, 1000, MPI_BYTE, target, 0, 1000, MPI_BYTE, win));
    COST(1, 0, 0, 0, 0, 0);
    OK(MPI_Win_flush(target, win));
    COST(0, 0, 0, 0, 1, 1);
    OK(MPI_Win_flush(target, win));
    COST(0, 0, 0, 0, 0, 0);
    OK(MPI_Get(bytes, 1000, MPI_BYTE, target, 0, 1000, MPI_BYTE, win));
    COST(0, 1, 0, 0, 0, 0);
    OK(MPI_Win_flush(target, win));
    COST(0, 0, 0, 0, 0, 1);
    requests(bytes);
}

static void accumulates(void)
{
    long one[8] = {1, 1, 1, 1, 1, 1, 1, 1}, old[8];
    double twice[512] = {0};
    OK(MPI_Accumulate(one, 8, MPI_LONG, target, 0, 8, MPI_LONG, MPI_SUM, win));
    // The lock, the words, and the lock.
    COST(0, 0, 10, 0, 0, 2);
    OK(MPI_Win_flush(target, win));
    COST(0, 0, 0, 0, 0, 0);
    // A single word, and at the flush a read of the lock.
    OK(MPI_Accumulate(one, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, win));
    COST(0, 0, 1, 0, 0, 0);
    OK(MPI_Accumulate(one, 1, MPI_LONG, target, 8, 1, MPI_LONG, MPI_SUM, win));
    COST(0, 0, 1, 0, 0, 0);
    OK(MPI_Win_flush(target, win));
    COST(0, 0, 0, 1, 0, 1);
    // A rank that waits for its operation reads the lock in the same wait.
    OK(MPI_Fetch_and_op(one, old, MPI_LONG, target, 0, MPI_SUM, win));
    COST(0, 0, 1, 1, 0, 1);
    OK(MPI_Compare_and_swap(one, old, old, MPI_LONG, target, 0, win));
    COST(0, 0, 1, 1, 0, 1);
    // A read and a swap; a read where there is nothing to change.
    one[0] = 1000000;
    OK(MPI_Fetch_and_op(one, old, MPI_LONG, target, 0, MPI_MAX, win));
    COST(0, 1, 1, 2, 0, 2);
    OK(MPI_Fetch_and_op(one, old, MPI_LONG, target, 0, MPI_MAX, win));
    COST(0, 1, 0, 1, 0, 1);
    OK(MPI_Fetch_and_op(NULL, old, MPI_LONG, target, 0, MPI_NO_OP, win));
    COST(0, 1, 0, 1, 0, 1);
    // The lock and the elements, then the new ones and the lock: two waits, whatever the number.
    OK(MPI_Accumulate(twice, 1, MPI_DOUBLE, target, 0, 1, MPI_DOUBLE, MPI_SUM, win));
    COST(1, 1, 2, 0, 0, 2);
    OK(MPI_Accumulate(twice, 512, MPI_DOUBLE, target, 0, 512, MPI_DOUBLE, MPI_SUM, win));
    COST(1, 1, 2, 0, 0, 2);
}

static unsigned quotient(unsigned dividend, unsigned divisor)
{
    return (dividend + divisor - 1) / divisor;
}

// Words of the device: 128 of them share their waits. Several cost the lock, which is two atomics
// and two waits, and a single one a read of it with each wait.
static void many_words(int count, int apart)
{
    static long operands[4096], old[4096];
    const unsigned words = (unsigned)count, waits = quotient(words, 128);
    const unsigned reads = count == 1 && !apart, lock = reads ? 0 : 2;
    MPI_Datatype there = MPI_LONG;
    if (apart) {
        OK(MPI_Type_create_resized(MPI_LONG, 0, 2 * sizeof(long), &there));
        OK(MPI_Type_commit(&there));
    }
    OK(MPI_Accumulate(operands, count, MPI_LONG, target, 0, count, there, MPI_SUM, win));
    COST(0, 0, words + lock, 0, 0, lock);
    OK(MPI_Win_flush(target, win));
    COST(0, 0, 0, reads, 0, reads);
    OK(MPI_Get_accumulate(operands, count, MPI_LONG, old, count, MPI_LONG, target, 0, count, there,
                          MPI_SUM, win));
    COST(0, 0, words + lock, reads, 0, waits + lock);
    // The opposite of what is there now, so that all of it changes.
    for (int i = 0; i < count; i++)
        operands[i] = (long)~((unsigned long)old[i] + (unsigned long)operands[i]);
    OK(MPI_Accumulate(operands, count, MPI_LONG, target, 0, count, there, MPI_REPLACE, win));
    COST(0, waits, words + lock, 2 * reads, 0, 2 * waits + lock);
    // Nothing changes, so that a read is sufficient.
    OK(MPI_Accumulate(operands, count, MPI_LONG, target, 0, count, there, MPI_BAND, win));
    COST(0, waits, lock, reads, 0, waits + lock);
    OK(MPI_Get_accumulate(NULL, 0, MPI_LONG, old, count, MPI_LONG, target, 0, count, there,
                          MPI_NO_OP, win));
    COST(0, apart ? waits : 1, lock, reads, 0, (apart ? waits : 1) + lock);
    for (int i = 0; i < count; i++)
        CHECK_EQ(old[i], operands[i]);
    if (apart)
        OK(MPI_Type_free(&there));
}

// Other elements: the lock and 64 KiB in blocks of 8 KiB, more of them, the release.
static void many_others(int count)
{
    static double operands[32 << 10];
    const unsigned blocks = quotient((unsigned)count, 1024), goes = quotient(blocks, 8);
    OK(MPI_Accumulate(operands, count, MPI_DOUBLE, target, 0, count, MPI_DOUBLE, MPI_SUM, win));
    COST(blocks, blocks, 2, 0, 0, goes + 1);
    OK(MPI_Get_accumulate(NULL, 0, MPI_DOUBLE, operands, count, MPI_DOUBLE, target, 0, count,
                          MPI_DOUBLE, MPI_NO_OP, win));
    COST(0, blocks, 2, 0, 0, goes + 1);
    // What is there is not needed.
    OK(MPI_Accumulate(operands, count, MPI_DOUBLE, target, 0, count, MPI_DOUBLE, MPI_REPLACE,
                      win));
    COST(blocks, 0, 2, 0, 0, 2);
}

// A rank that holds an exclusive lock needs no other lock, and no atomics for many elements.
static void alone(void)
{
    static double operands[20000];
    static long words[1000];
    OK(MPI_Accumulate(operands, 20000, MPI_DOUBLE, target, 0, 20000, MPI_DOUBLE, MPI_SUM, win));
    COST(20, 20, 0, 0, 0, 3);
    OK(MPI_Accumulate(words, 1000, MPI_LONG, target, 0, 1000, MPI_LONG, MPI_MAX, win));
    COST(1, 1, 0, 0, 0, 1);
    OK(MPI_Accumulate(words, 1000, MPI_LONG, target, 0, 1000, MPI_LONG, MPI_REPLACE, win));
    COST(1, 0, 0, 0, 0, 0);
    OK(MPI_Win_flush(target, win));
    COST(0, 0, 0, 0, 1, 1);
}

static MPI_Datatype int_and_double(MPI_Aint second, MPI_Aint extent)
{
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {0, second};
    MPI_Datatype type, made, members[] = {MPI_INT, MPI_DOUBLE};
    OK(MPI_Type_create_struct(2, lengths, places, members, &made));
    OK(MPI_Type_create_resized(made, 0, extent, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_free(&made));
    return type;
}

// Runs that follow each other at the target are one message, and so are those of a get that are
// not far from each other there.
static void derived(void)
{
    static double column[64 * 64];
    MPI_Datatype type, packed;
    OK(MPI_Type_vector(64, 1, 64, MPI_DOUBLE, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Put(column, 1, type, target, 0, 64, MPI_DOUBLE, win));
    COST(1, 0, 0, 0, 0, 0);
    OK(MPI_Get(column, 1, type, target, 0, 64, MPI_DOUBLE, win));
    COST(0, 1, 0, 0, 0, 0);
    const uint64_t doorbells = counted().doorbells;
    OK(MPI_Put(column, 64, MPI_DOUBLE, target, 0, 1, type, win));
    COST(64, 0, 0, 0, 0, 0);
    // The device is told of 16 requests at a time.
    CHECK_EQ(counted().doorbells - doorbells, 4);
    before = counted();
    // 504 bytes lie between one and the next, so that 16 of them are in 8 KiB.
    OK(MPI_Get(column, 64, MPI_DOUBLE, target, 0, 1, type, win));
    COST(0, 4, 0, 0, 0, 0);
    OK(MPI_Type_free(&type));
    type = int_and_double(8, 16);
    packed = int_and_double(4, 12);
    OK(MPI_Put(column, 64, type, target, 0, 64, packed, win));
    COST(1, 0, 0, 0, 0, 0);
    OK(MPI_Get(column, 64, type, target, 0, 64, type, win));
    COST(0, 1, 0, 0, 0, 0);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&packed));
    // The get proves the puts.
    OK(MPI_Win_flush(target, win));
    COST(0, 0, 0, 0, 0, 1);
}

// Rows of 2 KiB at the origin: up to 8 of them are one message if their memory stays registered, and
// otherwise as many as a bounce buffer holds.
static void rows(char *bytes, unsigned messages)
{
    MPI_Datatype type;
    OK(MPI_Type_vector(16, 2 << 10, 3 << 10, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Put(bytes, 1, type, target, 0, 32 << 10, MPI_BYTE, win));
    COST(messages, 0, 0, 0, 0, 0);
    OK(MPI_Get(bytes, 1, type, target, 0, 32 << 10, MPI_BYTE, win));
    COST(0, messages, 0, 0, 0, 0);
    OK(MPI_Win_flush(target, win));
    COST(0, 0, 0, 0, 0, 1);
    OK(MPI_Type_free(&type));
}

static void all_rows(void)
{
    static char own[48 << 10];
    char *allocated;
    OK(MPI_Alloc_mem(sizeof own, MPI_INFO_NULL, &allocated));
    rows(own, 4);
    rows(allocated, 2);
    OK(MPI_Free_mem(allocated));
}

static void locks(void)
{
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    COST(0, 0, 1, 0, 0, 1);
    OK(MPI_Win_unlock(target, win));
    COST(0, 0, 1, 0, 0, 1);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    // Both words at once.
    const unsigned global = !is_coherent;
    COST(0, 0, 1 + global, 0, 0, 1);
    alone();
    OK(MPI_Win_unlock(target, win));
    COST(0, 0, 1 + global, 0, 0, 1);
    OK(MPI_Win_lock_all(0, win));
    COST(0, 0, global, 0, 0, global);
    puts_and_gets();
    accumulates();
    const int counts[] = {1, 2, 100, 128, 129, 1000, 4096};
    for (int i = 0; i < 7; i++) {
        many_words(counts[i], 0);
        many_words(counts[i], 1);
        many_others(7 * counts[i]);
    }
    derived();
    all_rows();
    OK(MPI_Win_unlock_all(win));
    COST(0, 0, global, 0, 0, global);
}

static void by_rank_0(void (*work)(void))
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        // The first contact is counted apart.
        long value;
        OK(MPI_Win_lock_all(0, win));
        OK(MPI_Get(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
        OK(MPI_Win_unlock_all(win));
        begin();
        work();
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static int rounds_of(int members)
{
    int rounds = 0;
    while (1 << rounds < members)
        rounds++;
    return rounds;
}

// How many others a leader tells of a fence.
static int told_by(int leaders)
{
    return leaders <= DIRECT_NODES_MAX ? leaders - 1 : rounds_of(leaders);
}

static void fences(int is_leader)
{
    OK(MPI_Win_fence(0, win));
    begin();
    for (int i = 0; i < 3; i++)
        OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    const int told = is_leader ? told_by(nodes) : 0;
    COST(0, 0, 3 * told, 0, 0, 0);
    // A rank that leads no node sends a mark behind its puts to a node, and none at the next fence.
    const long value = rank;
    const int is_far = rank / (size / nodes) != nodes - 1;
    OK(MPI_Put(&value, 1, MPI_LONG, target, rank * (MPI_Aint)sizeof value, 1, MPI_LONG, win));
    begin();
    OK(MPI_Win_fence(0, win));
    COST(0, 0, told + (is_far && !is_leader), 0, 0, 0);
    OK(MPI_Win_fence(0, win));
    COST(0, 0, told, 0, 0, 0);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

// Rank 0 and its target expose to each other. The second post asks for a bit of the origin; from the
// fourth epoch on rank 0 knows the bit of its target, and its start asks for nothing.
static void exposures(void)
{
    const int other = rank == 0 ? target : 0;
    MPI_Group world, group;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &other, &group));
    for (int epoch = 1; (rank == 0 || rank == target) && epoch <= 8; epoch++) {
        begin();
        OK(MPI_Win_post(group, 0, win));
        if (rank == 0)
            COST(0, 0, 1 + (epoch == 2), 0, 0, epoch == 2);
        OK(MPI_Win_start(group, 0, win));
        if (rank == 0) {
            CHECK_EQ(counted().gets - before.gets, epoch <= 3);
            CHECK_EQ(counted().reads - before.reads, 0);
        }
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
    }
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    *(void **)&get_counts = dlsym(RTLD_DEFAULT, "fompi_get_verbs_counts");
    const char *per_node = getenv("FOMPI_RANKS_PER_NODE"), *net = getenv("FOMPI_NET");
    is_coherent = net != NULL && strcmp(net, "tcp") == 0;
    long *base;
    OK(MPI_Win_allocate(256 << 10, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    fompi_verbs_counts counts;
    if (get_counts == NULL || per_node == NULL || !get_counts(&counts)) {
        OK(MPI_Win_free(&win));
        return check_end();
    }
    const int k = atoi(per_node);
    nodes = (size + k - 1) / k;
    node = rank / k;
    target = size - 1;
    // One region for the control words of the node and one for the memory of the window, on the
    // leader; none elsewhere.
    const int is_leader = rank % k == 0;
    CHECK_EQ(counts.regions, is_leader ? 2 : 0);
    by_rank_0(locks);
    fences(is_leader);
    exposures();
    // Rank 0 has contacted the last node, its own for the global lock, and as a leader those of its
    // rounds.
    if (rank == 0)
        CHECK(counted().contacted <= (uint64_t)(2 + told_by(nodes)));
    OK(MPI_Win_free(&win));
    return check_end();
}
