// The datatypes and operations of the calls: what the model knows of them, from MPI-4.1 sections
// 5.1 and 6.9.2, and what an operation makes of an element (section 12.3.4).

#ifndef WRONG_CALLS_TYPES_H
#define WRONG_CALLS_TYPES_H

#include "call.h"
#include <wchar.h>

__extension__ typedef __int128 wide;

// The kinds of elements; wide characters have no arithmetic.
enum basic { INT64, INT32, DOUBLE, UINT8, WCHAR, BASICS };
static const int basic_bytes[] = {8, 4, 8, 1, sizeof(wchar_t)};

enum { ITEM_MAX = 4, ELEMENTS_MAX = 64 };

// Why no call may use a type.
enum flaw { GOOD, NO_TYPE };

struct type {
    const char *name;
    MPI_Datatype handle;
    enum flaw flaw;
    int is_basic;
    // elements of an item: their number, kinds and places
    int elements;
    enum basic basic[ITEM_MAX];
    int64_t offset[ITEM_MAX];
    int64_t extent;
};

enum { TYPES_MAX = 24 };
static struct type types[TYPES_MAX];
static int type_count;

static struct type *add_type(const char *name, MPI_Datatype handle, enum flaw flaw)
{
    struct type *type = &types[type_count++];
    *type = (struct type){.name = name, .handle = handle, .flaw = flaw};
    return type;
}

static void add_basic(const char *name, MPI_Datatype handle, enum basic basic)
{
    struct type *type = add_type(name, handle, GOOD);
    type->is_basic = 1;
    type->elements = 1;
    type->basic[0] = basic;
    type->extent = basic_bytes[basic];
}

// A type that was just made of elements of one kind at these places; the MPI says its extent.
static struct type *add_derived(const char *name, MPI_Datatype handle, enum basic basic,
                                int elements, const int64_t *offsets)
{
    MPI_Aint lower, extent;
    struct type *type = add_type(name, handle, GOOD);
    OK(MPI_Type_commit(&type->handle));
    OK(MPI_Type_get_extent(handle, &lower, &extent));
    type->elements = elements;
    type->extent = extent;
    for (int i = 0; i < elements; i++) {
        type->basic[i] = basic;
        type->offset[i] = offsets[i];
    }
    return type;
}

static void make_derived(void)
{
    MPI_Datatype made;
    MPI_Aint far_places[] = {0, (MPI_Aint)1 << 40}, mixed_places[] = {0, 8};
    MPI_Datatype mixed_types[] = {MPI_INT32_T, MPI_DOUBLE};
    const int ones[] = {1, 1};
    OK(MPI_Type_vector(3, 1, 2, MPI_INT64_T, &made));
    add_derived("vector", made, INT64, 3, (int64_t[]){0, 16, 32});
    OK(MPI_Type_vector(2, 1, -2, MPI_INT64_T, &made));
    add_derived("backwards", made, INT64, 2, (int64_t[]){0, -16});
    OK(MPI_Type_create_resized(MPI_INT64_T, -8, 24, &made));
    add_derived("resized", made, INT64, 1, (int64_t[]){0});
    OK(MPI_Type_contiguous(4, MPI_INT32_T, &made));
    add_derived("contiguous", made, INT32, 4, (int64_t[]){0, 4, 8, 12});
    OK(MPI_Type_vector(3, 1, 3, MPI_UINT8_T, &made));
    add_derived("bytes", made, UINT8, 3, (int64_t[]){0, 3, 6});
    OK(MPI_Type_create_hindexed(2, ones, far_places, MPI_INT32_T, &made));
    add_derived("far", made, INT32, 2, (int64_t[]){0, (int64_t)1 << 40});
    OK(MPI_Type_create_resized(MPI_INT32_T, 0, (MPI_Aint)1 << 61, &made));
    add_derived("wide", made, INT32, 1, (int64_t[]){0});
    OK(MPI_Type_contiguous(0, MPI_INT64_T, &made));
    add_derived("empty", made, INT64, 0, NULL);
    OK(MPI_Type_create_struct(2, ones, mixed_places, mixed_types, &made));
    struct type *mixed = add_derived("mixed", made, INT32, 2, (int64_t[]){0, 8});
    mixed->basic[1] = DOUBLE;
}

// Types that were freed are not among them: the MPIs do not know them as such, and crash.
static void make_types(void)
{
    MPI_Datatype made;
    add_basic("int64", MPI_INT64_T, INT64);
    add_basic("int32", MPI_INT32_T, INT32);
    add_basic("double", MPI_DOUBLE, DOUBLE);
    add_basic("uint8", MPI_UINT8_T, UINT8);
    add_basic("wchar", MPI_WCHAR, WCHAR);
    make_derived();
    add_type("MPI_DATATYPE_NULL", MPI_DATATYPE_NULL, NO_TYPE);
    OK(MPI_Type_contiguous(2, MPI_INT64_T, &made));
    add_type("uncommitted", made, NO_TYPE);
}

static void free_types(void)
{
    for (int i = 0; i < type_count; i++)
        if (!types[i].is_basic && types[i].handle != MPI_DATATYPE_NULL)
            OK(MPI_Type_free(&types[i].handle));
}

// Whether all elements are of one kind.
static int is_uniform(const struct type *type)
{
    for (int i = 1; i < type->elements; i++)
        if (type->basic[i] != type->basic[0])
            return 0;
    return 1;
}

