// Types of a few blocks at irregular places, which are used again and again: to and from a type without
// gaps, and between two items of one type. MPI-4.1 sections 12.3.1, 12.3.2 and 5.1.2.
// ranks: 1 2

#include "created.h"

enum { BYTES = 4096, BLOCKS_MAX = 20, LENGTHS = 6 };

static unsigned char sent[BYTES], want[BYTES], got[BYTES];
static MPI_Win win;

// Blocks of one length, or of several (`which` 0), ascending or in turns from both ends.
static MPI_Datatype type_of(int blocks, int which, int is_ascending, int *bytes)
{
    static const int one_length[LENGTHS] = {0, 1, 4, 8, 20, 100};
    int lengths[BLOCKS_MAX], distance = BYTES / blocks;
    MPI_Aint places[BLOCKS_MAX];
    MPI_Datatype type;
    *bytes = 0;
    for (int i = 0; i < blocks; i++) {
        int at = is_ascending ? i : i % 2 ? blocks - 1 - i / 2 : i / 2;
        lengths[i] = which ? one_length[which] : 1 + i * 7 % 50;
        places[i] = at * distance + 8 * (i % 3);
        *bytes += lengths[i];
    }
    OK(MPI_Type_create_hindexed(blocks, lengths, places, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

// The oracle: packs at one side, unpacks at the other.
static void move_by_packing(const void *from, int count, MPI_Datatype type, void *to, int to_count,
                            MPI_Datatype to_type)
{
    static char packed[BYTES];
    int end = 0, begin = 0;
    OK(MPI_Pack(from, count, type, packed, sizeof packed, &end, MPI_COMM_WORLD));
    OK(MPI_Unpack(packed, end, &begin, to, to_count, to_type, MPI_COMM_WORLD));
}

static void is_moved(const char *call, int blocks, int which)
{
    for (int i = 0; i < BYTES; i++)
        if (got[i] != want[i]) {
            check_failed(__FILE__, __LINE__, "%s of %d blocks, lengths %d: byte %d is %d, not %d",
                         call, blocks, which, i, got[i], want[i]);
            return;
        }
}

static void moves(int blocks, int which, MPI_Datatype mine, int count, MPI_Datatype theirs,
                  int their_count)
{
    int target = next_rank();
    memset(want, 0xdd, BYTES);
    OK(MPI_Put(want, BYTES, MPI_BYTE, target, 0, BYTES, MPI_BYTE, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Put(sent, count, mine, target, 0, their_count, theirs, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Get(got, BYTES, MPI_BYTE, target, 0, BYTES, MPI_BYTE, win));
    OK(MPI_Win_flush(target, win));
    move_by_packing(sent, count, mine, want, their_count, theirs);
    is_moved("MPI_Put", blocks, which);

    OK(MPI_Put(sent, BYTES, MPI_BYTE, target, 0, BYTES, MPI_BYTE, win));
    OK(MPI_Win_flush(target, win));
    memset(got, 0xcc, BYTES);
    memset(want, 0xcc, BYTES);
    OK(MPI_Get(got, count, mine, target, 0, their_count, theirs, win));
    OK(MPI_Win_flush(target, win));
    move_by_packing(sent, their_count, theirs, want, count, mine);
    is_moved("MPI_Get", blocks, which);
}

static void each_side(int blocks, int which, int is_ascending)
{
    int bytes, target = next_rank();
    MPI_Datatype type = type_of(blocks, which, is_ascending, &bytes);
    // The first call finds out what the type is, the others know.
    for (int i = 0; i < 3; i++) {
        moves(blocks, which, type, 1, type, 1);
        moves(blocks, which, MPI_BYTE, bytes, type, 1);
        moves(blocks, which, type, 1, MPI_BYTE, bytes);
        if (!library_is_here())
            continue; // the MPIs carry out some of these
        EXPECT(MPI_Put(sent, bytes + 1, MPI_BYTE, target, 0, 1, type, win), MPI_ERR_TRUNCATE);
        EXPECT(MPI_Get(got, bytes - 1, MPI_BYTE, target, 0, 1, type, win), MPI_ERR_TRUNCATE);
        EXPECT(MPI_Get(got, 1, type, target, 0, bytes + 1, MPI_BYTE, win), MPI_ERR_TRUNCATE);
    }
    OK(MPI_Type_free(&type));
}

int main(int argc, char **argv)
{
    static const int numbers[] = {2, 3, 5, 16, 17, BLOCKS_MAX};
    check_start(&argc, &argv);
    (void)returning_window_of(BYTES, 1, &win);
    for (int i = 0; i < BYTES; i++)
        sent[i] = (unsigned char)(1 + i * 7 + i / 251 + rank);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        for (int which = 0; which < LENGTHS; which++) {
            each_side(numbers[i], which, 1);
            each_side(numbers[i], which, 0);
        }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
