// MPI-4.1 sections 5.1 and 12.3: puts and gets of random derived datatypes, different ones on both
// sides, do what MPI_Pack and MPI_Unpack do with them; on every kind of window.
// ranks: 2
#include "random_types.h"

enum { TYPES = 1500 };

struct element {
    MPI_Datatype type;
    int unit;
};

// Kinds with and without padding, and structures of several.
static struct element element(void)
{
    const struct element kinds[] = {
        {MPI_CHAR, 1}, {MPI_SHORT, 2}, {MPI_INT, 4}, {MPI_DOUBLE, 8}, {MPI_LONG_DOUBLE, 16},
        {MPI_DOUBLE_INT, 8}, {MPI_SHORT_INT, 4}, {MPI_LONG_LONG, 8}, {MPI_BYTE, 1}};
    return kinds[below((int)(sizeof kinds / sizeof *kinds))];
}

static MPI_Datatype structure(void)
{
    MPI_Datatype type;
    const int lengths[3] = {1, below(3), 2};
    MPI_Datatype types[3] = {element().type, element().type, element().type};
    const MPI_Aint places[3] = {0, between(16, 90), between(120, 150)};
    OK(MPI_Type_create_struct(3, lengths, places, types, &type));
    return type;
}

// Two types with the same signature: of the same elements, and as many.
static struct pair pair_of(void)
{
    struct pair made = {.origin_count = between(1, 4)};
    struct element kind = element();
    made.predefined = kind.type;
    int structures = below(4) == 0;
    if (structures) {
        MPI_Datatype inner = structure();
        made.origin = random_type(inner, 1);
        OK(MPI_Type_dup(made.origin, &made.target));
        OK(MPI_Type_free(&inner));
        made.target_count = made.origin_count;
    } else {
        made.origin = random_type(kind.type, below(3) == 0 ? 1 : kind.unit);
        made.target = below(4) == 0 ? kind.type : random_type(kind.type, kind.unit);
        balance(&made);
    }
    return made;
}

static char mine[BYTES], before[BYTES], after[BYTES], packed[BYTES];

// `disp` leads to the middle of the target's buffer.
static void put_and_get(MPI_Win win, MPI_Aint start, int seed, struct pair pair)
{
    MPI_Aint disp = start + MIDDLE;
    int bytes;
    fill(mine);
    fill(before);
    OK(MPI_Put(before, BYTES, MPI_BYTE, 1, start, BYTES, MPI_BYTE, win));
    OK(MPI_Win_flush(1, win));
    memcpy(expected, before, BYTES);
    bytes = packed_of(mine, pair.origin_count, pair.origin, packed);
    unpacked_to(expected, pair.target_count, pair.target, packed, bytes);
    OK(MPI_Put(mine + MIDDLE, pair.origin_count, pair.origin, 1, disp, pair.target_count,
               pair.target, win));
    OK(MPI_Win_flush(1, win));
    OK(MPI_Get(after, BYTES, MPI_BYTE, 1, start, BYTES, MPI_BYTE, win));
    OK(MPI_Win_flush(1, win));
    compare("put", seed, after);
    fill(mine);
    memcpy(expected, mine, BYTES);
    bytes = packed_of(after, pair.target_count, pair.target, packed);
    unpacked_to(expected, pair.origin_count, pair.origin, packed, bytes);
    OK(MPI_Get(mine + MIDDLE, pair.origin_count, pair.origin, 1, disp, pair.target_count,
               pair.target, win));
    OK(MPI_Win_flush(1, win));
    compare("get", seed, mine);
}

static void random_types(MPI_Win win, MPI_Aint start, int first)
{
    int used = 0;
    for (int seed = first; seed < first + TYPES; seed++) {
        random_state = (uint64_t)seed;
        struct pair pair = pair_of();
        if (usable(pair)) {
            put_and_get(win, start, seed, pair);
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
