// The predefined datatypes as a table: how large they are, which operations the standard pairs them
// with, and how to write and compare small values of each.

#ifndef TYPES_H
#define TYPES_H

#include "check.h"

#include <complex.h>
#include <stdbool.h>
#include <wchar.h>

// How an element is laid out.
enum shape { INTEGER, FLOAT, DOUBLE, LONG_DOUBLE, COMPLEX_FLOAT, COMPLEX_DOUBLE,
             COMPLEX_LONG_DOUBLE, OPAQUE };

// The groups of MPI-4.1 section 6.9.2; NO_REDUCTION takes only REPLACE and NO_OP.
enum group { C_INTEGER, FORTRAN_INTEGER, FLOATING, LOGICAL, COMPLEX_NUMBER, BYTE, MULTI_LANGUAGE,
             NO_REDUCTION };

struct type {
    MPI_Datatype datatype;
    const char *name;
    enum shape shape;
    enum group group;
    int bytes;
};

#define ROW(name, shape, group) {name, #name, shape, group, 0}

// Fills `table` with the types that this MPI has; returns how many.
UNUSED static int all_types(struct type *table)
{
    const struct type rows[] = {
        ROW(MPI_INT, INTEGER, C_INTEGER), ROW(MPI_LONG, INTEGER, C_INTEGER),
        ROW(MPI_SHORT, INTEGER, C_INTEGER), ROW(MPI_UNSIGNED_SHORT, INTEGER, C_INTEGER),
        ROW(MPI_UNSIGNED, INTEGER, C_INTEGER), ROW(MPI_UNSIGNED_LONG, INTEGER, C_INTEGER),
        ROW(MPI_LONG_LONG, INTEGER, C_INTEGER), ROW(MPI_UNSIGNED_LONG_LONG, INTEGER, C_INTEGER),
        ROW(MPI_SIGNED_CHAR, INTEGER, C_INTEGER), ROW(MPI_UNSIGNED_CHAR, INTEGER, C_INTEGER),
        ROW(MPI_INT8_T, INTEGER, C_INTEGER), ROW(MPI_INT16_T, INTEGER, C_INTEGER),
        ROW(MPI_INT32_T, INTEGER, C_INTEGER), ROW(MPI_INT64_T, INTEGER, C_INTEGER),
        ROW(MPI_UINT8_T, INTEGER, C_INTEGER), ROW(MPI_UINT16_T, INTEGER, C_INTEGER),
        ROW(MPI_UINT32_T, INTEGER, C_INTEGER), ROW(MPI_UINT64_T, INTEGER, C_INTEGER),
        ROW(MPI_INTEGER, INTEGER, FORTRAN_INTEGER), ROW(MPI_INTEGER1, INTEGER, FORTRAN_INTEGER),
        ROW(MPI_INTEGER2, INTEGER, FORTRAN_INTEGER), ROW(MPI_INTEGER4, INTEGER, FORTRAN_INTEGER),
        ROW(MPI_INTEGER8, INTEGER, FORTRAN_INTEGER),
        ROW(MPI_FLOAT, FLOAT, FLOATING), ROW(MPI_DOUBLE, DOUBLE, FLOATING),
        ROW(MPI_LONG_DOUBLE, LONG_DOUBLE, FLOATING), ROW(MPI_REAL, FLOAT, FLOATING),
        ROW(MPI_DOUBLE_PRECISION, DOUBLE, FLOATING), ROW(MPI_REAL4, FLOAT, FLOATING),
        ROW(MPI_REAL8, DOUBLE, FLOATING),
        ROW(MPI_LOGICAL, INTEGER, LOGICAL), ROW(MPI_C_BOOL, INTEGER, LOGICAL),
        ROW(MPI_CXX_BOOL, INTEGER, LOGICAL),
        ROW(MPI_C_FLOAT_COMPLEX, COMPLEX_FLOAT, COMPLEX_NUMBER),
        ROW(MPI_C_DOUBLE_COMPLEX, COMPLEX_DOUBLE, COMPLEX_NUMBER),
        ROW(MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX_LONG_DOUBLE, COMPLEX_NUMBER),
        ROW(MPI_COMPLEX, COMPLEX_FLOAT, COMPLEX_NUMBER),
        ROW(MPI_DOUBLE_COMPLEX, COMPLEX_DOUBLE, COMPLEX_NUMBER),
        ROW(MPI_COMPLEX8, COMPLEX_FLOAT, COMPLEX_NUMBER),
        ROW(MPI_COMPLEX16, COMPLEX_DOUBLE, COMPLEX_NUMBER),
        ROW(MPI_CXX_FLOAT_COMPLEX, COMPLEX_FLOAT, COMPLEX_NUMBER),
        ROW(MPI_CXX_DOUBLE_COMPLEX, COMPLEX_DOUBLE, COMPLEX_NUMBER),
        ROW(MPI_CXX_LONG_DOUBLE_COMPLEX, COMPLEX_LONG_DOUBLE, COMPLEX_NUMBER),
        ROW(MPI_BYTE, INTEGER, BYTE),
        ROW(MPI_AINT, INTEGER, MULTI_LANGUAGE), ROW(MPI_OFFSET, INTEGER, MULTI_LANGUAGE),
        ROW(MPI_COUNT, INTEGER, MULTI_LANGUAGE),
        ROW(MPI_CHAR, INTEGER, NO_REDUCTION), ROW(MPI_WCHAR, INTEGER, NO_REDUCTION),
        ROW(MPI_CHARACTER, INTEGER, NO_REDUCTION),
        ROW(MPI_FLOAT_INT, OPAQUE, NO_REDUCTION), ROW(MPI_DOUBLE_INT, OPAQUE, NO_REDUCTION),
        ROW(MPI_LONG_INT, OPAQUE, NO_REDUCTION), ROW(MPI_2INT, OPAQUE, NO_REDUCTION),
        ROW(MPI_SHORT_INT, OPAQUE, NO_REDUCTION),
        ROW(MPI_LONG_DOUBLE_INT, OPAQUE, NO_REDUCTION),
    };
    int count = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].datatype == MPI_DATATYPE_NULL)
            continue;
        table[count] = rows[i];
        OK(MPI_Type_size(rows[i].datatype, &table[count].bytes));
        count += table[count].bytes > 0;
    }
    return count;
}

