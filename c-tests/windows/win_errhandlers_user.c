// Error handlers that are functions of the program: they get the window and the code of every
// call that fails, live as long as a window has them, and may do anything with the window.
// MPI-4.1 sections 9.3, 9.3.2, 9.3.4 and 9.5.
// ranks: 1 2

#include "check.h"

static int calls, other_calls, last_code;
static MPI_Win last_win;
static MPI_Errhandler other;

static void note(MPI_Win *win, int *code, ...)
{
    calls++;
    last_win = *win;
    last_code = *code;
}

static void note_other(MPI_Win *win, int *code, ...)
{
    other_calls++;
    last_win = *win;
    last_code = *code;
}

// Puts another handler in its own place, which frees the one that is running.
static void replace_itself(MPI_Win *win, int *code, ...)
{
    note(win, code);
    OK(MPI_Win_set_errhandler(*win, other));
}

// Says itself what the call returns.
static void change_code(MPI_Win *win, int *code, ...)
{
    note(win, code);
    *code = MPI_ERR_OTHER;
}

// The call must fail with a class, after one call of the handler with this window and the code.
#define REACHES(call, win, ...) do { \
    int before_ = calls, code_ = (call); \
    EXPECT(code_, __VA_ARGS__); \
    CHECK_EQ(calls, before_ + 1); \
    CHECK(last_win == (win)); \
    CHECK_EQ(last_code, code_); \
} while (0)

static int wrong_put(MPI_Win win)
{
    static int value;
    return MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, win);
}

static MPI_Errhandler handler_of(MPI_Win_errhandler_function *function)
{
    MPI_Errhandler handler;
    OK(MPI_Win_create_errhandler(function, &handler));
    CHECK(handler != MPI_ERRHANDLER_NULL);
    return handler;
}

static MPI_Win window(int flavor)
{
    static int own_memory[16];
    MPI_Win win = MPI_WIN_NULL;
    void *base;
    switch (flavor) {
    case 0: OK(MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win)); break;
    case 1: OK(MPI_Win_allocate_shared(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win)); break;
    case 2: OK(MPI_Win_create(own_memory, 64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win)); break;
    default: OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    }
    return win;
}

static void set_and_free(MPI_Win win, MPI_Win_errhandler_function *function)
{
    MPI_Errhandler handler = handler_of(function);
    OK(MPI_Win_set_errhandler(win, handler));
    OK(MPI_Errhandler_free(&handler));
    CHECK(handler == MPI_ERRHANDLER_NULL);
}

// One call of each family fails.
static void every_family(int flavor)
{
    MPI_Win win = window(flavor);
    MPI_Request request;
    MPI_Info info;
    int value = 1, other_value = 2, result;
    set_and_free(win, note);
    OK(MPI_Win_lock_all(0, win));
    REACHES(wrong_put(win), win, MPI_ERR_RANK);
    REACHES(MPI_Get(&value, 1, MPI_INT, -77, 0, 1, MPI_INT, win), win, MPI_ERR_RANK);
    REACHES(MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_OP_NULL, win), win,
            MPI_ERR_OP);
    REACHES(MPI_Get_accumulate(&value, 1, MPI_INT, &result, 1, MPI_INT, size, 0, 1, MPI_INT,
                               MPI_SUM, win), win, MPI_ERR_RANK);
    REACHES(MPI_Fetch_and_op(&value, &result, MPI_INT, size, 0, MPI_SUM, win), win, MPI_ERR_RANK);
    REACHES(MPI_Compare_and_swap(&value, &other_value, &result, MPI_INT, size, 0, win), win,
            MPI_ERR_RANK);
    REACHES(MPI_Rput(&value, -1, MPI_INT, 0, 0, 1, MPI_INT, win, &request), win, MPI_ERR_COUNT);
    REACHES(MPI_Rget(&value, 1, MPI_INT, size, 0, 1, MPI_INT, win, &request), win, MPI_ERR_RANK);
    REACHES(MPI_Raccumulate(&value, 1, MPI_INT, size, 0, 1, MPI_INT, MPI_SUM, win, &request), win,
            MPI_ERR_RANK);
    REACHES(MPI_Rget_accumulate(&value, 1, MPI_INT, &result, 1, MPI_INT, size, 0, 1, MPI_INT,
                                MPI_SUM, win, &request), win, MPI_ERR_RANK);
    REACHES(MPI_Win_flush(size, win), win, MPI_ERR_RANK);
    REACHES(MPI_Win_flush_local(size, win), win, MPI_ERR_RANK);
    REACHES(MPI_Win_free(&win), win, MPI_ERR_RMA_SYNC);
    OK(MPI_Win_unlock_all(win));
    REACHES(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win), win, MPI_ERR_RANK);
    REACHES(MPI_Win_unlock(0, win), win, MPI_ERR_RMA_SYNC);
    REACHES(MPI_Win_unlock_all(win), win, MPI_ERR_RMA_SYNC);
    REACHES(MPI_Win_complete(win), win, MPI_ERR_RMA_SYNC);
    REACHES(MPI_Win_wait(win), win, MPI_ERR_RMA_SYNC);
    REACHES(MPI_Win_post(MPI_GROUP_NULL, 0, win), win, MPI_ERR_GROUP);
    REACHES(MPI_Win_get_attr(win, MPI_KEYVAL_INVALID, &info, &result), win, MPI_ERR_KEYVAL);
    REACHES(MPI_Win_set_errhandler(win, MPI_ERRHANDLER_NULL), win, MPI_ERR_ARG);
    OK(MPI_Win_free(&win));
}

