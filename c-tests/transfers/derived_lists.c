// Types by lists of irregular places move the elements that the lists name, in their order:
// elements of many lengths, blocks that touch, several items, lists on one side or on both.
// MPI-4.1 sections 12.3.1, 12.3.2 and 5.1.2.
// ranks: 1 2

#include "check.h"

enum { BLOCKS = 60, SPREAD = 3, BYTES_MAX = 72, ITEMS = 2, ITEM = BLOCKS * SPREAD * BYTES_MAX };

static unsigned char sent[ITEMS * ITEM], want[ITEMS * ITEM], *base;
static unsigned state = 1;
static MPI_Win win;

static int random_below(int limit)
{
    state = state * 1664525u + 1013904223u;
    return (int)(state >> 8) % limit;
}

// Places of blocks of `bytes` bytes in any order, or ascending; some touch.
static MPI_Datatype listed(int bytes, int is_ascending, int places[BLOCKS])
{
    MPI_Datatype element, item, type;
    for (int i = 0; i < BLOCKS; i++)
        places[i] = SPREAD * i + random_below(SPREAD);
    for (int i = BLOCKS - 1; i > 0 && !is_ascending; i--) {
        int other = random_below(i + 1), place = places[i];
        places[i] = places[other];
        places[other] = place;
    }
    OK(MPI_Type_contiguous(bytes, MPI_BYTE, &element));
    OK(MPI_Type_create_indexed_block(BLOCKS, 1, places, element, &item));
    OK(MPI_Type_create_resized(item, 0, ITEM, &type));
    OK(MPI_Type_free(&element));
    OK(MPI_Type_free(&item));
    OK(MPI_Type_commit(&type));
    return type;
}

// The byte of a side that comes as number `n`; without places they follow each other.
static int byte_at(const int *places, int bytes, int n)
{
    int block = n / bytes, in_item = block % BLOCKS;
    return places ? block / BLOCKS * ITEM + places[in_item] * bytes + n % bytes : n;
}

static void expect(const unsigned char *got, const unsigned char *all)
{
    for (int i = 0; i < ITEMS * ITEM; i++)
        CHECK_EQ(got[i], all[i]);
}

static void moves(int bytes, int is_ascending, int sides)
{
    static unsigned char got[ITEMS * ITEM];
    int from[BLOCKS], to[BLOCKS], all = ITEMS * BLOCKS * bytes;
    MPI_Datatype here = listed(bytes, is_ascending, from), there = listed(bytes, is_ascending, to);
    MPI_Datatype mine = sides & 1 ? here : MPI_BYTE, theirs = sides & 2 ? there : MPI_BYTE;
    int count = sides & 1 ? ITEMS : all, their_count = sides & 2 ? ITEMS : all;
    for (int i = 0; i < ITEMS * ITEM; i++)
        sent[i] = (unsigned char)(i * 7 + i / 251), want[i] = base[i] = 0xdd, got[i] = 0xcc;
    for (int n = 0; n < all; n++)
        want[byte_at(sides & 2 ? to : NULL, bytes, n)] =
            sent[byte_at(sides & 1 ? from : NULL, bytes, n)];
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(sent, count, mine, next_rank(), 0, their_count, theirs, win));
    OK(MPI_Win_fence(0, win));
    expect(base, want);
    OK(MPI_Get(got, count, mine, next_rank(), 0, their_count, theirs, win));
    OK(MPI_Win_fence(0, win));
    memset(want, 0xcc, sizeof want);
    for (int n = 0; n < all; n++) {
        int at = byte_at(sides & 1 ? from : NULL, bytes, n);
        want[at] = sent[at];
    }
    expect(got, want);
    OK(MPI_Type_free(&here));
    OK(MPI_Type_free(&there));
}

int main(int argc, char **argv)
{
    static const int lengths[] = {1, 2, 3, 4, 7, 8, 12, 16, 20, 24, 31, 32, 40, 64, 72};
    check_start(&argc, &argv);
    // The lists of all ranks are the same.
    base = window_of(ITEMS * ITEM, 1, &win);
    for (int i = 0; i < (int)(sizeof lengths / sizeof *lengths); i++)
        for (int sides = 1; sides <= 3; sides++)
            for (int is_ascending = 0; is_ascending < 2; is_ascending++)
                moves(lengths[i], is_ascending, sides);
    OK(MPI_Win_free(&win));
    return check_end();
}
