/* A queue of tasks on each rank, from which idle ranks steal, where a task leads to its data by a memory handle.
 *
 * Ranks sort arrays, one after the other, of lengths that differ from rank to rank. A task is a part of an array:
 * the rank that takes it gets the numbers from the owner by the handle in the task, and sorts them or divides them
 * into two parts, puts them back, and adds two tasks to its own queue. So a task moves away from the owner of its
 * data, and so do the tasks that it begets. The owner withdraws an array when all of it is sorted, and makes the next
 * one. */
#include "../example.h"
#include "../handles.h"

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

enum { SLOTS = 1024 };

typedef struct {
    char array[FOMPI_MEM_BYTES]; /* packed */
    int64_t first, count;        /* numbers of it */
} Task;

/* The memory of an array. */
typedef struct {
    int64_t unsorted; /* numbers that no task has put into their places */
    int64_t numbers[];
} Array;

/* The memory of a queue. */
typedef struct {
    uint64_t range; /* tasks taken << 32 | tasks added, in the life of the queue */
    int64_t ranks;  /* of rank 0: those whose arrays are not all sorted */
    Task tasks[SLOTS];
} Queue;

typedef struct {
    int rank, size;
    long length, grain, arrays; /* arrays: that this rank has still to sort, with `array` */
    MPI_Win win;
    FOMPI_Mem *queues; /* of all ranks */
    Array *array;      /* of this rank */
    FOMPI_Mem mem;     /* its handle */
    int64_t sum, *buffer, tasks, stolen;
    int is_right;
} Pool;

static int64_t read_word(FOMPI_Mem mem, MPI_Aint disp) {
    int64_t unused = 0, word;
    FOMPI_Mem_fetch_and_op(&unused, &word, MPI_INT64_T, mem, disp, MPI_NO_OP, FOMPI_BLOCKING);
    return word;
}

static void add(int64_t number, FOMPI_Mem mem, MPI_Aint disp) {
    FOMPI_Mem_accumulate(&number, 1, MPI_INT64_T, mem, disp, MPI_SUM, FOMPI_ORDERED | FOMPI_REMOTE);
}

static uint32_t taken_of(uint64_t range) { return (uint32_t)(range >> 32); }
static uint32_t added_of(uint64_t range) { return (uint32_t)range; }
static MPI_Aint slot(uint32_t index) { return (MPI_Aint)(offsetof(Queue, tasks) + index % SLOTS * sizeof(Task)); }

/* Adds tasks to the own queue. Returns 0 if it has no room. Only this rank adds, so the number of those added stays
 * what it has read. */
static int push(Pool *pool, const Task *tasks, uint32_t count) {
    FOMPI_Mem own = pool->queues[pool->rank];
    uint64_t range = (uint64_t)read_word(own, offsetof(Queue, range));
    uint32_t added = added_of(range);
    if (added - taken_of(range) + count > SLOTS) return 0;
    for (uint32_t i = 0; i < count; i++)
        FOMPI_Mem_put(&tasks[i], sizeof(Task), MPI_BYTE, own, slot(added + i), FOMPI_BLOCKING);
    add(count, own, offsetof(Queue, range));
    return 1;
}

/* Takes the oldest task of a queue. Returns 0 if there is none. The task is copied ahead of the compare-and-swap by
 * which it is taken. It is the right one if that succeeds: a slot is used again only when its task was taken, and the
 * numbers of a range never return to earlier values. */
static int take(FOMPI_Mem queue, Task *task) {
    uint64_t seen = (uint64_t)read_word(queue, offsetof(Queue, range));
    while (taken_of(seen) != added_of(seen)) {
        uint64_t wanted = seen + (1ULL << 32), found;
        FOMPI_Mem_get(task, sizeof *task, MPI_BYTE, queue, slot(taken_of(seen)), FOMPI_BLOCKING);
        FOMPI_Mem_compare_and_swap(&wanted, &seen, &found, MPI_UINT64_T, queue, offsetof(Queue, range), FOMPI_BLOCKING);
        if (found == seen) return 1;
        seen = found;
    }
    return 0;
}

static int steal(Pool *pool, Task *task) {
    for (int i = 1; i < pool->size; i++)
        if (take(pool->queues[(pool->rank + i) % pool->size], task)) {
            pool->stolen++;
            return 1;
        }
    return 0;
}

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Moves the numbers so that none of the first ones is greater than any of the others. Returns how many the first ones
 * are: at least 1, and not all. */
static int64_t divide(int64_t *numbers, int64_t count) {
    int64_t pivot = numbers[(count - 1) / 2], low = -1, high = count;
    for (;;) {
        do low++;
        while (numbers[low] < pivot);
        do high--;
        while (numbers[high] > pivot);
        if (low >= high) return high + 1;
        int64_t kept = numbers[low];
        numbers[low] = numbers[high];
        numbers[high] = kept;
    }
}

/* The numbers are at the owner before the tasks that read them are in the queue, and before the owner learns that they
 * are sorted. */
static void do_task(Pool *pool, const Task *task) {
    const MPI_Aint disp = (MPI_Aint)(offsetof(Array, numbers) + (size_t)task->first * sizeof(int64_t));
    FOMPI_Mem array;
    FOMPI_Mem_unpack(task->array, pool->win, &array);
    FOMPI_Mem_get(pool->buffer, task->count, MPI_INT64_T, array, disp, FOMPI_BLOCKING);
    int is_divided = 0;
    if (task->count > pool->grain) {
        Task parts[2] = {*task, *task};
        parts[0].count = divide(pool->buffer, task->count);
        parts[1].first += parts[0].count;
        parts[1].count -= parts[0].count;
        FOMPI_Mem_put(pool->buffer, task->count, MPI_INT64_T, array, disp, FOMPI_REMOTE);
        is_divided = push(pool, parts, 2);
    }
    if (!is_divided) {
        qsort(pool->buffer, (size_t)task->count, sizeof(int64_t), compare);
        FOMPI_Mem_put(pool->buffer, task->count, MPI_INT64_T, array, disp, FOMPI_BLOCKING);
        add(-task->count, array, offsetof(Array, unsorted));
    }
    FOMPI_Mem_release(&array);
    pool->tasks++;
}

