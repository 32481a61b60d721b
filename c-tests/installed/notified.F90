! The notified operations of the module `fompi` (fortran/fompi.f90), with handles of mpi_f08 (-DF08), of
! the module mpi (-DMODULE) or of mpif.h, around the ring; tests/test_next.py builds it. With -DNEXT under
! the names of the MPI Forum's proposal in mpif.h, for libfompi_next.so. Prints `rank R is right`.

#ifdef F08
#define HANDLE(name) type(name)
#else
#define HANDLE(name) integer
#endif
#ifdef NEXT
#define FOMPI_Put_notify MPI_Put_notify
#define FOMPI_Get_notify MPI_Get_notify
#define FOMPI_Accumulate_notify MPI_Accumulate_notify
#define FOMPI_Get_accumulate_notify MPI_Get_accumulate_notify
#define FOMPI_Rput_notify MPI_Rput_notify
#define FOMPI_Rget_notify MPI_Rget_notify
#define FOMPI_Raccumulate_notify MPI_Raccumulate_notify
#define FOMPI_Rget_accumulate_notify MPI_Rget_accumulate_notify
#define FOMPI_Win_set_num_notify MPI_Win_set_num_notify
#define FOMPI_Win_get_num_notify MPI_Win_get_num_notify
#define FOMPI_Win_get_notify_value MPI_Win_get_notify_value
#define FOMPI_Win_reset_notify_value MPI_Win_reset_notify_value
#endif

program notified
#ifdef F08
  use mpi_f08
#elif defined(MODULE)
  use mpi
#endif
#ifndef NEXT
  use fompi
#endif
  implicit none
#if !defined(F08) && !defined(MODULE)
  include 'mpif.h'
#endif
#ifdef NEXT
  external :: MPI_Put_notify, MPI_Get_notify, MPI_Accumulate_notify, MPI_Get_accumulate_notify
  external :: MPI_Rput_notify, MPI_Rget_notify, MPI_Raccumulate_notify, MPI_Rget_accumulate_notify
  external :: MPI_Win_set_num_notify, MPI_Win_get_num_notify
  external :: MPI_Win_get_notify_value, MPI_Win_reset_notify_value
#endif
  integer, parameter :: count = 5
  integer :: rank, size, next, before, ierror, number, i, expected(count), own(count)
  integer(MPI_ADDRESS_KIND) :: bytes, at
  integer(MPI_COUNT_KIND) :: value
  integer, asynchronous :: window(0:9 * count - 1), out(count), in(count, 4)
  HANDLE(MPI_Win) :: win
  HANDLE(MPI_Request) :: request

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
  next = mod(rank + 1, size)
  before = mod(rank + size - 1, size)
  out = [(100 * rank + i, i = 1, count)]
  expected = [(100 * before + i, i = 1, count)]
  own = out
  window = 0
  bytes = 4 * 9 * count
  call MPI_Win_create(window, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierror)
  call FOMPI_Win_set_num_notify(win, MPI_INFO_NULL, rank + 3, ierror)
  call check(ierror == MPI_SUCCESS, 'set_num')
  call FOMPI_Win_get_num_notify(win, next, number, ierror)
  call check(number == next + 3, 'get_num')
  call MPI_Win_lock_all(0, win, ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)

  at = 0
  call FOMPI_Put_notify(out, count, MPI_INTEGER, next, at, count, MPI_INTEGER, 0, win, ierror)
  at = count
  call FOMPI_Rput_notify(out, count, MPI_INTEGER, next, at, count, MPI_INTEGER, 0, win, request, ierror)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
  at = 2 * count
  call FOMPI_Accumulate_notify(out, count, MPI_INTEGER, next, at, count, MPI_INTEGER, MPI_SUM, 0, win, &
      ierror)
  call FOMPI_Raccumulate_notify(out, count, MPI_INTEGER, next, at, count, MPI_INTEGER, MPI_SUM, 0, win, &
      request, ierror)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
  at = 3 * count
  call FOMPI_Get_accumulate_notify(out, count, MPI_INTEGER, in(1, 1), count, MPI_INTEGER, next, at, count, &
      MPI_INTEGER, MPI_SUM, 0, win, ierror)
  call MPI_Win_flush(next, win, ierror)
  call FOMPI_Rget_accumulate_notify(out, count, MPI_INTEGER, in(1, 2), count, MPI_INTEGER, next, at, count, &
      MPI_INTEGER, MPI_SUM, 0, win, request, ierror)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
  call wait_for(0, 6)
  call check(all(window(0:count - 1) == expected), 'put')
  call check(all(window(count:2 * count - 1) == expected), 'rput')
  call check(all(window(2 * count:3 * count - 1) == 2 * expected), 'accumulates')
  call check(all(window(3 * count:4 * count - 1) == 2 * expected), 'get_accumulates')
  call check(all(in(:, 1) == 0) .and. all(in(:, 2) == own), 'results')

  at = 2 * count
  call FOMPI_Get_notify(in(1, 3), count, MPI_INTEGER, next, at, count, MPI_INTEGER, 1, win, ierror)
  call FOMPI_Rget_notify(in(1, 4), count, MPI_INTEGER, next, at, count, MPI_INTEGER, 1, win, request, ierror)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
  call MPI_Win_flush(next, win, ierror)
  call check(all(in(:, 3) == 2 * own) .and. all(in(:, 4) == 2 * own), 'gets')
  call wait_for(1, 2)
  call FOMPI_Win_reset_notify_value(win, 1, value, ierror)
  call check(value == 2, 'reset')
  call FOMPI_Win_get_notify_value(win, 1, value, ierror)
  call check(value == 0, 'value after the reset')
