// The list of actors, and what they share.
#include "chaos.h"
#include <dirent.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const struct actor *const lists[] = {
    actors_bytes, actors_direct, actors_rings, actors_holds, actors_rights, actors_watchers,
    actors_maps, actors_forks, actors_signals, actors_threads, actors_messages, actors_processes,
};
enum { ACTORS_MAX = 128 };
static const struct actor *all[ACTORS_MAX];
static int available[ACTORS_MAX], actors;

static const char *const names[] = {"reads",  "writes", "holds",   "pins",    "maps",
                                    "rights", "forks",  "signals", "threads", "messages"};
enum { GROUPS = sizeof names / sizeof *names };

int actor_count(void)
{
    return actors;
}

const struct actor *actor_at(int number)
{
    return all[number];
}

bool is_available(int number)
{
    return available[number];
}

// All ranks draw the same plan, so an actor that does not work for one rank works for none.
void find_available(void)
{
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const struct actor *actor = lists[i]; actor->name; actor++)
            all[actors++] = actor;
    for (int i = 0; i < actors; i++)
        available[i] = !all[i]->works || all[i]->works();
    MPI_Allreduce(MPI_IN_PLACE, available, actors, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (my_rank != 0)
        return;
    bool first = true;
    for (int i = 0; i < actors; i++) {
        if (!available[i])
            printf("%s%s", first ? "chaos: not possible here: " : ", ", all[i]->name);
        first = first && available[i];
    }
    if (!first)
        puts("");
}

int groups_of(const char *name)
{
    for (int i = 0; i < GROUPS; i++)
        if (strcmp(name, names[i]) == 0)
            return 1 << i;
    return 0;
}

void spin_us(unsigned us)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < (long)us);
}

void *state_of(struct act *act, size_t bytes)
{
    act->state = calloc(1, bytes);
    if (!act->state)
        fail(act, "no memory");
    return act->state;
}

void start_thread(struct act *act, void *(*work)(void *))
{
    atomic_store(&act->is_stopped, false);
    int code = pthread_create(&act->thread, NULL, work, act);
    if (code != 0)
        fail(act, "pthread_create: %d", code);
}

void join_thread(struct act *act)
{
    atomic_store(&act->is_stopped, true);
    pthread_join(act->thread, NULL);
}

bool read_all(int fd, void *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = read(fd, (char *)to + done, bytes - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

bool write_all(int fd, const void *from, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t put = write(fd, (const char *)from + done, bytes - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        done += (size_t)put;
    }
    return true;
}

void open_pipe(struct act *act, int pipe_of[2])
{
    if (pipe(pipe_of) != 0)
        fail(act, "pipe");
}

void open_pair(struct act *act, int pair_of[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair_of) != 0)
        fail(act, "socketpair");
}

static char folder[600];

const char *work_folder(void)
{
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "%s/chaos.XXXXXX", settings.folder);
        if (!mkdtemp(folder))
            fail(NULL, "mkdtemp in %s", settings.folder);
    }
    return folder;
}

void remove_work_folder(void)
{
    if (!folder[0])
        return;
    DIR *all_of_it = opendir(folder);
    for (struct dirent *entry; all_of_it && (entry = readdir(all_of_it));) {
        char path[1200];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    if (all_of_it)
        closedir(all_of_it);
    rmdir(folder);
}

// Whether each mapping that overlaps the range satisfies `test` in /proc/self/smaps.
static int all_mappings(const void *at, size_t bytes, const char *key, const char *word)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    if (!file)
        return -1;
    char line[1024];
    bool is_inside = false, all_have = true;
    while (fgets(line, sizeof line, file)) {
        unsigned long first, end;
        char rights[8];
        if (sscanf(line, "%lx-%lx %7s", &first, &end, rights) == 3) {
            is_inside = first < (uintptr_t)at + bytes && end > (uintptr_t)at;
            if (is_inside && !key)
                all_have = all_have && strstr(line, word);
        } else if (is_inside && key && strncmp(line, key, strlen(key)) == 0) {
            all_have = all_have && strstr(line, word);
        }
    }
    fclose(file);
    return all_have;
}

int has_flag(const void *at, size_t bytes, const char *flag)
{
    char word[8];
    snprintf(word, sizeof word, " %s ", flag);
    return all_mappings(at, bytes, "VmFlags:", word);
}

int has_name(const void *at, size_t bytes, const char *name)
{
    return all_mappings(at, bytes, NULL, name);
}

int mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    int lines = 0;
    for (int c; file && (c = fgetc(file)) != EOF;)
        lines += c == '\n';
    if (file)
        fclose(file);
    return lines;
}
