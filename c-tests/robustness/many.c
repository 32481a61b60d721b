// Thousands of windows: descriptors, memory and mappings of the process stay bounded.
// usage: many row|alive|comms|orphans|delegated

#include "robust.h"

#include <dirent.h>

static int entries(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count;
}

static int mappings(void)
{
    int lines = 0, c;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && (c = fgetc(maps)) != EOF)
        lines += c == '\n';
    if (maps != NULL)
        fclose(maps);
    return lines;
}

// Writes to the next rank and looks at what the one before wrote here.
static void use(MPI_Win win, int64_t *base, int64_t value)
{
    MPI_Group group;
    int me, ranks;
    OK(MPI_Win_get_group(win, &group));
    OK(MPI_Group_rank(group, &me));
    OK(MPI_Group_size(group, &ranks));
    OK(MPI_Group_free(&group));
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    OK(MPI_Put(&value, 1, MPI_INT64_T, (me + 1) % ranks, 0, 1, MPI_INT64_T, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(*base == value);
}

static MPI_Win make(MPI_Comm comm, MPI_Aint bytes, int64_t **base)
{
    MPI_Win win;
    OK(MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, comm, base, &win));
    return win;
}

static void in_a_row(MPI_Comm comm, int count)
{
    for (int i = 0; i < count; i++) {
        int64_t *base;
        MPI_Win win = make(comm, 8 + i % 3 * 20000, &base);
        use(win, base, i);
        OK(MPI_Win_free(&win));
    }
}

static void alive(int count)
{
    MPI_Win *wins = calloc((size_t)count, sizeof *wins);
    int64_t **bases = calloc((size_t)count, sizeof *bases);
    MPI_Comm halves;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &halves));
    for (int i = 0; i < count; i++)
        wins[i] = make(i % 2 ? halves : MPI_COMM_WORLD, 64, &bases[i]);
    for (int i = 0; i < count; i += 10)
        use(wins[i], bases[i], i);
    OK(MPI_Comm_free(&halves)); // before its windows
    for (int i = count - 1; i >= 0; i--)
        OK(MPI_Win_free(&wins[i]));
    free(wins);
    free(bases);
}

// A communicator for each window; with `orphans` it goes first.
static void communicators(int count, int orphans)
{
    for (int i = 0; i < count; i++) {
        MPI_Comm comm;
        int64_t *base;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        MPI_Win win = make(comm, 64, &base);
        if (orphans) {
            OK(MPI_Comm_free(&comm));
            use(win, base, i);
            OK(MPI_Win_free(&win));
        } else {
            use(win, base, i);
            OK(MPI_Win_free(&win));
            OK(MPI_Comm_free(&comm));
        }
    }
}

// Windows that the MPI underneath carries out, under our handles.
static void delegated(int count)
{
    int64_t memory[4];
    for (int i = 0; i < count; i++) {
        MPI_Win win;
        memory[0] = 0;
        OK(MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_fence(0, win));
        OK(MPI_Win_fence(0, win));
        OK(MPI_Win_free(&win));
    }
}

static void run(const char *mode, int count)
{
    if (strcmp(mode, "row") == 0)
        in_a_row(MPI_COMM_WORLD, count);
    else if (strcmp(mode, "alive") == 0)
        alive(count);
    else if (strcmp(mode, "delegated") == 0)
        delegated(count);
    else
        communicators(count, strcmp(mode, "orphans") == 0);
}

int main(int argc, char **argv)
{
    start(100, &argc, &argv);
    const char *mode = argc > 1 ? argv[1] : "row";
    int count = argc > 2 ? atoi(argv[2]) : 3000;
    int is_alive = strcmp(mode, "alive") == 0;
    run(mode, is_alive ? count : count / 10); // what is made once is made now
    int descriptors = entries("/proc/self/fd"), maps = mappings();
    long kib = status_kib("VmRSS:");
    run(mode, count);
    int more_descriptors = entries("/proc/self/fd") - descriptors, more_maps = mappings() - maps;
    long more_kib = status_kib("VmRSS:") - kib;
    if (rank == 0)
        printf("%s: %d more descriptors, %d more mappings, %ld KiB more\n", mode,
               more_descriptors, more_maps, more_kib);
    CHECK(more_descriptors <= 2 && more_maps <= 8 && more_kib <= 4096);
    return MPI_Finalize();
}
