// Accumulates from one origin to the same place take effect in the order of the program, whatever
// their widths, operations and ways there: a request that no call waits for, a write, a read and a
// swap, the lock of the target. Also where an exclusive lock makes them ways of their own. MPI-4.1
// section 12.7.2.
// ranks: 2 4

#include "check.h"

enum { COUNT = 64, ROUNDS = 40, STEPS = 12 };

typedef union {
    int64_t integer;
    double real;
} value;

static MPI_Win win;
static MPI_Datatype type, spread;
static MPI_Aint first;
// What the target must hold, and what each step must have found there.
static int64_t mirror[COUNT];
static struct {
    int at, count;
    int64_t want[COUNT];
    value found[COUNT];
} steps[STEPS];
static value operands[STEPS][COUNT];

static unsigned next_number(void)
{
    static unsigned state = 12345;
    state = state * 1103515245u + 12345u;
    return state >> 8;
}

static int64_t number(const value *of)
{
    return type == MPI_INT64_T ? of->integer : (int64_t)of->real;
}

static int64_t combined(MPI_Op op, int64_t old, int64_t operand)
{
    if (op == MPI_SUM)
        return old + operand;
    if (op == MPI_REPLACE)
        return operand;
    return op == MPI_MAX && operand > old ? operand : old;
}

// One accumulate of `count` elements, each other one where `apart`; with a result or without.
static void accumulate(int step, MPI_Op op, int count, int apart, int fetches)
{
    const int stride = apart ? 2 : 1, target = size - 1;
    const int at = (int)(next_number() % (unsigned)(COUNT - (count - 1) * stride));
    const MPI_Datatype there = apart ? spread : type;
    steps[step].at = at;
    steps[step].count = fetches ? count : 0;
    for (int i = 0; i < count; i++) {
        const int64_t operand = (int64_t)(next_number() % 1000);
        int64_t *held = &mirror[at + i * stride];
        if (type == MPI_INT64_T)
            operands[step][i].integer = operand;
        else
            operands[step][i].real = (double)operand;
        steps[step].want[i] = *held;
        *held = combined(op, *held, operand);
    }
    if (fetches)
        OK(MPI_Get_accumulate(operands[step], count, type, steps[step].found, count, type, target,
                              first + at, count, there, op, win));
    else
        OK(MPI_Accumulate(operands[step], count, type, target, first + at, count, there, op, win));
}

static void steps_in_order(void)
{
    static const int counts[] = {1, 1, 3, 15, 16, 30};
    const MPI_Op ops[] = {MPI_SUM, MPI_SUM, MPI_REPLACE, MPI_MAX, MPI_NO_OP};
    for (int step = 0; step < STEPS; step++) {
        const MPI_Op op = ops[next_number() % 5];
        const int count = counts[next_number() % 6];
        accumulate(step, op, count, next_number() % 4 == 0,
                   op == MPI_NO_OP || next_number() % 4 == 0);
    }
    OK(MPI_Win_flush(size - 1, win));
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < steps[step].count; i++)
            CHECK_EQ(number(&steps[step].found[i]), steps[step].want[i]);
    value all[COUNT];
    OK(MPI_Get(all, COUNT, type, size - 1, first, COUNT, type, win));
    OK(MPI_Win_flush(size - 1, win));
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(number(&all[i]), mirror[i]);
}

// One word is added to, then many are replaced.
static void narrow_and_wide(void)
{
    const int64_t one = 1;
    int64_t many[16], got;
    for (int i = 0; i < 16; i++)
        many[i] = mirror[i] = 100;
    OK(MPI_Accumulate(&one, 1, MPI_INT64_T, size - 1, 0, 1, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Accumulate(many, 16, MPI_INT64_T, size - 1, 0, 16, MPI_INT64_T, MPI_REPLACE, win));
    OK(MPI_Win_flush(size - 1, win));
    OK(MPI_Get(&got, 1, MPI_INT64_T, size - 1, 0, 1, MPI_INT64_T, win));
    OK(MPI_Win_flush(size - 1, win));
    CHECK_EQ(got, 100);
}

// Many words are replaced, then each third one is added to.
static void wide_and_narrow(void)
{
    const int64_t one = 1;
    int64_t many[16], got[16];
    for (int i = 0; i < 16; i++)
        many[i] = mirror[i] = 200;
    OK(MPI_Accumulate(many, 16, MPI_INT64_T, size - 1, 0, 16, MPI_INT64_T, MPI_REPLACE, win));
    for (int i = 0; i < 16; i += 3) {
        OK(MPI_Accumulate(&one, 1, MPI_INT64_T, size - 1, i, 1, MPI_INT64_T, MPI_SUM, win));
        mirror[i]++;
    }
    OK(MPI_Win_flush(size - 1, win));
    OK(MPI_Get(got, 16, MPI_INT64_T, size - 1, 0, 16, MPI_INT64_T, win));
    OK(MPI_Win_flush(size - 1, win));
    for (int i = 0; i < 16; i++)
        CHECK_EQ(got[i], mirror[i]);
}

static void rounds(MPI_Datatype of, MPI_Aint from)
{
    type = of;
    first = from;
    OK(MPI_Type_create_resized(type, 0, 2 * sizeof(value), &spread));
    OK(MPI_Type_commit(&spread));
    memset(mirror, 0, sizeof mirror);
    for (int round = 0; round < ROUNDS; round++) {
        // Both in turns: what is under way after one must not reach the other.
        OK(MPI_Win_lock(round % 4 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, size - 1, 0, win));
        if (type == MPI_INT64_T)
            for (int i = 0; i < 5; i++) {
                narrow_and_wide();
                wide_and_narrow();
            }
        steps_in_order();
        OK(MPI_Win_unlock(size - 1, win));
    }
    OK(MPI_Type_free(&spread));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    window_of(2 * COUNT * sizeof(value), sizeof(value), &win);
    if (rank == 0) {
        rounds(MPI_INT64_T, 0);
        rounds(MPI_DOUBLE, COUNT);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    return check_end();
}
