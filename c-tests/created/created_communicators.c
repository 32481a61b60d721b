// Windows over communicators in which the ranks stand in another order, over subsets, over one
// process, several at once. A target is a rank of the window's group. MPI-4.1 sections 12.2.1 and
// 12.3.
// ranks: 2 3 4
// settings: FOMPI_ADOPT=never

#include "created.h"

enum { RANKS_MAX = 8 };

struct member {
    MPI_Comm comm;
    int self, ranks;
    long *memory;
    MPI_Win win;
};

static struct member member_of(MPI_Comm comm)
{
    struct member member = {comm, 0, 0, heap_memory((1 + RANKS_MAX) * sizeof(long)), MPI_WIN_NULL};
    OK(MPI_Comm_rank(comm, &member.self));
    OK(MPI_Comm_size(comm, &member.ranks));
    OK(MPI_Win_create(member.memory, (1 + RANKS_MAX) * sizeof(long), sizeof(long), MPI_INFO_NULL,
                      comm, &member.win));
    return member;
}

// Everyone tells everyone its rank in MPI_COMM_WORLD.
static void write_to_all(const struct member *member)
{
    const long value = 100 + rank, one = 1;
    OK(MPI_Win_lock_all(0, member->win));
    for (int target = 0; target < member->ranks; target++) {
        OK(MPI_Put(&value, 1, MPI_LONG, target, 1 + member->self, 1, MPI_LONG, member->win));
        OK(MPI_Accumulate(&one, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, member->win));
    }
    OK(MPI_Win_unlock_all(member->win));
}

static void check_memory(const struct member *member)
{
    int world[RANKS_MAX];
    OK(MPI_Allgather(&rank, 1, MPI_INT, world, 1, MPI_INT, member->comm));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, member->self, 0, member->win));
    CHECK_EQ(member->memory[0], member->ranks);
    for (int i = 0; i < RANKS_MAX; i++)
        CHECK_EQ(member->memory[1 + i], i < member->ranks ? 100 + world[i] : 0);
    OK(MPI_Win_unlock(member->self, member->win));
}

int main(int argc, char **argv)
{
    MPI_Comm comms[4];
    struct member members[4];
    check_start(&argc, &argv);
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[0]));
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, (rank + 1) % size, &comms[1]));
    // All but rank 0, which is by itself; then two halves, which make their windows side by side.
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0, -rank, &comms[2]));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[3]));
    for (int i = 0; i < 4; i++)
        members[i] = member_of(comms[i]);
    for (int i = 0; i < 4; i++)
        write_to_all(&members[i]);
    for (int i = 0; i < 4; i++)
        check_memory(&members[i]);
    for (int i = 3; i >= 0; i--) {
        OK(MPI_Win_free(&members[i].win));
        OK(MPI_Comm_free(&comms[i]));
    }
    return check_end();
}
