// A PMPI profiling library in front sees each call of the program once, and calls that the library
// below makes for itself not at all. MPI-4.1 section 15.2.
// ranks: 1 2 4
// profiler: counter

#include "profiler_calls.h"

// From profiler/counter.c, which is preloaded before the library under test.
__attribute__((weak)) int profiler_count(const char *call);

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    CHECK(profiler_count != NULL);
    calls_seen_once(profiler_count);
    return check_end();
}
