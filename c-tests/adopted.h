// What the tests of adopted memory share (FOMPI_ADOPT).

#ifndef ADOPTED_H
#define ADOPTED_H

#include "created.h"
#include <sys/mman.h>
#include <stdint.h>

enum { PAGE = 4096 };

// Whether the library can adopt memory here: on one node, where the kernel says who refers to pages
// (MADV_COLLAPSE, Linux 6.1).
UNUSED static int can_adopt(void)
{
    if (!library_is_here() || getenv("FOMPI_RANKS_PER_NODE") != NULL
        || getenv("CHECK_RANKS_PER_NODE") != NULL || size == 1)
        return 0;
    enum { HUGE_PAGE = 2 << 20, COLLAPSE = 25 };
    char *pages = mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    char *first = pages + HUGE_PAGE - (uintptr_t)pages % HUGE_PAGE;
    *first = 1;
    const int answer = madvise(first, HUGE_PAGE, COLLAPSE);
    munmap(pages, 2 * HUGE_PAGE);
    return answer == 0;
}

// Whether the page at an address is shared with other processes.
UNUSED static int is_shared(const void *address)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[600], rights[5];
    unsigned long first, end;
    int found = 0;
    CHECK(maps != NULL);
    while (!found && fgets(line, sizeof line, maps) != NULL)
        found = sscanf(line, "%lx-%lx %4s", &first, &end, rights) == 3
            && (unsigned long)address >= first && (unsigned long)address < end;
    fclose(maps);
    return found && rights[3] == 's';
}

// The pages from `memory` on must be adopted, if they can be.
UNUSED static void check_adopted(const void *memory)
{
    if (can_adopt())
        CHECK(is_shared(memory));
}

// Private memory of whole pages, with a byte other than zero in each.
UNUSED static char *touched_pages(size_t pages)
{
    char *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memset(memory, 1, pages * PAGE);
}

#endif
