/* Stealing by messages: a rank without tasks asks another one for half of its tasks, and that one
 * answers between two of its own tasks. So a request waits until the other rank's present task is
 * over.
 *
 * Termination: a rank that finds no tasks enters a nonblocking barrier, and answers until all ranks
 * have entered. Then no request is left, because each rank has had its own answers before. */
#include "worklist.h"
#include <sched.h>

enum { REQUEST = 1, GRANT = 2 }; /* tags */

/* Answers all requests that have arrived. Returns how many those were. */
static int answer(Range *mine) {
    for (int answers = 0;; answers++) {
        int has_arrived;
        MPI_Status status;
        MPI_Iprobe(MPI_ANY_SOURCE, REQUEST, MPI_COMM_WORLD, &has_arrived, &status);
        if (!has_arrived) return answers;
        MPI_Recv(NULL, 0, MPI_INT32_T, status.MPI_SOURCE, REQUEST, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        Range half = cut_half(mine);
        /* It does not wait for long: the other rank has begun to receive. */
        MPI_Send(&half, 2, MPI_INT32_T, status.MPI_SOURCE, GRANT, MPI_COMM_WORLD);
    }
}

/* Answers until an operation of this rank is complete. */
static void complete(MPI_Request *request, Range *mine) {
    for (int is_over = 0;;) {
        MPI_Test(request, &is_over, MPI_STATUS_IGNORE);
        if (is_over) return;
        /* Where there are more ranks than cores, the other rank may need this core. */
        if (answer(mine) == 0) sched_yield();
    }
}

/* Asks a rank for tasks. Returns whether there were any. */
static int ask(Work *w, int victim, Range *mine) {
    MPI_Request grant, request;
    Range granted;
    double begin = MPI_Wtime();
    MPI_Irecv(&granted, 2, MPI_INT32_T, victim, GRANT, MPI_COMM_WORLD, &grant);
    MPI_Isend(NULL, 0, MPI_INT32_T, victim, REQUEST, MPI_COMM_WORLD, &request);
    complete(&request, mine);
    complete(&grant, mine);
    note_wait(w, begin);
    if (is_empty(granted)) return 0;
    *mine = granted;
    return 1;
}

static int ask_any(Work *w, Range *mine) {
    for (int i = 1; i < w->size; i++)
        if (ask(w, (w->rank + i) % w->size, mine)) return 1;
    return 0;
}

void run_messages(Work *w) {
    Range mine = share(w, w->rank);
    MPI_Request all_are_done;
    do {
        while (!is_empty(mine)) {
            do_task(w, mine.first++);
            answer(&mine);
        }
    } while (ask_any(w, &mine));
    MPI_Ibarrier(MPI_COMM_WORLD, &all_are_done);
    complete(&all_are_done, &mine);
}
