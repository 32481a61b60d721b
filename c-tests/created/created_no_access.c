// Pages of a window that cannot be written or read: only the calls that need them fail, none of
// them crashes, and the rest of the window can be used. MPI-4.1 sections 12.2.1 and 12.6.2.
// ranks: 2 4

#include "created.h"

#include <sys/mman.h>

// Pages in turn: usable, read only, usable, unmapped, usable, beyond the end of a file, usable.
enum { READ_ONLY = 1, UNMAPPED = 3, NO_FILE = 5, PAGES = 7, PAGE = 4096, LONGS = PAGE / 8 };

static MPI_Win win;

// The call, or what completes it, fails.
static int flushed(int code, int target)
{
    int completed = MPI_Win_flush(target, win);
    return code != MPI_SUCCESS ? code : completed;
}

#define REFUSED(call) EXPECT(flushed((call), target), MPI_ERR_RMA_RANGE)

static void writes(int target, int page)
{
    static long values[3 * LONGS], got[3 * LONGS];
    const MPI_Aint here = (MPI_Aint)page * LONGS;
    REFUSED(MPI_Put(values, 1, MPI_LONG, target, here + 9, 1, MPI_LONG, win));
    // In the middle of a longer run.
    REFUSED(MPI_Put(values, 3 * LONGS, MPI_LONG, target, here - LONGS, 3 * LONGS, MPI_LONG, win));
    REFUSED(MPI_Accumulate(values, 4, MPI_LONG, target, here - 2, 4, MPI_LONG, MPI_SUM, win));
    REFUSED(MPI_Get_accumulate(values, 2, MPI_LONG, got, 2, MPI_LONG, target, here + 5, 2, MPI_LONG,
                               MPI_REPLACE, win));
    const long one = 1, zero = 0;
    REFUSED(MPI_Fetch_and_op(&one, got, MPI_LONG, target, here, MPI_SUM, win));
    REFUSED(MPI_Compare_and_swap(&one, &zero, got, MPI_LONG, target, here + LONGS - 1, win));
}

// Blocks in the page and around it, one after the other or far apart.
static void blocks(int target, int page, int can_read)
{
    static long values[64], got[64];
    const MPI_Aint here = (MPI_Aint)page * LONGS;
    MPI_Datatype near, onto, over;
    OK(MPI_Type_vector(24, 2, LONGS / 8, MPI_LONG, &near));
    OK(MPI_Type_vector(2, 2, LONGS, MPI_LONG, &onto));
    OK(MPI_Type_vector(2, 2, 2 * LONGS, MPI_LONG, &over));
    MPI_Datatype touching[2] = {near, onto};
    for (int i = 0; i < 2; i++) {
        const int count = i == 0 ? 48 : 4;
        OK(MPI_Type_commit(&touching[i]));
        REFUSED(MPI_Put(values, count, MPI_LONG, target, here - LONGS, 1, touching[i], win));
        REFUSED(MPI_Accumulate(values, count, MPI_LONG, target, here - LONGS, 1, touching[i],
                               MPI_SUM, win));
        REFUSED(MPI_Get_accumulate(values, count, MPI_LONG, got, count, MPI_LONG, target,
                                   here - LONGS, 1, touching[i], MPI_SUM, win));
        int code = MPI_Get(got, count, MPI_LONG, target, here - LONGS, 1, touching[i], win);
        if (can_read)
            OK(flushed(code, target));
        else
            REFUSED(code);
    }
    // These leave the page out.
    OK(MPI_Type_commit(&over));
    OK(MPI_Put(values, 4, MPI_LONG, target, here - LONGS, 1, over, win));
    OK(MPI_Accumulate(values, 4, MPI_LONG, target, here - LONGS, 1, over, MPI_SUM, win));
    OK(MPI_Get(got, 4, MPI_LONG, target, here - LONGS, 1, over, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 0; i < 4; i++)
        CHECK_EQ(got[i], 0);
    OK(MPI_Type_free(&touching[0]));
    OK(MPI_Type_free(&touching[1]));
    OK(MPI_Type_free(&over));
}

static void reads(int target, int page)
{
    static long got[3 * LONGS];
    const MPI_Aint here = (MPI_Aint)page * LONGS;
    MPI_Datatype type;
    REFUSED(MPI_Get(got, 1, MPI_LONG, target, here + 9, 1, MPI_LONG, win));
    REFUSED(MPI_Get(got, 3 * LONGS, MPI_LONG, target, here - LONGS, 3 * LONGS, MPI_LONG, win));
    OK(MPI_Type_vector(24, 2, LONGS / 8, MPI_LONG, &type));
    OK(MPI_Type_commit(&type));
    REFUSED(MPI_Get(got, 1, type, target, here - LONGS, 1, type, win));
    OK(MPI_Type_free(&type));
}

// The usable pages take what is put there, and add to it.
static void around(int target)
{
    long values[LONGS], got[LONGS], before;
    const long one = 1;
    for (int page = 0; page < PAGES; page += 2) {
        for (int i = 0; i < LONGS; i++)
            values[i] = 1000 * rank + 10 * page + i;
        OK(MPI_Put(values, LONGS, MPI_LONG, target, page * LONGS, LONGS, MPI_LONG, win));
        OK(MPI_Accumulate(&one, 1, MPI_LONG, target, page * LONGS + LONGS - 1, 1, MPI_LONG, MPI_SUM,
                          win));
        OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, target, page * LONGS, MPI_SUM, win));
        OK(MPI_Win_flush(target, win));
        CHECK_EQ(before, values[0]);
        OK(MPI_Get(got, LONGS, MPI_LONG, target, page * LONGS, LONGS, MPI_LONG, win));
        OK(MPI_Win_flush(target, win));
        for (int i = 0; i < LONGS; i++)
            CHECK_EQ(got[i], values[i] + (i == 0) + (i == LONGS - 1));
    }
}

