! MPI_Alloc_mem and MPI_Free_mem through the module mpi_f08: the memory is aligned as an info key
! says, good for messages, and can be given back. MPI-4.1 section 9.2.
! ranks: 2

program alloc_mem_f08
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  type(MPI_Info) :: info
  integer :: my_rank, ranks, turn
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, my_rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'mpi_minimum_memory_alignment', '16')
  do turn = 1, 3
    call allocate_and_free()
  end do
  call MPI_Info_free(info)
  call MPI_Finalize()

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    write (0, *) 'alloc_mem_f08: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine check

  subroutine allocate_and_free()
    type(c_ptr) :: bases(2)
    integer(MPI_ADDRESS_KIND) :: bytes
    integer :: ierr
    integer, pointer :: sent(:), received(:)
    bytes = 40000 * turn
    call MPI_Alloc_mem(bytes, info, bases(1), ierr)
    call check(ierr == MPI_SUCCESS .and. c_associated(bases(1)), 'allocated')
    call check(mod(transfer(bases(1), bytes), 16_MPI_ADDRESS_KIND) == 0, 'aligned')
    call MPI_Alloc_mem(bytes, MPI_INFO_NULL, bases(2))
    call c_f_pointer(bases(1), sent, [10000 * turn])
    call c_f_pointer(bases(2), received, [10000 * turn])
    sent = 100 * turn + my_rank
    received = -1
    call MPI_Sendrecv(sent, size(sent), MPI_INTEGER, mod(my_rank + 1, ranks), 0, &
                      received, size(received), MPI_INTEGER, mod(my_rank + 1, ranks), 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(all(received == 100 * turn + mod(my_rank + 1, ranks)), 'the message arrived')
    call MPI_Free_mem(sent, ierr)
    call check(ierr == MPI_SUCCESS, 'freed')
    call MPI_Free_mem(received)
  end subroutine allocate_and_free

end program alloc_mem_f08
