// The registry: one mapped file per user and folder (ADAPTER_DIR, by default /dev/shm), made by the
// first process and removed by the last. The next process removes the state that killed
// processes left in it. Its locks are robust: a holder that was killed does not stop the others.

#include "adapter.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 1 };

struct settings settings;
struct registry *registry;
uint32_t my_process;
static char registry_path[4096];

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value != NULL && *value != 0 ? strtoull(value, NULL, 0) : otherwise;
}

static int is_set_to(const char *name, const char *what)
{
    const char *value = getenv(name);
    return value != NULL && strcmp(value, what) == 0;
}

void read_settings(void)
{
    settings.prompt = number("ADAPTER_PROMPT", 0) != 0;
    settings.whole = number("ADAPTER_WHOLE", 0) != 0;
    settings.glob = is_set_to("ADAPTER_ATOMIC", "glob");
    settings.infiniband = is_set_to("ADAPTER_LINK", "infiniband");
    settings.port_down = is_set_to("ADAPTER_PORT", "down");
    settings.overtake_atomics = !is_set_to("ADAPTER_OVERTAKE", "reads");
    settings.order = is_set_to("ADAPTER_ORDER", "waw") ? ORDER_WAW
                     : is_set_to("ADAPTER_ORDER", "none") ? ORDER_NONE : ORDER_VERBS;
    settings.devices = (unsigned)number("ADAPTER_DEVICES", 1);
    if (settings.devices > DEVICES)
        settings.devices = DEVICES;
    settings.rd_atomic = (unsigned)number("ADAPTER_RD_ATOMIC", 16);
    settings.message_bytes_max = (uint32_t)number("ADAPTER_MAX_MSG", 1u << 30);
    settings.seed = number("ADAPTER_SEED", 1);
    settings.retry_ns = number("ADAPTER_RETRY_MS", 200) * 1000000;
    settings.cut_after = number("ADAPTER_CUT", 0);
    settings.fatal_after = number("ADAPTER_FATAL", 0);
    settings.memlock_bytes = number("ADAPTER_MEMLOCK", UINT64_MAX);
}

void lock(pthread_mutex_t *mutex)
{
    // The words after these locks are valid at any time, so there is nothing to repair.
    if (pthread_mutex_lock(mutex) == EOWNERDEAD)
        pthread_mutex_consistent(mutex);
}

static void make_lock(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attr);
}

// When a process was started, in ticks; 0 if there is none, or only what its parent has not waited
// for. Tells a process from a later one of the same number.
static uint64_t born(pid_t pid)
{
    char path[64], text[1024], state = 'X';
    unsigned long long start = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    const char *behind_name = strrchr(text, ')');
    if (behind_name == NULL ||
        sscanf(behind_name, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
               "%*d %*d %llu", &state, &start) != 2 || state == 'Z' || state == 'X')
        return 0;
    return start;
}

static void drop_process(uint32_t process)
{
    for (int i = 0; i < QPS; i++)
        if (registry->qps[i].process == process)
            registry->qps[i].process = 0;
    for (int i = 0; i < KEYS; i++)
        if (registry->keys[i].process == process)
            registry->keys[i].process = 0;
    registry->processes[process - 1].pid = 0;
}

// Frees what dead processes hold; returns how many are alive.
static int sweep(void)
{
    int alive = 0;
    for (uint32_t i = 0; i < PROCESSES; i++) {
        const struct process_entry *entry = &registry->processes[i];
        if (entry->pid == 0)
            continue;
        if (born(entry->pid) == entry->born)
            alive++;
        else
            drop_process(i + 1);
    }
    return alive;
}

// Waits for the lock of a file, also if signals come meanwhile.
static int lock_file(int fd)
{
    int status;
    do
        status = flock(fd, LOCK_EX);
    while (status != 0 && errno == EINTR);
    return status;
}

// The registry's file, locked against others who open or leave it.
static int open_file(void)
{
    const char *folder = getenv("ADAPTER_DIR");
    snprintf(registry_path, sizeof registry_path, "%s/verbs-adapter.%u",
             folder != NULL && *folder != 0 ? folder : "/dev/shm", (unsigned)geteuid());
    for (;;) {
        struct stat status;
        int fd = open(registry_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || lock_file(fd) != 0 || fstat(fd, &status) != 0) {
            fprintf(stderr, "adapter: %s: %s\n", registry_path, strerror(errno));
            return -1;
        }
        if (status.st_nlink > 0)
            return fd;
        close(fd); // removed by the last one, just now
    }
}

