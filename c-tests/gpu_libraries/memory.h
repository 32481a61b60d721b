// The memory of a GPU that does not exist, for the stand-ins of run-time libraries in this folder.
//
// Memory of the device and managed memory are addresses that no load or store may touch, and a
// second mapping of the same bytes, which the stand-in and the test use. Pinned memory is memory of
// the host that the stand-in knows. A copy to the device takes its bytes at once and arrives with
// the next wait (arrive).

#ifndef GPU_MEMORY_H
#define GPU_MEMORY_H

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { DEVICE, MANAGED, PINNED };

struct memory {
    char *base, *alias;
    size_t bytes;
    int kind;
    void *context;
};

struct copy {
    char *to;
    size_t bytes;
    struct copy *next;
    char data[];
};

static struct memory memories[256];
static int memory_count;
static struct copy *first_copy, **last_copy = &first_copy;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static long copies;

// The allocation that holds an address, or NULL. An allocation of no bytes holds none.
static struct memory *find(const void *address)
{
    const char *at = address;
    struct memory *found = NULL;
    for (int i = 0; i < __atomic_load_n(&memory_count, __ATOMIC_ACQUIRE); i++)
        if (at >= memories[i].base && at < memories[i].base + memories[i].bytes)
            found = &memories[i];
    return found;
}

static void note(struct memory memory)
{
    pthread_mutex_lock(&turn);
    if (memory_count == 256)
        abort();
    memories[memory_count] = memory;
    __atomic_store_n(&memory_count, memory_count + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&turn);
}

// Addresses without memory.
static char *reserve(size_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        abort();
    return base;
}

// Maps memory at addresses, or without any (NULL) where there is room. Returns its begin.
static void *put_behind(char *base, int kind, size_t bytes, void *context)
{
    struct memory new = { .bytes = bytes, .kind = kind, .context = context };
    size_t mapped = (bytes + 4095) / 4096 * 4096 + 4096;
    int file = memfd_create("gpu", 0);
    if (file < 0 || ftruncate(file, (off_t)mapped) != 0)
        abort();
    new.alias = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (new.alias == MAP_FAILED)
        abort();
    close(file);
    new.base = base != NULL ? base : kind == PINNED ? new.alias : reserve(mapped);
    note(new);
    return new.base;
}

static void *allocate(int kind, size_t bytes, void *context)
{
    return put_behind(NULL, kind, bytes, context);
}

// Memory of the host becomes known.
static int pin(void *base, size_t bytes, void *context)
{
    note((struct memory){ base, base, bytes, PINNED, context });
    return 0;
}

static int unpin(void *base)
{
    struct memory *found = find(base);
    if (found == NULL)
        return 1;
    found->bytes = 0;
    return 0;
}

// Where the processor reaches an address; NULL: the bytes leave the allocation.
static char *reach(const void *address, size_t bytes)
{
    struct memory *found = find(address);
    if (found == NULL)
        return (char *)address;
    size_t offset = (size_t)((const char *)address - found->base);
    return bytes <= found->bytes - offset ? found->alias + offset : NULL;
}

// Returns 0, or 1 if a side leaves its allocation.
static int move(void *to, const void *from, size_t bytes)
{
    char *there = reach(to, bytes), *here = reach(from, bytes);
    struct memory *target = find(to);
    if (there == NULL || here == NULL)
        return 1;
    if (target == NULL || target->kind == PINNED) {
        memcpy(there, here, bytes);
        return 0;
    }
    struct copy *new = malloc(sizeof *new + bytes);
    *new = (struct copy){ .to = there, .bytes = bytes };
    memcpy(new->data, here, bytes);
    pthread_mutex_lock(&turn);
    *last_copy = new;
    last_copy = &new->next;
    pthread_mutex_unlock(&turn);
    return 0;
}

// A copy by a function that libfompi calls: those are counted.
static int copy(void *to, const void *from, size_t bytes)
{
    __atomic_add_fetch(&copies, 1, __ATOMIC_RELAXED);
    return move(to, from, bytes);
}

// All copies to the device are there.
static void arrive(void)
{
    pthread_mutex_lock(&turn);
    while (first_copy != NULL) {
        struct copy *done = first_copy;
        memcpy(done->to, done->data, done->bytes);
        first_copy = done->next;
        free(done);
    }
    last_copy = &first_copy;
    pthread_mutex_unlock(&turn);
}

// What the test calls, whatever the library is.
void *gpu_test_allocate(int kind, size_t bytes);
void *gpu_test_alias(void *base) { return reach(base, 1); }
long gpu_test_copies(void) { return copies; }

#endif
