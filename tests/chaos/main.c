// usage: chaos [--seed S] [--seconds N] [--round N] [--rounds N] [--times T] [--group G]
//              [--actor A] [--memory M] [--act I] [--level L] [--state FILE] [--folder DIR]
//              [--verbose]
//
// Runs rounds from a seed until the time is over, or `--rounds` of them from `--round`, each
// `--times` times. `--act` leaves only the act of that index in each round. FILE.RANK says where
// each rank is.
#include "chaos.h"
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

struct settings settings = {.rounds = UINT64_MAX, .times = 1, .seconds = 10, .folder = "/tmp",
                            .act = -1, .thread_level = MPI_THREAD_MULTIPLE};
int my_rank, all_ranks;
static char *state_text;
static uint64_t rounds_done;

void say_state(const char *format, ...)
{
    if (!state_text)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(state_text, 256, format, list);
    va_end(list);
    snprintf(state_text + 256, NAME_BYTES, "%s", round_text);
    state_text[255] = '\n';
}

static void open_state(void)
{
    if (!settings.state)
        return;
    char path[600];
    snprintf(path, sizeof path, "%s.%d", settings.state, my_rank);
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    if (fd < 0 || ftruncate(fd, NAME_BYTES + PAGE) != 0)
        fail(NULL, "%s", path);
    state_text = mmap(NULL, NAME_BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (state_text == MAP_FAILED)
        fail(NULL, "mmap of %s", path);
}

static void usage(void)
{
    fprintf(stderr, "chaos: unknown option or value; the head of main.c lists them\n");
    exit(2);
}

static int level_of(const char *name)
{
    if (strcmp(name, "single") == 0)
        return MPI_THREAD_SINGLE;
    if (strcmp(name, "funneled") == 0)
        return MPI_THREAD_FUNNELED;
    if (strcmp(name, "serialized") == 0)
        return MPI_THREAD_SERIALIZED;
    return MPI_THREAD_MULTIPLE;
}

static void read_options(int count, char **words)
{
    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], "--verbose") == 0) {
            settings.is_verbose = true;
            continue;
        }
        if (i + 1 == count)
            usage();
        const char *name = words[i], *value = words[++i];
        if (strcmp(name, "--seed") == 0)
            settings.seed = strtoull(value, NULL, 10);
        else if (strcmp(name, "--seconds") == 0)
            settings.seconds = atof(value);
        else if (strcmp(name, "--round") == 0)
            settings.first = strtoull(value, NULL, 10);
        else if (strcmp(name, "--rounds") == 0)
            settings.rounds = strtoull(value, NULL, 10);
        else if (strcmp(name, "--times") == 0)
            settings.times = strtoull(value, NULL, 10);
        else if (strcmp(name, "--group") == 0 && groups_of(value))
            settings.groups |= (unsigned)groups_of(value);
        else if (strcmp(name, "--actor") == 0)
            settings.actor = value;
        else if (strcmp(name, "--memory") == 0)
            settings.memory = value;
        else if (strcmp(name, "--act") == 0)
            settings.act = atoi(value);
        else if (strcmp(name, "--level") == 0)
            settings.thread_level = level_of(value);
        else if (strcmp(name, "--state") == 0)
            settings.state = value;
        else if (strcmp(name, "--folder") == 0)
            settings.folder = value;
        else
            usage();
    }
}

// All ranks go on, or none.
static bool goes_on(double end)
{
    int on = rounds_done / settings.times < settings.rounds && MPI_Wtime() < end;
    MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return on;
}

static void run_rounds(void)
{
    static struct round round;
    const double end = MPI_Wtime() + settings.seconds;
    while (goes_on(end)) {
        plan_round(&round, settings.seed, settings.first + rounds_done / settings.times);
        round.my = &round.part[my_rank];
        describe(&round, round_text, sizeof round_text);
        if (settings.is_verbose && my_rank == 0) {
            printf("%s\n", round_text);
            fflush(stdout);
        }
        with_memory(&round, live);
        rounds_done++;
    }
}

int main(int count, char **words)
{
    read_options(count, words);
    MPI_Init_thread(&count, &words, settings.thread_level, &settings.thread_level);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &all_ranks);
    if (all_ranks > RANKS_MAX)
        fail(NULL, "more than %d ranks", RANKS_MAX);
    MPI_Bcast(&settings.thread_level, 1, MPI_INT, 0, MPI_COMM_WORLD);
    open_state();
    find_available();
    run_rounds();
    say_state("MPI_Finalize");
    remove_work_folder();
    if (my_rank == 0)
        printf("chaos: seed %llu: %llu rounds\n", (unsigned long long)settings.seed,
               (unsigned long long)rounds_done);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