static int item_bytes(const struct type *type)
{
    int bytes = 0;
    for (int i = 0; i < type->elements; i++)
        bytes += basic_bytes[type->basic[i]];
    return bytes;
}

// The first byte of some items, counted from their address, and one past the last.
static void reach_of(const struct type *type, int64_t count, wide *first, wide *end)
{
    *first = *end = 0;
    if (count <= 0 || type->elements == 0)
        return;
    const wide last = (wide)(count - 1) * type->extent;
    for (int i = 0; i < type->elements; i++) {
        const wide begins = type->offset[i], ends = begins + basic_bytes[type->basic[i]];
        *first = i == 0 || begins < *first ? begins : *first;
        *end = i == 0 || ends > *end ? ends : *end;
    }
    *first += last < 0 ? last : 0;
    *end += last > 0 ? last : 0;
}

// An element of some items.
struct element { int64_t offset; enum basic basic; };

// The elements of some items, at most ELEMENTS_MAX. Returns how many.
static int elements_of(const struct type *type, int64_t count, struct element *found)
{
    int n = 0;
    for (int64_t item = 0; item < count && n < ELEMENTS_MAX && type->elements > 0; item++)
        for (int i = 0; i < type->elements && n < ELEMENTS_MAX; i++)
            found[n++] = (struct element){item * type->extent + type->offset[i], type->basic[i]};
    return n;
}

// The operations. Those up to MAX suit a DOUBLE; from OF_PAIRS on they suit no element here.
enum op_kind { SUM, PROD, MIN, MAX, BAND, BOR, BXOR, LAND, LOR, LXOR, REPLACE, NO_OP, OF_PAIRS,
    NO_OPERATION };
struct op { const char *name; MPI_Op handle; enum op_kind kind; };
// The last four are those that a wrong call takes (draw.h).
static struct op ops[] = {
    {"MPI_SUM", MPI_SUM, SUM}, {"MPI_PROD", MPI_PROD, PROD}, {"MPI_MIN", MPI_MIN, MIN},
    {"MPI_MAX", MPI_MAX, MAX}, {"MPI_BAND", MPI_BAND, BAND}, {"MPI_BOR", MPI_BOR, BOR},
    {"MPI_BXOR", MPI_BXOR, BXOR}, {"MPI_LAND", MPI_LAND, LAND}, {"MPI_LOR", MPI_LOR, LOR},
    {"MPI_LXOR", MPI_LXOR, LXOR}, {"MPI_REPLACE", MPI_REPLACE, REPLACE},
    {"MPI_NO_OP", MPI_NO_OP, NO_OP},
    {"MPI_MAXLOC", MPI_MAXLOC, OF_PAIRS}, {"MPI_MINLOC", MPI_MINLOC, OF_PAIRS},
    {"MPI_OP_NULL", MPI_OP_NULL, NO_OPERATION},
    {"a user's op", MPI_OP_NULL, NO_OPERATION},
};
enum { OPS = sizeof ops / sizeof *ops };

static void user_function(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)count, (void)type;
}

static void make_ops(void)
{
    OK(MPI_Op_create(user_function, 1, &ops[OPS - 1].handle));
}

// Whether the standard has the operation for such elements.
static int suits(const struct op *op, enum basic basic)
{
    if (op->kind == REPLACE || op->kind == NO_OP)
        return 1;
    if (op->kind >= OF_PAIRS || basic == WCHAR)
        return 0;
    return basic != DOUBLE || op->kind <= MAX;
}

// Numbers with which sums and products are exact, and a minimum has one answer.
static int is_small(double x)
{
    return x != 0 && x >= -1e6 && x <= 1e6 && x == (double)(int64_t)x;
}

#define COMBINE(type, unsigned_type) do { \
    type a, b; \
    memcpy(&a, at, sizeof a); \
    memcpy(&b, with, sizeof b); \
    switch (kind) { \
    case SUM: a = (type)((unsigned_type)a + (unsigned_type)b); break; \
    case PROD: a = (type)((unsigned_type)a * (unsigned_type)b); break; \
    case MIN: a = b < a ? b : a; break; \
    case MAX: a = b > a ? b : a; break; \
    case BAND: a = (type)(a & b); break; \
    case BOR: a = (type)(a | b); break; \
    case BXOR: a = (type)(a ^ b); break; \
    case LAND: a = a && b; break; \
    case LOR: a = a || b; break; \
    case LXOR: a = !a != !b; break; \
    default: break; \
    } \
    memcpy(at, &a, sizeof a); \
} while (0)

// What an accumulate makes of the element `at`.
static void combine(enum op_kind kind, enum basic basic, void *at, const void *with)
{
    if (kind == NO_OP)
        return;
    if (kind == REPLACE) {
        memcpy(at, with, (size_t)basic_bytes[basic]);
        return;
    }
    if (basic == INT64)
        COMBINE(int64_t, uint64_t);
    if (basic == INT32)
        COMBINE(int32_t, uint32_t);
    if (basic == UINT8)
        COMBINE(uint8_t, unsigned);
    if (basic == DOUBLE) {
        double a, b;
        memcpy(&a, at, sizeof a);
        memcpy(&b, with, sizeof b);
        a = kind == SUM ? a + b : kind == PROD ? a * b : (kind == MIN) == (a < b) ? a : b;
        memcpy(at, &a, sizeof a);
    }
}

#endif