enum { TYPES_MAX = 64, ELEMENT_BYTES_MAX = 32 };

// Writes `value` (small, not negative) as element `index` of an array of that type.
UNUSED static void set_element(const struct type *type, void *array, int index, int value)
{
    char *at = (char *)array + (size_t)index * (size_t)type->bytes;
    memset(at, 0, (size_t)type->bytes);
    switch (type->shape) {
    case INTEGER: memcpy(at, &value, type->bytes < 4 ? (size_t)type->bytes : 4); break;
    case FLOAT: *(float *)at = (float)value; break;
    case DOUBLE: *(double *)at = value; break;
    case LONG_DOUBLE: *(long double *)at = value; break;
    case COMPLEX_FLOAT: *(float complex *)at = (float)value + 1.0f * I; break;
    case COMPLEX_DOUBLE: *(double complex *)at = value + 1.0 * I; break;
    case COMPLEX_LONG_DOUBLE: *(long double complex *)at = value + 1.0L * I; break;
    case OPAQUE: memset(at, value, (size_t)type->bytes); break;
    }
}

// Whether two elements are the same value; the padding of long double does not count.
UNUSED static bool same_element(const struct type *type, const void *a, const void *b, int index)
{
    const char *x = (const char *)a + (size_t)index * (size_t)type->bytes;
    const char *y = (const char *)b + (size_t)index * (size_t)type->bytes;
    if (type->shape == LONG_DOUBLE)
        return *(const long double *)x == *(const long double *)y;
    if (type->shape == COMPLEX_LONG_DOUBLE)
        return *(const long double complex *)x == *(const long double complex *)y;
    return memcmp(x, y, (size_t)type->bytes) == 0;
}

struct op {
    MPI_Op op;
    const char *name;
    unsigned groups;
};

enum { INTEGERS = 1 << C_INTEGER | 1 << FORTRAN_INTEGER | 1 << MULTI_LANGUAGE,
       ORDERED = INTEGERS | 1 << FLOATING, NUMBERS = ORDERED | 1 << COMPLEX_NUMBER,
       TRUTHS = 1 << C_INTEGER | 1 << LOGICAL, BITS = INTEGERS | 1 << BYTE };

// The predefined reductions that any number type takes; `groups` has one bit per group.
UNUSED static const struct op all_ops[] = {
    {MPI_MAX, "MPI_MAX", ORDERED}, {MPI_MIN, "MPI_MIN", ORDERED},
    {MPI_SUM, "MPI_SUM", NUMBERS}, {MPI_PROD, "MPI_PROD", NUMBERS},
    {MPI_LAND, "MPI_LAND", TRUTHS}, {MPI_LOR, "MPI_LOR", TRUTHS},
    {MPI_LXOR, "MPI_LXOR", TRUTHS}, {MPI_BAND, "MPI_BAND", BITS},
    {MPI_BOR, "MPI_BOR", BITS}, {MPI_BXOR, "MPI_BXOR", BITS},
};
enum { OPS = sizeof all_ops / sizeof *all_ops };

// Whether the standard pairs the operation with the type.
UNUSED static bool pairs(const struct op *op, const struct type *type)
{
    return (op->groups >> type->group & 1u) != 0;
}

#endif
