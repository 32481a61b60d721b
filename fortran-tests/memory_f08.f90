! Memory of the program through the module mpi_f08: a window over an array, an array attached to a
! dynamic window and reached by its address, and memory from MPI_Alloc_mem behind a C_PTR.
! MPI-4.1 sections 12.2.1, 12.2.4, 10.2 and 19.1.
! ranks: 1 2 4

module memory_checks_f08
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: INTS = 100
  integer :: my_rank, ranks, next, previous

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    write (0, *) 'memory_f08: rank ', my_rank, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine check

  ! Puts to the second element and on of the next rank's memory, gets it back, counts in the first.
  subroutine reach(win, first, unit_bytes)
    type(MPI_Win), intent(in) :: win
    integer(MPI_ADDRESS_KIND), intent(in) :: first
    integer(MPI_ADDRESS_KIND), intent(in) :: unit_bytes
    integer, asynchronous :: values(10), got(10), one, before
    integer :: i
    values = [(1000 * my_rank + i, i=1, 10)]
    one = 1
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win)
    call MPI_Put(values, 10, MPI_INTEGER, next, MPI_Aint_add(first, unit_bytes), 10, MPI_INTEGER, &
                 win)
    call MPI_Win_flush(next, win)
    call MPI_Get(got, 10, MPI_INTEGER, next, MPI_Aint_add(first, unit_bytes), 10, MPI_INTEGER, win)
    call MPI_Accumulate(one, 1, MPI_INTEGER, next, first, 1, MPI_INTEGER, MPI_SUM, win)
    call MPI_Win_flush(next, win)
    call MPI_Fetch_and_op(one, before, MPI_INTEGER, next, first, MPI_SUM, win)
    call MPI_Win_unlock(next, win)
    call MPI_F_sync_reg(got)
    call MPI_F_sync_reg(before)
    call check(all(got == values), 'get after put')
    call check(before == 1, 'fetch and op')
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine reach

  subroutine was_reached(win, memory, what)
    type(MPI_Win), intent(in) :: win
    integer, asynchronous :: memory(INTS)
    character(*), intent(in) :: what
    integer :: i
    call MPI_Win_lock(MPI_LOCK_SHARED, my_rank, 0, win)
    call check(memory(1) == 2, what // ': counted')
    call check(all(memory(2:11) == [(1000 * previous + i, i=1, 10)]), what // ': put')
    call check(all(memory(12:) == 0), what // ': nothing else')
    call MPI_Win_unlock(my_rank, win)
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine was_reached

  subroutine created()
    type(MPI_Win) :: win
    integer, asynchronous, target :: memory(INTS)
    integer(MPI_ADDRESS_KIND) :: bytes, value
    logical :: flag
    memory = 0
    bytes = 4 * INTS
    call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag)
    call check(flag .and. value == MPI_WIN_FLAVOR_CREATE, 'created: flavour')
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag)
    call check(flag .and. value == bytes, 'created: size')
    call reach(win, 0_MPI_ADDRESS_KIND, 1_MPI_ADDRESS_KIND)
    call was_reached(win, memory, 'created')
    call MPI_Win_free(win)
  end subroutine created

  subroutine dynamic()
    type(MPI_Win) :: win
    integer, asynchronous, target :: memory(INTS), two_more(2 * INTS)
    integer(MPI_ADDRESS_KIND) :: bytes, mine(1), places(64), value
    logical :: flag
    memory = 0
    two_more = 0
    bytes = 4 * INTS
    call MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag)
    call check(flag .and. value == MPI_WIN_FLAVOR_DYNAMIC, 'dynamic: flavour')
    call MPI_Win_attach(win, memory, bytes)
    call MPI_Win_attach(win, two_more, 2 * bytes)
    call MPI_Get_address(memory, mine(1))
    call MPI_Allgather(mine, 1, MPI_AINT, places, 1, MPI_AINT, MPI_COMM_WORLD)
    call reach(win, places(next + 1), 4_MPI_ADDRESS_KIND)
    call was_reached(win, memory, 'dynamic')
    call MPI_Win_detach(win, memory)
    call MPI_Get_address(two_more(INTS + 1), mine(1))
    call MPI_Allgather(mine, 1, MPI_AINT, places, 1, MPI_AINT, MPI_COMM_WORLD)
    call reach(win, places(next + 1), 4_MPI_ADDRESS_KIND)
    call was_reached(win, two_more(INTS + 1:), 'dynamic again')
    call MPI_Win_detach(win, two_more)
    call MPI_Win_free(win)
  end subroutine dynamic

  subroutine of_alloc_mem()
    type(MPI_Win) :: win
    type(c_ptr) :: base
    integer, pointer, contiguous, asynchronous :: memory(:)
    integer(MPI_ADDRESS_KIND) :: bytes
    bytes = 4 * INTS
    call MPI_Alloc_mem(bytes, MPI_INFO_NULL, base)
    call check(c_associated(base), 'alloc_mem: a place')
    call c_f_pointer(base, memory, [INTS])
    memory = 0
    call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call reach(win, 0_MPI_ADDRESS_KIND, 1_MPI_ADDRESS_KIND)
    call was_reached(win, memory, 'alloc_mem')
    call MPI_Win_free(win)
    call MPI_Free_mem(memory)
  end subroutine of_alloc_mem

end module memory_checks_f08

program memory_f08
  use memory_checks_f08
  implicit none
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, my_rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = mod(my_rank + 1, ranks)
  previous = mod(my_rank + ranks - 1, ranks)
  call created()
  call dynamic()
  call of_alloc_mem()
  call MPI_Finalize()
end program memory_f08
