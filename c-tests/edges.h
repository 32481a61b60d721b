// Memory with pages that move and pages that do not, for windows with adopted memory.
#ifndef EDGES_H
#define EDGES_H

#define _GNU_SOURCE
#include "created.h"
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LEAD = 2032, LONGS = 2000 };

// Zeroed memory that begins LEAD bytes after the begin of a page. Its first page and its last one
// are private mappings of a file.
UNUSED static char *memory_with_edges(size_t bytes)
{
    const size_t page = 4096, pages = (LEAD + bytes + page - 1) / page;
    const int file = memfd_create("edge", 0), flags = MAP_PRIVATE | MAP_FIXED;
    CHECK(file >= 0);
    CHECK_EQ(ftruncate(file, (off_t)page), 0);
    char *memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (size_t at = 0; at < pages; at += pages - 1)
        CHECK(mmap(memory + at * page, page, PROT_READ | PROT_WRITE, flags, file, 0) != MAP_FAILED);
    close(file);
    return memset(memory + LEAD, 0, bytes);
}

// Whether the page at an address is shared memory.
UNUSED static int is_shared(const void *address)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long first, end;
    char rights[5], line[512];
    int shared = 0;
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%lx-%lx %4s", &first, &end, rights) == 3 && first <= (unsigned long)address &&
            (unsigned long)address < end)
            shared = rights[3] == 's';
    if (maps != NULL)
        fclose(maps);
    return shared;
}

// Adds one to each of the LONGS longs with which the memory of a target begins.
UNUSED static void add_ones(MPI_Win win, int target, int turn)
{
    static long ones[LONGS], got[LONGS];
    for (int i = 0; i < LONGS; i++)
        ones[i] = 1;
    if (turn % 3 == 0) {
        OK(MPI_Accumulate(ones, LONGS, MPI_LONG, target, 0, LONGS, MPI_LONG, MPI_SUM, win));
    } else if (turn % 3 == 1) {
        OK(MPI_Get_accumulate(ones, LONGS, MPI_LONG, got, LONGS, MPI_LONG, target, 0, LONGS,
                              MPI_LONG, MPI_SUM, win));
        OK(MPI_Win_flush(target, win));
        for (int i = 1; i < LONGS && library_is_here(); i++)
            CHECK_EQ(got[i], got[0]); // atomic as a whole
    } else {
        MPI_Datatype blocks;
        OK(MPI_Type_vector(LONGS / 10, 10, 10, MPI_LONG, &blocks));
        OK(MPI_Type_commit(&blocks));
        OK(MPI_Accumulate(ones, LONGS, MPI_LONG, target, 0, 1, blocks, MPI_SUM, win));
        OK(MPI_Type_free(&blocks));
    }
    OK(MPI_Win_flush(target, win));
}

#endif
