! MPI_Alloc_mem and MPI_Free_mem through mpif.h, which knows no C_PTR: the memory is good for a
! window and can be given back. MPI-4.1 section 9.2.
! ranks: 2

subroutine check(holds, what)
  implicit none
  include 'mpif.h'
  logical holds
  character(*) what
  integer ierr
  if (holds) return
  write (0, *) 'alloc_mem_mpif: ', what
  call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
end subroutine check

subroutine allocate_and_free(turn, my_rank, ranks)
  use, intrinsic :: iso_c_binding
  implicit none
  include 'mpif.h'
  integer turn, my_rank, ranks, win, value, ierr
  integer(MPI_ADDRESS_KIND) base, bytes, disp
  integer, pointer :: memory(:)
  bytes = 4000 * turn
  call MPI_Alloc_mem(bytes, MPI_INFO_NULL, base, ierr)
  call check(ierr == MPI_SUCCESS .and. base /= 0, 'allocated')
  call c_f_pointer(transfer(base, c_null_ptr), memory, [1000 * turn])
  memory = -1
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  value = 10 * turn + my_rank
  disp = 3
  call MPI_Win_fence(0, win, ierr)
  call MPI_Put(value, 1, MPI_INTEGER, mod(my_rank + 1, ranks), disp, 1, MPI_INTEGER, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  call check(memory(4) == 10 * turn + mod(my_rank + ranks - 1, ranks), 'a put arrived')
  call MPI_Win_free(win, ierr)
  call MPI_Free_mem(memory, ierr)
  call check(ierr == MPI_SUCCESS, 'freed')
end subroutine allocate_and_free

program alloc_mem_mpif
  implicit none
  include 'mpif.h'
  integer my_rank, ranks, turn, ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, my_rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  do turn = 1, 3
    call allocate_and_free(turn, my_rank, ranks)
  end do
  call MPI_Finalize(ierr)
end program alloc_mem_mpif
