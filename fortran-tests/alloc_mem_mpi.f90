! MPI_Alloc_mem and MPI_Free_mem through the module mpi, with a C_PTR and with an integer: the
! memory is good for messages and can be given back. MPI-4.1 section 9.2.
! ranks: 2

program alloc_mem_mpi
  use mpi
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: my_rank, ranks, turn, ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, my_rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  do turn = 1, 3
    call allocate_and_free()
  end do
  call MPI_Finalize(ierr)

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    write (0, *) 'alloc_mem_mpi: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine check

  subroutine allocate_and_free()
    type(c_ptr) :: pointed
    integer(MPI_ADDRESS_KIND) :: base, bytes
    integer, pointer :: sent(:), received(:)
    bytes = 40000 * turn
    call MPI_Alloc_mem(bytes, MPI_INFO_NULL, pointed, ierr)
    call check(ierr == MPI_SUCCESS .and. c_associated(pointed), 'allocated as a C_PTR')
    call MPI_Alloc_mem(bytes, MPI_INFO_NULL, base, ierr)
    call check(ierr == MPI_SUCCESS .and. base /= 0, 'allocated as an integer')
    call c_f_pointer(pointed, sent, [10000 * turn])
    call c_f_pointer(transfer(base, c_null_ptr), received, [10000 * turn])
    sent = 100 * turn + my_rank
    received = -1
    call MPI_Sendrecv(sent, size(sent), MPI_INTEGER, mod(my_rank + 1, ranks), 0, &
                      received, size(received), MPI_INTEGER, mod(my_rank + 1, ranks), 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call check(all(received == 100 * turn + mod(my_rank + 1, ranks)), 'the message arrived')
    call MPI_Free_mem(sent, ierr)
    call check(ierr == MPI_SUCCESS, 'freed what was a C_PTR')
    call MPI_Free_mem(received, ierr)
    call check(ierr == MPI_SUCCESS, 'freed what was an integer')
  end subroutine allocate_and_free

end program alloc_mem_mpi