static char *memory_with_holes(void)
{
    FILE *file = tmpfile();
    CHECK(file != NULL);
    // Far below all else: the system fills holes from above, so no thread of the MPI gets the
    // unmapped page for memory of its own.
    char *memory = mmap((void *)0x200000000000, PAGES * PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (int i = 0; i < LONGS; i++)
        ((long *)memory)[READ_ONLY * LONGS + i] = 50 + i;
    CHECK_EQ(mprotect(memory + READ_ONLY * PAGE, PAGE, PROT_READ), 0);
    CHECK_EQ(munmap(memory + UNMAPPED * PAGE, PAGE), 0);
    CHECK(mmap(memory + NO_FILE * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
               fileno(file), 0) == memory + NO_FILE * PAGE);
    fclose(file);
    return memory;
}

static void read_only_page(int target)
{
    long got[LONGS];
    OK(MPI_Get(got, LONGS, MPI_LONG, target, READ_ONLY * LONGS, LONGS, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 0; i < LONGS; i++)
        CHECK_EQ(got[i], 50 + i);
    writes(target, READ_ONLY);
    blocks(target, READ_ONLY, 1);
}

// Memory that is mapped later at the addresses of the window.
static void mended(char *memory)
{
    const long value = 31 + rank;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(mmap(memory + UNMAPPED * PAGE, PAGE, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory + UNMAPPED * PAGE);
    CHECK_EQ(mprotect(memory + READ_ONLY * PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), UNMAPPED * LONGS, 1, MPI_LONG, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), READ_ONLY * LONGS, 1, MPI_LONG, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(((long *)memory)[UNMAPPED * LONGS], 31 + previous_rank());
    CHECK_EQ(((long *)memory)[READ_ONLY * LONGS], 31 + previous_rank());
    CHECK_EQ(((long *)memory)[READ_ONLY * LONGS + 1], 51);
}

static int put_behind_file(int target)
{
    const long value = 1;
    return MPI_Put(&value, 1, MPI_LONG, target, NO_FILE * LONGS, 1, MPI_LONG, win);
}

// The end of an epoch fails if the call in it has not, and the epoch has ended: other ranks get the
// lock, and those that wait go on.
static void ends_of_epochs(void)
{
    const int target = next_rank(), before = previous_rank();
    MPI_Group all, next, previous;
    int code, end;
    for (int round = 0; round < 2; round++) {
        OK(MPI_Win_lock(round == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, win));
        code = put_behind_file(target);
        end = MPI_Win_unlock(target, win);
        EXPECT(code != MPI_SUCCESS ? code : end, MPI_ERR_RMA_RANGE);
    }
    OK(MPI_Win_lock_all(0, win));
    code = put_behind_file(target);
    end = MPI_Win_unlock_all(win);
    EXPECT(code != MPI_SUCCESS ? code : end, MPI_ERR_RMA_RANGE);
    OK(MPI_Win_fence(0, win));
    code = put_behind_file(target);
    end = MPI_Win_fence(0, win);
    EXPECT(code != MPI_SUCCESS ? code : end, MPI_ERR_RMA_RANGE);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 1, &target, &next));
    OK(MPI_Group_incl(all, 1, &before, &previous));
    OK(MPI_Win_post(previous, 0, win));
    OK(MPI_Win_start(next, 0, win));
    code = put_behind_file(target);
    end = MPI_Win_complete(win);
    EXPECT(code != MPI_SUCCESS ? code : end, MPI_ERR_RMA_RANGE);
    OK(MPI_Win_wait(win));
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&next));
    OK(MPI_Group_free(&previous));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    char *memory = memory_with_holes();
    win = returning_window_over(memory, PAGES * PAGE, sizeof(long));
    OK(MPI_Win_lock_all(0, win));
    for (int round = 0; round < 3; round++) {
        read_only_page(next_rank());
        for (int page = UNMAPPED; page <= NO_FILE; page += NO_FILE - UNMAPPED) {
            writes(next_rank(), page);
            reads(next_rank(), page);
            blocks(next_rank(), page, 0);
        }
        around(next_rank());
    }
    mended(memory);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    ends_of_epochs();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    return check_end();
}
