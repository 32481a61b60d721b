// Attached memory that cannot be written, or is no longer there, is an error at the origin, of
// class MPI_ERR_RMA_RANGE, and kills nobody; read-only memory can be read, and the rest of the
// window works as before. MPI-4.1 sections 12.2.4 and 12.6.2.
// ranks: 2 4

#include "dynamic.h"

#include <sys/mman.h>

enum { PAGE = 4096, WORDS = PAGE / 8, PAGES = 3 };

static MPI_Win win;

static int64_t *new_pages(void)
{
    int64_t *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                          -1, 0);
    CHECK((void *)pages != MAP_FAILED);
    for (int i = 0; i < PAGES * WORDS; i++)
        pages[i] = 70 + i;
    return pages;
}

// Nothing can be changed in `words` words at the address.
static void cannot_change(MPI_Aint place, int words)
{
    static int64_t values[PAGES * WORDS], got[PAGES * WORDS];
    const int target = next_rank();
    EXPECT(MPI_Put(values, words, MPI_INT64_T, target, place, words, MPI_INT64_T, win),
           MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Accumulate(values, words, MPI_INT64_T, target, place, words, MPI_INT64_T,
                          MPI_REPLACE, win), MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Get_accumulate(values, words, MPI_INT64_T, got, words, MPI_INT64_T, target, place,
                              words, MPI_INT64_T, MPI_SUM, win), MPI_ERR_RMA_RANGE);
    if (words == 1) {
        const int64_t value = 1, compare = 71;
        int64_t before;
        EXPECT(MPI_Fetch_and_op(&value, &before, MPI_INT64_T, target, place, MPI_SUM, win),
               MPI_ERR_RMA_RANGE);
        EXPECT(MPI_Compare_and_swap(&value, &compare, &before, MPI_INT64_T, target, place, win),
               MPI_ERR_RMA_RANGE);
    }
    OK(MPI_Win_flush(target, win));
}

static void cannot_read(MPI_Aint place, int words)
{
    static int64_t got[PAGES * WORDS];
    EXPECT(MPI_Get(got, words, MPI_INT64_T, next_rank(), place, words, MPI_INT64_T, win),
           MPI_ERR_RMA_RANGE);
    OK(MPI_Win_flush(next_rank(), win));
}

// The words are there, by a get and by fetches that change nothing.
static void can_read(MPI_Aint place, int first, int words)
{
    static int64_t got[PAGES * WORDS];
    int64_t before = -1;
    OK(MPI_Get(got, words, MPI_INT64_T, next_rank(), place, words, MPI_INT64_T, win));
    OK(MPI_Fetch_and_op(NULL, &before, MPI_INT64_T, next_rank(), place, MPI_NO_OP, win));
    OK(MPI_Win_flush(next_rank(), win));
    for (int i = 0; i < words; i++)
        CHECK_EQ(got[i], 70 + first + i);
    CHECK_EQ(before, 70 + first);
}

static void read_only(void)
{
    MPI_Aint places[RANKS_MAX];
    int64_t *pages = new_pages();
    CHECK_EQ(mprotect(pages, PAGES * PAGE, PROT_READ), 0);
    OK(MPI_Win_attach(win, pages, PAGES * PAGE));
    exchange(pages, places);
    const MPI_Aint there = places[next_rank()];
    can_read(there, 0, PAGES * WORDS);
    cannot_change(MPI_Aint_add(there, 8), 1);
    cannot_change(there, PAGES * WORDS);
    settle(win);
    for (int i = 0; i < PAGES * WORDS; i++)
        CHECK_EQ(pages[i], 70 + i);
    OK(MPI_Win_detach(win, pages));
    CHECK_EQ(munmap(pages, PAGES * PAGE), 0);
}

// The page in the middle is taken away without a word to MPI.
static void unmapped(void)
{
    MPI_Aint places[RANKS_MAX];
    int64_t *pages = new_pages();
    OK(MPI_Win_attach(win, pages, PAGES * PAGE));
    CHECK_EQ(mprotect(pages + WORDS, PAGE, PROT_NONE), 0);
    exchange(pages, places);
    const MPI_Aint there = places[next_rank()];
    can_read(there, 0, WORDS);
    can_read(MPI_Aint_add(there, 2 * PAGE), 2 * WORDS, WORDS);
    cannot_read(MPI_Aint_add(there, PAGE), 1);
    cannot_read(MPI_Aint_add(there, 100), WORDS);
    cannot_read(there, PAGES * WORDS);
    cannot_change(MPI_Aint_add(there, PAGE), 1);
    cannot_change(MPI_Aint_add(there, PAGE + 1024), 2 * WORDS - 200);
    settle(win);
    CHECK_EQ(pages[0], 70);
    OK(MPI_Win_detach(win, pages));
    CHECK_EQ(munmap(pages, PAGES * PAGE), 0);
}

int main(int argc, char **argv)
{
    static int64_t good[WORDS];
    MPI_Aint places[RANKS_MAX];
    const int64_t value = 5;
    check_start(&argc, &argv);
    win = dynamic_window();
    OK(MPI_Win_attach(win, good, sizeof good));
    exchange(good, places);
    OK(MPI_Win_lock_all(0, win));
    read_only();
    unmapped();
    OK(MPI_Put(&value, 1, MPI_INT64_T, next_rank(), places[next_rank()], 1, MPI_INT64_T, win));
    settle(win);
    CHECK_EQ(good[0], 5);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, good));
    OK(MPI_Win_free(&win));
    return check_end();
}
