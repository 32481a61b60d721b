// What the tests with several threads share: MPI for threads, and running them.

#ifndef THREADS_H
#define THREADS_H

#include "check.h"

#include <pthread.h>

// Starts MPI with MPI_THREAD_MULTIPLE and the watchdog; false where the MPI has it not.
UNUSED static int check_start_threads(int *argc, char ***argv)
{
    int provided;
    check_within(60);
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return provided >= MPI_THREAD_MULTIPLE;
}

// Runs `count` threads to their end; each is given the address of its integer.
UNUSED static void run_threads(int count, void *(*work)(void *), int *numbers)
{
    pthread_t threads[count];
    for (int t = 0; t < count; t++)
        CHECK_EQ(pthread_create(&threads[t], NULL, work, &numbers[t]), 0);
    for (int t = 0; t < count; t++)
        CHECK_EQ(pthread_join(threads[t], NULL), 0);
}

// The same for threads that are given 0, 1 and so on.
UNUSED static void run_numbered_threads(int count, void *(*work)(void *))
{
    int numbers[count];
    for (int t = 0; t < count; t++)
        numbers[t] = t;
    run_threads(count, work, numbers);
}

#endif
