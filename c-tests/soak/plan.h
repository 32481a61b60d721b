// What a random program does, as numbers of a seed: each rank can tell what every other one does, and
// so what its own memory must hold. Nothing here calls MPI but to make datatypes.

#ifndef SOAK_PLAN_H
#define SOAK_PLAN_H

#include "check.h"

// A stream of random numbers. Streams of other names are independent.
typedef struct { uint64_t state; } Stream;

static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static Stream stream_of(uint64_t seed, int a, int b, int c)
{
    const uint64_t name = (uint64_t)a << 40 ^ (uint64_t)b << 20 ^ (uint64_t)c;
    return (Stream){mixed(seed * 0x9e3779b97f4a7c15u + mixed(name + 1))};
}

static int below(Stream *stream, int end)
{
    stream->state += 0x9e3779b97f4a7c15u;
    return (int)(mixed(stream->state) % (uint64_t)end);
}

static int between(Stream *stream, int low, int high) { return low + below(stream, high - low); }

// The memory of a rank: a slot for each origin, into which that origin alone puts; words for
// accumulates of integers, and of doubles; constants that only their owner stores.
typedef struct { int slot, words, doubles, constants; } Layout; // in ints, int64, doubles, ints

enum { ZONES = 4, OPS_MAX = 12, BLOCKS_MAX = 6 };
enum zone { SLOTS, WORDS, DOUBLES, CONSTANTS };

UNUSED static Layout layout_of(Stream *common)
{
    const int large = below(common, 8) == 0;
    return (Layout){between(common, 30, large ? 60000 : 3000), between(common, 2, 700),
                    between(common, 2, 700), between(common, 4, 2000)};
}

// Where a zone begins, in bytes; `zone` ZONES is the end.
static long zone_at(const Layout *layout, int ranks, int zone)
{
    const long slots = ((long)ranks * layout->slot * 4 + 7) / 8 * 8, words = slots + layout->words * 8L;
    const long ends[] = {0, slots, words, words + layout->doubles * 8L,
                         words + layout->doubles * 8L + (layout->constants + 1L) / 2 * 8};
    return ends[zone];
}

// Types of the elements that all accumulates of a phase change.
enum { TYPES = 6, OPS = 6 };
static const int type_bytes[TYPES] = {1, 2, 4, 8, 8, 8};
enum { OF_DOUBLE = 5 };

UNUSED static MPI_Datatype type_of(int type)
{
    const MPI_Datatype types[TYPES] = {MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T,
                                       MPI_UINT64_T, MPI_DOUBLE};
    return types[type];
}

UNUSED static MPI_Op op_of(int op)
{
    const MPI_Op ops[OPS] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_BXOR, MPI_BAND, MPI_BOR};
    return ops[op];
}

// How a phase synchronises.
enum mode { FENCE, LOCKS, LOCK_ALL, REQUESTS, PSCW, THREADS, MODES };

typedef struct { enum mode mode; int type, op, exclusive; } Phase;

static Phase phase_of(Stream *common, int threads)
{
    Phase phase;
    phase.mode = (enum mode)below(common, threads ? MODES : MODES - 1);
    phase.type = below(common, TYPES);
    phase.op = below(common, phase.type == OF_DOUBLE ? 3 : OPS);
    phase.exclusive = below(common, 2);
    return phase;
}

enum kind { PUT, ACCUMULATE, GET_ACCUMULATE, FETCH_AND_OP, GET, KINDS };

// An operation of one rank. Of a put: blocks in its part of the slot, in ints; of an accumulate:
// elements from `first` on; of a get: constants from `first` on.
typedef struct {
    enum kind kind;
    int target, first, count, value, strided;
    int blocks, lengths[BLOCKS_MAX], places[BLOCKS_MAX];
} Operation;

// Blocks that lie after each other, with gaps, in `room` ints.
static void blocks_of(Stream *stream, Operation *operation, int first, int room)
{
    int at = first, blocks = below(stream, 3) ? 1 : between(stream, 1, BLOCKS_MAX + 1);
    operation->blocks = operation->count = 0;
    for (int n = 0; n < blocks; n++) {
        const int left = first + room - at, share = left / (blocks - n);
        if (share < 2)
            break;
        const int length = between(stream, 1, share);
        operation->places[n] = at + below(stream, share - length + 1);
        operation->lengths[n] = length;
        operation->count += length;
        operation->blocks++;
        at = operation->places[n] + length;
    }
}

