// Hints of windows, key by key: what the program says at creation or later is what get_info
// reports, unless it means nothing or is set too late; unknown keys are not reported. The defaults
// are reported, too. MPI-4.1 sections 12.2.1 to 12.2.4, 12.2.7, 12.4.3 and 9.2.
// ranks: 1 2

#include "check.h"

enum flavor { CREATE, ALLOCATE, SHARED, DYNAMIC, FLAVORS };

static int own_memory[16];

static MPI_Win window(enum flavor flavor, MPI_Info info)
{
    MPI_Win win = MPI_WIN_NULL;
    int *base;
    switch (flavor) {
    case CREATE:
        OK(MPI_Win_create(own_memory, sizeof own_memory, 4, info, MPI_COMM_WORLD, &win));
        break;
    case ALLOCATE:
        OK(MPI_Win_allocate(64, 4, info, MPI_COMM_WORLD, &base, &win));
        break;
    case SHARED:
        OK(MPI_Win_allocate_shared(64, 4, info, MPI_COMM_WORLD, &base, &win));
        break;
    default:
        OK(MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &win));
    }
    return win;
}

// The window reports a value, or with NULL nothing, for a key.
static void reports(MPI_Win win, const char *key, const char *want)
{
    MPI_Info used;
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int flag;
    OK(MPI_Win_get_info(win, &used));
    CHECK(used != MPI_INFO_NULL);
    OK(MPI_Info_get(used, key, MPI_MAX_INFO_VAL, value, &flag));
    if (flag != (want != NULL) || (want != NULL && strcmp(value, want) != 0))
        check_failed(__FILE__, __LINE__, "%s is reported as %s, not %s", key,
                     flag ? value : "nothing", want ? want : "nothing");
    OK(MPI_Info_free(&used));
}

static MPI_Info info_with(const char *key, const char *value)
{
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, key, value));
    OK(MPI_Info_set(info, "a_hint_that_nobody_knows", "7"));
    return info;
}

// Says it at creation, and takes it back later if that is possible.
static void at_creation(enum flavor flavor, const char *key, const char *value, const char *later,
                        const char *want_later)
{
    MPI_Info info = info_with(key, value);
    MPI_Win win = window(flavor, info);
    reports(win, key, value);
    reports(win, "a_hint_that_nobody_knows", NULL);
    OK(MPI_Info_free(&info));
    reports(win, key, value);
    info = info_with(key, later);
    OK(MPI_Win_set_info(win, info));
    reports(win, key, want_later);
    reports(win, "a_hint_that_nobody_knows", NULL);
    OK(MPI_Info_free(&info));
    OK(MPI_Win_free(&win));
}

static void ignored(enum flavor flavor, const char *key, const char *value, const char *instead)
{
    MPI_Info info = info_with(key, value);
    MPI_Win win = window(flavor, info);
    reports(win, key, instead);
    OK(MPI_Win_set_info(win, info));
    reports(win, key, instead);
    OK(MPI_Info_free(&info));
    OK(MPI_Win_free(&win));
}

static void defaults(enum flavor flavor)
{
    MPI_Win win = window(flavor, MPI_INFO_NULL);
    reports(win, "no_locks", "false");
    reports(win, "accumulate_ordering", "rar,raw,war,waw");
    reports(win, "accumulate_ops", "same_op_no_op");
    reports(win, "same_size", "false");
    reports(win, "same_disp_unit", "false");
    reports(win, "mpi_accumulate_granularity", "0");
    reports(win, "alloc_shared_noncontig", flavor == SHARED ? "false" : NULL);
    reports(win, "mpi_minimum_memory_alignment", NULL);
    OK(MPI_Win_set_info(win, MPI_INFO_NULL));
    reports(win, "accumulate_ordering", "rar,raw,war,waw");
    OK(MPI_Win_free(&win));
}

// Accumulates whose order does not matter are complete and right without any ordering, too.
static void sums_without_ordering(void)
{
    MPI_Info info = info_with("accumulate_ordering", "none");
    int *base, one = 1;
    MPI_Win win;
    OK(MPI_Win_allocate(64, 4, info, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Info_free(&info));
    base[0] = 0;
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < 100; i++)
        OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    if (rank == 0)
        CHECK_EQ(base[0], 100 * size);
    OK(MPI_Win_free(&win));
}

// The kinds of memory that a window supports are those of its communicator, if the MPI says so.
static void kinds_of_memory(void)
{
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int flag;
    MPI_Info info;
    MPI_Win win = window(ALLOCATE, MPI_INFO_NULL);
    OK(MPI_Comm_get_info(MPI_COMM_WORLD, &info));
    OK(MPI_Info_get(info, "mpi_memory_alloc_kinds", MPI_MAX_INFO_VAL, value, &flag));
    OK(MPI_Info_free(&info));
    reports(win, "mpi_memory_alloc_kinds", flag ? value : NULL);
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    for (enum flavor flavor = CREATE; flavor < FLAVORS; flavor++) {
        defaults(flavor);
        at_creation(flavor, "no_locks", "true", "false", "false");
        at_creation(flavor, "accumulate_ordering", "none", "waw", "waw");
        at_creation(flavor, "accumulate_ordering", "rar,waw", "raw", "raw");
        at_creation(flavor, "accumulate_ops", "same_op", "same_op_no_op", "same_op_no_op");
        at_creation(flavor, "same_size", "true", "false", "false");
        at_creation(flavor, "same_disp_unit", "true", "false", "false");
        at_creation(flavor, "mpi_assert_memory_alloc_kinds", "system,mpi", "system", "system");
        ignored(flavor, "no_locks", "perhaps", "false");
        ignored(flavor, "accumulate_ordering", "rar,random", "rar,raw,war,waw");
        ignored(flavor, "accumulate_ops", "any", "same_op_no_op");
        ignored(flavor, "mpi_accumulate_granularity", "some", "0");
        ignored(flavor, "mpi_minimum_memory_alignment", "24", NULL);
    }
    at_creation(SHARED, "alloc_shared_noncontig", "true", "false", "false");
    // The memory is there when the window is made: another alignment comes too late.
    at_creation(SHARED, "mpi_minimum_memory_alignment", "4096", "8192", "4096");
    at_creation(ALLOCATE, "mpi_minimum_memory_alignment", "64", "8192", "64");
    ignored(ALLOCATE, "alloc_shared_noncontig", "true", NULL);
    ignored(CREATE, "mpi_minimum_memory_alignment", "64", NULL);
    sums_without_ordering();
    kinds_of_memory();
    return check_end();
}
