// A PMPI profiling library is linked with the program, so the library under test, which is preloaded,
// comes before it. It sees each call of the program once all the same. MPI-4.1 section 15.2.
// ranks: 1 2 4
// linked: counter

#include "profiler_calls.h"

// From profiler/counter.c, which is linked with this program.
int profiler_count(const char *call);

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    calls_seen_once(profiler_count);
    return check_end();
}
