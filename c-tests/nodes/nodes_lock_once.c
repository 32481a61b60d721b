// Epochs of MPI_Win_lock whose lock is taken with the first operation that needs it (MPI-4.1 section
// 12.5.3): puts are kept for it, and every other call is carried out under the lock, whether another
// rank holds it or not. The library also takes the locks of several targets in the order of the calls,
// and holds them together, which MPI does not promise. Between nodes, over TCP.
// ranks: 2 3 4

#include "check.h"

#include <dlfcn.h>

enum { LONGS = 4096, MANY = 700, ROUNDS = 20 };
// Where things are in a rank's memory: a counter, equal values, a slot for each origin, and parts.
enum { COUNTER = 0, EQUAL = 1, SLOTS = 16, PARTS = 64, PART = 1000 };

static MPI_Win win;
static long *memory;
static const int kinds[2] = {MPI_LOCK_SHARED, MPI_LOCK_EXCLUSIVE};

static void put(const long *from, int count, int target, MPI_Aint at)
{
    OK(MPI_Put(from, count, MPI_LONG, target, at, count, MPI_LONG, win));
}

static long get(int target, MPI_Aint at)
{
    long value = -1;
    OK(MPI_Get(&value, 1, MPI_LONG, target, at, 1, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
    return value;
}

// Reads after an epoch of its own.
static long read_alone(int target, MPI_Aint at)
{
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    const long value = get(target, at);
    OK(MPI_Win_unlock(target, win));
    return value;
}

// Each call that may be the first one after puts. `own` is a part that no other rank uses.
static void first_uses(int kind, int target, MPI_Aint own)
{
    static long long_value[2048], value, seen;
    const long one = 1;
    MPI_Request request;
    for (int use = 0; use < 10; use++) {
        value = 100 * use + 1;
        OK(MPI_Win_lock(kind, target, 0, win));
        put(&value, 1, target, own);
        switch (use) {
        case 0: CHECK_EQ(get(target, own), value); break;
        case 1:
            OK(MPI_Accumulate(&one, 1, MPI_LONG, target, own, 1, MPI_LONG, MPI_SUM, win));
            OK(MPI_Win_flush(target, win));
            CHECK_EQ(get(target, own), value + 1);
            break;
        case 2:
            OK(MPI_Win_flush(target, win));
            OK(MPI_Fetch_and_op(&one, &seen, MPI_LONG, target, own, MPI_SUM, win));
            OK(MPI_Win_flush(target, win));
            CHECK_EQ(seen, value);
            break;
        case 3:
            long_value[2047] = 7 + use;
            put(long_value, 2048, target, own + 8);
            CHECK_EQ(get(target, own + 8 + 2047), 7 + use);
            break;
        case 4: OK(MPI_Win_flush(target, win)); break;
        case 5: OK(MPI_Win_flush_all(win)); break;
        case 6:
            // The buffers may be used again.
            seen = value;
            put(&seen, 1, target, own + 1);
            OK(MPI_Win_flush_local(target, win));
            seen = -1;
            break;
        case 7: OK(MPI_Win_flush_local_all(win)); break;
        case 8: OK(MPI_Win_sync(win)); break;
        case 9:
            OK(MPI_Rput(&value, 1, MPI_LONG, target, own + 1, 1, MPI_LONG, win, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            break;
        }
        OK(MPI_Win_unlock(target, win));
        if (use > 2)
            CHECK_EQ(read_alone(target, own), value);
        if (use == 6 || use == 9)
            CHECK_EQ(read_alone(target, own + 1), value);
    }
}

// More puts than are kept, of several lengths; and an epoch without operations.
static void many_puts(int kind, int target, MPI_Aint own)
{
    static long values[MANY];
    static int times;
    times++;
    for (int i = 0; i < MANY; i++)
        values[i] = 1000 * times + i;
    OK(MPI_Win_lock(kind, target, 0, win));
    for (int i = 0; i < MANY; i++)
        put(&values[i], 1, target, own + i);
    OK(MPI_Win_unlock(target, win));
    for (int i = 0; i < MANY; i += 100)
        CHECK_EQ(read_alone(target, own + i), 1000 * times + i);
    OK(MPI_Win_lock(kind, target, 0, win));
    put(values, 300, target, own + 300);
    put(values + 7, 0, target, own);
    put(values, 300, target, own);
    OK(MPI_Win_unlock(target, win));
    CHECK_EQ(read_alone(target, own + 299), 1000 * times + 299);
    CHECK_EQ(read_alone(target, own + 599), 1000 * times + 299);
    OK(MPI_Win_lock(kind, target, 0, win));
    OK(MPI_Win_unlock(target, win));
}

// What is flushed is there for the target while the epoch lasts.
static void flushed(void)
{
    static long value;
    for (int one = 0; one < 2; one++) {
        value++;
        if (rank == 0) {
            OK(MPI_Win_lock(MPI_LOCK_SHARED, size - 1, 0, win));
            put(&value, 1, size - 1, PARTS);
            OK(one ? MPI_Win_flush(size - 1, win) : MPI_Win_flush_all(win));
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == size - 1)
            CHECK_EQ(read_alone(rank, PARTS), value);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0)
            OK(MPI_Win_unlock(size - 1, win));
    }
}

// All ranks at once: no increment is lost, and no value of one epoch is seen without the other.
static void contended(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        const int target = (rank + i) % size, other = (target + 1) % size;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        const long next = get(target, COUNTER) + 1;
        put(&next, 1, target, COUNTER);
        OK(MPI_Win_unlock(target, win));
        // Puts alone, and a reader between them.
        const long mine = 1000 * rank + i;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        put(&mine, 1, target, EQUAL);
        put(&mine, 1, target, EQUAL + 1);
        put(&mine, 1, target, SLOTS + rank);
        OK(MPI_Win_unlock(target, win));
        CHECK_EQ(read_alone(target, SLOTS + rank), mine);
        long seen[2];
        OK(MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win));
        OK(MPI_Get(seen, 2, MPI_LONG, other, EQUAL, 2, MPI_LONG, win));
        OK(MPI_Win_unlock(other, win));
        CHECK_EQ(seen[0], seen[1]);
        if (i % 5 == 0) {
            OK(MPI_Win_lock_all(0, win));
            OK(MPI_Get(seen, 2, MPI_LONG, other, EQUAL, 2, MPI_LONG, win));
            OK(MPI_Win_unlock_all(win));
            CHECK_EQ(seen[0], seen[1]);
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    long sum = 0;
    for (int target = 0; rank == 0 && target < size; target++)
        sum += read_alone(target, COUNTER);
    if (rank == 0)
        CHECK_EQ(sum, ROUNDS * size);
}

// Two targets are locked in one order, and used in any order. `calls`: which lock is first in use.
static void two_targets(int calls)
{
    const int a = 0, b = size - 1;
    for (int i = 0; i < ROUNDS; i++) {
        const long mine = 1000 * rank + i;
        if ((rank + i) % 2) {
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, a, 0, win));
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, b, 0, win));
            if (calls & 1)
                get(b, EQUAL);
            put(&mine, 1, a, EQUAL + 8);
            put(&mine, 1, b, EQUAL + 9);
            OK(MPI_Win_unlock(calls & 2 ? b : a, win));
            OK(MPI_Win_unlock(calls & 2 ? a : b, win));
        } else {
            OK(MPI_Win_lock(MPI_LOCK_SHARED, a, 0, win));
            OK(MPI_Win_lock(MPI_LOCK_SHARED, b, 0, win));
            const long first = get(calls & 1 ? a : b, calls & 1 ? EQUAL + 8 : EQUAL + 9);
            CHECK_EQ(get(calls & 1 ? b : a, calls & 1 ? EQUAL + 9 : EQUAL + 8), first);
            OK(MPI_Win_unlock(b, win));
            OK(MPI_Win_unlock(a, win));
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    const int has_library = dlsym(RTLD_DEFAULT, "fompi_get_verbs_counts") != NULL;
    for (int created = 0; created < 2; created++) {
        const MPI_Aint bytes = LONGS * (MPI_Aint)sizeof(long);
        if (created) {
            OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory));
            OK(MPI_Win_create(memory, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        } else {
            OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
        }
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
        memset(memory, 0, (size_t)bytes);
        OK(MPI_Win_unlock(rank, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int target = 0; target < size; target++) {
            for (int kind = 0; kind < 2; kind++) {
                OK(MPI_Barrier(MPI_COMM_WORLD));
                if (rank == (target + 1) % size) {
                    first_uses(kinds[kind], target, PARTS);
                    many_puts(kinds[kind], target, PARTS + PART);
                }
            }
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        flushed();
        contended();
        for (int calls = 0; has_library && calls < 4; calls++)
            two_targets(calls);
        OK(MPI_Win_free(&win));
        if (created)
            OK(MPI_Free_mem(memory));
    }
    return check_end();
}
