#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  int rank, one = 1, before;
  int *count;
  MPI_Win win;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Alloc_mem(sizeof *count, MPI_INFO_NULL, &count); /* not malloc */
  *count = 0;
  MPI_Win_create(count, sizeof *count, sizeof *count, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < 1000; i++) {
    MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win); /* `before` is there now */
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_unlock_all(win);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win); /* to read one's own memory */
  if (rank == 0) printf("counted %d\n", *count);
  MPI_Win_unlock(rank, win);
  MPI_Win_free(&win);
  MPI_Free_mem(count);
  MPI_Finalize();
}
