! Windows of libfompi and windows that it leaves to the host MPI, through mpi_f08.
program doors
  use mpi_f08
  use iso_c_binding
  implicit none
  type(MPI_Win) :: ours, theirs
  integer :: rank, size, value, i, ierr
  integer(MPI_ADDRESS_KIND) :: disp = 0, bytes = 64, attribute
  logical :: flag
  integer, target, volatile :: memory(16)
  integer, pointer, volatile :: data(:)
  type(c_ptr) :: base
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, ours)
  call c_f_pointer(base, data, [16])
  memory = 0
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, theirs)
  call MPI_Win_get_attr(ours, MPI_WIN_SIZE, attribute, flag)
  if (.not. flag .or. attribute /= 64) error stop 1
  call MPI_Win_get_attr(theirs, MPI_WIN_SIZE, attribute, flag)
  if (.not. flag .or. attribute /= 64) error stop 2
  call MPI_Win_set_errhandler(ours, MPI_ERRORS_RETURN)
  call MPI_Win_set_errhandler(theirs, MPI_ERRORS_RETURN)
  do i = 1, 3
    value = 10 * i + rank
    call MPI_Win_fence(0, ours)
    call MPI_Put(value, 1, MPI_INTEGER, mod(rank + 1, size), disp, 1, MPI_INTEGER, ours)
    call MPI_Win_fence(0, ours)
    if (data(1) /= 10 * i + mod(rank + size - 1, size)) error stop 3
    call MPI_Win_fence(0, theirs)
    call MPI_Put(value, 1, MPI_INTEGER, mod(rank + 1, size), disp, 1, MPI_INTEGER, theirs)
    call MPI_Win_fence(0, theirs)
    if (memory(1) /= 10 * i + mod(rank + size - 1, size)) error stop 4
  end do
  call MPI_Win_fence(0, ours)
  call MPI_Put(value, 1, MPI_INTEGER, size, disp, 1, MPI_INTEGER, ours, ierr)
  if (ierr == MPI_SUCCESS) error stop 5
  call MPI_Win_fence(0, ours)
  call MPI_Win_free(ours)
  call MPI_Win_free(theirs)
  if (ours /= MPI_WIN_NULL) error stop 6
  call MPI_Finalize()
end program
