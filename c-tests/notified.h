// For programs with notified operations, which the plain MPI does not have: `has_notified` is 0 there.

#ifndef NOTIFIED_H
#define NOTIFIED_H

#include "check.h"

#include "notified_weak.h"

// Whether the library has them.
UNUSED static int has_notified(void)
{
    return FOMPI_Put_notify != NULL;
}

// The value of a counter of this rank.
UNUSED static MPI_Count notified(MPI_Win win, int index)
{
    MPI_Count value = -1;
    OK(FOMPI_Win_get_notify_value(win, index, &value));
    return value;
}

// Waits as the standard's own loop does.
UNUSED static void poll_notified(MPI_Win win, int index, MPI_Count threshold)
{
    while (notified(win, index) < threshold)
        ;
}

#endif
