// The info key fompi_attributes: ordinary calls on the window get attributes by default. What each attribute
// promises, what MPI_Win_get_info says, and that the calls mean what the standard says otherwise. The plain MPI
// ignores the key.
// ranks: 1 2 4

#include "handles.h"
#include "notified_weak.h"

enum { COUNT = 3000, ROUNDS = 200 };

typedef struct {
    long *base;
    MPI_Win win;
    int is_own;
} Made;

static MPI_Info asking(const char *attributes)
{
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "fompi_attributes", attributes));
    return info;
}

static Made make(const char *attributes, int is_own)
{
    const MPI_Aint bytes = (COUNT + 2) * (MPI_Aint)sizeof(long);
    Made made = {NULL, MPI_WIN_NULL, is_own};
    MPI_Info info = asking(attributes);
    if (is_own) { // the heap of the program
        made.base = malloc(bytes);
        OK(MPI_Win_create(made.base, bytes, sizeof(long), info, MPI_COMM_WORLD, &made.win));
    } else {
        OK(MPI_Win_allocate(bytes, sizeof(long), info, MPI_COMM_WORLD, &made.base, &made.win));
    }
    OK(MPI_Win_set_errhandler(made.win, MPI_ERRORS_RETURN));
    memset(made.base, 0, bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Info_free(&info));
    return made;
}

static void end(Made *made)
{
    OK(MPI_Win_free(&made->win));
    if (made->is_own)
        free(made->base);
}

static void check_info(MPI_Win win, const char *expected)
{
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int is_there;
    MPI_Info info;
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_get(info, "fompi_attributes", MPI_MAX_INFO_VAL, value, &is_there));
    CHECK_EQ(is_there, expected != NULL);
    CHECK(expected == NULL || strcmp(value, expected) == 0);
    OK(MPI_Info_free(&info));
}

// Unknown words are ignored, and the key has no effect behind the creation.
static void check_words(void)
{
    Made some = make(" remote ,faster,ordered", 0), none = make("faster", 1);
    MPI_Win dynamic;
    MPI_Info info = asking("blocking");
    check_info(some.win, "ordered,remote");
    check_info(none.win, NULL);
    OK(MPI_Win_set_info(some.win, info));
    OK(MPI_Win_set_info(none.win, info));
    check_info(some.win, "ordered,remote");
    check_info(none.win, NULL);
    OK(MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &dynamic));
    check_info(dynamic, "blocking");
    OK(MPI_Win_free(&dynamic));
    OK(MPI_Info_free(&info));
    end(&some);
    end(&none);
}

static long loaded(MPI_Win win, const long *at)
{
    OK(MPI_Win_sync(win));
    return *(const volatile long *)at;
}

