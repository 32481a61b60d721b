// How much memory of the system this process takes.

#ifndef RESIDENT_H
#define RESIDENT_H

#include "check.h"

// Bytes of this process that are in memory, shared ones too.
static long resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL);
    CHECK_EQ(fscanf(file, "%*d %ld", &pages), 1);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

#endif
