// Put and get move every predefined datatype, one element and many, to any target.
// MPI-4.1 sections 12.3.1 and 12.3.2.
// ranks: 1 2 4

#include "types.h"

enum { COUNT = 37 };

static void moves(const struct type *type, MPI_Win win, char *base)
{
    _Alignas(16) char sent[COUNT * ELEMENT_BYTES_MAX], got[COUNT * ELEMENT_BYTES_MAX];
    size_t bytes = (size_t)(COUNT * type->bytes);
    memset(sent, 0, sizeof sent);
    memset(got, 0xee, sizeof got);
    for (int i = 0; i < COUNT; i++)
        set_element(type, sent, i, (i + rank) % 2);
    memset(base, 0xdd, (size_t)((COUNT + 1) * ELEMENT_BYTES_MAX));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(sent, COUNT - 1, type->datatype, next_rank(), 0, COUNT - 1, type->datatype, win));
    OK(MPI_Put(sent + (COUNT - 1) * type->bytes, 1, type->datatype, next_rank(),
               (COUNT - 1) * type->bytes, 1, type->datatype, win));
    OK(MPI_Win_fence(0, win));
    // Nothing after the last element was touched.
    CHECK_EQ((unsigned char)base[bytes], 0xdd);
    OK(MPI_Get(got, COUNT, type->datatype, next_rank(), 0, COUNT, type->datatype, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < COUNT; i++)
        if (!same_element(type, sent, got, i))
            check_failed(__FILE__, __LINE__, "%s: element %d differs", type->name, i);
    CHECK(bytes == sizeof got || (unsigned char)got[bytes] == 0xee);
}

int main(int argc, char **argv)
{
    struct type types[TYPES_MAX];
    MPI_Win win;
    check_start(&argc, &argv);
    char *base = window_of((COUNT + 1) * ELEMENT_BYTES_MAX, 1, &win);
    int count = all_types(types);
    for (int t = 0; t < count; t++) {
        MPI_Aint lower, extent;
        OK(MPI_Type_get_extent(types[t].datatype, &lower, &extent));
        // Pair types with holes in them are moved by put_get_derived.
        if (extent == types[t].bytes)
            moves(&types[t], win, base);
    }
    OK(MPI_Win_free(&win));
    return check_end();
}
