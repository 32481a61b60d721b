/* A box of an array with up to four dimensions, the last one contiguous: how halo exchanges pack by
 * hand. */
#ifndef BOX_H
#define BOX_H

#include <stddef.h>
#include <string.h>

/* `array` has the lengths of the array, the box begins at the indices `from` and has the lengths
 * `count`. An array with fewer dimensions begins with lengths of one. */
typedef struct {
    size_t at, element; /* the array's offset from the start of the arrays; bytes of an element */
    int array[4], from[4], count[4];
} Box;

/* The offset of the box's first element from the start of the arrays. */
static inline size_t box_at(const Box *b) {
    size_t index = 0;
    for (int d = 0; d < 4; d++) index = index * b->array[d] + b->from[d];
    return b->at + index * b->element;
}

/* memcpy for runs that are often a few bytes: with a constant length it is a few instructions. */
static inline void copy_run(void *to, const void *from, size_t bytes) {
    switch (bytes) {
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    case 12: memcpy(to, from, 12); break;
    case 40: memcpy(to, from, 40); break;
    default: memcpy(to, from, bytes);
    }
}

/* Both return the end of what is packed. */
char *box_pack(const Box *b, const char *arrays, char *buffer);
const char *box_unpack(const Box *b, char *arrays, const char *buffer);

#endif
