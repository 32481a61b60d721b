! Attributes with keyvals of the program through the module mpi: values are integers as wide as an
! address, and the delete callback is a subroutine. MPI-4.1 sections 7.7.3 and 19.3.7.
! ranks: 1 2

module callbacks_mpi
  use mpi
  implicit none
  integer :: calls = 0, answer = 0, last_keyval
  integer :: last_win
  integer(MPI_ADDRESS_KIND) :: last_value, last_extra

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    integer :: ierr
    if (holds) return
    write (0, *) 'keyvals_mpi: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine check

  subroutine note(win, win_keyval, attribute_val, extra_state, ierror)
    integer :: win
    integer :: win_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    calls = calls + 1
    last_win = win
    last_keyval = win_keyval
    last_value = attribute_val
    last_extra = extra_state
    ierror = answer
  end subroutine note

  logical function is_set(win, keyval, value)
    integer :: win
    integer :: keyval, ierr
    integer(MPI_ADDRESS_KIND) :: value, found
    found = 0
    call MPI_Win_get_attr(win, keyval, found, is_set, ierr)
    call check(ierr == MPI_SUCCESS, 'get')
    call check((.not. is_set) .or. found == value, 'value')
  end function is_set

end module callbacks_mpi

program keyvals_mpi
  use callbacks_mpi
  implicit none
  integer :: win
  integer :: keyval, plain, copy, ierr, class
  integer(MPI_ADDRESS_KIND) :: bytes, base, one, two
  integer(MPI_ADDRESS_KIND), save :: extra
  call MPI_Init(ierr)
  bytes = 64
  extra = 4711
  one = -3
  two = 1234567890123_MPI_ADDRESS_KIND
  call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierr)
  call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN, ierr)

  call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, note, keyval, extra, ierr)
  call check(ierr == MPI_SUCCESS .and. keyval /= MPI_KEYVAL_INVALID, 'create a keyval')
  call MPI_Win_create_keyval(MPI_WIN_DUP_FN, MPI_WIN_NULL_DELETE_FN, plain, extra, ierr)
  call check(ierr == MPI_SUCCESS .and. plain /= keyval, 'create another')

  call check(.not. is_set(win, keyval, one), 'not set yet')
  call MPI_Win_set_attr(win, keyval, one, ierr)
  call check(ierr == MPI_SUCCESS .and. calls == 0, 'set')
  call check(is_set(win, keyval, one), 'is set')
  call MPI_Win_set_attr(win, keyval, two, ierr)
  call check(calls == 1 .and. last_value == one, 'the old value is deleted')
  call check(last_win == win .and. last_keyval == keyval, 'window and keyval of the callback')
  call check(last_extra == extra, 'extra state of the callback')
  call check(is_set(win, keyval, two), 'is set again')

  answer = MPI_ERR_OTHER
  call MPI_Win_delete_attr(win, keyval, ierr)
  call MPI_Error_class(ierr, class, ierr)
  call check(class == MPI_ERR_OTHER .and. calls == 2, 'the error of the callback')
  call check(is_set(win, keyval, two), 'still set')
  answer = MPI_SUCCESS
  call MPI_Win_delete_attr(win, keyval, ierr)
  call check(ierr == MPI_SUCCESS .and. calls == 3 .and. last_value == two, 'delete')
  call check(.not. is_set(win, keyval, two), 'is gone')

  call MPI_Win_set_attr(win, plain, one, ierr)
  call MPI_Win_set_attr(win, plain, two, ierr)
  call check(is_set(win, plain, two), 'without a callback')
  call MPI_Win_delete_attr(win, plain, ierr)
  call check(ierr == MPI_SUCCESS .and. .not. is_set(win, plain, two), 'is gone, too')
  call MPI_Win_set_attr(win, plain, one, ierr)

  call MPI_Win_set_attr(win, keyval, one, ierr)
  copy = keyval
  call MPI_Win_free_keyval(keyval, ierr)
  call check(ierr == MPI_SUCCESS .and. keyval == MPI_KEYVAL_INVALID, 'free the keyval')
  call check(is_set(win, copy, one), 'outlives its keyval')
  call MPI_Win_free(win, ierr)
  call check(ierr == MPI_SUCCESS .and. win == MPI_WIN_NULL, 'free the window')
  call check(calls == 4 .and. last_value == one .and. last_keyval == copy, 'deleted at the end')
  call MPI_Win_free_keyval(plain, ierr)
  call check(ierr == MPI_SUCCESS .and. plain == MPI_KEYVAL_INVALID, 'free the other keyval')
  call MPI_Finalize(ierr)
end program keyvals_mpi
