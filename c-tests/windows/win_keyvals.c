// Attributes with keyvals of the program, on windows that the library carries out and on one that
// it delegates: what the callbacks get, when they are called, and what their errors do.
// MPI-4.1 section 7.7.3.
// ranks: 2
// between nodes: shared windows are left to the host MPI

#include "check.h"

// What the last call of a callback got, and the values of all calls so far.
static MPI_Win last_win;
static int last_keyval, calls, answer;
static void *last_extra, *values[16];

static int note(MPI_Win win, int keyval, void *value, void *extra)
{
    last_win = win;
    last_keyval = keyval;
    last_extra = extra;
    values[calls++ % 16] = value;
    return answer;
}

// Looks its own attribute up and frees its own keyval; both are still there.
static int look_and_free(MPI_Win win, int keyval, void *value, void *extra)
{
    void *found = NULL;
    int flag = 0, own = keyval;
    OK(MPI_Win_get_attr(win, keyval, &found, &flag));
    CHECK(flag && found == value);
    OK(MPI_Win_free_keyval(&own));
    CHECK_EQ(own, MPI_KEYVAL_INVALID);
    return note(win, keyval, value, extra);
}

static int new_keyval(MPI_Win_delete_attr_function *function, void *extra)
{
    int keyval = MPI_KEYVAL_INVALID;
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, function, &keyval, extra));
    CHECK(keyval != MPI_KEYVAL_INVALID);
    return keyval;
}

static void free_keyval(int keyval)
{
    OK(MPI_Win_free_keyval(&keyval));
    CHECK_EQ(keyval, MPI_KEYVAL_INVALID);
}

static int is_set(MPI_Win win, int keyval, void *value)
{
    void *found = NULL;
    int flag = -1;
    OK(MPI_Win_get_attr(win, keyval, &found, &flag));
    CHECK(flag == 0 || found == value);
    return flag != 0;
}

// Set, set again, delete: each old value goes through the callback.
static void check_values(MPI_Win win)
{
    int one, two, extra, keyval = new_keyval(note, &extra);
    calls = 0;
    CHECK(!is_set(win, keyval, NULL));
    OK(MPI_Win_set_attr(win, keyval, &one));
    CHECK(is_set(win, keyval, &one));
    CHECK_EQ(calls, 0);
    OK(MPI_Win_set_attr(win, keyval, &two));
    CHECK(is_set(win, keyval, &two));
    CHECK_EQ(calls, 1);
    CHECK(values[0] == &one && last_win == win && last_keyval == keyval && last_extra == &extra);
    OK(MPI_Win_delete_attr(win, keyval));
    CHECK(!is_set(win, keyval, NULL));
    CHECK_EQ(calls, 2);
    CHECK(values[1] == &two);
    OK(MPI_Win_set_attr(win, keyval, NULL));
    CHECK(is_set(win, keyval, NULL));
    OK(MPI_Win_delete_attr(win, keyval));
    CHECK_EQ(calls, 3);
    free_keyval(keyval);
}

// A callback that fails keeps its attribute where it is.
static void check_errors(MPI_Win win)
{
    int one, two, keyval = new_keyval(note, NULL);
    OK(MPI_Win_set_attr(win, keyval, &one));
    calls = 0;
    answer = MPI_ERR_OTHER;
    EXPECT(MPI_Win_delete_attr(win, keyval), MPI_ERR_OTHER);
    CHECK(is_set(win, keyval, &one));
    EXPECT(MPI_Win_set_attr(win, keyval, &two), MPI_ERR_OTHER);
    CHECK(is_set(win, keyval, &one));
    CHECK_EQ(calls, 2);
    answer = MPI_SUCCESS;
    OK(MPI_Win_delete_attr(win, keyval));
    CHECK(!is_set(win, keyval, NULL));
    free_keyval(keyval);
}

// Without a callback, attributes just come and go.
static void check_null_functions(MPI_Win win)
{
    int value, keyval = MPI_KEYVAL_INVALID;
    OK(MPI_Win_create_keyval(MPI_WIN_DUP_FN, MPI_WIN_NULL_DELETE_FN, &keyval, NULL));
    OK(MPI_Win_set_attr(win, keyval, &value));
    OK(MPI_Win_set_attr(win, keyval, &value));
    CHECK(is_set(win, keyval, &value));
    OK(MPI_Win_delete_attr(win, keyval));
    CHECK(!is_set(win, keyval, NULL));
    OK(MPI_Win_set_attr(win, keyval, &value));
    free_keyval(keyval);
}

static int was_deleted(void *value)
{
    int times = 0;
    for (int i = 0; i < calls; i++)
        times += values[i] == value;
    return times == 1;
}

// The end of a window: its attributes go, also those of keyvals that are freed, and those of other
// windows stay.
static void check_free(MPI_Win *win, MPI_Win other)
{
    int one, two, three, of_other, first = new_keyval(note, NULL), second = new_keyval(note, NULL);
    int third = new_keyval(look_and_free, NULL);
    OK(MPI_Win_set_attr(*win, third, &three));
    OK(MPI_Win_set_attr(*win, first, &one));
    OK(MPI_Win_set_attr(*win, second, &two));
    OK(MPI_Win_set_attr(other, first, &of_other));
    free_keyval(second);
    calls = 0;
    OK(MPI_Win_free(win));
    CHECK(*win == MPI_WIN_NULL);
    CHECK_EQ(calls, 3);
    CHECK(was_deleted(&one) && was_deleted(&two) && was_deleted(&three));
    CHECK(is_set(other, first, &of_other));
    OK(MPI_Win_delete_attr(other, first));
    CHECK_EQ(calls, 4);
    CHECK(values[3] == &of_other && last_win == other);
    free_keyval(first);
}

int main(int argc, char **argv)
{
    MPI_Win allocated, shared, created;
    void *base;
    static int memory[4];
    check_start(&argc, &argv);
    returning_window_of(64, 4, &allocated);
    OK(MPI_Win_allocate_shared(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &shared));
    OK(MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &created));
    OK(MPI_Win_set_errhandler(shared, MPI_ERRORS_RETURN));
    OK(MPI_Win_set_errhandler(created, MPI_ERRORS_RETURN));
    MPI_Win all[] = {allocated, shared, created};
    for (int i = 0; i < 3; i++) {
        check_values(all[i]);
        check_errors(all[i]);
        check_null_functions(all[i]);
    }
    check_free(&shared, allocated);
    check_free(&created, allocated);
    OK(MPI_Win_free(&allocated));
    return check_end();
}
