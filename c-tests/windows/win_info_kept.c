// What MPI_Win_get_info says: the hints that were given, at creation and later, for every key of the
// standard; none that nobody knows; and a new object each time. A window need not report a hint, but
// libfompi does. MPI-4.1 section 12.2.7.
// ranks: 1 2

#include "created.h"

enum { OPS = 2, GRANULARITY = 3, KEYS = 8 };

static const char *const keys[KEYS] = {
    "no_locks", "accumulate_ordering", "accumulate_ops", "mpi_accumulate_granularity",
    "same_size", "same_disp_unit", "mpi_minimum_memory_alignment",
    "mpi_assert_memory_alloc_kinds",
};
static const char *const first[KEYS] = {"false", "rar,raw,war,waw", "same_op_no_op", "0",
                                        "false", "false", "64", "system"};
static const char *const second[KEYS] = {"false", "none", "same_op", "8",
                                         "true", "true", "64", "system,mpi"};

// The library ignores one hint, and reports its default.
static const char *changed_to(int key)
{
    return key == GRANULARITY ? first[key] : second[key];
}

static void hint_is(MPI_Win win, const char *key, const char *want)
{
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int flag;
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &flag));
    OK(MPI_Info_free(&info));
    if (!library_is_here())
        return;
    CHECK_EQ(flag, want != NULL);
    if (want != NULL && strcmp(value, want) != 0)
        check_failed(__FILE__, __LINE__, "%s is %s, not %s", key, value, want);
}

static MPI_Info info_of(const char *const *values)
{
    MPI_Info info;
    OK(MPI_Info_create(&info));
    for (int i = 0; i < KEYS; i++)
        OK(MPI_Info_set(info, keys[i], values[i]));
    OK(MPI_Info_set(info, "a_hint_that_nobody_knows", "7"));
    return info;
}

int main(int argc, char **argv)
{
    MPI_Win win, plain;
    MPI_Info some;
    void *base;
    check_start(&argc, &argv);
    MPI_Info info = info_of(first), changed = info_of(second);
    OK(MPI_Win_allocate(64, 1, info, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &plain));
    for (int i = 0; i < KEYS; i++)
        hint_is(win, keys[i], first[i]);
    hint_is(win, "a_hint_that_nobody_knows", NULL);
    OK(MPI_Win_set_info(win, changed));
    for (int i = 0; i < KEYS; i++)
        hint_is(win, keys[i], changed_to(i));
    // A hint that is not given stays.
    OK(MPI_Info_create(&some));
    OK(MPI_Info_set(some, "accumulate_ops", "same_op_no_op"));
    OK(MPI_Win_set_info(win, some));
    OK(MPI_Info_free(&some));
    for (int i = 0; i < KEYS; i++)
        hint_is(win, keys[i], i == OPS ? first[i] : changed_to(i));
    // The other window has the defaults of a window without hints.
    for (int i = 0; i < 6; i++)
        hint_is(plain, keys[i], first[i]);
    OK(MPI_Info_free(&info));
    OK(MPI_Info_free(&changed));
    OK(MPI_Win_free(&win));
    OK(MPI_Win_free(&plain));
    return check_end();
}
