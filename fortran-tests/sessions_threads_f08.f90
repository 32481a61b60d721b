! MPI_Init_thread gave MPI_THREAD_SINGLE, a session of Fortran's MPI_Session_init gives
! MPI_THREAD_MULTIPLE: several threads use a window of the session. As c-tests/processes/sessions_threads.c.
! MPI-4.1 sections 11.3.1, 11.6 and 19.1.
! ranks: 2 4
! standard: 4
! c: threads

module shared
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: rounds = 5000
  type(MPI_Win) :: win
  integer, volatile :: failed = MPI_SUCCESS

  interface
    subroutine c_run_threads(count, work) bind(C)
      import :: c_int, c_funptr
      integer(c_int), value :: count
      type(c_funptr), value :: work
    end subroutine c_run_threads
  end interface

contains

  ! Each thread locks a target of its own, so that no target is locked twice by one process.
  recursive subroutine work(target) bind(C)
    integer(c_int), value :: target
    integer(c_int64_t), asynchronous :: one
    integer(MPI_ADDRESS_KIND) :: disp
    integer :: turn, ierr
    one = 1
    disp = 0
    do turn = 1, rounds
      if (mod(turn, 4) == 0) then
        call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win, ierr)
      else
        call MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win, ierr)
      end if
      if (ierr /= MPI_SUCCESS) failed = ierr
      call MPI_Accumulate(one, 1, MPI_INTEGER8, target, disp, 1, MPI_INTEGER8, MPI_SUM, win, ierr)
      if (ierr /= MPI_SUCCESS) failed = ierr
      call MPI_Win_unlock(target, win, ierr)
      if (ierr /= MPI_SUCCESS) failed = ierr
    end do
  end subroutine work

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    write (0, *) 'sessions_threads_f08: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine check

end module shared

program sessions_threads_f08
  use shared
  implicit none
  type(MPI_Info) :: info
  type(MPI_Session) :: session
  character(64) :: level
  logical :: found
  integer :: provided
  call MPI_Init_thread(MPI_THREAD_SINGLE, provided)
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'thread_level', 'MPI_THREAD_MULTIPLE')
  call MPI_Session_init(info, MPI_ERRORS_RETURN, session)
  call MPI_Info_free(info)
  call MPI_Session_get_info(session, info)
  call MPI_Info_get(info, 'thread_level', len(level), level, found)
  call MPI_Info_free(info)
  if (found .and. level == 'MPI_THREAD_MULTIPLE') call use_threads()
  call MPI_Session_finalize(session)
  call MPI_Finalize()

contains

  subroutine use_threads()
    type(MPI_Group) :: group
    type(MPI_Comm) :: comm
    type(c_ptr) :: base
    integer(c_int64_t), pointer, volatile :: counter
    integer(MPI_ADDRESS_KIND) :: bytes
    integer :: ranks, ierr
    bytes = 64
    call MPI_Group_from_session_pset(session, 'mpi://WORLD', group)
    call MPI_Comm_create_from_group(group, 'libfompi.threads', MPI_INFO_NULL, MPI_ERRORS_RETURN, comm)
    call MPI_Group_free(group)
    call MPI_Comm_size(comm, ranks)
    call MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, comm, base, win)
    call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN)
    call c_f_pointer(base, counter)
    counter = 0
    call MPI_Barrier(comm)
    call c_run_threads(ranks, c_funloc(work))
    call check(failed == MPI_SUCCESS, 'a call has failed')
    call MPI_Barrier(comm)
    call check(counter == ranks * rounds, 'accumulates of threads are lost')
    call MPI_Win_free(win, ierr)
    call check(ierr == MPI_SUCCESS, 'an epoch is open that no thread has left open')
    call MPI_Comm_free(comm)
  end subroutine use_threads

end program sessions_threads_f08
