// The attributes of a dynamic window: base MPI_BOTTOM, size 0, displacement unit 1, its flavour, on
// every rank and whatever is attached; its group is that of the communicator, and its hints can be
// set and read. MPI-4.1 sections 12.2.4, 12.2.6 and 12.2.7.
// ranks: 1 2 4

#include "dynamic.h"

static void *attribute(MPI_Win win, int keyval)
{
    void *value = NULL;
    int flag = 0;
    OK(MPI_Win_get_attr(win, keyval, &value, &flag));
    CHECK(flag);
    return value;
}

static void check_attributes(MPI_Win win)
{
    CHECK(attribute(win, MPI_WIN_BASE) == MPI_BOTTOM);
    CHECK_EQ(*(MPI_Aint *)attribute(win, MPI_WIN_SIZE), 0);
    CHECK_EQ(*(int *)attribute(win, MPI_WIN_DISP_UNIT), 1);
    CHECK_EQ(*(int *)attribute(win, MPI_WIN_CREATE_FLAVOR), MPI_WIN_FLAVOR_DYNAMIC);
    int model = *(int *)attribute(win, MPI_WIN_MODEL);
    CHECK(model == MPI_WIN_UNIFIED || model == MPI_WIN_SEPARATE);
}

static void check_group(MPI_Win win)
{
    MPI_Group of_win, of_comm;
    int same = MPI_UNEQUAL;
    OK(MPI_Win_get_group(win, &of_win));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &of_comm));
    OK(MPI_Group_compare(of_win, of_comm, &same));
    CHECK_EQ(same, MPI_IDENT);
    OK(MPI_Group_free(&of_win));
    OK(MPI_Group_free(&of_comm));
}

// A hint that the window reports must be the one that was given.
static void reported_hint_is(MPI_Win win, const char *key, const char *want)
{
    MPI_Info used;
    char value[MPI_MAX_INFO_VAL + 1];
    int flag = 0;
    OK(MPI_Win_get_info(win, &used));
    CHECK(used != MPI_INFO_NULL);
    OK(MPI_Info_get(used, key, MPI_MAX_INFO_VAL, value, &flag));
    if (flag)
        CHECK(strcmp(value, want) == 0);
    OK(MPI_Info_free(&used));
}

static void check_hints(MPI_Win win, MPI_Info info)
{
    reported_hint_is(win, "accumulate_ordering", "none");
    reported_hint_is(win, "no_locks", "false");
    OK(MPI_Win_set_info(win, info));
    reported_hint_is(win, "accumulate_ordering", "none");
}

static void check_name(MPI_Win win)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length = 0;
    OK(MPI_Win_set_name(win, "list"));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(length == 4 && strcmp(name, "list") == 0);
}

int main(int argc, char **argv)
{
    static int memory[100];
    MPI_Win win;
    MPI_Info info;
    check_start(&argc, &argv);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_locks", "false"));
    OK(MPI_Info_set(info, "accumulate_ordering", "none"));
    OK(MPI_Info_set(info, "a_hint_that_nobody_knows", "7"));
    OK(MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &win));
    check_attributes(win);
    check_group(win);
    check_hints(win, info);
    check_name(win);
    OK(MPI_Info_free(&info));
    // What is attached changes nothing of it.
    OK(MPI_Win_attach(win, memory, sizeof memory));
    check_attributes(win);
    OK(MPI_Win_detach(win, memory));
    check_attributes(win);
    OK(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL);
    return check_end();
}
