! The one-sided calls through mpif.h, which knows no C_PTR: windows, puts, gets, accumulates,
! requests, every kind of synchronisation, attributes, names, groups, handlers.
! MPI-4.1 chapter 12 and section 19.1.
! ranks: 1 2 4
! between nodes: shared windows are left to the host MPI

subroutine check(holds, what)
  implicit none
  include 'mpif.h'
  logical holds
  character(*) what
  integer ierr
  if (holds) return
  write (0, *) 'smoke_mpif: ', what
  call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
end subroutine check

subroutine fences(win, memory, next, previous)
  implicit none
  include 'mpif.h'
  integer win, next, previous, ierr
  integer memory(32), value(2), got(2)
  integer(MPI_ADDRESS_KIND) disp
  disp = 1
  value = [100 + next, 200 + next]
  call MPI_Win_fence(0, win, ierr)
  call MPI_Put(value, 2, MPI_INTEGER, next, disp, 2, MPI_INTEGER, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  call MPI_Get(got, 2, MPI_INTEGER, next, disp, 2, MPI_INTEGER, win, ierr)
  call MPI_Win_fence(MPI_MODE_NOSUCCEED, win, ierr)
  call MPI_Get_address(got, disp, ierr)
  call check(all(got == value), 'put and get between fences')
  call check(memory(3) - memory(2) == 100, 'put arrived')
end subroutine fences

subroutine locks(win, ranks)
  implicit none
  include 'mpif.h'
  integer win, ranks, i, one, before, seen(1), request, ierr
  integer(MPI_ADDRESS_KIND) disp
  disp = 8
  one = 1
  do i = 1, 5
    call MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win, ierr)
    call MPI_Fetch_and_op(one, before, MPI_INTEGER, 0, disp, MPI_SUM, win, ierr)
    call MPI_Accumulate(one, 1, MPI_INTEGER, 0, disp, 1, MPI_INTEGER, MPI_SUM, win, ierr)
    call MPI_Win_unlock(0, win, ierr)
    call check(before >= 2 * (i - 1) .and. before < 10 * ranks, 'fetch and op')
  end do
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_Win_lock_all(0, win, ierr)
  call MPI_Rget(seen, 1, MPI_INTEGER, 0, disp, 1, MPI_INTEGER, win, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call MPI_Win_flush_all(win, ierr)
  call MPI_Win_sync(win, ierr)
  call MPI_Win_unlock_all(win, ierr)
  call MPI_Get_address(seen, disp, ierr)
  call check(seen(1) == 10 * ranks, 'rget after counting')
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
end subroutine locks

subroutine post_and_start(win, next, previous)
  implicit none
  include 'mpif.h'
  integer win, next, previous, group, to, from, value(1), ierr
  integer(MPI_ADDRESS_KIND) disp
  logical flag
  disp = 12
  value = 300 + next
  call MPI_Win_get_group(win, group, ierr)
  call MPI_Group_incl(group, 1, [next], to, ierr)
  call MPI_Group_incl(group, 1, [previous], from, ierr)
  call MPI_Win_post(from, 0, win, ierr)
  call MPI_Win_start(to, 0, win, ierr)
  call MPI_Put(value, 1, MPI_INTEGER, next, disp, 1, MPI_INTEGER, win, ierr)
  call MPI_Win_complete(win, ierr)
  flag = .false.
  do while (.not. flag)
    call MPI_Win_test(win, flag, ierr)
  end do
  call MPI_Group_free(to, ierr)
  call MPI_Group_free(from, ierr)
  call MPI_Group_free(group, ierr)
end subroutine post_and_start

subroutine shared_windows()
  use, intrinsic :: iso_c_binding
  implicit none
  include 'mpif.h'
  integer node, me, there, next, win, disp_unit, ierr
  integer(MPI_ADDRESS_KIND) base, part
  integer(MPI_ADDRESS_KIND) bytes
  integer, pointer :: mine(:), theirs(:)
  bytes = 64
  call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node, ierr)
  call MPI_Comm_rank(node, me, ierr)
  call MPI_Comm_size(node, there, ierr)
  next = mod(me + 1, there)
  call MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, node, base, win, ierr)
  call c_f_pointer(transfer(base, c_null_ptr), mine, [16])
  mine = 40 + me
  call MPI_Win_fence(0, win, ierr)
  call MPI_Win_shared_query(win, next, bytes, disp_unit, part, ierr)
  call check(bytes == 64 .and. disp_unit == 4, 'shared query')
  call c_f_pointer(transfer(part, c_null_ptr), theirs, [16])
  call check(theirs(16) == 40 + next, 'load from a neighbour')
  call MPI_Win_fence(0, win, ierr)
  call MPI_Win_free(win, ierr)
  call MPI_Comm_free(node, ierr)
end subroutine shared_windows

subroutine attributes(win, ranks)
  implicit none
  include 'mpif.h'
  integer win, ranks, length, code, class, handler, item(1), ierr
  integer(MPI_ADDRESS_KIND) value
  logical flag
  character(MPI_MAX_OBJECT_NAME) name
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag, ierr)
  call check(flag .and. value == 128, 'size attribute')
  call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag, ierr)
  call check(flag .and. value == 4, 'unit attribute')
  call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag, ierr)
  call check(flag .and. value == MPI_WIN_FLAVOR_ALLOCATE, 'flavour attribute')
  call MPI_Win_set_name(win, 'halo', ierr)
  call MPI_Win_get_name(win, name, length, ierr)
  call check(length == 4 .and. name == 'halo', 'name')
  call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN, ierr)
  call MPI_Win_get_errhandler(win, handler, ierr)
  call check(handler == MPI_ERRORS_RETURN, 'error handler')
  call MPI_Win_fence(0, win, ierr)
  value = 0
  item = 1
  call MPI_Put(item, 1, MPI_INTEGER, ranks, value, 1, MPI_INTEGER, win, code)
  call MPI_Error_class(code, class, ierr)
  call check(class == MPI_ERR_RANK, 'class of a wrong rank')
  call MPI_Win_fence(MPI_MODE_NOSUCCEED, win, ierr)
end subroutine attributes

program smoke_mpif
  use, intrinsic :: iso_c_binding
  implicit none
  include 'mpif.h'
  integer win, my_rank, ranks, next, previous, ierr
  integer(MPI_ADDRESS_KIND) bytes
  integer(MPI_ADDRESS_KIND) base
  integer, pointer :: memory(:)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, my_rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  next = mod(my_rank + 1, ranks)
  previous = mod(my_rank + ranks - 1, ranks)
  bytes = 32 * 4
  call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierr)
  call c_f_pointer(transfer(base, c_null_ptr), memory, [32])
  memory = 0
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call fences(win, memory, next, previous)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call locks(win, ranks)
  call check(my_rank /= 0 .or. memory(9) == 10 * ranks, 'counted')
  call post_and_start(win, next, previous)
  call check(memory(13) == 300 + my_rank, 'post and start')
  call shared_windows()
  call attributes(win, ranks)
  call MPI_Win_free(win, ierr)
  call check(win == MPI_WIN_NULL, 'freed')
  call MPI_Finalize(ierr)
end program smoke_mpif
