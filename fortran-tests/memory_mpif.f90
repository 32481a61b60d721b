! Memory of the program through mpif.h, which knows no C_PTR: a window over an array, an array
! attached to a dynamic window and reached by its address, and memory from MPI_Alloc_mem, whose
! place is an integer as wide as an address. MPI-4.1 sections 12.2.1, 12.2.4, 10.2 and 19.1.
! ranks: 1 2 4

subroutine check(holds, what)
  implicit none
  include 'mpif.h'
  logical holds
  character(*) what
  integer ierr
  if (holds) return
  write (0, *) 'memory_mpif: ', what
  call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
end subroutine check

! Puts to the second element and on of the next rank's memory, gets it back, counts in the first.
! A call with a variable keeps the compiler from what it remembers of it (MPI-4.1 section 19.1.17).
subroutine reach(win, first, unit_bytes, my_rank, next)
  implicit none
  include 'mpif.h'
  integer win, my_rank, next, i, ierr
  integer(MPI_ADDRESS_KIND) first, unit_bytes, second
  integer values(10), got(10), one(1), before(1)
  second = first + unit_bytes
  values = [(1000 * my_rank + i, i=1, 10)]
  one = 1
  call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win, ierr)
  call MPI_Put(values, 10, MPI_INTEGER, next, second, 10, MPI_INTEGER, win, ierr)
  call MPI_Win_flush(next, win, ierr)
  call MPI_Get(got, 10, MPI_INTEGER, next, second, 10, MPI_INTEGER, win, ierr)
  call MPI_Accumulate(one, 1, MPI_INTEGER, next, first, 1, MPI_INTEGER, MPI_SUM, win, ierr)
  call MPI_Win_flush(next, win, ierr)
  call MPI_Fetch_and_op(one, before, MPI_INTEGER, next, first, MPI_SUM, win, ierr)
  call MPI_Win_unlock(next, win, ierr)
  call MPI_Get_address(got, second, ierr)
  call MPI_Get_address(before, second, ierr)
  call check(all(got == values), 'get after put')
  call check(before(1) == 1, 'fetch and op')
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
end subroutine reach

subroutine was_reached(win, memory, my_rank, previous, what)
  implicit none
  include 'mpif.h'
  integer win, my_rank, previous, i, ierr
  integer memory(100)
  integer(MPI_ADDRESS_KIND) place
  character(*) what
  call MPI_Win_lock(MPI_LOCK_SHARED, my_rank, 0, win, ierr)
  call MPI_Get_address(memory, place, ierr)
  call check(memory(1) == 2, what // ': counted')
  call check(all(memory(2:11) == [(1000 * previous + i, i=1, 10)]), what // ': put')
  call check(all(memory(12:) == 0), what // ': nothing else')
  call MPI_Win_unlock(my_rank, win, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
end subroutine was_reached

subroutine created(memory, my_rank, next, previous, what)
  implicit none
  include 'mpif.h'
  integer memory(100)
  integer my_rank, next, previous, win, ierr
  integer(MPI_ADDRESS_KIND) bytes, value, zero, one
  logical flag
  character(*) what
  memory = 0
  bytes = 4 * 100
  zero = 0
  one = 1
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag, ierr)
  call check(flag .and. value == MPI_WIN_FLAVOR_CREATE, what // ': flavour')
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag, ierr)
  call check(flag .and. value == bytes, what // ': size')
  call reach(win, zero, one, my_rank, next)
  call was_reached(win, memory, my_rank, previous, what)
  call MPI_Win_free(win, ierr)
end subroutine created

subroutine dynamic(memory, my_rank, next, previous)
  implicit none
  include 'mpif.h'
  integer memory(100)
  integer my_rank, next, previous, win, ierr
  integer(MPI_ADDRESS_KIND) bytes, value, mine(1), places(64), four
  logical flag
  memory = 0
  bytes = 4 * 100
  four = 4
  call MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag, ierr)
  call check(flag .and. value == MPI_WIN_FLAVOR_DYNAMIC, 'dynamic: flavour')
  call MPI_Win_attach(win, memory, bytes, ierr)
  call MPI_Get_address(memory, mine(1), ierr)
  call MPI_Allgather(mine, 1, MPI_AINT, places, 1, MPI_AINT, MPI_COMM_WORLD, ierr)
  call reach(win, places(next + 1), four, my_rank, next)
  call was_reached(win, memory, my_rank, previous, 'dynamic')
  call MPI_Win_detach(win, memory, ierr)
  memory = 0
  call MPI_Win_attach(win, memory, bytes, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call reach(win, places(next + 1), four, my_rank, next)
  call was_reached(win, memory, my_rank, previous, 'dynamic again')
  call MPI_Win_detach(win, memory, ierr)
  call MPI_Win_free(win, ierr)
end subroutine dynamic

program memory_mpif
  use, intrinsic :: iso_c_binding
  implicit none
  include 'mpif.h'
  integer own(100)
  integer, pointer :: memory(:)
  integer my_rank, ranks, next, previous, ierr
  integer(MPI_ADDRESS_KIND) bytes, base
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, my_rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  next = mod(my_rank + 1, ranks)
  previous = mod(my_rank + ranks - 1, ranks)
  call created(own, my_rank, next, previous, 'created')
  call dynamic(own, my_rank, next, previous)
  bytes = 4 * 100
  base = 0
  call MPI_Alloc_mem(bytes, MPI_INFO_NULL, base, ierr)
  call check(base /= 0, 'alloc_mem: a place')
  call c_f_pointer(transfer(base, c_null_ptr), memory, [100])
  call created(memory, my_rank, next, previous, 'alloc_mem')
  call MPI_Free_mem(memory, ierr)
  call MPI_Finalize(ierr)
end program memory_mpif
