// Thousands of windows over parts of one block and over many allocations, made and freed in random
// order, with others over the same pages: all data is right, in the windows and around them. The
// process has no more memory, mappings and descriptors with each window. MPI-4.1 sections 12.2.1
// and 12.2.5.
// ranks: 1 2 3
// settings: FOMPI_ADOPT=always

#define _GNU_SOURCE
#include "adopted.h"
#include "resident.h"
#include <dirent.h>

enum { LIVE = 120, PART = 2900, LARGEST = 9 * PAGE, MIB = 1 << 20 };

// One of the windows, over a part of the block if its number is even, otherwise over an allocation.
static struct { MPI_Win win; char *base; int bytes, value; } windows[LIVE];

// The same numbers on all ranks.
static int random_below(int end)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)end);
}

static int lines_of_maps(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    int lines = 0, next;
    CHECK(maps != NULL);
    while ((next = fgetc(maps)) != EOF)
        lines += next == '\n';
    fclose(maps);
    return lines;
}

static int open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    CHECK(folder != NULL);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static void make(int n, char *block, int turn)
{
    const int bytes = n % 2 ? 1 + random_below(LARGEST) : PART;
    windows[n].bytes = bytes;
    windows[n].base = n % 2 ? malloc((size_t)bytes) : block + n / 2 * PART;
    CHECK(windows[n].base != NULL);
    windows[n].value = turn % 100 + 1;
    memset(windows[n].base, windows[n].value, (size_t)bytes);
    windows[n].win = window_over(windows[n].base, bytes, 1);
}

static void check_bytes(int n)
{
    for (int at = 0; at < windows[n].bytes; at++)
        CHECK_EQ(windows[n].base[at], windows[n].value);
}

// All bytes of the next rank's part change; its own part is changed by the rank before.
static void put(int n)
{
    static char bytes[LARGEST];
    windows[n].value = windows[n].value % 100 + 1;
    memset(bytes, windows[n].value, (size_t)windows[n].bytes);
    OK(MPI_Win_fence(0, windows[n].win));
    OK(MPI_Put(bytes, windows[n].bytes, MPI_BYTE, next_rank(), 0, windows[n].bytes, MPI_BYTE,
               windows[n].win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, windows[n].win));
    check_bytes(n);
}

static void end(int n)
{
    check_bytes(n);
    OK(MPI_Win_free(&windows[n].win));
    check_bytes(n);
    if (n % 2)
        free(windows[n].base);
    windows[n].base = NULL;
}

int main(int argc, char **argv)
{
    check_start_within(120, &argc, &argv);
    const int turns = library_is_here() ? 6000 : 600;
    char *block = touched_pages(LIVE / 2 * PART / PAGE + 1);
    int lines = 0, descriptors = 0;
    long memory = 0;
    for (int turn = 0; turn < turns; turn++) {
        const int n = random_below(LIVE);
        if (windows[n].base == NULL)
            make(n, block, turn);
        else if (random_below(3) == 0)
            end(n);
        else
            put(n);
        if (turn == turns / 3) {
            lines = lines_of_maps();
            descriptors = open_descriptors();
            memory = resident();
        }
    }
    for (int n = 0; n < LIVE; n++)
        if (windows[n].base != NULL)
            check_bytes(n);
    if (library_is_here()) {
        CHECK(lines_of_maps() <= lines + 300);
        CHECK(open_descriptors() <= descriptors + 3);
        CHECK(resident() <= memory + 8 * MIB);
    }
    for (int n = 0; n < LIVE; n++)
        if (windows[n].base != NULL)
            end(n);
    CHECK(!is_shared(block));
    return check_end();
}
