// Memory with pages that move and pages that do not, for windows with adopted memory.
#ifndef EDGES_H
#define EDGES_H

#define _GNU_SOURCE
#include "created.h"
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LEAD = 2032 };

// Zeroed memory that begins LEAD bytes behind the begin of a page. Its first page and its last one
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

#endif