static int64_t count_of(const Pool *pool) { return 1 + pool->length / (1 + pool->rank); }

/* Makes an array, and the task to sort it. */
static void begin_array(Pool *pool) {
    int64_t count = count_of(pool);
    MPI_Aint bytes = (MPI_Aint)(sizeof(Array) + (size_t)count * sizeof(int64_t));
    FOMPI_Mem_allocate(bytes, MPI_INFO_NULL, pool->win, &pool->array, &pool->mem);
    uint64_t random = 88172645463325252ULL + 1000 * (uint64_t)pool->arrays + (uint64_t)pool->rank;
    pool->sum = 0;
    pool->array->unsorted = count;
    for (int64_t i = 0; i < count; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        pool->array->numbers[i] = (int64_t)(random >> 24);
        pool->sum += pool->array->numbers[i];
    }
    Task task = {.count = count}, other;
    FOMPI_Mem_pack(pool->mem, task.array);
    while (!push(pool, &task, 1))
        if (take(pool->queues[pool->rank], &other)) do_task(pool, &other);
}

/* Checks an array that is sorted, frees it, and begins the next one, if there is one. */
static void end_array(Pool *pool) {
    FOMPI_Mem_withdraw(&pool->mem);
    const int64_t *numbers = pool->array->numbers, count = count_of(pool);
    int64_t sum = numbers[0];
    for (int64_t i = 1; i < count; i++) {
        pool->is_right &= numbers[i - 1] <= numbers[i];
        sum += numbers[i];
    }
    pool->is_right &= sum == pool->sum;
    MPI_Free_mem(pool->array);
    if (--pool->arrays > 0) begin_array(pool);
    else add(-1, pool->queues[0], offsetof(Queue, ranks));
}

static void run(Pool *pool) {
    begin_array(pool);
    for (;;) {
        Task task;
        if (pool->arrays > 0 && read_word(pool->mem, offsetof(Array, unsorted)) == 0) end_array(pool);
        if (take(pool->queues[pool->rank], &task) || steal(pool, &task)) do_task(pool, &task);
        else if (read_word(pool->queues[0], offsetof(Queue, ranks)) == 0) return;
        else sched_yield();
    }
}

/* Exposes the own queue, and tells all ranks. */
static Queue *make_queue(Pool *pool) {
    Queue *queue;
    FOMPI_Mem own;
    char packed[FOMPI_MEM_BYTES], *all = malloc((size_t)pool->size * FOMPI_MEM_BYTES);
    FOMPI_Mem_allocate(sizeof *queue, MPI_INFO_NULL, pool->win, &queue, &own);
    memset(queue, 0, sizeof *queue);
    queue->ranks = pool->size;
    FOMPI_Mem_pack(own, packed);
    MPI_Allgather(packed, FOMPI_MEM_BYTES, MPI_BYTE, all, FOMPI_MEM_BYTES, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < pool->size; i++)
        if (i != pool->rank) FOMPI_Mem_unpack(all + (size_t)i * FOMPI_MEM_BYTES, pool->win, &pool->queues[i]);
    pool->queues[pool->rank] = own;
    free(all);
    return queue;
}

static int measure(Pool *pool) {
    Queue *queue = make_queue(pool);
    int64_t counts[2], sums[2];
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    run(pool);
    double seconds = MPI_Wtime() - start;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < pool->size; i++)
        if (i != pool->rank) FOMPI_Mem_release(&pool->queues[i]);
    FOMPI_Mem_withdraw(&pool->queues[pool->rank]);
    MPI_Free_mem(queue);
    counts[0] = pool->tasks, counts[1] = pool->stolen;
    MPI_Reduce(counts, sums, 2, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    return example_result("taskqueue", "handles", seconds, pool->is_right, "length=%ld grain=%ld tasks=%ld stolen=%ld",
                          pool->length, pool->grain, (long)sums[0], (long)sums[1]);
}

int main(int argc, char **argv) {
    Option options[] = {
        {"length", "100000", "numbers of an array of rank 0; rank r has 1/(1+r) as many"},
        {"arrays", "5", "arrays of each rank"},
        {"grain", "1000", "numbers that a task sorts and does not divide"},
        {NULL, NULL, NULL},
    };
    example_begin(&argc, &argv, "Arrays are sorted by tasks that ranks steal; handles lead to the data.", options);
    Pool pool = {.length = option_number(options, "length", 1), .arrays = option_number(options, "arrays", 1),
                 .grain = option_number(options, "grain", 2), .is_right = 1};
    MPI_Comm_rank(MPI_COMM_WORLD, &pool.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &pool.size);
    pool.queues = malloc((size_t)pool.size * sizeof *pool.queues);
    pool.buffer = malloc((size_t)(pool.length + 1) * sizeof *pool.buffer);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &pool.win);
    if (has_handles()) pool.is_right = measure(&pool);
    else if (pool.rank == 0) fprintf(stderr, "taskqueue is left out: it needs libfompi\n");
    MPI_Win_free(&pool.win);
    free(pool.buffer);
    free(pool.queues);
    return example_end(pool.is_right);
}