#ifndef NEXT
  call waits()
  call large_counts()
  call requests_of_one()
#endif
  call MPI_Win_unlock_all(win, ierror)
  call MPI_Win_free(win, ierror)
  print '(a,i0,a)', 'rank ', rank, ' is right'
  call MPI_Finalize(ierror)

contains

  subroutine check(is_good, what)
    logical, intent(in) :: is_good
    character(*), intent(in) :: what
    if (is_good) return
    print '(a,i0,a,a)', 'rank ', rank, ' is wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  end subroutine

  subroutine wait_for(index, threshold)
    integer, intent(in) :: index, threshold
    value = 0
    do while (value < threshold)
      call FOMPI_Win_get_notify_value(win, index, value, ierror)
    end do
  end subroutine

#ifndef NEXT
  ! What only libfompi has: waits, and the class of a wrong index.
  subroutine waits()
    integer(MPI_COUNT_KIND), parameter :: one = 1, six = 6
    integer :: index, class
    call FOMPI_Win_wait_notify(win, 0, six, ierror)
    call FOMPI_Win_wait_any_notify(win, 0, 3, one, index, ierror)
    call check(index == 0, 'wait_any')
    call FOMPI_Win_notify_request(win, 0, six, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check(ierror == MPI_SUCCESS, 'request')
    call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN, ierror)
    call FOMPI_Win_get_notify_value(win, 100, value, ierror)
    call MPI_Error_class(ierror, class, index)
    call check(class == fompi_err_rma_notification(), 'class of a wrong index')
#ifdef F08
    call FOMPI_Win_wait_notify(win, 0, six) ! the error code is optional
#endif
  end subroutine

  ! The same operations with large counts, by counter 2, on the second half of the window.
  subroutine large_counts()
    integer(MPI_COUNT_KIND), parameter :: five = count, eight = 8
    integer(MPI_ADDRESS_KIND) :: to
    to = 4 * count
    call FOMPI_Put_notify(out, five, MPI_INTEGER, next, to, five, MPI_INTEGER, 2, win, ierror)
    to = 5 * count
    call FOMPI_Rput_notify(out, five, MPI_INTEGER, next, to, five, MPI_INTEGER, 2, win, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    to = 6 * count
    call FOMPI_Accumulate_notify(out, five, MPI_INTEGER, next, to, five, MPI_INTEGER, MPI_SUM, 2, win, ierror)
    call FOMPI_Raccumulate_notify(out, five, MPI_INTEGER, next, to, five, MPI_INTEGER, MPI_SUM, 2, win, &
        request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    to = 7 * count
    call FOMPI_Get_accumulate_notify(out, five, MPI_INTEGER, in(1, 1), five, MPI_INTEGER, next, to, five, &
        MPI_INTEGER, MPI_SUM, 2, win, ierror)
    call MPI_Win_flush(next, win, ierror)
    call FOMPI_Rget_accumulate_notify(out, five, MPI_INTEGER, in(1, 2), five, MPI_INTEGER, next, to, five, &
        MPI_INTEGER, MPI_SUM, 2, win, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    to = 4 * count
    call FOMPI_Get_notify(in(1, 3), five, MPI_INTEGER, next, to, five, MPI_INTEGER, 2, win, ierror)
    call FOMPI_Rget_notify(in(1, 4), five, MPI_INTEGER, next, to, five, MPI_INTEGER, 2, win, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call MPI_Win_flush(next, win, ierror)
    call FOMPI_Win_wait_notify(win, 2, eight, ierror)
    call check(all(window(4 * count:5 * count - 1) == expected), 'large put')
    call check(all(window(5 * count:6 * count - 1) == expected), 'large rput')
    call check(all(window(6 * count:7 * count - 1) == 2 * expected), 'large accumulates')
    call check(all(window(7 * count:8 * count - 1) == 2 * expected), 'large get_accumulates')
    call check(all(in(:, 1) == 0) .and. all(in(:, 2) == own), 'large results')
    call check(all(in(:, 3) == own) .and. all(in(:, 4) == own), 'large gets')
  end subroutine

  subroutine requests_of_one()
    integer, asynchronous :: one, sum, swapped, new
    integer(MPI_ADDRESS_KIND) :: last
    one = 1
    new = 7
    last = 8 * count
    call FOMPI_Rfetch_and_op(one, sum, MPI_INTEGER, next, last, MPI_SUM, win, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call FOMPI_Rcompare_and_swap(new, one, swapped, MPI_INTEGER, next, last, win, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call FOMPI_Rfetch_and_op(one, one, MPI_INTEGER, next, last, MPI_NO_OP, win, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check(sum == 0 .and. swapped == 1 .and. one == 7, 'requests of one element')
  end subroutine
#endif

end program