// A word and an array, in either order: what the target sees of the second comes behind the first.
static void check_ordered(int is_own)
{
    Made made = make("ordered", is_own);
    long *base = made.base, values[COUNT];
    OK(MPI_Win_lock_all(0, made.win));
    for (long round = 1; round <= ROUNDS; round++) {
        const int is_word_first = round % 2, polled = is_word_first ? COUNT - 1 : COUNT;
        for (int i = 0; i < COUNT; i++)
            values[i] = round;
        for (int step = 0; step < 2; step++)
            if (step == is_word_first)
                OK(MPI_Put(values, COUNT, MPI_LONG, next_rank(), 0, COUNT, MPI_LONG, made.win));
            else
                OK(MPI_Put(&round, 1, MPI_LONG, next_rank(), COUNT, 1, MPI_LONG, made.win));
        while (loaded(made.win, &base[polled]) != round)
            ;
        if (is_word_first)
            CHECK_EQ(base[COUNT], round);
        else
            for (int i = 0; i < COUNT; i += 7)
                CHECK_EQ(base[i], round);
        OK(MPI_Win_flush_all(made.win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Win_unlock_all(made.win));
    end(&made);
}

// The sum is there when the put behind it is.
static void check_ordered_accumulates(void)
{
    Made made = make("ordered", 0);
    const long one = 1;
    OK(MPI_Win_lock_all(0, made.win));
    for (long round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < size; i++)
            OK(MPI_Accumulate(&one, 1, MPI_LONG, next_rank(), 0, 1, MPI_LONG, MPI_SUM, made.win));
        OK(MPI_Put(&round, 1, MPI_LONG, next_rank(), 1, 1, MPI_LONG, made.win));
        while (loaded(made.win, &made.base[1]) < round)
            ;
        CHECK(*(const volatile long *)made.base >= size * round);
    }
    OK(MPI_Win_unlock_all(made.win));
    end(&made);
}

// Results are there when the calls return, and buffers are free.
static void check_blocking(int is_own)
{
    Made made = make("blocking", is_own);
    long values[COUNT], before = -1, one = 1;
    MPI_Request request;
    for (int i = 0; i < COUNT; i++)
        made.base[i] = 1000 * rank + i;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, made.win));
    for (int round = 0; round < 20; round++) {
        memset(values, 0, sizeof values);
        OK(MPI_Get(values, COUNT, MPI_LONG, next_rank(), 0, COUNT, MPI_LONG, made.win));
        for (int i = 0; i < COUNT; i++)
            CHECK_EQ(values[i], 1000 * next_rank() + i);
        memset(values, 0, sizeof values);
        OK(MPI_Rget(values, COUNT, MPI_LONG, next_rank(), 0, COUNT, MPI_LONG, made.win, &request));
        CHECK_EQ(values[COUNT - 1], 1000 * next_rank() + COUNT - 1);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, next_rank(), COUNT, MPI_SUM, made.win));
        CHECK_EQ(before, round);
    }
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < COUNT; k++)
            values[k] = i;
        OK(MPI_Put(values, COUNT, MPI_LONG, next_rank(), 0, COUNT, MPI_LONG, made.win));
        memset(values, 99, sizeof values);
    }
    OK(MPI_Win_unlock_all(made.win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int k = 0; k < COUNT; k++)
        CHECK_EQ(made.base[k], 7);
    end(&made);
}

