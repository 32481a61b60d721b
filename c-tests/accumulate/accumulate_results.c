// Many MPI_Fetch_and_op, MPI_Compare_and_swap and MPI_Get_accumulate of single elements follow each
// other without a wait, on several words of several ranks, between puts and gets. Each call that
// completes them at the origin has all results: a flush, a local flush, an unlock, a fence, a
// complete, a wait for requests. Results of calls on one word are in the order of the calls, and a
// result is as long as its element. MPI-4.1 sections 12.3.4, 12.5.4 and 12.7.2.
// ranks: 2 4

#include "check.h"

enum { WORDS = 5, CALLS = 200, MANY = 3000, REQUESTS = 40 };
// What the words of an area are used for, by one origin each.
enum { SUMS, SWAPS, NARROW, REALS, REPLACED, PUTS, CONSTANTS, AREAS };

typedef union {
    int64_t integer;
    int32_t narrow;
    double real;
    unsigned char bytes[8];
} value;

static MPI_Win win;
static value *mirror; // of the words of this origin at all ranks, by rank, area and word
static value operands[MANY], *wanted;
static int last;

static value *mirror_of(int target, int area, int word)
{
    return &mirror[(target * AREAS + area) * WORDS + word];
}

static MPI_Aint place_of(int area, int word) { return (rank * AREAS + area) * WORDS + word; }

// A value of one type as its bytes in a result that was filled before.
static value result_of(value held, int bytes)
{
    value result;
    memset(&result, 0x5a, sizeof result);
    memcpy(&result, &held, (size_t)bytes);
    return result;
}

static void swap(int target, int area, int word, MPI_Datatype type, int bytes, value *result)
{
    value *held = mirror_of(target, area, word), next = *held, expected = *held;
    if (area == SWAPS)
        next.integer += 1 + last;
    else
        next.narrow += 1 + last;
    // Every third one fails.
    if (last % 3 == 0)
        expected.bytes[0] ^= 1;
    OK(MPI_Compare_and_swap(&next, &expected, result, type, target, place_of(area, word), win));
    wanted[last] = result_of(*held, bytes);
    if (last % 3 != 0)
        *held = next;
}

static void fetch(int target, int area, int word, MPI_Datatype type, MPI_Op op, value *result)
{
    value *held = mirror_of(target, area, word), *operand = &operands[last];
    wanted[last] = *held;
    if (type == MPI_DOUBLE)
        operand->real = last;
    else
        operand->integer = last;
    if (op == MPI_REPLACE)
        OK(MPI_Get_accumulate(operand, 1, type, result, 1, type, target, place_of(area, word), 1,
                              type, op, win));
    else
        OK(MPI_Fetch_and_op(operand, result, type, target, place_of(area, word), op, win));
    if (op == MPI_REPLACE)
        *held = *operand;
    else if (op == MPI_SUM && type == MPI_DOUBLE)
        held->real += operand->real;
    else if (op == MPI_SUM)
        held->integer += operand->integer;
}

// A call on a word of a target, whose result goes to `result`.
static void call(int target, value *result)
{
    const int word = last / 9 % WORDS;
    memset(result, 0x5a, sizeof *result);
    switch (last % 9) {
    case 0: case 1: fetch(target, SUMS, word, MPI_INT64_T, MPI_SUM, result); break;
    case 2: fetch(target, SUMS, word, MPI_INT64_T, MPI_NO_OP, result); break;
    case 3: swap(target, SWAPS, word, MPI_INT64_T, 8, result); break;
    case 4: swap(target, NARROW, word, MPI_INT32_T, 4, result); break;
    case 5: fetch(target, REALS, word, MPI_DOUBLE, MPI_SUM, result); break;
    case 6: fetch(target, REPLACED, word, MPI_INT64_T, MPI_REPLACE, result); break;
    case 7:
        operands[last].integer = mirror_of(target, PUTS, word)->integer = last;
        OK(MPI_Put(&operands[last], 1, MPI_INT64_T, target, place_of(PUTS, word), 1, MPI_INT64_T,
                   win));
        wanted[last] = *result;
        break;
    default:
        OK(MPI_Get(result, 1, MPI_INT64_T, target, place_of(CONSTANTS, word), 1, MPI_INT64_T, win));
        wanted[last] = *mirror_of(target, CONSTANTS, word);
    }
    last++;
}

// Calls on all ranks, or on one, with results in turns on the stack and on the heap; `complete`
// completes them.
static void calls(int count, int only, void (*complete)(int))
{
    value on_stack[MANY / 2], *on_heap = malloc(MANY / 2 * sizeof *on_heap);
    last = 0;
    for (int i = 0; i < count; i++)
        call(only >= 0 ? only : (i / 45 + rank) % size, (i % 2 ? on_heap : on_stack) + i / 2);
    complete(only);
    for (int i = 0; i < count; i++)
        CHECK_EQ((i % 2 ? on_heap : on_stack)[i / 2].integer, wanted[i].integer);
    free(on_heap);
}

