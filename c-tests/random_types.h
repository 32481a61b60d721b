// Random derived datatypes: every constructor, nested, with holes, negative strides and lower bounds,
// resized, with pieces of no size. What a transfer has to do with them is asked from MPI_Pack and
// MPI_Unpack.

#ifndef RANDOM_TYPES_H
#define RANDOM_TYPES_H

#include "check.h"

// A buffer: a type may reach from -MIDDLE to MIDDLE bytes around its middle.
enum { MIDDLE = 4096, BYTES = 2 * MIDDLE, LEVELS_MAX = 4 };

static uint64_t random_state;

static int below(int limit)
{
    random_state += 0x9e3779b97f4a7c15u;
    uint64_t mixed = (random_state ^ random_state >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return (int)((mixed ^ mixed >> 31) % (uint64_t)limit);
}

static int between(int low, int high) { return low + below(high - low); }

// The constructors of MPI-4.0 with large counts, half of the time, where there are any: the type is
// the same. Arrays of counts are made longer for them.
#if MPI_VERSION >= 4
#define EITHER(name, ...) \
    OK(below(2) ? MPI_Type_##name##_c(__VA_ARGS__) : MPI_Type_##name(__VA_ARGS__))
#define EITHER_LISTS(name, count, one, two, ...) do { \
    if (below(2)) { \
        MPI_Count one_[6], two_[6]; \
        longer(count, one, one_); \
        longer(count, two, two_); \
        OK(MPI_Type_##name##_c(count, one_, two_, __VA_ARGS__)); \
    } else \
        OK(MPI_Type_##name(count, one, two, __VA_ARGS__)); \
} while (0)
#define longer(count, from, to) do { \
    for (int i_ = 0; i_ < (count); i_++) \
        (to)[i_] = (from)[i_]; \
} while (0)
#define EITHER_PLACES(name, count, length, places, ...) do { \
    if (below(2)) { \
        MPI_Count places_[6]; \
        longer(count, places, places_); \
        OK(MPI_Type_##name##_c(count, length, places_, __VA_ARGS__)); \
    } else \
        OK(MPI_Type_##name(count, length, places, __VA_ARGS__)); \
} while (0)
#else
#define EITHER(name, ...) OK(MPI_Type_##name(__VA_ARGS__))
#define EITHER_LISTS(name, ...) OK(MPI_Type_##name(__VA_ARGS__))
#define EITHER_PLACES(name, ...) OK(MPI_Type_##name(__VA_ARGS__))
#endif

UNUSED static MPI_Datatype dealt_array(int unit, MPI_Datatype inner)
{
    const int orders[2] = {MPI_ORDER_C, MPI_ORDER_FORTRAN};
    const int kinds[3] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
    int sizes[2], kind[2], width[2], grid[2], order = orders[below(2)];
    MPI_Datatype type;
    (void)unit;
    for (int i = 0; i < 2; i++) {
        sizes[i] = between(1, 6);
        kind[i] = kinds[below(3)];
        grid[i] = kind[i] == MPI_DISTRIBUTE_NONE ? 1 : between(1, 4);
        width[i] = kind[i] == MPI_DISTRIBUTE_CYCLIC && below(2) ? between(1, 3)
                                                                : MPI_DISTRIBUTE_DFLT_DARG;
    }
    int processes = grid[0] * grid[1];
#if MPI_VERSION >= 4
    if (below(2)) {
        const MPI_Count wide[2] = {sizes[0], sizes[1]};
        OK(MPI_Type_create_darray_c(processes, below(processes), 2, wide, kind, width, grid, order,
                                    inner, &type));
        return type;
    }
#endif
    OK(MPI_Type_create_darray(processes, below(processes), 2, sizes, kind, width, grid, order, inner,
                              &type));
    return type;
}

static MPI_Datatype part_of_array(int unit, MPI_Datatype inner)
{
    const int orders[2] = {MPI_ORDER_C, MPI_ORDER_FORTRAN};
    int sizes[3], parts[3], starts[3], dimensions = between(1, 4);
    MPI_Datatype type;
    (void)unit;
    for (int i = 0; i < dimensions; i++) {
        sizes[i] = between(1, 6);
        parts[i] = between(1, sizes[i] + 1);
        starts[i] = below(sizes[i] - parts[i] + 1);
    }
#if MPI_VERSION >= 4
    if (below(2)) {
        MPI_Count wide[3][3];
        longer(dimensions, sizes, wide[0]);
        longer(dimensions, parts, wide[1]);
        longer(dimensions, starts, wide[2]);
        OK(MPI_Type_create_subarray_c(dimensions, wide[0], wide[1], wide[2], orders[below(2)], inner,
                                      &type));
        return type;
    }
#endif
    OK(MPI_Type_create_subarray(dimensions, sizes, parts, starts, orders[below(2)], inner, &type));
    return type;
}

// Several blocks: counts of the constructors below, all multiples of `unit` bytes.
struct blocks {
    int count, lengths[6], places[6];
    MPI_Aint bytes[6];
};

static struct blocks some_blocks(int unit)
{
    struct blocks made = {.count = below(6)};
    int place = between(-20, 20);
    for (int i = 0; i < made.count; i++) {
        made.lengths[i] = below(4);
        made.places[i] = place;
        made.bytes[i] = (MPI_Aint)place * 3 * unit;
        place += below(4) == 0 ? between(-30, 30) : between(4, 9);
    }
    return made;
}

static MPI_Datatype blocks_of(int which, int unit, MPI_Datatype inner)
{
    struct blocks made = some_blocks(unit);
    int length = below(3);
    MPI_Datatype type, types[6];
    for (int i = 0; i < 6; i++)
        types[i] = inner;
    switch (which) {
    case 0: EITHER_LISTS(indexed, made.count, made.lengths, made.places, inner, &type); break;
    case 1: EITHER_LISTS(create_hindexed, made.count, made.lengths, made.bytes, inner, &type); break;
    case 2:
        EITHER_PLACES(create_indexed_block, made.count, length, made.places, inner, &type);
        break;
    case 3:
        EITHER_PLACES(create_hindexed_block, made.count, length, made.bytes, inner, &type);
        break;
    default:
        EITHER_LISTS(create_struct, made.count, made.lengths, made.bytes, types, &type);
        break;
    }
    return type;
}

// A vector or, in bytes, an hvector. Blocks that overlap, or meet backwards, are left out: Open MPI
// 4.1.4 and Intel MPI 2021.18 take some of them for contiguous.
static MPI_Datatype strided(int in_bytes, int unit, int count, MPI_Datatype inner)
{
    int length = below(3), stride = in_bytes ? unit * between(-60, 90) : between(-6, 8);
    MPI_Aint lower, extent, one = 1;
    MPI_Datatype type;
    OK(MPI_Type_get_extent(inner, &lower, &extent));
    if (in_bytes)
        one = extent;
    const int block = length * (int)one;
    if (stride < block && -stride <= block)
        stride = block + (in_bytes ? unit : 1) * below(3);
    if (in_bytes)
        EITHER(create_hvector, count, length, stride, inner, &type);
    else
        EITHER(vector, count, length, stride, inner, &type);
    return type;
}

// The next level above `inner`, with displacements in multiples of `unit` bytes.
static MPI_Datatype level_above(int unit, MPI_Datatype inner)
{
    MPI_Datatype type;
    MPI_Aint lower, extent;
    int which = below(12), count = below(5) == 0 ? between(5, 40) : below(5);
    switch (which) {
    case 0: OK(MPI_Type_dup(inner, &type)); break;
    case 1: EITHER(contiguous, count, inner, &type); break;
    case 2: case 3: type = strided(which == 3, unit, count, inner); break;
    case 4: case 5: case 6: case 7: case 8: type = blocks_of(which - 4, unit, inner); break;
    case 9: type = part_of_array(unit, inner); break;
#ifndef I_MPI_VERSION // 2021.18 packs some distributed arrays wrongly
    case 10: type = dealt_array(unit, inner); break;
#endif
    default:
        OK(MPI_Type_get_extent(inner, &lower, &extent));
        lower += (MPI_Aint)unit * between(-5, 6);
        extent += (MPI_Aint)unit * between(-8, 20);
        EITHER(create_resized, inner, lower, extent, &type);
        break;
    }
    return type;
}

// How many items of a type may be used: none if they reach too far or are too many bytes.
static int items_that_fit(MPI_Datatype type, int wanted)
{
    MPI_Aint first, bytes, lower, extent;
    int size;
    OK(MPI_Type_get_true_extent(type, &first, &bytes));
    OK(MPI_Type_get_extent(type, &lower, &extent));
    OK(MPI_Type_size(type, &size));
    // Neither MPICH 4.0.2 nor Open MPI 4.1.4 packs what has a negative extent inside rightly.
    if (extent < 0 || bytes == 0)
        return 0;
    while (wanted > 0) {
        MPI_Aint last = first + (wanted - 1) * extent;
        MPI_Aint low = first < last ? first : last, high = (first > last ? first : last) + bytes;
        if (low > -MIDDLE && high < MIDDLE && (long)size * wanted < MIDDLE)
            break;
        wanted--;
    }
    return size == 0 ? 0 : wanted;
}

// A type over elements of type `basic` of `unit` bytes, committed. Such that one item fits.
static MPI_Datatype random_type(MPI_Datatype basic, int unit)
{
    MPI_Datatype type, next;
    int levels = between(1, LEVELS_MAX + 1);
    OK(MPI_Type_dup(basic, &type));
    for (int level = 0; level < levels; level++) {
        next = level_above(unit, type);
        if (items_that_fit(next, 1) == 0) {
            OK(MPI_Type_free(&next));
            continue;
        }
        OK(MPI_Type_free(&type));
        type = next;
    }
    OK(MPI_Type_commit(&type));
    return type;
}

// `count` items at the middle of `from` as they are packed; returns their bytes.
static int packed_of(char *from, int count, MPI_Datatype type, char *packed)
{
    int position = 0;
    OK(MPI_Pack(from + MIDDLE, count, type, packed, BYTES, &position, MPI_COMM_SELF));
    return position;
}

// The other way round. MPI-4.1 section 5.2: what was packed as one type may be unpacked as another.
static void unpacked_to(char *to, int count, MPI_Datatype type, char *packed, int bytes)
{
    int position = 0;
    OK(MPI_Unpack(packed, bytes, &position, to + MIDDLE, count, type, MPI_COMM_SELF));
}

// Whether no two elements lie on the same bytes: only such types may be written to.
static int writable(int count, MPI_Datatype type)
{
    static char ones[BYTES], image[BYTES];
    int size, set = 0;
    OK(MPI_Type_size(type, &size));
    memset(ones, 1, sizeof ones);
    memset(image, 0, sizeof image);
    unpacked_to(image, count, type, ones, size * count);
    for (int i = 0; i < BYTES; i++)
        set += image[i];
    return set == size * count;
}

// A window of BYTES bytes of that flavor, whose errors return.
UNUSED static MPI_Win window_of_flavor(int flavor, char **base)
{
    MPI_Win win;
    switch (flavor) {
    case MPI_WIN_FLAVOR_ALLOCATE:
        OK(MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, base, &win));
        break;
    case MPI_WIN_FLAVOR_CREATE:
        *base = malloc(BYTES);
        OK(MPI_Win_create(*base, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        break;
    default:
        *base = malloc(BYTES);
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_attach(win, *base, BYTES));
        break;
    }
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    return win;
}

// Two types; the target's may be the predefined one that they are made of.
struct pair {
    MPI_Datatype origin, target, predefined;
    int origin_count, target_count;
};

static int divisor(int one, int other) { return other == 0 ? one : divisor(other, one % other); }

// Counts with which both types hold as many elements.
UNUSED static void balance(struct pair *pair)
{
    int origin, target;
    OK(MPI_Type_size(pair->origin, &origin));
    OK(MPI_Type_size(pair->target, &target));
    int common = divisor(origin, target);
    pair->origin_count = target / common;
    pair->target_count = origin / common;
}

// Whether both sides fit into their buffers, and may be written to.
UNUSED static int usable(struct pair pair)
{
    return items_that_fit(pair.origin, pair.origin_count) == pair.origin_count &&
           items_that_fit(pair.target, pair.target_count) == pair.target_count &&
           writable(pair.target_count, pair.target) && writable(pair.origin_count, pair.origin);
}

UNUSED static void free_types(struct pair pair)
{
    OK(MPI_Type_free(&pair.origin));
    if (pair.target != pair.predefined)
        OK(MPI_Type_free(&pair.target));
}

UNUSED static void fill(char *buffer)
{
    for (int i = 0; i < BYTES; i++)
        buffer[i] = (char)below(256);
}


// What a buffer has to hold after a transfer.
UNUSED static char expected[BYTES];

UNUSED static void compare(const char *what, int seed, const char *got)
{
    for (int i = 0; i < BYTES; i++)
        if (got[i] != expected[i])
            check_failed(__FILE__, __LINE__, "%s, seed %d: byte %d is %d, not %d", what, seed,
                         i - MIDDLE, got[i], expected[i]);
}

// Rank 0 does `work` with windows of three flavors, in which the target's bytes begin at a
// displacement, and with seeds from a first one on.
UNUSED static void on_each_flavor(void (*work)(MPI_Win, MPI_Aint, int), int seeds)
{
    const int flavors[3] = {MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_DYNAMIC};
    for (int i = 0; i < 3; i++) {
        char *base;
        MPI_Aint start = 0;
        MPI_Win win = window_of_flavor(flavors[i], &base);
        if (flavors[i] == MPI_WIN_FLAVOR_DYNAMIC) {
            OK(MPI_Get_address(base, &start));
            OK(MPI_Bcast(&start, 1, MPI_AINT, 1, MPI_COMM_WORLD));
        }
        if (rank == 0) {
            OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
            work(win, start, i * seeds);
            OK(MPI_Win_unlock(1, win));
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (flavors[i] == MPI_WIN_FLAVOR_DYNAMIC)
            OK(MPI_Win_detach(win, base));
        OK(MPI_Win_free(&win));
        if (flavors[i] != MPI_WIN_FLAVOR_ALLOCATE)
            free(base);
    }
}

#endif
