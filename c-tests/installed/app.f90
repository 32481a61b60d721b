! The same as app.c, by the bindings of mpi_f08: the program itself calls nothing of libfompi.
program app
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  type(MPI_Win) :: win
  type(c_ptr) :: base
  integer, pointer :: got
  integer :: me, n

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  call MPI_Win_allocate(4_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
  call c_f_pointer(base, got)
  call MPI_Win_fence(0, win)
  call MPI_Put(me, 1, MPI_INTEGER, mod(me + 1, n), 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win)
  call MPI_Win_fence(0, win)
  print '("rank ", i0, " got ", i0)', me, got
  call MPI_Win_free(win)
  call MPI_Finalize()
end program app
