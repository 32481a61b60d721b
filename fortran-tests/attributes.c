// The half in C of attributes.inc: windows come as Fortran's integers, and values as the pointers
// that attributes are in C. MPI-4.1 section 19.3.7.

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

static int extra_state, calls, keyval_seen, extra_is_right, points;
static MPI_Fint win_seen;
static int64_t value_seen;

static int note(MPI_Win win, int keyval, void *value, void *extra)
{
    calls++;
    win_seen = MPI_Win_c2f(win);
    keyval_seen = keyval;
    value_seen = points ? *(MPI_Aint *)value : (intptr_t)value;
    extra_is_right = extra == &extra_state;
    return MPI_SUCCESS;
}

// A keyval whose delete callback is the function above.
int c_create_keyval(void)
{
    int keyval = MPI_KEYVAL_INVALID;
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, note, &keyval, &extra_state);
    return keyval;
}

// How often the callback was called; whether that was for this window and keyval the last time.
int c_calls(MPI_Fint win, int keyval)
{
    return win_seen == win && keyval_seen == keyval && extra_is_right ? calls : -1;
}

// Whether the callback gets addresses of integers from now on, whose values it records.
void c_points(int yes) { points = yes; }

// What it noted the last time.
int64_t c_deleted(void) { return value_seen; }

int c_set(MPI_Fint win, int keyval, int64_t value)
{
    return MPI_Win_set_attr(MPI_Win_f2c(win), keyval, (void *)(intptr_t)value);
}

int c_delete(MPI_Fint win, int keyval) { return MPI_Win_delete_attr(MPI_Win_f2c(win), keyval); }

static void *get(MPI_Fint win, int keyval)
{
    void *value = NULL;
    int flag = 0;
    if (MPI_Win_get_attr(MPI_Win_f2c(win), keyval, &value, &flag) != MPI_SUCCESS || !flag)
        return NULL;
    return value;
}

// An attribute as C gets it, and the integer of an address's size that it points to.
int64_t c_get(MPI_Fint win, int keyval) { return (intptr_t)get(win, keyval); }
int64_t c_get_pointed(MPI_Fint win, int keyval) { return *(MPI_Aint *)get(win, keyval); }

// The predefined attributes, whose keyvals C knows by its own numbers.
int64_t c_base(MPI_Fint win) { return (intptr_t)get(win, MPI_WIN_BASE); }
int64_t c_size(MPI_Fint win) { return *(MPI_Aint *)get(win, MPI_WIN_SIZE); }
int64_t c_unit(MPI_Fint win) { return *(int *)get(win, MPI_WIN_DISP_UNIT); }
int64_t c_flavor(MPI_Fint win) { return *(int *)get(win, MPI_WIN_CREATE_FLAVOR); }
int64_t c_model(MPI_Fint win) { return *(int *)get(win, MPI_WIN_MODEL); }

// A window that C makes, and one that it frees.
MPI_Fint c_make(int bytes, int unit)
{
    MPI_Win win;
    void *base;
    MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    return MPI_Win_c2f(win);
}

int c_free(MPI_Fint win)
{
    MPI_Win mine = MPI_Win_f2c(win);
    int code = MPI_Win_free(&mine);
    return mine == MPI_WIN_NULL && MPI_Win_c2f(mine) != win ? code : MPI_ERR_OTHER;
}
