/* One counter for all ranks: the number of the next task, in the window of rank 0, which computes
 * as the others do. Fetch-and-op gives each number to one rank only. */
#include "worklist.h"

void prepare_counter(Work *w) { set_word(w, 0); }

void run_counter(Work *w) {
    for (;;) {
        uint64_t one = 1, task;
        double begin = MPI_Wtime();
        MPI_Fetch_and_op(&one, &task, MPI_UINT64_T, 0, 0, MPI_SUM, w->win);
        MPI_Win_flush(0, w->win); /* `task` is there only now */
        if (w->rank != 0) note_wait(w, begin);
        if (task >= (uint64_t)w->tasks) return;
        do_task(w, (int32_t)task);
    }
}