static void flush_all(int only) { (void)only; OK(MPI_Win_flush_all(win)); }
static void flush_local_all(int only) { (void)only; OK(MPI_Win_flush_local_all(win)); }
static void unlock(int only) { OK(MPI_Win_unlock(only, win)); }
static void unlock_all(int only) { (void)only; OK(MPI_Win_unlock_all(win)); }
static void fence(int only) { (void)only; OK(MPI_Win_fence(0, win)); }
static void complete(int only) { (void)only; OK(MPI_Win_complete(win)); }

static void flush(int only)
{
    for (int target = 0; target < size; target++)
        if (only < 0 || only == target)
            OK(MPI_Win_flush(target, win));
}

static void flush_local(int only)
{
    for (int target = 0; target < size; target++)
        if (only < 0 || only == target)
            OK(MPI_Win_flush_local(target, win));
}

static void passive(void)
{
    OK(MPI_Win_lock_all(0, win));
    calls(MANY, -1, flush_all);
    calls(CALLS, -1, flush);
    calls(CALLS, -1, flush_local_all);
    calls(CALLS, -1, flush_local);
    calls(1, -1, flush_local);
    calls(CALLS, -1, unlock_all);
    for (int target = 0; target < size; target++) {
        OK(MPI_Win_lock(target % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win));
        calls(CALLS, target, flush_local);
        calls(CALLS, target, flush);
        calls(CALLS, target, unlock);
    }
}

static void active(void)
{
    MPI_Group world;
    OK(MPI_Win_fence(0, win));
    calls(CALLS, -1, fence);
    calls(CALLS, -1, fence);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    for (int i = 0; i < 3; i++) {
        OK(MPI_Win_post(world, 0, win));
        OK(MPI_Win_start(world, 0, win));
        calls(CALLS, -1, complete);
        OK(MPI_Win_wait(win));
    }
    OK(MPI_Group_free(&world));
}

// A request has its result when it is complete, whatever else is under way.
static void with_requests(void)
{
    static MPI_Request requests[REQUESTS];
    value results[2 * REQUESTS];
    OK(MPI_Win_lock_all(0, win));
    last = 0;
    for (int i = 0; i < REQUESTS; i++) {
        const int target = (rank + i / 4) % size;
        value *held = mirror_of(target, SUMS, 0), *operand = &operands[2 * i + 1];
        fetch(target, SUMS, 0, MPI_INT64_T, MPI_SUM, &results[2 * i]);
        last++;
        operand->integer = i;
        wanted[last++] = *held;
        held->integer += i;
        OK(MPI_Rget_accumulate(operand, 1, MPI_INT64_T, &results[2 * i + 1], 1, MPI_INT64_T, target,
                               place_of(SUMS, 0), 1, MPI_INT64_T, MPI_SUM, win, &requests[i]));
    }
    OK(MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < REQUESTS; i++)
        CHECK_EQ(results[2 * i + 1].integer, wanted[2 * i + 1].integer);
    OK(MPI_Win_unlock_all(win));
    for (int i = 0; i < 2 * REQUESTS; i++)
        CHECK_EQ(results[i].integer, wanted[i].integer);
}

// Every word is what its calls have made it.
static void compare(void)
{
    const int words = AREAS * WORDS;
    value *there = malloc((size_t)words * sizeof *there);
    OK(MPI_Win_lock_all(0, win));
    for (int target = 0; target < size; target++) {
        OK(MPI_Get(there, words, MPI_INT64_T, target, place_of(0, 0), words, MPI_INT64_T, win));
        OK(MPI_Win_flush(target, win));
        for (int i = 0; i < words; i++)
            CHECK_EQ(there[i].integer, mirror[target * words + i].integer);
    }
    OK(MPI_Win_unlock_all(win));
    free(there);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    value *base = window_of(size * AREAS * WORDS * (MPI_Aint)sizeof(value), sizeof(value), &win);
    mirror = calloc((size_t)(size * AREAS * WORDS), sizeof *mirror);
    wanted = malloc(MANY * sizeof *wanted);
    for (int of = 0; of < size; of++)
        for (int i = 0; i < WORDS; i++) {
            base[(of * AREAS + CONSTANTS) * WORDS + i].integer = 1000 * rank + i;
            mirror_of(of, CONSTANTS, i)->integer = 1000 * of + i;
        }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    passive();
    with_requests();
    active();
    compare();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    free(mirror);
    free(wanted);
    return check_end();
}
