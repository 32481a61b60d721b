#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  char text[MPI_MAX_ERROR_STRING];
  int *box, one = 1, code, length;
  MPI_Win win;
  MPI_Init(&argc, &argv);
  MPI_Win_allocate(sizeof *box, sizeof *box, MPI_INFO_NULL, MPI_COMM_WORLD, &box, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  code = MPI_Put(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
  if (code != MPI_SUCCESS) {
    MPI_Error_string(code, text, &length);
    printf("%s\n", text);
  }
  MPI_Win_free(&win);
  MPI_Finalize();
}
