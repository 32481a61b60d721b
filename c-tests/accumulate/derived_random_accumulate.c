// MPI-4.1 sections 12.3.4 and 5.1: MPI_Accumulate and MPI_Get_accumulate with random derived datatypes
// of one predefined type, different ones of origin, target and result, add what MPI_Pack and
// MPI_Unpack say, and fetch what was there; on every kind of window.
// ranks: 2
#include "random_types.h"

enum { TYPES = 700 };

struct kind {
    MPI_Datatype type;
    int unit;
};

static char mine[BYTES], before[BYTES], after[BYTES], result[BYTES],
    operands[BYTES], packed[BYTES];

// Adds integers of `unit` bytes.
static void add(char *to, const char *from, int unit)
{
    for (int i = 0; i < BYTES; i += unit) {
        uint64_t one = 0, other = 0;
        memcpy(&one, to + i, (size_t)unit);
        memcpy(&other, from + i, (size_t)unit);
        one += other;
        memcpy(to + i, &one, (size_t)unit);
    }
}

// What `before` becomes.
static void expect_sum(struct pair pair, int unit)
{
    int bytes = packed_of(mine, pair.origin_count, pair.origin, packed);
    memset(operands, 0, BYTES);
    unpacked_to(operands, pair.target_count, pair.target, packed, bytes);
    memcpy(expected, before, BYTES);
    add(expected, operands, unit);
}

static void begin(MPI_Win win, MPI_Aint start)
{
    fill(mine);
    fill(before);
    OK(MPI_Put(before, BYTES, MPI_BYTE, 1, start, BYTES, MPI_BYTE, win));
    OK(MPI_Win_flush(1, win));
}

static void end(MPI_Win win, MPI_Aint start)
{
    OK(MPI_Win_flush(1, win));
    OK(MPI_Get(after, BYTES, MPI_BYTE, 1, start, BYTES, MPI_BYTE, win));
    OK(MPI_Win_flush(1, win));
}

static void accumulate(MPI_Win win, MPI_Aint start, int seed, struct pair pair, int unit)
{
    begin(win, start);
    OK(MPI_Accumulate(mine + MIDDLE, pair.origin_count, pair.origin, 1, start + MIDDLE,
                      pair.target_count, pair.target, MPI_SUM, win));
    end(win, start);
    expect_sum(pair, unit);
    compare("accumulate", seed, after);
}

// `into`: the type of the result and that of the target.
static void get_accumulate(MPI_Win win, MPI_Aint start, int seed, struct pair pair,
                           struct pair into, int unit)
{
    begin(win, start);
    fill(result);
    char *kept = memcpy(malloc(BYTES), result, BYTES);
    OK(MPI_Get_accumulate(mine + MIDDLE, pair.origin_count, pair.origin, result + MIDDLE,
                          into.origin_count, into.origin, 1, start + MIDDLE, pair.target_count,
                          pair.target, MPI_SUM, win));
    end(win, start);
    expect_sum(pair, unit);
    compare("get_accumulate", seed, after);
    memcpy(expected, kept, BYTES);
    int bytes = packed_of(before, pair.target_count, pair.target, packed);
    unpacked_to(expected, into.origin_count, into.origin, packed, bytes);
    compare("result", seed, result);
    free(kept);
}

// A third type for the result: nothing if its counts do not come out as the pair's.
static struct pair result_for(struct pair pair, struct kind kind)
{
    struct pair into = {.origin = random_type(kind.type, kind.unit), .target = pair.target};
    int size, bytes;
    OK(MPI_Type_size(into.origin, &size));
    OK(MPI_Type_size(pair.target, &bytes));
    bytes *= pair.target_count;
    if (bytes % size != 0) {
        OK(MPI_Type_free(&into.origin));
        OK(MPI_Type_contiguous(bytes / kind.unit, kind.type, &into.origin));
        OK(MPI_Type_commit(&into.origin));
        size = bytes;
    }
    into.origin_count = bytes / size;
    into.target_count = pair.target_count;
    return into;
}

static void random_types(MPI_Win win, MPI_Aint start, int first)
{
    const struct kind kinds[] = {
        {MPI_INT8_T, 1}, {MPI_UINT16_T, 2}, {MPI_INT, 4}, {MPI_UINT64_T, 8}, {MPI_LONG_LONG, 8}};
    int used = 0;
    for (int seed = first; seed < first + TYPES; seed++) {
        random_state = (uint64_t)seed;
        struct kind kind = kinds[below(5)];
        struct pair pair = {.origin = random_type(kind.type, kind.unit), .predefined = kind.type};
        pair.target = below(4) == 0 ? kind.type : random_type(kind.type, kind.unit);
        balance(&pair);
        if (usable(pair)) {
            struct pair into = result_for(pair, kind);
            accumulate(win, start, seed, pair, kind.unit);
            if (usable(into))
                get_accumulate(win, start, seed, pair, into, kind.unit);
            OK(MPI_Type_free(&into.origin));
            used++;
        }
        free_types(pair);
    }
    CHECK(used > TYPES / 4);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    on_each_flavor(random_types, TYPES);
    return check_end();
}
