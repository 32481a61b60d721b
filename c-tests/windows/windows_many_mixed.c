// Three hundred windows of all flavours alive at once, over several communicators, each used in
// between while others come and go; and then freed in another order than they were made.
// MPI-4.1 sections 12.2.1 to 12.2.5.
// ranks: 1 2 4
// plain ranks: 2

#include "nodes.h"

enum { WINDOWS = 300, COMMS = 3, LONGS = 8, KINDS = 4 };

static struct window {
    MPI_Win win;
    MPI_Comm comm;
    long *base, memory[LONGS];
    MPI_Aint there;
} all[WINDOWS];

static void make(struct window *w, int kind, MPI_Comm comm)
{
    const MPI_Aint bytes = LONGS * sizeof(long);
    MPI_Aint here;
    w->comm = comm;
    w->base = w->memory;
    w->there = 1;
    switch (kind) {
    case 0:
        OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, comm, &w->base, &w->win));
        break;
    case 1:
        allocate_shared_if_possible(bytes, comm, &w->base, &w->win);
        break;
    case 2:
        OK(MPI_Win_create(w->memory, bytes, sizeof(long), MPI_INFO_NULL, comm, &w->win));
        break;
    case 3:
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &w->win));
        OK(MPI_Win_attach(w->win, w->memory, bytes));
        OK(MPI_Get_address(w->memory + 1, &here));
        OK(MPI_Sendrecv(&here, 1, MPI_AINT, previous_rank(), 0, &w->there, 1, MPI_AINT, next_rank(),
                        0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    for (int i = 0; i < LONGS; i++)
        w->base[i] = 0;
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
}

// Under a lock of its own, whatever the epochs of other windows are.
static void put(const struct window *w, long value)
{
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, w->win));
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), w->there, 1, MPI_LONG, w->win));
    OK(MPI_Win_unlock(next_rank(), w->win));
}

static void check(const struct window *w, long value)
{
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w->win));
    CHECK_EQ(w->base[1], value);
    OK(MPI_Win_unlock(rank, w->win));
}

static long value_of(int from, int i, int round)
{
    return 1000000L * round + 1000 * i + from;
}

static void use_all(int count, int round)
{
    for (int i = 0; i < count; i++)
        put(&all[i], value_of(rank, i, round));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < count; i++)
        check(&all[i], value_of(previous_rank(), i, round));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// lock_all on every window at the same time.
static void all_at_once(void)
{
    for (int i = 0; i < WINDOWS; i++)
        OK(MPI_Win_lock_all(0, all[i].win));
    for (int i = WINDOWS - 1; i >= 0; i--) {
        const long one = 1;
        OK(MPI_Accumulate(&one, 1, MPI_LONG, next_rank(), all[i].there, 1, MPI_LONG, MPI_SUM,
                          all[i].win));
    }
    for (int i = 0; i < WINDOWS; i++)
        OK(MPI_Win_unlock_all(all[i].win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    MPI_Comm comms[COMMS];
    check_start(&argc, &argv);
    comms[0] = MPI_COMM_WORLD;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comms[2]));
    for (int i = 0; i < WINDOWS; i++) {
        make(&all[i], i % KINDS, comms[i % COMMS]);
        if (i % 100 == 99)
            use_all(i + 1, i / 100);
    }
    all_at_once();
    for (int i = 0; i < WINDOWS; i++)
        check(&all[i], value_of(previous_rank(), i, 2) + 1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    // A third goes, and others take its place.
    for (int i = 0; i < WINDOWS; i += 3)
        OK(MPI_Win_free(&all[i].win));
    for (int i = 0; i < WINDOWS; i += 3)
        make(&all[i], (i + 1) % KINDS, comms[(i / 3) % COMMS]);
    use_all(WINDOWS, 7);
    OK(MPI_Comm_free(&comms[1]));
    for (int i = WINDOWS - 1; i >= 0; i -= 2)
        OK(MPI_Win_free(&all[i].win));
    for (int i = 0; i < WINDOWS; i += 2)
        OK(MPI_Win_free(&all[i].win));
    OK(MPI_Comm_free(&comms[2]));
    return check_end();
}
