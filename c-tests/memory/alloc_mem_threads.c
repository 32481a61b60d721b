// Threads that allocate, write and free memory at once, also memory that another thread has
// allocated, do not get the same memory. MPI-4.1 sections 9.2 and 11.6.
// ranks: 2

#include "threads.h"

enum { THREADS = 4, ROUNDS = 500, SLOTS = 16 };

static struct { pthread_mutex_t mutex; unsigned char *memory; size_t bytes; } slots[SLOTS];

static void exchange(int slot, unsigned char **memory, size_t *bytes)
{
    unsigned char *old_memory;
    size_t old_bytes;
    pthread_mutex_lock(&slots[slot].mutex);
    old_memory = slots[slot].memory;
    old_bytes = slots[slot].bytes;
    slots[slot].memory = *memory;
    slots[slot].bytes = *bytes;
    pthread_mutex_unlock(&slots[slot].mutex);
    *memory = old_memory;
    *bytes = old_bytes;
}

static void check_and_free(unsigned char *memory, size_t bytes)
{
    for (size_t at = 1; at < bytes; at++)
        if (memory[at] != memory[0])
            CHECK_EQ(memory[at], memory[0]);
    OK(MPI_Free_mem(memory));
}

static void *work(void *number)
{
    int thread = *(int *)number;
    for (int i = 0; i < ROUNDS; i++) {
        size_t bytes = 1 + (size_t)(i * THREADS + thread) * 4099 % 100000;
        unsigned char *memory;
        OK(MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory));
        memset(memory, i * THREADS + thread, bytes);
        exchange(i % SLOTS, &memory, &bytes);
        if (memory != NULL)
            check_and_free(memory, bytes);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (!check_start_threads(&argc, &argv))
        return check_end();
    for (int slot = 0; slot < SLOTS; slot++)
        pthread_mutex_init(&slots[slot].mutex, NULL);
    run_numbered_threads(THREADS, work);
    for (int slot = 0; slot < SLOTS; slot++)
        check_and_free(slots[slot].memory, slots[slot].bytes);
    return check_end();
}
