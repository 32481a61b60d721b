! Memory handles by the module `fompi` (fortran/fompi.f90), with handles of mpi_f08 (-DF08), of the module
! mpi (-DMODULE) or of mpif.h, around the ring; tests/test_next.py builds it. Prints `rank R is right`.

#ifdef F08
#define HANDLE(name) type(name)
#else
#define HANDLE(name) integer
#endif

program handles
#ifdef F08
  use mpi_f08
#elif defined(MODULE)
  use mpi
#endif
  use fompi
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_ptr
  implicit none
#if !defined(F08) && !defined(MODULE)
  include 'mpif.h'
#endif
  integer, parameter :: words = 8
  integer :: rank, size, next, before, ierror, owner, i
  integer, asynchronous :: out(words), in(words), one, was, wanted, new
  integer(MPI_ADDRESS_KIND) :: bytes, at
  integer(MPI_COUNT_KIND) :: many, single
  character(1) :: own(FOMPI_MEM_BYTES), other(FOMPI_MEM_BYTES)
  integer, pointer, asynchronous :: memory(:)
  integer, asynchronous :: box(words)
  type(c_ptr) :: base, found
  type(FOMPI_Mem) :: mine, theirs, exposed, mems(1)
  HANDLE(MPI_Win) :: win, wins(1), over
  HANDLE(MPI_Request) :: request

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
  next = mod(rank + 1, size)
  before = mod(rank + size - 1, size)
  many = words
  single = 1
  bytes = 4 * words
  at = 0
  call MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, win, ierror)
  call FOMPI_Mem_allocate(bytes, MPI_INFO_NULL, win, base, mine, ierror)
  call right(ierror == MPI_SUCCESS)
  call c_f_pointer(base, memory, [words])
  memory = 0
  call FOMPI_Mem_pack(mine, own, ierror)
  call right(ierror == MPI_SUCCESS)
  call MPI_Sendrecv(own, FOMPI_MEM_BYTES, MPI_CHARACTER, before, 0, other, FOMPI_MEM_BYTES, MPI_CHARACTER, &
      next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  call FOMPI_Mem_unpack(other, win, theirs, ierror)
  call right(ierror == MPI_SUCCESS)
  call FOMPI_Mem_query(theirs, owner, bytes, found, ierror)
  call right(owner == next .and. bytes == 4 * words)
  out = [(100 * rank + i, i = 1, words)]
  call FOMPI_Mem_put(out, many, MPI_INTEGER, theirs, at, FOMPI_REMOTE + FOMPI_ORDERED, ierror)
  call FOMPI_Mem_get(in, many, MPI_INTEGER, theirs, at, FOMPI_BLOCKING, ierror)
  call right(ierror == MPI_SUCCESS .and. all(in == out))
  one = 1
  call FOMPI_Mem_accumulate(one, single, MPI_INTEGER, theirs, at, MPI_SUM, 0, ierror)
  call FOMPI_Complete(next, win, ierror)
  call FOMPI_Mem_fetch_and_op(one, was, MPI_INTEGER, theirs, at, MPI_SUM, FOMPI_BLOCKING, ierror)
  call right(was == out(1) + 1)
  wanted = out(1) + 2
  new = -5
  call FOMPI_Mem_compare_and_swap(new, wanted, was, MPI_INTEGER, theirs, at, FOMPI_REMOTE, ierror)
  call right(ierror == MPI_SUCCESS .and. was == wanted)
  call FOMPI_Complete(FOMPI_ALL_RANKS, win, ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call right(memory(1) == -5 .and. all(memory(2:) == [(100 * before + i, i = 2, words)]))
  call FOMPI_Complete_collective(win, ierror)
  call right(ierror == MPI_SUCCESS)
  ! Six times one, then what was there before, by each kind of transfer.
  new = 6
  call FOMPI_Mem_accumulate_scaled(new, one, single, MPI_INTEGER, theirs, at, FOMPI_REMOTE, ierror)
  call right(ierror == MPI_SUCCESS)
  call FOMPI_Xfer(FOMPI_GET, MPI_NO_OP, out, single, MPI_INTEGER, was, single, MPI_INTEGER, out, theirs, at, &
      single, MPI_INTEGER, 0, request, ierror)
  call right(ierror == MPI_SUCCESS)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
  call right(ierror == MPI_SUCCESS .and. was == 1)
  call FOMPI_Xfer(FOMPI_GET_ACCUMULATE, MPI_SUM, one, single, MPI_INTEGER, was, single, MPI_INTEGER, out, &
      theirs, at, single, MPI_INTEGER, FOMPI_BLOCKING, request, ierror)
  call right(ierror == MPI_SUCCESS .and. was == 1)
  wanted = 2
  new = 9
  call FOMPI_Xfer(FOMPI_COMPARE_AND_SWAP, MPI_NO_OP, new, single, MPI_INTEGER, was, single, MPI_INTEGER, wanted, &
      theirs, at, single, MPI_INTEGER, FOMPI_REMOTE, request, ierror)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
  call right(was == 2)
  call MPI_Win_lock_all(0, win, ierror)
  call FOMPI_Win_order(next, win, ierror)
  call right(ierror == MPI_SUCCESS)
  call FOMPI_Win_order(FOMPI_ALL_RANKS, win, ierror)
  call right(ierror == MPI_SUCCESS)
  wins(1) = win
  call FOMPI_Win_nflush(next, 1, wins, ierror)
  call right(ierror == MPI_SUCCESS)
  call MPI_Win_unlock_all(win, ierror)
  ! A window over the memory of the handle, and a duplicate of the window.
  mems(1) = theirs
  call FOMPI_Win_from_mem(1, mems, MPI_INFO_NULL, over, ierror)
  call right(ierror == MPI_SUCCESS)
  at = 4
  call MPI_Put(new, 1, MPI_INTEGER, next, at, 1, MPI_INTEGER, over, ierror)
  call right(ierror == MPI_SUCCESS)
  call MPI_Win_free(over, ierror)
  call right(ierror == MPI_SUCCESS)
  call FOMPI_Win_dup(win, MPI_INFO_NULL, over, ierror)
  call right(ierror == MPI_SUCCESS)
  call MPI_Win_flush(next, over, ierror)
  call MPI_Win_free(over, ierror)
  call right(ierror == MPI_SUCCESS)
  call FOMPI_Complete_collective(win, ierror)
  call right(memory(1) == 9 .and. memory(2) == 9)
  call FOMPI_Mem_expose(box, bytes, MPI_INFO_NULL, win, exposed, ierror)
  call right(ierror == MPI_SUCCESS)
  call FOMPI_Mem_withdraw(exposed, ierror)
  call right(ierror == MPI_SUCCESS)
  call FOMPI_Mem_release(theirs, ierror)
  call right(ierror == MPI_SUCCESS)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call FOMPI_Mem_withdraw(mine, ierror)
  call right(ierror == MPI_SUCCESS .and. FOMPI_NOTIFY(2) == 528)
#ifdef F08
  call FOMPI_Complete(next, win)
#endif
  call MPI_Win_free(win, ierror)
  print '(a,i0,a)', 'rank ', rank, ' is right'
  call MPI_Finalize(ierror)

contains

  subroutine right(condition)
    logical, intent(in) :: condition
    integer, save :: number = 0
    number = number + 1
    if (.not. condition) then
      print '(a,i0,a,i0)', 'rank ', rank, ' is wrong at check ', number
      call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
    end if
  end subroutine
end program
