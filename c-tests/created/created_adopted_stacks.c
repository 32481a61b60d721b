// Windows over local arrays of a user-level thread (makecontext), whose stack is memory of malloc:
// making and freeing them ends, and all bytes arrive. MPI-4.1 section 12.2.1.
// ranks: 2 3
// settings: FOMPI_ADOPT=always

#define _GNU_SOURCE
#include "adopted.h"
#include <ucontext.h>

enum { STACK = 256 << 10, BYTES = 12 << 10 };

static ucontext_t program, context;
static char *stack;

static void work(void)
{
    char local[BYTES];
    const char value = (char)(10 + rank);
    memset(local, 1, sizeof local);
    MPI_Win win = window_over(local, sizeof local, 1);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, win));
    OK(MPI_Put(&value, 1, MPI_CHAR, next_rank(), 5000, 1, MPI_CHAR, win));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Win_free(&win));
    CHECK_EQ(local[5000], 10 + previous_rank());
    CHECK_EQ(local[5001], 1);
    // The same with all of the stack, at its unused end.
    win = window_over(stack, STACK, 1);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, win));
    OK(MPI_Put(&value, 1, MPI_CHAR, next_rank(), 5000, 1, MPI_CHAR, win));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Win_free(&win));
    CHECK_EQ(stack[5000], 10 + previous_rank());
    CHECK_EQ(local[5000], 10 + previous_rank());
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    for (int turn = 0; turn < 5; turn++) {
        stack = malloc(STACK);
        CHECK(stack != NULL && getcontext(&context) == 0);
        context.uc_stack.ss_sp = stack;
        context.uc_stack.ss_size = STACK;
        context.uc_link = &program;
        makecontext(&context, work, 0);
        CHECK_EQ(swapcontext(&program, &context), 0);
        free(stack);
    }
    return check_end();
}
