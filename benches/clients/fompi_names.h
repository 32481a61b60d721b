/* Stand-in for fompi.h in the tests of foMPI, whose names scripts/clients replaces by those of MPI.
 * Two calls differ: foMPI stores the value of an attribute, MPI a pointer to it; and MPI-3 has
 * removed MPI_Type_extent. */
#ifndef FOMPI_NAMES_H
#define FOMPI_NAMES_H

#include <mpi.h>
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whom the tests name when they report an error. */
static struct {
    int debug_pe, v_option;
} glob_info __attribute__((unused));

__attribute__((unused)) static int value_of_attribute(MPI_Win win, int key, void *value,
                                                      int *flag) {
    void *found = NULL;
    int code = MPI_Win_get_attr(win, key, &found, flag);
    if (code != MPI_SUCCESS || !*flag) return code;
    if (key == MPI_WIN_BASE) *(void **)value = found;
    else if (key == MPI_WIN_SIZE) *(MPI_Aint *)value = *(MPI_Aint *)found;
    else *(int *)value = *(int *)found;
    return code;
}

__attribute__((unused)) static int extent_of_type(MPI_Datatype type, MPI_Aint *extent) {
    MPI_Aint lower;
    return MPI_Type_get_extent(type, &lower, extent);
}

#endif
