! The calls of mpi_f08 with counts of MPI_COUNT_KIND and displacement units of MPI_ADDRESS_KIND,
! which since MPI-4.0 have the names of the others. MPI-4.1 sections 19.1.5, 12.2 and 12.3.
! ranks: 1 2
! between nodes: shared windows are left to the host MPI
! standard: 4

#define F08
#define PROGRAM_NAME 'large_counts_f08'

module large_counts_checks
#include "binding.h"
  integer, parameter :: INTS = 64
  integer(MPI_ADDRESS_KIND), parameter :: BYTES = 4 * INTS
  integer(MPI_COUNT_KIND), parameter :: FOUR = 4
  integer(MPI_ADDRESS_KIND), parameter :: LARGE = 5000000000_MPI_ADDRESS_KIND
  integer, asynchronous, target :: own_memory(INTS)
  integer, asynchronous :: values(8), got(8)

contains

#include "checks.h"

  subroutine transfers(win, memory)
    type(MPI_Win), intent(in) :: win
    integer, asynchronous :: memory(INTS)
    type(MPI_Request) :: requests(2)
    integer(MPI_ADDRESS_KIND) :: disp
    memory = 0
    values = 100 * my_rank + [1, 2, 3, 4, 5, 6, 7, 8]
    got = -1
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Win_lock_all(0, win)
    disp = 2
    call MPI_Put(values, FOUR, MPI_INTEGER, next, disp, FOUR, MPI_INTEGER, win, ierr)
    call ok('put')
    call MPI_Win_flush(next, win)
    call MPI_Get(got, FOUR, MPI_INTEGER, next, disp, FOUR, MPI_INTEGER, win, ierr)
    call ok('get')
    call MPI_Win_flush(next, win)
    call check(all(got(:4) == values(:4)), 'get after put')
    call MPI_Accumulate(values, FOUR, MPI_INTEGER, next, disp, FOUR, MPI_INTEGER, MPI_SUM, win, &
                        ierr)
    call ok('accumulate')
    call MPI_Get_accumulate(values, FOUR, MPI_INTEGER, got, FOUR, MPI_INTEGER, next, disp, FOUR, &
                            MPI_INTEGER, MPI_REPLACE, win, ierr)
    call ok('get_accumulate')
    call MPI_Win_flush(next, win)
    call check(all(got(:4) == 2 * values(:4)), 'get_accumulate after accumulate')
    disp = 8
    call MPI_Rput(values(5:8), FOUR, MPI_INTEGER, next, disp, FOUR, MPI_INTEGER, win, requests(1), &
                  ierr)
    call ok('rput')
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    call MPI_Win_flush(next, win)
    call MPI_Raccumulate(values, FOUR, MPI_INTEGER, next, disp, FOUR, MPI_INTEGER, MPI_SUM, win, &
                         requests(1), ierr)
    call ok('raccumulate')
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    call MPI_Win_flush(next, win)
    call MPI_Rget(got, FOUR, MPI_INTEGER, next, disp, FOUR, MPI_INTEGER, win, requests(1), ierr)
    call ok('rget')
    call MPI_Rget_accumulate(values, FOUR, MPI_INTEGER, got(5:8), FOUR, MPI_INTEGER, next, disp, &
                             FOUR, MPI_INTEGER, MPI_NO_OP, win, requests(2), ierr)
    call ok('rget_accumulate')
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call MPI_Win_unlock_all(win)
    call MPI_F_sync_reg(got)
    call check(all(got(:4) == values(:4) + values(5:8)), 'rget after rput and raccumulate')
    call check(all(got(5:8) == got(:4)), 'rget_accumulate')
    call MPI_Barrier(MPI_COMM_WORLD)
    call check(all(memory(3:6) == 100 * previous + [1, 2, 3, 4]), 'what is left')
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine transfers

  subroutine unit_is(win, unit)
    type(MPI_Win), intent(in) :: win
    integer(MPI_ADDRESS_KIND), intent(in) :: unit
    integer(MPI_ADDRESS_KIND) :: value
    logical :: flag
    call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag, ierr)
    call ok('get_attr')
    call check(flag .and. value == unit, 'the displacement unit')
  end subroutine unit_is

  subroutine shared()
    type(MPI_Win) :: win
    type(c_ptr) :: base
    integer, pointer, contiguous :: memory(:)
    integer(MPI_ADDRESS_KIND) :: size, unit, address
    type(MPI_Comm) :: node
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node)
    call count_in(node)
    call MPI_Win_allocate_shared(BYTES, 4_MPI_ADDRESS_KIND, MPI_INFO_NULL, node, base, win, ierr)
    call ok('allocate_shared')
    call c_f_pointer(base, memory, [INTS])
    call MPI_Win_shared_query(win, my_rank, size, unit, base, ierr)
    call ok('shared_query')
    call check(size >= BYTES .and. unit == 4, 'what shared_query says')
    call MPI_Get_address(memory, address)
    call check(transfer(base, address) == address, 'where shared_query says the memory is')
    call unit_is(win, 4_MPI_ADDRESS_KIND)
    call transfers(win, memory)
    call MPI_Win_free(win)
    call MPI_Comm_free(node)
    call count_in(MPI_COMM_WORLD)
  end subroutine shared

  subroutine created_and_allocated()
    type(MPI_Win) :: win
    type(c_ptr) :: base
    integer, pointer, contiguous :: memory(:)
    call MPI_Win_create(own_memory, BYTES, LARGE, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
    call ok('create with a large unit')
    call unit_is(win, LARGE)
    call MPI_Win_free(win)
    call MPI_Win_create(own_memory, BYTES, 4_MPI_ADDRESS_KIND, MPI_INFO_NULL, MPI_COMM_WORLD, win, &
                        ierr)
    call ok('create')
    call unit_is(win, 4_MPI_ADDRESS_KIND)
    call transfers(win, own_memory)
    call MPI_Win_free(win)
    call MPI_Win_allocate(BYTES, 4_MPI_ADDRESS_KIND, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierr)
    call ok('allocate')
    call c_f_pointer(base, memory, [INTS])
    call transfers(win, memory)
    call MPI_Win_free(win)
  end subroutine created_and_allocated

end module large_counts_checks

program large_counts_f08
  use large_counts_checks
  implicit none
  call start()
  call created_and_allocated()
  call shared()
  call finish()
end program large_counts_f08