static void references(void)
{
    MPI_Win win = window(0), second = window(3);
    MPI_Errhandler got, again;
    set_and_free(win, note);
    OK(MPI_Win_get_errhandler(win, &got));
    OK(MPI_Win_get_errhandler(win, &again));
    CHECK(got == again);
    OK(MPI_Errhandler_free(&again));
    OK(MPI_Win_set_errhandler(second, got));
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_fence(0, second));
    REACHES(wrong_put(second), second, MPI_ERR_RANK);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_free(&win));
    REACHES(wrong_put(second), second, MPI_ERR_RANK);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, second));
    OK(MPI_Win_get_errhandler(second, &got));
    OK(MPI_Win_free(&second));
    // What get_errhandler returned is the program's own: it outlives both windows.
    win = window(0);
    OK(MPI_Win_set_errhandler(win, got));
    OK(MPI_Errhandler_free(&got));
    REACHES(MPI_Win_unlock(0, win), win, MPI_ERR_RMA_SYNC);
    OK(MPI_Win_free(&win));
}

static void from_inside(void)
{
    MPI_Win win = window(0);
    other = handler_of(note_other);
    set_and_free(win, replace_itself);
    OK(MPI_Win_fence(0, win));
    REACHES(wrong_put(win), win, MPI_ERR_RANK);
    EXPECT(wrong_put(win), MPI_ERR_RANK);
    CHECK_EQ(other_calls, 1);
    CHECK(last_win == win);
    OK(MPI_Errhandler_free(&other));
    EXPECT(wrong_put(win), MPI_ERR_RANK);
    CHECK_EQ(other_calls, 2);
    set_and_free(win, change_code);
    int before = calls;
    EXPECT(wrong_put(win), MPI_ERR_OTHER);
    CHECK_EQ(calls, before + 1);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_free(&win));
}

// Codes of the program, and any predefined class.
static void call_errhandler(void)
{
    MPI_Win win = window(1);
    int class, code, length;
    char text[MPI_MAX_ERROR_STRING];
    set_and_free(win, note);
    OK(MPI_Add_error_class(&class));
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Add_error_string(code, "what the program says"));
    const int codes[] = {class, code, MPI_ERR_OTHER, MPI_ERR_RMA_SYNC};
    for (int i = 0; i < 4; i++) {
        int before = calls;
        OK(MPI_Win_call_errhandler(win, codes[i]));
        CHECK_EQ(calls, before + 1);
        CHECK(last_win == win);
        CHECK_EQ(last_code, codes[i]);
    }
    OK(MPI_Error_string(code, text, &length));
    CHECK(strcmp(text, "what the program says") == 0);
    EXPECT(code, class);
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_call_errhandler(win, code));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    for (int flavor = 0; flavor < 4; flavor++)
        every_family(flavor);
    references();
    from_inside();
    call_errhandler();
    return check_end();
}
