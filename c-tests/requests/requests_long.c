// Long transfers with a request go on while their origin does something else: data are in the
// buffers when the request is complete, whoever completes it and wherever, and buffers may be
// changed then. Many are under way at once, to all ranks. MPI-4.1 section 12.3.5.
// ranks: 2 4
// plain ranks: 2

#include "created.h"

enum { LONGS = 1 << 17, PARTS = 16, PART = LONGS / PARTS, ROUNDS = 6 };

static MPI_Win win;
static long *base, *from, *into;
static MPI_Request request[PARTS];

static int target_of(int part) { return (rank + part) % size; }

// What rank `owner` has at `index` of the first half of its memory.
static long value_of(int owner, int index) { return 1000003L * owner + index; }

static void get_parts(void)
{
    memset(into, 0xff, LONGS * sizeof(long));
    for (int part = 0; part < PARTS; part++)
        OK(MPI_Rget(into + part * PART, PART, MPI_LONG, target_of(part), part * PART, PART,
                    MPI_LONG, win, &request[part]));
}

static void check_part(int part)
{
    for (int i = part * PART; i < (part + 1) * PART; i++)
        CHECK_EQ(into[i], value_of(target_of(part), i));
}

static void check_all(void)
{
    for (int part = 0; part < PARTS; part++) {
        CHECK(request[part] == MPI_REQUEST_NULL);
        check_part(part);
    }
}

// Each part is checked as soon as it is complete, and no other.
static void one_by_one(int way)
{
    get_parts();
    for (int left = PARTS, flag = 0; left > 0;) {
        int part = PARTS - left;
        switch (way) {
        case 0: OK(MPI_Wait(&request[part], MPI_STATUS_IGNORE)); flag = 1; break;
        case 1: OK(MPI_Waitany(PARTS, request, &part, MPI_STATUS_IGNORE)); flag = 1; break;
        case 2: OK(MPI_Test(&request[part], &flag, MPI_STATUS_IGNORE)); break;
        case 3: OK(MPI_Testany(PARTS, request, &part, &flag, MPI_STATUS_IGNORE)); break;
        case 4:
            OK(MPI_Request_get_status(request[part], &flag, MPI_STATUS_IGNORE));
            if (flag) {
                check_part(part);
                OK(MPI_Wait(&request[part], MPI_STATUS_IGNORE));
            }
            break;
        }
        if (!flag)
            continue;
        CHECK(part >= 0 && part < PARTS);
        check_part(part);
        left--;
    }
    check_all();
}

// A call that closes an epoch or flushes makes them complete, too; the window may even be gone.
static void later(void)
{
    get_parts();
    OK(MPI_Win_flush_all(win));
    for (int part = 0; part < PARTS; part++)
        check_part(part);
    OK(MPI_Waitall(PARTS, request, MPI_STATUSES_IGNORE));
    get_parts();
    OK(MPI_Win_flush_local_all(win));
    OK(MPI_Waitall(PARTS, request, MPI_STATUSES_IGNORE));
    check_all();
    get_parts();
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Waitall(PARTS, request, MPI_STATUSES_IGNORE));
    check_all();
    OK(MPI_Win_lock_all(0, win));
}

// A request that is freed leaves its transfer to the next flush; so since MPI-4.1.
static void freed(void)
{
    if (!library_is_here())
        return;
    for (int round = 0; round < ROUNDS; round++) {
        get_parts();
        for (int part = 0; part < PARTS; part += 2)
            OK(MPI_Request_free(&request[part]));
        OK(MPI_Waitall(PARTS, request, MPI_STATUSES_IGNORE));
        OK(MPI_Win_flush_all(win));
        check_all();
    }
}

// Each rank puts into the second half of the others' memory, and changes its buffer as soon as it
// may.
static void put_parts(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int part = 0; part < PARTS; part++) {
            for (int i = part * PART; i < (part + 1) * PART; i++)
                from[i] = value_of(rank, i) + round;
            OK(MPI_Rput(from + part * PART, PART, MPI_LONG, target_of(part), LONGS + part * PART,
                        PART, MPI_LONG, win, &request[part]));
        }
        for (int done = 0; done < PARTS; done++) {
            int part;
            OK(MPI_Waitany(PARTS, request, &part, MPI_STATUS_IGNORE));
            memset(from + part * PART, 0, PART * sizeof(long));
        }
        OK(MPI_Win_flush_all(win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_sync(win));
        for (int i = 0; i < LONGS; i++)
            CHECK_EQ(base[LONGS + i],
                     value_of((rank - i / PART % size + size) % size, i) + round);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    base = window_of(2 * LONGS * sizeof(long), sizeof(long), &win);
    from = malloc(LONGS * sizeof(long));
    into = malloc(LONGS * sizeof(long));
    for (int i = 0; i < LONGS; i++)
        base[i] = value_of(rank, i);
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int way = 0; way < 5; way++)
        one_by_one(way);
    later();
    freed();
    put_parts();
    get_parts();
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    OK(MPI_Waitall(PARTS, request, MPI_STATUSES_IGNORE));
    check_all();
    free(from);
    free(into);
    return check_end();
}
