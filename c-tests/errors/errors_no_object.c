// An error of a call that has no object (a null handle, a window that was freed, memory that cannot
// be had) goes to the handler of the communicator whose handler this MPI calls for such errors, here
// found out with calls that are not about windows: MPI_COMM_SELF, or in older ones MPI_COMM_WORLD.
// MPI-4.1 section 9.3.
// ranks: 1 2

#include "check.h"

static int of_world, of_self;

static void world_handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    of_world++;
}

static void self_handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    of_self++;
}

// Which of the two the MPI calls.
static int is_self;

// The call that comes raises exactly one error, there.
#define RAISES(call) do { \
    int world_before_ = of_world, self_before_ = of_self; \
    call; \
    CHECK_EQ(of_self, self_before_ + is_self); \
    CHECK_EQ(of_world, world_before_ + !is_self); \
} while (0)

static void ask(void)
{
    int number;
    MPI_Comm_size(MPI_COMM_NULL, &number);
    is_self = of_self;
    CHECK_EQ(of_self + of_world, 1);
    RAISES(MPI_Type_size(MPI_DATATYPE_NULL, &number));
}

static void creations(void)
{
    static char memory[64];
    MPI_Win win;
    void *base;
    RAISES(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_NULL, &base, &win));
    RAISES(MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, MPI_COMM_NULL, &base, &win));
    RAISES(MPI_Win_create(memory, 64, 1, MPI_INFO_NULL, MPI_COMM_NULL, &win));
    RAISES(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_NULL, &win));
}

static void null_windows(void)
{
    char memory[64];
    MPI_Win null = MPI_WIN_NULL;
    MPI_Errhandler handler;
    MPI_Group group;
    MPI_Info info;
    long value = 1;
    int number;
    RAISES(MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, null));
    RAISES(MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, null));
    RAISES(MPI_Accumulate(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, null));
    RAISES(MPI_Win_fence(0, null));
    RAISES(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, null));
    RAISES(MPI_Win_unlock(0, null));
    RAISES(MPI_Win_lock_all(0, null));
    RAISES(MPI_Win_flush(0, null));
    RAISES(MPI_Win_sync(null));
    RAISES(MPI_Win_get_attr(null, MPI_WIN_BASE, &value, &number));
    RAISES(MPI_Win_get_group(null, &group));
    RAISES(MPI_Win_get_info(null, &info));
    RAISES(MPI_Win_get_errhandler(null, &handler));
    RAISES(MPI_Win_attach(null, memory, 64));
    RAISES(MPI_Win_free(&null));
}

static void memory(void)
{
    void *memory;
    RAISES(MPI_Alloc_mem(-1, MPI_INFO_NULL, &memory));
    RAISES(MPI_Alloc_mem(64, MPI_INFO_NULL, NULL));
}

int main(int argc, char **argv)
{
    MPI_Errhandler handler;
    check_start(&argc, &argv);
    OK(MPI_Comm_create_errhandler(world_handler, &handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Comm_create_errhandler(self_handler, &handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler));
    OK(MPI_Errhandler_free(&handler));
    ask();
    creations();
    null_windows();
    memory();
    return check_end();
}
