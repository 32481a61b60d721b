// Windows over every kind of memory that a process can have, used by every call. What lies around
// the window stays as it was. MPI-4.1 sections 12.2.1 and 12.3.
// ranks: 1 2 3 4

#include "every_call.h"

#include <pthread.h>
#include <sys/mman.h>

static long *mapping(int flags, int file)
{
    void *memory = mmap(NULL, TOTAL * sizeof(long), PROT_READ | PROT_WRITE, flags, file, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static void files(void)
{
    static long bytes[TOTAL];
    FILE *file = tmpfile();
    CHECK(file != NULL);
    CHECK_EQ(ftruncate(fileno(file), sizeof bytes), 0);
    long *copy = mapping(MAP_PRIVATE, fileno(file));
    try("a private mapping of a file", copy);
    CHECK_EQ(pread(fileno(file), bytes, sizeof bytes, 0), sizeof bytes);
    for (int i = 0; i < TOTAL; i++)
        CHECK_EQ(bytes[i], 0);
    long *shared = mapping(MAP_SHARED, fileno(file));
    try("a shared mapping of a file", shared);
    CHECK_EQ(pread(fileno(file), bytes, sizeof bytes, 0), sizeof bytes);
    CHECK(memcmp(bytes, shared, sizeof bytes) == 0);
    CHECK_EQ(munmap(copy, sizeof bytes), 0);
    CHECK_EQ(munmap(shared, sizeof bytes), 0);
    fclose(file);
}

// One page of a file between two anonymous ones: the window crosses both borders.
static void several_mappings(void)
{
    FILE *file = tmpfile();
    const size_t page = 4096, all = 3 * page;
    CHECK(file != NULL);
    CHECK_EQ(ftruncate(fileno(file), (off_t)page), 0);
    char *base = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(base != MAP_FAILED);
    CHECK(mmap(base + page, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fileno(file), 0)
          == base + page);
    try("three mappings side by side", (long *)(base + all / 2 - TOTAL * sizeof(long) / 2));
    CHECK_EQ(munmap(base, all), 0);
    fclose(file);
}

static void *nothing(void *stop)
{
    pthread_mutex_lock(stop);
    return NULL;
}

// The stack of a thread that does nothing meanwhile.
static void stack_of_a_thread(void)
{
    static pthread_mutex_t stop = PTHREAD_MUTEX_INITIALIZER;
    const size_t bytes = 1 << 20;
    pthread_t thread;
    pthread_attr_t attributes;
    void *stack = NULL;
    CHECK_EQ(posix_memalign(&stack, 4096, bytes), 0);
    pthread_attr_init(&attributes);
    CHECK_EQ(pthread_attr_setstack(&attributes, stack, bytes), 0);
    pthread_mutex_lock(&stop);
    CHECK_EQ(pthread_create(&thread, &attributes, nothing, &stop), 0);
    try("the stack of a thread", stack);
    pthread_mutex_unlock(&stop);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    free(stack);
}

int main(int argc, char **argv)
{
    static _Alignas(64) long fixed[TOTAL], initialised[TOTAL] = {1};
    static _Alignas(64) _Thread_local long of_the_thread[TOTAL];
    _Alignas(64) long stack[TOTAL];
    check_start(&argc, &argv);
    try("the heap", heap_memory(TOTAL * sizeof(long)));
    try("static data", fixed);
    try("initialised data", initialised);
    try("thread-local data", of_the_thread);
    try("the stack", stack);
    stack_of_a_thread();
    long *memory = mapping(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    try("a private mapping", memory);
    CHECK_EQ(munmap(memory, TOTAL * sizeof(long)), 0);
    memory = mapping(MAP_SHARED | MAP_ANONYMOUS, -1);
    try("a shared mapping", memory);
    CHECK_EQ(munmap(memory, TOTAL * sizeof(long)), 0);
    files();
    several_mappings();
    memory = mpi_memory(2 * TOTAL * sizeof(long));
    try("MPI_Alloc_mem", memory);
    try("the inside of MPI_Alloc_mem", memory + TOTAL / 2);
    OK(MPI_Free_mem(memory));
    return check_end();
}