static void leave(void)
{
    int fd = registry != NULL && my_process != 0 &&
             registry->processes[my_process - 1].pid == getpid() ? open_file() : -1;
    if (fd < 0)
        return;
    lock(&registry->table);
    drop_process(my_process);
    if (sweep() == 0)
        unlink(registry_path);
    pthread_mutex_unlock(&registry->table);
    close(fd);
}

static int take_place(void)
{
    lock(&registry->table);
    sweep();
    for (uint32_t i = 0; i < PROCESSES && my_process == 0; i++) {
        struct process_entry *entry = &registry->processes[i];
        if (entry->pid == 0) {
            make_lock(&entry->errand.mailbox);
            entry->errand.state = ERRAND_NONE;
            entry->born = born(getpid());
            entry->pulse = &my_process;
            entry->pid = getpid();
            my_process = i + 1;
        }
    }
    pthread_mutex_unlock(&registry->table);
    return my_process != 0 ? 0 : ENOSPC;
}

int join_registry(void)
{
    if (my_process != 0)
        return 0;
    int fd = open_file();
    if (fd < 0)
        return EIO;
    struct stat status;
    if (fstat(fd, &status) != 0 || ftruncate(fd, sizeof *registry) != 0)
        return EIO;
    registry = mmap(NULL, sizeof *registry, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (registry == MAP_FAILED)
        return ENOMEM;
    if (registry->version == 0) {
        make_lock(&registry->table);
        make_lock(&registry->atomics);
        registry->version = VERSION;
    }
    if (registry->version != VERSION || (status.st_size != 0 &&
                                         status.st_size != sizeof *registry)) {
        fprintf(stderr, "adapter: %s is of another version\n", registry_path);
        return EIO;
    }
    // The other processes move bytes into this one.
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    int error = take_place();
    // The mapping keeps the file open, and so its lock.
    flock(fd, LOCK_UN);
    close(fd);
    if (error == 0)
        atexit(leave);
    return error;
}

struct qp_entry *claim_qp(uint32_t pd, uint32_t *number)
{
    struct qp_entry *found = NULL;
    lock(&registry->table);
    for (int tries = 0; tries < QPS && found == NULL; tries++) {
        uint32_t slot = registry->qp_hint++ % QPS;
        struct qp_entry *entry = &registry->qps[slot];
        if (entry->process != 0)
            continue;
        uint32_t generation = entry->generation % 1023 + 1;
        *entry = (struct qp_entry){.generation = generation, .process = my_process, .pd = pd,
                                   .state = IBV_QPS_RESET};
        *number = generation << QP_BITS | slot;
        found = entry;
    }
    pthread_mutex_unlock(&registry->table);
    return found;
}

struct key_entry *claim_key(uint32_t pd, uint32_t *key)
{
    struct key_entry *found = NULL;
    lock(&registry->table);
    for (int tries = 0; tries < KEYS && found == NULL; tries++) {
        uint32_t slot = registry->key_hint++ % KEYS;
        struct key_entry *entry = &registry->keys[slot];
        if (entry->process != 0)
            continue;
        if (entry->generation == 0)
            make_lock(&entry->guard);
        entry->generation = entry->generation % 0xffff + 1;
        entry->pd = pd;
        entry->bytes = 0; // until its caller says more, the key opens nothing
        entry->process = my_process;
        *key = entry->generation << KEY_BITS | slot;
        found = entry;
    }
    pthread_mutex_unlock(&registry->table);
    return found;
}

struct qp_entry *qp_of(uint32_t number)
{
    struct qp_entry *entry = &registry->qps[number % QPS];
    return entry->process != 0 && entry->generation == number >> QP_BITS ? entry : NULL;
}

struct key_entry *key_of(uint32_t key)
{
    struct key_entry *entry = &registry->keys[key % KEYS];
    return entry->process != 0 && entry->generation == key >> KEY_BITS ? entry : NULL;
}

void release_entry(uint32_t *process)
{
    lock(&registry->table);
    *process = 0;
    pthread_mutex_unlock(&registry->table);
}