// A message behind the put tells the target that it is there.
static void check_remote(int is_own)
{
    Made made = make("remote", is_own);
    long values[COUNT], told = 0;
    MPI_Request request;
    OK(MPI_Win_lock_all(0, made.win));
    for (long round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            values[i] = round;
        if (round % 3 == 0) {
            OK(MPI_Rput(values, COUNT, MPI_LONG, next_rank(), 0, COUNT, MPI_LONG, made.win, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Put(values, COUNT, MPI_LONG, next_rank(), 0, COUNT, MPI_LONG, made.win));
        }
        OK(MPI_Sendrecv(&round, 1, MPI_LONG, next_rank(), 0, &told, 1, MPI_LONG, previous_rank(), 0,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(loaded(made.win, &made.base[0]), told);
        CHECK_EQ(made.base[COUNT - 1], told);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Win_unlock_all(made.win));
    end(&made);
}

// Puts and gets of many words are whole. An accumulate has no such attribute, and is none the worse.
static void check_atomic(int is_own)
{
    Made made = make("atomic", is_own);
    long values[COUNT], seen[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = rank;
    OK(MPI_Win_lock_all(0, made.win));
    for (int round = 0; round < ROUNDS; round++) {
        OK(MPI_Put(values, COUNT, MPI_LONG, 0, 0, COUNT, MPI_LONG, made.win));
        OK(MPI_Get(seen, COUNT, MPI_LONG, 0, 0, COUNT, MPI_LONG, made.win));
        OK(MPI_Accumulate(values, 1, MPI_LONG, 0, COUNT, 1, MPI_LONG, MPI_SUM, made.win));
        OK(MPI_Win_flush(0, made.win));
        for (int i = 1; i < COUNT; i++)
            CHECK_EQ(seen[i], seen[0]);
    }
    OK(MPI_Win_unlock_all(made.win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0)
        CHECK_EQ(made.base[COUNT], ROUNDS * (long)(size * (size - 1) / 2));
    end(&made);
}

// Epochs, MPI_PROC_NULL and errors are those of any window.
static void check_standard(const char *attributes, int is_own)
{
    Made made = make(attributes, is_own);
    long value = 5 + rank, result = -1, compare = 5 + previous_rank();
    MPI_Group all, one;
    const int next = next_rank(), previous = previous_rank();
    const MPI_Win win = made.win;
    OK(MPI_Put(&value, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win));
    EXPECT(MPI_Put(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Put(&value, 1, MPI_LONG, size, 0, 1, MPI_LONG, win), MPI_ERR_RANK);
    OK(MPI_Win_fence(0, win));
    EXPECT(MPI_Put(&value, 1, MPI_LONG, next, COUNT + 2, 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Put(&value, -1, MPI_LONG, next, 0, 1, MPI_LONG, win), MPI_ERR_COUNT);
    OK(MPI_Put(&value, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win)); // no operation has begun the epoch of the fence
    OK(MPI_Win_unlock(next, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, win));
    EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_EQ(made.base[0], 5 + previous);
    OK(MPI_Win_get_group(win, &all));
    OK(MPI_Group_incl(all, 1, &previous, &one));
    OK(MPI_Win_post(one, 0, win));
    OK(MPI_Group_free(&one));
    OK(MPI_Group_incl(all, 1, &next, &one));
    OK(MPI_Win_start(one, 0, win));
    OK(MPI_Accumulate(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    CHECK_EQ(made.base[0], 2 * (5 + previous));
    OK(MPI_Group_free(&one));
    OK(MPI_Group_free(&all));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 0; round < 3; round++) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
        OK(MPI_Put(&value, 1, MPI_LONG, next, 1, 1, MPI_LONG, win));
        OK(MPI_Win_flush(next, win));
        OK(MPI_Get(&result, 1, MPI_LONG, next, 1, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(next, win));
        CHECK_EQ(result, value);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    OK(MPI_Compare_and_swap(&value, &compare, &result, MPI_LONG, rank, 1, win));
    OK(MPI_Win_flush(rank, win));
    CHECK_EQ(result, compare);
    OK(MPI_Get_accumulate(&value, 1, MPI_LONG, &result, 1, MPI_LONG, rank, 1, 1, MPI_LONG, MPI_NO_OP, win));
    OK(MPI_Win_unlock(rank, win));
    CHECK_EQ(result, value);
    end(&made);
}

// The notification comes behind what the attributes ask for.
static void check_notified(void)
{
    Made made = make("ordered,remote,atomic,blocking", 0);
    long values[COUNT];
    OK(FOMPI_Win_set_num_notify(made.win, MPI_INFO_NULL, 2));
    OK(MPI_Win_lock_all(0, made.win));
    for (long round = 1; round <= 20; round++) {
        MPI_Count before;
        for (int i = 0; i < COUNT; i++)
            values[i] = round;
        OK(FOMPI_Put_notify(values, COUNT, MPI_LONG, next_rank(), 0, COUNT, MPI_LONG, 1, made.win));
        OK(FOMPI_Win_wait_notify(made.win, 1, 1));
        CHECK_EQ(made.base[COUNT - 1], round);
        OK(FOMPI_Win_reset_notify_value(made.win, 1, &before));
        CHECK_EQ(before, 1);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Win_unlock_all(made.win));
    end(&made);
}

int main(int argc, char **argv)
{
    check_start_within(60, &argc, &argv);
    if (has_handles()) {
        check_words();
        check_ordered_accumulates();
        check_notified();
        for (int is_own = 0; is_own < 2; is_own++) {
            check_ordered(is_own);
            check_blocking(is_own);
            check_remote(is_own);
            check_atomic(is_own);
            check_standard("ordered,remote,atomic,blocking", is_own);
            check_standard("blocking", is_own);
        }
    }
    return check_end();
}
