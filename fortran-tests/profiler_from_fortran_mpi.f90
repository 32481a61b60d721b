! A tool that wraps C functions sees the calls of a Fortran program where the MPI's Fortran goes
! through C, each once, and not elsewhere: whether it does, MPI_Barrier tells, which is the MPI's.
! MPI-4.1 section 15.2.2.
! ranks: 1 2
! profiler: every
program profiler_from_fortran_mpi
  use mpi
  use, intrinsic :: iso_c_binding
  implicit none

  abstract interface
    function count_of(name) bind(c)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int) :: count_of
    end function
    function number() bind(c)
      import :: c_int
      integer(c_int) :: number
    end function
  end interface
  interface
    function dlsym(handle, name) bind(c)
      import :: c_char, c_funptr, c_ptr
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: name(*)
      type(c_funptr) :: dlsym
    end function
  end interface

  ! Of profiler/every.c, which is preloaded before the library under test.
  procedure(count_of), pointer :: profiler_count
  procedure(number), pointer :: profiler_others
  integer :: rank, ranks, ierror, win, value, before, through_c
  integer(kind=MPI_ADDRESS_KIND), parameter :: bytes = 64, first = 0
  integer :: memory(16)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call c_f_procpointer(dlsym(c_null_ptr, 'profiler_count' // c_null_char), profiler_count)
  call c_f_procpointer(dlsym(c_null_ptr, 'profiler_others' // c_null_char), profiler_others)
  before = profiler_others()
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  through_c = profiler_others() - before
  call check('MPI_Barrier', through_c, through_c * through_c)

  memory = 0
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierror)
  call MPI_Win_fence(0, win, ierror)
  value = 7 + rank
  call MPI_Put(value, 1, MPI_INTEGER, mod(rank + 1, ranks), first, 1, MPI_INTEGER, win, ierror)
  call MPI_Win_fence(0, win, ierror)
  call check('what was put', memory(1), 7 + mod(rank + ranks - 1, ranks))
  call MPI_Win_fence(MPI_MODE_NOSUCCEED, win, ierror)
  call MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win, ierror)
  call MPI_Win_unlock(0, win, ierror)
  call MPI_Win_free(win, ierror)

  call seen('Win_create', 1)
  call seen('Win_fence', 3)
  call seen('Put', 1)
  call seen('Win_lock', 1)
  call seen('Win_unlock', 1)
  call seen('Win_free', 1)
  call MPI_Finalize(ierror)

contains

  subroutine seen(name, calls)
    character(*), intent(in) :: name
    integer, intent(in) :: calls
    call check('calls of MPI_' // name, int(profiler_count(name // c_null_char)), calls * through_c)
  end subroutine

  subroutine check(what, got, want)
    character(*), intent(in) :: what
    integer, intent(in) :: got, want
    integer :: error
    if (got == want) return
    print *, what, ': ', got, ', not ', want
    call MPI_Abort(MPI_COMM_WORLD, 1, error)
  end subroutine
end program
