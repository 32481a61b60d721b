// Thousands of windows: descriptors, memory and mappings of the process stay bounded.
// usage: many row|alive|comms|orphans [COUNT [allocated|created|dynamic]]

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

enum { BUFFER = 8 << 10, REGIONS = 5 };

// A window, and a word of each rank in it.
struct window {
    MPI_Win win;
    int64_t *word;
    MPI_Aint next; // displacement of the word of the next rank
};

static MPI_Win (*make_one)(MPI_Comm comm, MPI_Aint bytes, int64_t **word);

// The same memory in all windows, also in those that exist at the same time.
static int64_t buffer[BUFFER];

static MPI_Win allocated(MPI_Comm comm, MPI_Aint bytes, int64_t **word)
{
    MPI_Win win;
    OK(MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, comm, word, &win));
    return win;
}

static MPI_Win created(MPI_Comm comm, MPI_Aint bytes, int64_t **word)
{
    MPI_Win win;
    *word = buffer;
    OK(MPI_Win_create(buffer, bytes, 8, MPI_INFO_NULL, comm, &win));
    return win;
}

// Regions of different lengths; two are detached again, the others go with the window.
static MPI_Win dynamic(MPI_Comm comm, MPI_Aint bytes, int64_t **word)
{
    MPI_Win win;
    int step = BUFFER / REGIONS;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
    for (int region = 0; region < REGIONS; region++)
        OK(MPI_Win_attach(win, &buffer[region * step], 8 + bytes % (8 * step)));
    OK(MPI_Win_detach(win, &buffer[0]));
    OK(MPI_Win_detach(win, &buffer[2 * step]));
    *word = &buffer[3 * step];
    return win;
}

static void ranks_of(MPI_Win win, int *me, int *ranks)
{
    MPI_Group group;
    OK(MPI_Win_get_group(win, &group));
    OK(MPI_Group_rank(group, me));
    OK(MPI_Group_size(group, ranks));
    OK(MPI_Group_free(&group));
}

static struct window make(MPI_Comm comm, MPI_Aint bytes)
{
    struct window made = {.next = 0};
    made.win = make_one(comm, bytes, &made.word);
    if (make_one == dynamic) {
        int me, ranks;
        MPI_Aint place;
        ranks_of(made.win, &me, &ranks);
        OK(MPI_Get_address(made.word, &place));
        OK(MPI_Sendrecv(&place, 1, MPI_AINT, (me + ranks - 1) % ranks, 0, &made.next, 1, MPI_AINT,
                        (me + 1) % ranks, 0, comm, MPI_STATUS_IGNORE));
    }
    return made;
}

// Writes to the next rank and checks what the previous one wrote here.
static void use(const struct window *window, int64_t value)
{
    int me, ranks;
    ranks_of(window->win, &me, &ranks);
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, window->win));
    OK(MPI_Put(&value, 1, MPI_INT64_T, (me + 1) % ranks, window->next, 1, MPI_INT64_T,
               window->win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window->win));
    CHECK(*window->word == value);
}

static void in_a_row(MPI_Comm comm, int count)
{
    for (int i = 0; i < count; i++) {
        struct window window = make(comm, 8 + i % 3 * 20000);
        use(&window, i);
        OK(MPI_Win_free(&window.win));
    }
}

static void alive(int count)
{
    struct window *windows = calloc((size_t)count, sizeof *windows);
    MPI_Comm halves;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &halves));
    for (int i = 0; i < count; i++)
        windows[i] = make(i % 2 ? halves : MPI_COMM_WORLD, 64);
    for (int i = 0; i < count; i += 10)
        use(&windows[i], i);
    OK(MPI_Comm_free(&halves)); // before its windows
    for (int i = count - 1; i >= 0; i--)
        OK(MPI_Win_free(&windows[i].win));
    free(windows);
}

// A communicator for each window; with `orphans` it goes first.
static void communicators(int count, int orphans)
{
    for (int i = 0; i < count; i++) {
        MPI_Comm comm;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        struct window window = make(comm, 64);
        if (orphans)
            OK(MPI_Comm_free(&comm));
        use(&window, i);
        OK(MPI_Win_free(&window.win));
        if (!orphans)
            OK(MPI_Comm_free(&comm));
    }
}

static void run(const char *mode, int count)
{
    if (strcmp(mode, "row") == 0)
        in_a_row(MPI_COMM_WORLD, count);
    else if (strcmp(mode, "alive") == 0)
        alive(count);
    else
        communicators(count, strcmp(mode, "orphans") == 0);
}

int main(int argc, char **argv)
{
    start(100, &argc, &argv);
    const char *mode = argc > 1 ? argv[1] : "row";
    int count = argc > 2 ? atoi(argv[2]) : 3000;
    const char *flavor = argc > 3 ? argv[3] : "allocated";
    make_one = flavor[0] == 'c' ? created : flavor[0] == 'd' ? dynamic : allocated;
    int is_alive = strcmp(mode, "alive") == 0;
    run(mode, is_alive ? count : count / 10); // what is made once is made now
    int descriptors = entries("/proc/self/fd"), maps = mappings();
    long kib = status_kib("VmRSS:");
    run(mode, count);
    int more_descriptors = entries("/proc/self/fd") - descriptors, more_maps = mappings() - maps;
    long more_kib = status_kib("VmRSS:") - kib;
    if (rank == 0)
        printf("%s, %s: %d more descriptors, %d more mappings, %ld KiB more\n", mode,
               flavor, more_descriptors, more_maps, more_kib);
    CHECK(more_descriptors <= 2 && more_maps <= 8 && more_kib <= 4096);
    return MPI_Finalize();
}
