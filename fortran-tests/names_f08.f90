! The name of a window through the module mpi_f08. MPI-4.1 section 7.8.
! ranks: 1

program names_f08
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  type(MPI_Win) :: win
  type(c_ptr) :: base
  character(MPI_MAX_OBJECT_NAME) :: name
  integer :: length
  integer(MPI_ADDRESS_KIND) :: bytes
  bytes = 64
  call MPI_Init()
  call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
  call MPI_Win_set_name(win, 'halo')
  name = repeat('z', len(name))
  call MPI_Win_get_name(win, name, length)
  if (length /= 4 .or. name /= 'halo') then
    write (0, *) 'names_f08: the name is ', name(1:8), length
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end if
  call MPI_Win_free(win)
  call MPI_Finalize()
end program names_f08
