// Threads of each rank store to memory, and read a pipe into it, while windows over it are made and
// freed: no store and no byte is lost. A thread waits on a condition in it. MPI-4.1 section 12.2.1.
// ranks: 1 2 3
// settings: FOMPI_ADOPT=always

#define _GNU_SOURCE
#include "adopted.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

enum { PAGES = 9, WORDS = PAGES * PAGE / 8, TURNS = 150, WAKES = 200 };

static volatile long *memory;
static atomic_int stop;
static long added[2], awake;
static atomic_long received;
// Where a thread sleeps: in the last page of the window.
static struct { pthread_mutex_t mutex; pthread_cond_t condition; long turn; } *place;

// Adds to words of its own, one of each four.
static void *add(void *argument)
{
    const long thread = (long *)argument - added;
    long at = 0;
    while (!stop) {
        memory[at * 4 + thread]++;
        added[thread]++;
        at = (at + 97) % (WORDS / 4 - 60);
    }
    return NULL;
}

static void *read_pipe(void *argument)
{
    int ends[2];
    (void)argument;
    CHECK_EQ(pipe(ends), 0);
    for (long number = 1; !stop; number++) {
        volatile long *to = &memory[number * 31 % (WORDS / 4 - 60) * 4 + 2];
        CHECK_EQ(write(ends[1], &number, sizeof number), sizeof number);
        const ssize_t got = read(ends[0], (void *)to, sizeof number);
        if (got == sizeof number) {
            CHECK_EQ(*to, number);
            received++;
        } else { // without rights the kernel's own stores may fail while the page moves
            long rest;
            CHECK(got < 0 && errno == EFAULT);
            CHECK_EQ(read(ends[0], &rest, sizeof rest), sizeof rest);
        }
    }
    close(ends[0]);
    close(ends[1]);
    return NULL;
}

static void *sleep_there(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&place->mutex);
    for (long turn = 1; turn <= WAKES; turn++) {
        while (place->turn < turn)
            pthread_cond_wait(&place->condition, &place->mutex);
        awake = turn;
    }
    pthread_mutex_unlock(&place->mutex);
    return NULL;
}

static void *wake(void *argument)
{
    (void)argument;
    for (int turn = 0; turn < WAKES; turn++) {
        pthread_mutex_lock(&place->mutex);
        place->turn++;
        pthread_cond_signal(&place->condition);
        pthread_mutex_unlock(&place->mutex);
        usleep(500);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    void *(*const work[])(void *) = {add, add, read_pipe, sleep_there, wake};
    pthread_t threads[5];
    const int turns = library_is_here() ? TURNS : 3;
    int level;
    check_within(60);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    memory = memset(touched_pages(PAGES), 0, PAGES * PAGE);
    place = (void *)&memory[WORDS - 60];
    pthread_mutex_init(&place->mutex, NULL);
    pthread_cond_init(&place->condition, NULL);
    for (int n = 0; n < 5; n++)
        CHECK_EQ(pthread_create(&threads[n], NULL, work[n], n < 2 ? &added[n] : NULL), 0);
    for (int turn = 0; turn < turns; turn++) {
        MPI_Win win = window_over((void *)memory, PAGES * PAGE, 8);
        const long one = 1;
        long before;
        OK(MPI_Win_lock_all(0, win));
        OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, next_rank(), 3, MPI_SUM, win));
        OK(MPI_Win_unlock_all(win));
        OK(MPI_Win_free(&win));
    }
    while (received == 0)
        usleep(100);
    stop = 1;
    for (int n = 0; n < 5; n++)
        CHECK_EQ(pthread_join(threads[n], NULL), 0);
    long sums[2] = {0, 0};
    for (int at = 0; at < WORDS / 4 - 60; at++)
        for (int thread = 0; thread < 2; thread++)
            sums[thread] += memory[at * 4 + thread];
    CHECK_EQ(sums[0], added[0]);
    CHECK_EQ(sums[1], added[1]);
    CHECK_EQ(memory[3], turns);
    CHECK_EQ(awake, WAKES);
    CHECK(received > 0);
    return check_end();
}
