/* Packs boxes by hand: a loop over the rows of the box, which are contiguous in the array. */
#include "box.h"

/* The offset of a row from the start of the box. */
static size_t row_at(const Box *b, int i, int j, int k) {
    return (((size_t)i * b->array[1] + j) * b->array[2] + k) * b->array[3] * b->element;
}

char *box_pack(const Box *b, const char *arrays, char *buffer) {
    const char *box = arrays + box_at(b);
    size_t row = b->count[3] * b->element;
    for (int i = 0; i < b->count[0]; i++)
        for (int j = 0; j < b->count[1]; j++)
            for (int k = 0; k < b->count[2]; k++, buffer += row)
                copy_run(buffer, box + row_at(b, i, j, k), row);
    return buffer;
}

const char *box_unpack(const Box *b, char *arrays, const char *buffer) {
    char *box = arrays + box_at(b);
    size_t row = b->count[3] * b->element;
    for (int i = 0; i < b->count[0]; i++)
        for (int j = 0; j < b->count[1]; j++)
            for (int k = 0; k < b->count[2]; k++, buffer += row)
                copy_run(box + row_at(b, i, j, k), buffer, row);
    return buffer;
}
