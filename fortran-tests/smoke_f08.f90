! The one-sided calls through the module mpi_f08: windows, puts, gets, accumulates, requests, every
! kind of synchronisation, attributes, groups, handlers. MPI-4.1 chapter 12 and section 19.1.
! ranks: 1 2 4
! between nodes: shared windows are left to the host MPI

module checks
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: my_rank, ranks

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    write (0, *) 'smoke_f08: rank ', my_rank, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine check

  integer function next_rank()
    next_rank = mod(my_rank + 1, ranks)
  end function next_rank

  integer function previous_rank()
    previous_rank = mod(my_rank + ranks - 1, ranks)
  end function previous_rank

  ! An allocated window of 32 integers.
  subroutine make(win, memory)
    type(MPI_Win), intent(out) :: win
    integer, pointer, intent(out) :: memory(:)
    type(c_ptr) :: base
    integer(MPI_ADDRESS_KIND) :: bytes
    bytes = 32 * 4
    call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
    call c_f_pointer(base, memory, [32])
    memory = 0
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine make

  subroutine fences(win, memory)
    type(MPI_Win), intent(in) :: win
    integer, intent(in) :: memory(:)
    integer, asynchronous :: value(2), got(2)
    integer(MPI_ADDRESS_KIND) :: disp
    disp = 1
    value = [100 + my_rank, 200 + my_rank]
    call MPI_Win_fence(0, win)
    call MPI_Put(value, 2, MPI_INTEGER, next_rank(), disp, 2, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(memory(2) == 100 + previous_rank(), 'put between fences')
    call MPI_Get(got, 2, MPI_INTEGER, next_rank(), disp, 2, MPI_INTEGER, win)
    call MPI_Win_fence(MPI_MODE_NOSUCCEED, win)
    call MPI_F_sync_reg(got)
    call check(all(got == value), 'get between fences')
  end subroutine fences

  subroutine locks(win, memory)
    type(MPI_Win), intent(in) :: win
    integer, intent(in) :: memory(:)
    integer, asynchronous :: one, before, seen
    type(MPI_Request) :: request
    integer(MPI_ADDRESS_KIND) :: disp
    integer :: i
    disp = 8
    one = 1
    do i = 1, 5
      call MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win)
      call MPI_Fetch_and_op(one, before, MPI_INTEGER, 0, disp, MPI_SUM, win)
      call MPI_Accumulate(one, 1, MPI_INTEGER, 0, disp, 1, MPI_INTEGER, MPI_SUM, win)
      call MPI_Win_unlock(0, win)
      call check(before >= 2 * (i - 1) .and. before < 10 * ranks, 'fetch and op')
    end do
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Win_lock_all(0, win)
    call MPI_Rget(seen, 1, MPI_INTEGER, 0, disp, 1, MPI_INTEGER, win, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_F_sync_reg(seen)
    call check(seen == 10 * ranks, 'rget after counting')
    call MPI_Win_flush_all(win)
    call MPI_Win_sync(win)
    call MPI_Win_unlock_all(win)
    call check(my_rank /= 0 .or. memory(9) == 10 * ranks, 'counted')
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine locks

  subroutine post_and_start(win, memory)
    type(MPI_Win), intent(in) :: win
    integer, intent(in) :: memory(:)
    type(MPI_Group) :: world, to, from
    integer, asynchronous :: value
    integer(MPI_ADDRESS_KIND) :: disp
    logical :: flag
    disp = 12
    value = 300 + my_rank
    call MPI_Win_get_group(win, world)
    call MPI_Group_incl(world, 1, [next_rank()], to)
    call MPI_Group_incl(world, 1, [previous_rank()], from)
    call MPI_Win_post(from, 0, win)
    call MPI_Win_start(to, 0, win)
    call MPI_Put(value, 1, MPI_INTEGER, next_rank(), disp, 1, MPI_INTEGER, win)
    call MPI_Win_complete(win)
    flag = .false.
    do while (.not. flag)
      call MPI_Win_test(win, flag)
    end do
    call check(memory(13) == 300 + previous_rank(), 'post and start')
    call MPI_Group_free(to)
    call MPI_Group_free(from)
    call MPI_Group_free(world)
  end subroutine post_and_start

  subroutine shared_windows()
    type(MPI_Win) :: win
    type(MPI_Comm) :: node
    type(c_ptr) :: base, part
    integer(MPI_ADDRESS_KIND) :: bytes
    integer :: disp_unit, me, there
    integer, pointer :: mine(:), theirs(:)
    bytes = 64
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node)
    call MPI_Comm_rank(node, me)
    call MPI_Comm_size(node, there)
    call MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, node, base, win)
    call c_f_pointer(base, mine, [16])
    mine = 40 + me
    call MPI_Win_fence(0, win)
    call MPI_Win_shared_query(win, mod(me + 1, there), bytes, disp_unit, part)
    call check(bytes == 64 .and. disp_unit == 4, 'shared query')
    call c_f_pointer(part, theirs, [16])
    call check(theirs(16) == 40 + mod(me + 1, there), 'load from a neighbour')
    call MPI_Win_fence(0, win)
    call MPI_Win_free(win)
    call MPI_Comm_free(node)
  end subroutine shared_windows

  subroutine attributes(win)
    type(MPI_Win), intent(in) :: win
    integer(MPI_ADDRESS_KIND) :: value
    logical :: flag
    integer :: code, class
    type(MPI_Errhandler) :: handler
    integer, asynchronous :: item
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag)
    call check(flag .and. value == 128, 'size attribute')
    call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag)
    call check(flag .and. value == 4, 'unit attribute')
    call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag)
    call check(flag .and. value == MPI_WIN_FLAVOR_ALLOCATE, 'flavour attribute')
    call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN)
    call MPI_Win_get_errhandler(win, handler)
    call check(handler == MPI_ERRORS_RETURN, 'error handler')
    call MPI_Win_fence(0, win)
    value = 0
    item = 1
    call MPI_Put(item, 1, MPI_INTEGER, ranks, value, 1, MPI_INTEGER, win, code)
    call MPI_Error_class(code, class)
    call check(class == MPI_ERR_RANK, 'class of a wrong rank')
    call MPI_Win_fence(MPI_MODE_NOSUCCEED, win)
  end subroutine attributes

end module checks

program smoke_f08
  use checks
  implicit none
  type(MPI_Win) :: win
  integer, pointer :: memory(:)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, my_rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call make(win, memory)
  call fences(win, memory)
  call MPI_Barrier(MPI_COMM_WORLD)
  call locks(win, memory)
  call post_and_start(win, memory)
  call shared_windows()
  call attributes(win)
  call MPI_Win_free(win)
  call check(win == MPI_WIN_NULL, 'freed')
  call MPI_Finalize()
end program smoke_f08
