// How many bytes of the heap the library holds: what it allocated and has not given back, the MPI
// underneath and the driver of the device not counted. The program's malloc comes before that of
// libc, and inspects the caller.

#ifndef HEAP_H
#define HEAP_H

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>

enum { HEAP_BLOCKS_MAX = 1 << 16 };

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *at, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *at);

// The library's code, and its blocks by their addresses, in the place of the remainder or after it.
static uintptr_t heap_first, heap_end;
static struct { uintptr_t at; size_t bytes; } heap_blocks[HEAP_BLOCKS_MAX];
static size_t heap_count, heap_total;
static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t heap_home(uintptr_t at)
{
    return (at >> 4) * 0x9e3779b97f4a7c15u >> 48;
}

static void *heap_note(void *at, size_t bytes, void *caller)
{
    const uintptr_t from = (uintptr_t)caller;
    if (at == NULL || from < heap_first || from >= heap_end)
        return at;
    pthread_mutex_lock(&heap_lock);
    if (++heap_count > HEAP_BLOCKS_MAX / 2)
        abort();
    size_t place = heap_home((uintptr_t)at);
    while (heap_blocks[place].at != 0)
        place = (place + 1) % HEAP_BLOCKS_MAX;
    heap_blocks[place].at = (uintptr_t)at;
    heap_blocks[place].bytes = bytes;
    heap_total += bytes;
    pthread_mutex_unlock(&heap_lock);
    return at;
}

// The block goes; those after it that are not at home move up.
static void heap_forget(void *at)
{
    if (at == NULL || heap_end == 0)
        return;
    pthread_mutex_lock(&heap_lock);
    size_t hole = heap_home((uintptr_t)at);
    while (heap_blocks[hole].at != 0 && heap_blocks[hole].at != (uintptr_t)at)
        hole = (hole + 1) % HEAP_BLOCKS_MAX;
    if (heap_blocks[hole].at != 0) {
        heap_total -= heap_blocks[hole].bytes;
        heap_count--;
        for (size_t next = hole;;) {
            next = (next + 1) % HEAP_BLOCKS_MAX;
            if (heap_blocks[next].at == 0)
                break;
            const size_t home = heap_home(heap_blocks[next].at);
            if ((next - home) % HEAP_BLOCKS_MAX >= (next - hole) % HEAP_BLOCKS_MAX) {
                heap_blocks[hole] = heap_blocks[next];
                hole = next;
            }
        }
        heap_blocks[hole].at = 0;
    }
    pthread_mutex_unlock(&heap_lock);
}

void *malloc(size_t bytes)
{
    return heap_note(__libc_malloc(bytes), bytes, __builtin_return_address(0));
}

void *calloc(size_t count, size_t bytes)
{
    return heap_note(__libc_calloc(count, bytes), count * bytes, __builtin_return_address(0));
}

void *realloc(void *at, size_t bytes)
{
    // Before another thread can get its address.
    heap_forget(at);
    return heap_note(__libc_realloc(at, bytes), bytes, __builtin_return_address(0));
}

int posix_memalign(void **at, size_t alignment, size_t bytes)
{
    void *made = __libc_memalign(alignment, bytes);
    *at = heap_note(made, bytes, __builtin_return_address(0));
    return made == NULL ? ENOMEM : 0;
}

void free(void *at)
{
    heap_forget(at);
    __libc_free(at);
}

static int heap_look(struct dl_phdr_info *object, size_t bytes, void *symbol)
{
    (void)bytes;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const uintptr_t first = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && (uintptr_t)symbol - first < part->p_memsz) {
            heap_first = first;
            heap_end = first + part->p_memsz;
            return 1;
        }
    }
    return 0;
}

// From here on the blocks of the library that has this symbol are counted.
UNUSED static void heap_watch(void *symbol)
{
    dl_iterate_phdr(heap_look, symbol);
}

// Bytes that it holds.
UNUSED static size_t heap_bytes(void)
{
    pthread_mutex_lock(&heap_lock);
    const size_t total = heap_total;
    pthread_mutex_unlock(&heap_lock);
    return total;
}

#endif