// All operations of one rank in a phase; returns their number.
static int operations_of(uint64_t seed, int number, int who, int ranks, const Layout *layout,
                         const Phase *phase, Operation *all)
{
    Stream stream = stream_of(seed, 1 + number, who, 7);
    const int count = below(&stream, OPS_MAX + 1);
    const int zone = phase->type == OF_DOUBLE ? layout->doubles : layout->words;
    const int elements = zone * 8 / type_bytes[phase->type];
    for (int n = 0; n < count; n++) {
        Operation *operation = &all[n];
        memset(operation, 0, sizeof *operation);
        operation->kind = (enum kind)below(&stream, KINDS);
        operation->target = below(&stream, ranks);
        operation->value = between(&stream, 1, 100);
        operation->strided = below(&stream, 3) == 0;
        if (operation->kind == PUT) {
            const int room = layout->slot / OPS_MAX;
            blocks_of(&stream, operation, n * room, room);
        } else {
            const int end = operation->kind == GET ? layout->constants : elements;
            const int few = below(&stream, 2) ? 1 : end, some = between(&stream, 1, few + 1);
            operation->count = operation->kind == FETCH_AND_OP ? 1 : some;
            operation->first = below(&stream, end - operation->count + 1);
            if (operation->kind != GET && type_bytes[phase->type] < 4) // displacements are in units of 4
                operation->first -= operation->first % (4 / type_bytes[phase->type]);
        }
    }
    return count;
}

// Element k of what an operation brings along.
static int operand(const Operation *operation, int k) { return (operation->value + k) % 100; }

UNUSED static int constant_of(uint64_t seed, int number, int who, int k)
{
    return (int)(mixed(seed + (uint64_t)number * 1000003u + (uint64_t)who * 1009u + (uint64_t)k) & 0x7fffffff);
}

static uint64_t combined(int op, uint64_t old, uint64_t new, int64_t old_signed, int64_t new_signed,
                         int is_signed)
{
    switch (op) {
    case 0: return old + new;
    case 1: return is_signed ? (old_signed > new_signed ? old : new) : old > new ? old : new;
    case 2: return is_signed ? (old_signed < new_signed ? old : new) : old < new ? old : new;
    case 3: return old ^ new;
    case 4: return old & new;
    default: return old | new;
    }
}

// Combines one element in the model's memory with a small number.
static void combine(char *at, const Phase *phase, int number)
{
    if (phase->type == OF_DOUBLE) {
        double old;
        memcpy(&old, at, 8);
        const double new = number;
        old = phase->op == 0 ? old + new : (phase->op == 1) == (old > new) ? old : new;
        memcpy(at, &old, 8);
        return;
    }
    const int bytes = type_bytes[phase->type], unused = 64 - 8 * bytes;
    uint64_t old = 0;
    memcpy(&old, at, (size_t)bytes);
    const int64_t old_signed = (int64_t)(old << unused) >> unused;
    old = combined(phase->op, old, (uint64_t)number, old_signed, number, phase->type != 4);
    memcpy(at, &old, (size_t)bytes);
}

// Carries out, in the model of the memory of rank `me`, what all ranks do to it in a phase.
UNUSED static void model_phase(uint64_t seed, int number, int me, int ranks, const Layout *layout,
                               const Phase *phase, char *model)
{
    const int zone = phase->type == OF_DOUBLE ? DOUBLES : WORDS;
    Operation all[OPS_MAX];
    for (int who = 0; who < ranks; who++) {
        const int count = operations_of(seed, number, who, ranks, layout, phase, all);
        for (int n = 0; n < count; n++) {
            const Operation *operation = &all[n];
            if (operation->target != me || operation->kind == GET)
                continue;
            char *at = model + zone_at(layout, ranks, operation->kind == PUT ? SLOTS : zone);
            for (int block = 0, k = 0; block < operation->blocks; block++)
                for (int i = 0; i < operation->lengths[block]; i++, k++) {
                    const int value = operand(operation, k);
                    memcpy(at + 4L * (who * layout->slot + operation->places[block] + i), &value, 4);
                }
            for (int k = 0; operation->kind != PUT && k < operation->count; k++)
                combine(at + (long)type_bytes[phase->type] * (operation->first + k), phase,
                        operand(operation, k));
        }
    }
}

#endif
