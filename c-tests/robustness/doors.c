// The handle is the same integer through MPI_Win_c2f and back, for windows of libfompi and for
// those that it leaves to the host MPI, and it is known there by its attributes, group, name and
// info. Windows that the MPI's own I/O layer makes for itself do not disturb them.
// usage: doors [FILE]      with FILE: collective I/O to it while the windows are there

#include "robust.h"

static void known(MPI_Win win, const void *base, MPI_Aint bytes, int flavor)
{
    MPI_Group group;
    MPI_Info info;
    char name[MPI_MAX_OBJECT_NAME];
    void *value;
    int found, length, ranks;
    CHECK(MPI_Win_f2c(MPI_Win_c2f(win)) == win);
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &found));
    CHECK(found && value == base);
    OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &found));
    CHECK(found && *(MPI_Aint *)value == bytes);
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &found));
    CHECK(found && *(int *)value == flavor);
    OK(MPI_Win_get_group(win, &group));
    OK(MPI_Group_size(group, &ranks));
    CHECK(ranks == size);
    OK(MPI_Group_free(&group));
    OK(MPI_Win_set_name(win, "door"));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(length == 4 && strcmp(name, "door") == 0);
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_free(&info));
}

static void works(MPI_Win win, const int64_t *base, int64_t value)
{
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT64_T, (rank + 1) % size, 0, 1, MPI_INT64_T, win));
    OK(MPI_Win_fence(0, win));
    CHECK(base[0] == value);
}

static void collective_io(const char *path)
{
    enum { BLOCK = 1 << 16 };
    char *out = malloc(BLOCK), *in = malloc(BLOCK);
    MPI_File file;
    memset(out, 'a' + rank % 26, BLOCK);
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_write_at_all(file, (MPI_Offset)rank * BLOCK, out, BLOCK, MPI_CHAR,
                             MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_sync(file));
    OK(MPI_File_read_at_all(file, (MPI_Offset)((rank + 1) % size) * BLOCK, in, BLOCK, MPI_CHAR,
                            MPI_STATUS_IGNORE));
    CHECK(in[0] == 'a' + (rank + 1) % size % 26 && in[BLOCK - 1] == in[0]);
    // A shared file pointer is kept in a window by some I/O layers.
    OK(MPI_File_write_ordered(file, out, 100, MPI_CHAR, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    MPI_Win ours, theirs = MPI_WIN_NULL;
    int64_t memory[4] = {0};
    start(40, &argc, &argv);
    int64_t *base = window_of(4, &ours);
    known(ours, base, 32, MPI_WIN_FLAVOR_ALLOCATE);
    if (size > 1) { // Open MPI 4.1 has no window of this kind for one rank
        OK(MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &theirs));
        known(theirs, memory, sizeof memory, MPI_WIN_FLAVOR_CREATE);
        CHECK(ours != theirs);
    }
    for (int i = 1; i <= 3; i++) {
        works(ours, base, i);
        if (size > 1)
            works(theirs, memory, 10 * i);
        if (argc > 1)
            collective_io(argv[1]);
    }
    if (size > 1)
        OK(MPI_Win_free(&theirs));
    OK(MPI_Win_free(&ours));
    CHECK(ours == MPI_WIN_NULL);
    return MPI_Finalize();
}
