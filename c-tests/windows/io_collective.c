// Collective file access works while windows of ours are open: what the I/O layer of the MPI makes
// for itself is its own affair. MPI-4.1 section 14.4.
// ranks: 1 2 4

#include "check.h"

enum { COUNT = 1000 };

static void write_and_read(const char *name)
{
    static int written[COUNT], got[COUNT];
    MPI_File file;
    MPI_Info hints;
    MPI_Datatype interleaved;
    // ROMIO exchanges the data through windows of its own where it can.
    OK(MPI_Info_create(&hints));
    OK(MPI_Info_set(hints, "romio_cb_write", "enable"));
    OK(MPI_Info_set(hints, "romio_cb_read", "enable"));
    OK(MPI_Info_set(hints, "romio_write_aggmethod", "1"));
    OK(MPI_Info_set(hints, "romio_read_aggmethod", "1"));
    OK(MPI_Type_vector(COUNT, 1, size, MPI_INT, &interleaved));
    OK(MPI_Type_commit(&interleaved));
    for (int i = 0; i < COUNT; i++)
        written[i] = 10000 * rank + i;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &file));
    OK(MPI_Info_free(&hints));
    OK(MPI_File_set_view(file, rank * (MPI_Offset)sizeof(int), MPI_INT, interleaved, "native",
                         MPI_INFO_NULL));
    OK(MPI_File_write_all(file, written, COUNT, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at_all(file, 0, got, COUNT, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(memcmp(written, got, sizeof got) == 0);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&interleaved));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    char name[64];
    int value;
    check_start(&argc, &argv);
    int *base = window_of(64, sizeof(int), &win);
    int process = (int)getpid();
    OK(MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD));
    snprintf(name, sizeof name, "/tmp/io_collective.%d", process);
    value = 3 + rank;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT, next_rank(), 0, 1, MPI_INT, win));
    write_and_read(name);
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(base[0], 3 + previous_rank());
    OK(MPI_Win_free(&win));
    if (rank == 0)
        unlink(name);
    return check_end();
}
