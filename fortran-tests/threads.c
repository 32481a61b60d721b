// Threads for programs of Fortran, which has none of its own.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS_MAX = 16 };

struct thread {
    pthread_t id;
    void (*work)(int number);
    int number;
};

static void *begin(void *argument)
{
    const struct thread *thread = argument;
    thread->work(thread->number);
    return NULL;
}

// Calls a procedure of Fortran with each number from 0 on, in so many threads at once.
void c_run_threads(int count, void (*work)(int number))
{
    struct thread threads[THREADS_MAX];
    for (int i = 0; i < count; i++) {
        threads[i].work = work;
        threads[i].number = i;
        if (count > THREADS_MAX || pthread_create(&threads[i].id, NULL, begin, &threads[i]) != 0) {
            fprintf(stderr, "no thread\n");
            exit(1);
        }
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i].id, NULL);
}
