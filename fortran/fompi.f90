! Notified operations (issue 59 of the MPI Forum) and memory handles of libfompi for Fortran. Compile this
! file with the compiler of your MPI, and link the program with libfompi ahead of the MPI:
!
!   mpifort -c fompi.f90
!   mpifort app.f90 fompi.o -L PREFIX/lib -lfompi
!
! Each procedure takes handles of the module mpi_f08, with an optional error code, or INTEGER handles, as
! in mpif.h and the module mpi, with the error code. Counts are default integers or
! INTEGER(MPI_COUNT_KIND), all of one kind. Arguments are those of the MPI procedure without `notify`,
! with the index of a counter of the target ahead of the window. A buffer is contiguous; MPI_BOTTOM is
! none. Transfers by memory handles have counts of INTEGER(MPI_COUNT_KIND). FOMPI_Xfer has the buffers of its
! structure in C as arguments, those that its kind does not use being of any value, and makes a request unless
! it has FOMPI_BLOCKING.
module fompi
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_intptr_t, c_ptr
  use mpi_f08, only: MPI_ADDRESS_KIND, MPI_COUNT_KIND, MPI_Datatype, MPI_Info, MPI_Op, MPI_Request, MPI_Win
  implicit none
  private
  public :: FOMPI_Put_notify, FOMPI_Get_notify, FOMPI_Accumulate_notify
  public :: FOMPI_Get_accumulate_notify, FOMPI_Rput_notify, FOMPI_Rget_notify
  public :: FOMPI_Raccumulate_notify, FOMPI_Rget_accumulate_notify, FOMPI_Win_set_num_notify
  public :: FOMPI_Win_get_num_notify, FOMPI_Win_get_notify_value, FOMPI_Win_reset_notify_value
  public :: FOMPI_Rfetch_and_op, FOMPI_Rcompare_and_swap
  public :: FOMPI_Win_wait_notify, FOMPI_Win_wait_any_notify, FOMPI_Win_notify_request
  public :: fompi_err_rma_notification
  public :: FOMPI_Mem, FOMPI_Mem_expose, FOMPI_Mem_allocate, FOMPI_Mem_pack, FOMPI_Mem_unpack
  public :: FOMPI_Mem_query, FOMPI_Mem_withdraw, FOMPI_Mem_release, FOMPI_Complete
  public :: FOMPI_Mem_put, FOMPI_Mem_get, FOMPI_Mem_accumulate, FOMPI_Mem_fetch_and_op
  public :: FOMPI_Mem_compare_and_swap, FOMPI_Mem_accumulate_scaled, FOMPI_Xfer, FOMPI_NOTIFY
  public :: FOMPI_Win_order, FOMPI_Win_nflush, FOMPI_Complete_collective, FOMPI_Win_dup, FOMPI_Win_from_mem

  ! A memory handle; a variable without a value is FOMPI_MEM_NULL.
  type, bind(C) :: FOMPI_Mem
    private
    integer(c_intptr_t) :: address = 0
  end type
  ! Bytes of a packed handle, and the rank of FOMPI_Complete that stands for all.
  integer, parameter, public :: FOMPI_MEM_BYTES = 128, FOMPI_ALL_RANKS = -3
  ! Attributes of a transfer, to be added up: see fompi_rma.h.
  integer, parameter, public :: FOMPI_ORDERED = 1, FOMPI_REMOTE = 2, FOMPI_ATOMIC = 4, FOMPI_BLOCKING = 8

  ! The kinds of FOMPI_Xfer.
  integer, parameter, public :: FOMPI_PUT = 0, FOMPI_GET = 1, FOMPI_ACCUMULATE = 2
  integer, parameter, public :: FOMPI_GET_ACCUMULATE = 3, FOMPI_COMPARE_AND_SWAP = 4

  interface
    ! The error class of an index that a process does not have.
    integer(c_int) function fompi_err_rma_notification() bind(C)
      import :: c_int
    end function
  end interface

  interface FOMPI_Put_notify
    subroutine put_notify_integer(origin, origin_count, origin_type, rank, disp, target_count, target_type, &
        index, win, ierror) &
        bind(C, name="fompi_put_notify_")
      import :: c_int, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      integer(c_int), intent(in) :: origin_count, rank, target_count, index
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: origin_type, target_type, win
      integer(c_int), intent(out) :: ierror
    end subroutine
    subroutine put_notify_large_integer(origin, origin_count, origin_type, rank, disp, target_count, &
        target_type, index, win, ierror) bind(C, name="fompi_put_notify_c_")
      import :: c_int, c_int64_t, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      integer(c_int64_t), intent(in) :: origin_count, target_count
      integer(c_int), intent(in) :: rank, index
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: origin_type, target_type, win
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure put_notify_f08, put_notify_large_f08
  end interface

  interface FOMPI_Get_notify
    subroutine get_notify_integer(origin, origin_count, origin_type, rank, disp, target_count, target_type, &
        index, win, ierror) &
        bind(C, name="fompi_get_notify_")
      import :: c_int, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      integer(c_int), intent(in) :: origin_count, rank, target_count, index
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: origin_type, target_type, win
      integer(c_int), intent(out) :: ierror
    end subroutine
    subroutine get_notify_large_integer(origin, origin_count, origin_type, rank, disp, target_count, &
        target_type, index, win, ierror) bind(C, name="fompi_get_notify_c_")
      import :: c_int, c_int64_t, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      integer(c_int64_t), intent(in) :: origin_count, target_count
      integer(c_int), intent(in) :: rank, index
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: origin_type, target_type, win
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure get_notify_f08, get_notify_large_f08
  end interface

  interface FOMPI_Accumulate_notify
    subroutine accumulate_notify_integer(origin, origin_count, origin_type, rank, disp, target_count, &
        target_type, op, index, win, ierror) &
        bind(C, name="fompi_accumulate_notify_")
      import :: c_int, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      integer(c_int), intent(in) :: origin_count, rank, target_count, index
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: origin_type, target_type, op, win
      integer(c_int), intent(out) :: ierror
    end subroutine
    subroutine accumulate_notify_large_integer(origin, origin_count, origin_type, rank, disp, &
        target_count, target_type, op, index, win, ierror) bind(C, name="fompi_accumulate_notify_c_")
      import :: c_int, c_int64_t, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      integer(c_int64_t), intent(in) :: origin_count, target_count
      integer(c_int), intent(in) :: rank, index
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: origin_type, target_type, op, win
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure accumulate_notify_f08, accumulate_notify_large_f08
  end interface

  interface FOMPI_Get_accumulate_notify
    subroutine get_accumulate_notify_integer(origin, origin_count, origin_type, result, result_count, &
        result_type, rank, disp, target_count, target_type, op, index, win, ierror) &
        bind(C, name="fompi_get_accumulate_notify_")
      import :: c_int, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin, result
      !DIR$ IGNORE_TKR origin, result
      type(*), dimension(*), asynchronous :: origin, result
      integer(c_int), intent(in) :: origin_count, result_count, rank, target_count, index
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: origin_type, result_type, target_type, op, win
      integer(c_int), intent(out) :: ierror
    end subroutine
    subroutine get_accumulate_notify_large_integer(origin, origin_count, origin_type, result, &
        result_count, result_type, rank, disp, target_count, target_type, op, index, win, ierror) bind(C, &
        name="fompi_get_accumulate_notify_c_")
      import :: c_int, c_int64_t, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin, result
      !DIR$ IGNORE_TKR origin, result
      type(*), dimension(*), asynchronous :: origin, result
      integer(c_int64_t), intent(in) :: origin_count, result_count, target_count
      integer(c_int), intent(in) :: rank, index
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: origin_type, result_type, target_type, op, win
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure get_accumulate_notify_f08, get_accumulate_notify_large_f08
  end interface

  interface FOMPI_Rput_notify
    subroutine rput_notify_integer(origin, origin_count, origin_type, rank, disp, target_count, &
        target_type, index, win, request, ierror) &
        bind(C, name="fompi_rput_notify_")
      import :: c_int, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      integer(c_int), intent(in) :: origin_count, rank, target_count, index
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: origin_type, target_type, win
      integer(c_int), intent(out) :: request
      integer(c_int), intent(out) :: ierror
    end subroutine
    subroutine rput_notify_large_integer(origin, origin_count, origin_type, rank, disp, target_count, &
        target_type, index, win, request, ierror) bind(C, name="fompi_rput_notify_c_")
      import :: c_int, c_int64_t, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      integer(c_int64_t), intent(in) :: origin_count, target_count
      integer(c_int), intent(in) :: rank, index
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: origin_type, target_type, win
      integer(c_int), intent(out) :: request
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure rput_notify_f08, rput_notify_large_f08
  end interface

  interface FOMPI_Rget_notify
    subroutine rget_notify_integer(origin, origin_count, origin_type, rank, disp, target_count, &
        target_type, index, win, request, ierror) &
        bind(C, name="fompi_rget_notify_")
      import :: c_int, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      integer(c_int), intent(in) :: origin_count, rank, target_count, index
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: origin_type, target_type, win
      integer(c_int), intent(out) :: request
      integer(c_int), intent(out) :: ierror
    end subroutine
    subroutine rget_notify_large_integer(origin, origin_count, origin_type, rank, disp, target_count, &
        target_type, index, win, request, ierror) bind(C, name="fompi_rget_notify_c_")
      import :: c_int, c_int64_t, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      integer(c_int64_t), intent(in) :: origin_count, target_count
      integer(c_int), intent(in) :: rank, index
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: origin_type, target_type, win
      integer(c_int), intent(out) :: request
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure rget_notify_f08, rget_notify_large_f08
  end interface

  interface FOMPI_Raccumulate_notify
    subroutine raccumulate_notify_integer(origin, origin_count, origin_type, rank, disp, target_count, &
        target_type, op, index, win, request, ierror) &
        bind(C, name="fompi_raccumulate_notify_")
      import :: c_int, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      integer(c_int), intent(in) :: origin_count, rank, target_count, index
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: origin_type, target_type, op, win
      integer(c_int), intent(out) :: request
      integer(c_int), intent(out) :: ierror
    end subroutine
    subroutine raccumulate_notify_large_integer(origin, origin_count, origin_type, rank, disp, &
        target_count, target_type, op, index, win, request, ierror) bind(C, &
        name="fompi_raccumulate_notify_c_")
      import :: c_int, c_int64_t, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      integer(c_int64_t), intent(in) :: origin_count, target_count
      integer(c_int), intent(in) :: rank, index
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: origin_type, target_type, op, win
      integer(c_int), intent(out) :: request
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure raccumulate_notify_f08, raccumulate_notify_large_f08
  end interface

  interface FOMPI_Rget_accumulate_notify
    subroutine rget_accumulate_notify_integer(origin, origin_count, origin_type, result, result_count, &
        result_type, rank, disp, target_count, target_type, op, index, win, request, ierror) &
        bind(C, name="fompi_rget_accumulate_notify_")
      import :: c_int, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin, result
      !DIR$ IGNORE_TKR origin, result
      type(*), dimension(*), asynchronous :: origin, result
      integer(c_int), intent(in) :: origin_count, result_count, rank, target_count, index
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: origin_type, result_type, target_type, op, win
      integer(c_int), intent(out) :: request
      integer(c_int), intent(out) :: ierror
    end subroutine
    subroutine rget_accumulate_notify_large_integer(origin, origin_count, origin_type, result, &
        result_count, result_type, rank, disp, target_count, target_type, op, index, win, request, &
        ierror) bind(C, name="fompi_rget_accumulate_notify_c_")
      import :: c_int, c_int64_t, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin, result
      !DIR$ IGNORE_TKR origin, result
      type(*), dimension(*), asynchronous :: origin, result
      integer(c_int64_t), intent(in) :: origin_count, result_count, target_count
      integer(c_int), intent(in) :: rank, index
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: origin_type, result_type, target_type, op, win
      integer(c_int), intent(out) :: request
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure rget_accumulate_notify_f08, rget_accumulate_notify_large_f08
  end interface

  interface FOMPI_Rfetch_and_op
    subroutine rfetch_and_op_integer(origin, result, datatype, rank, disp, op, win, request, ierror) &
        bind(C, name="fompi_rfetch_and_op_")
      import :: c_int, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin, result
      !DIR$ IGNORE_TKR origin, result
      type(*), dimension(*), asynchronous :: origin, result
      integer(c_int), intent(in) :: rank
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: datatype, op, win
      integer(c_int), intent(out) :: request
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure rfetch_and_op_f08
  end interface

  interface FOMPI_Rcompare_and_swap
    subroutine rcompare_and_swap_integer(origin, compare, result, datatype, rank, disp, win, request, &
        ierror) &
        bind(C, name="fompi_rcompare_and_swap_")
      import :: c_int, c_intptr_t
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin, compare, result
      !DIR$ IGNORE_TKR origin, compare, result
      type(*), dimension(*), asynchronous :: origin, compare, result
      integer(c_int), intent(in) :: rank
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(in) :: datatype, win
      integer(c_int), intent(out) :: request
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure rcompare_and_swap_f08
  end interface

  interface FOMPI_Win_set_num_notify
    subroutine win_set_num_notify_integer(win, info, number, ierror) &
        bind(C, name="fompi_win_set_num_notify_")
      import :: c_int
      integer(c_int), intent(in) :: number
      integer(c_int), intent(in) :: win, info
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure win_set_num_notify_f08
  end interface

  interface FOMPI_Win_get_num_notify
    subroutine win_get_num_notify_integer(win, rank, found, ierror) &
        bind(C, name="fompi_win_get_num_notify_")
      import :: c_int
      integer(c_int), intent(in) :: rank
      integer(c_int), intent(in) :: win
      integer(c_int), intent(out) :: found
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure win_get_num_notify_f08
  end interface

  interface FOMPI_Win_get_notify_value
    subroutine win_get_notify_value_integer(win, index, value, ierror) &
        bind(C, name="fompi_win_get_notify_value_")
      import :: c_int, c_int64_t
      integer(c_int), intent(in) :: index
      integer(c_int), intent(in) :: win
      integer(c_int64_t), intent(out) :: value
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure win_get_notify_value_f08
  end interface

  interface FOMPI_Win_reset_notify_value
    subroutine win_reset_notify_value_integer(win, index, value, ierror) &
        bind(C, name="fompi_win_reset_notify_value_")
      import :: c_int, c_int64_t
      integer(c_int), intent(in) :: index
      integer(c_int), intent(in) :: win
      integer(c_int64_t), intent(out) :: value
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure win_reset_notify_value_f08
  end interface

  interface FOMPI_Win_wait_notify
    subroutine win_wait_notify_integer(win, index, threshold, ierror) &
        bind(C, name="fompi_win_wait_notify_")
      import :: c_int, c_int64_t
      integer(c_int), intent(in) :: index
      integer(c_int), intent(in) :: win
      integer(c_int64_t), intent(in) :: threshold
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure win_wait_notify_f08
  end interface

  interface FOMPI_Win_wait_any_notify
    subroutine win_wait_any_notify_integer(win, first, number, threshold, found, ierror) &
        bind(C, name="fompi_win_wait_any_notify_")
      import :: c_int, c_int64_t
      integer(c_int), intent(in) :: first, number
      integer(c_int), intent(in) :: win
      integer(c_int64_t), intent(in) :: threshold
      integer(c_int), intent(out) :: found
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure win_wait_any_notify_f08
  end interface

  interface FOMPI_Win_notify_request
    subroutine win_notify_request_integer(win, index, threshold, request, ierror) &
        bind(C, name="fompi_win_notify_request_")
      import :: c_int, c_int64_t
      integer(c_int), intent(in) :: index
      integer(c_int), intent(in) :: win
      integer(c_int), intent(out) :: request
      integer(c_int64_t), intent(in) :: threshold
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure win_notify_request_f08
  end interface

  interface FOMPI_Mem_expose
    subroutine mem_expose_integer(base, size, info, win, mem, ierror) &
        bind(C, name="fompi_mem_expose_")
      import :: c_int, c_intptr_t, FOMPI_Mem
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: base
      !DIR$ IGNORE_TKR base
      type(*), dimension(*), asynchronous :: base
      integer(c_intptr_t), intent(in) :: size
      integer(c_int), intent(in) :: info, win
      type(FOMPI_Mem), intent(out) :: mem
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure mem_expose_f08
  end interface

  interface FOMPI_Mem_allocate
    subroutine mem_allocate_integer(size, info, win, baseptr, mem, ierror) &
        bind(C, name="fompi_mem_allocate_")
      import :: c_int, c_intptr_t, c_ptr, FOMPI_Mem
      integer(c_intptr_t), intent(in) :: size
      integer(c_int), intent(in) :: info, win
      type(c_ptr), intent(out) :: baseptr
      type(FOMPI_Mem), intent(out) :: mem
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure mem_allocate_f08
  end interface

  interface FOMPI_Mem_unpack
    subroutine mem_unpack_integer(packed, win, mem, ierror) &
        bind(C, name="fompi_mem_unpack_")
      import :: c_int, FOMPI_Mem
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: packed
      !DIR$ IGNORE_TKR packed
      type(*), dimension(*), asynchronous :: packed
      integer(c_int), intent(in) :: win
      type(FOMPI_Mem), intent(out) :: mem
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure mem_unpack_f08
  end interface

  interface FOMPI_Complete
    subroutine complete_integer(rank, win, ierror) &
        bind(C, name="fompi_complete_")
      import :: c_int
      integer(c_int), intent(in) :: rank, win
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure complete_f08
  end interface

  interface FOMPI_Complete_collective
    subroutine complete_collective_integer(win, ierror) bind(C, name="fompi_complete_collective_")
      import :: c_int
      integer(c_int), intent(in) :: win
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure complete_collective_f08
  end interface

  interface FOMPI_Win_order
    subroutine win_order_integer(rank, win, ierror) bind(C, name="fompi_win_order_")
      import :: c_int
      integer(c_int), intent(in) :: rank, win
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure win_order_f08
  end interface

  interface FOMPI_Win_nflush
    subroutine win_nflush_integer(rank, number, wins, ierror) bind(C, name="fompi_win_nflush_")
      import :: c_int
      integer(c_int), intent(in) :: rank, number, wins(*)
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure win_nflush_f08
  end interface

  interface FOMPI_Win_dup
    subroutine win_dup_integer(win, info, newwin, ierror) bind(C, name="fompi_win_dup_")
      import :: c_int
      integer(c_int), intent(in) :: win, info
      integer(c_int), intent(out) :: newwin, ierror
    end subroutine
    module procedure win_dup_f08
  end interface

  interface FOMPI_Win_from_mem
    subroutine win_from_mem_integer(number, mems, info, newwin, ierror) bind(C, name="fompi_win_from_mem_")
      import :: c_int, FOMPI_Mem
      integer(c_int), intent(in) :: number, info
      type(FOMPI_Mem), intent(in) :: mems(*)
      integer(c_int), intent(out) :: newwin, ierror
    end subroutine
    module procedure win_from_mem_f08
  end interface

  interface FOMPI_Mem_put
    subroutine mem_put_integer(origin, number, datatype, mem, disp, attributes, ierror) &
        bind(C, name="fompi_mem_put_")
      import :: c_int, c_int64_t, c_intptr_t, FOMPI_Mem
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      integer(c_int64_t), intent(in) :: number
      integer(c_int), intent(in) :: datatype, attributes
      type(FOMPI_Mem), intent(in) :: mem
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure mem_put_f08
  end interface

  interface FOMPI_Mem_get
    subroutine mem_get_integer(origin, number, datatype, mem, disp, attributes, ierror) &
        bind(C, name="fompi_mem_get_")
      import :: c_int, c_int64_t, c_intptr_t, FOMPI_Mem
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      integer(c_int64_t), intent(in) :: number
      integer(c_int), intent(in) :: datatype, attributes
      type(FOMPI_Mem), intent(in) :: mem
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure mem_get_f08
  end interface

  interface FOMPI_Mem_accumulate
    subroutine mem_accumulate_integer(origin, number, datatype, mem, disp, op, attributes, ierror) &
        bind(C, name="fompi_mem_accumulate_")
      import :: c_int, c_int64_t, c_intptr_t, FOMPI_Mem
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      integer(c_int64_t), intent(in) :: number
      integer(c_int), intent(in) :: datatype, op, attributes
      type(FOMPI_Mem), intent(in) :: mem
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure mem_accumulate_f08
  end interface

  interface FOMPI_Mem_accumulate_scaled
    subroutine mem_accumulate_scaled_integer(factor, origin, number, datatype, mem, disp, attributes, ierror) &
        bind(C, name="fompi_mem_accumulate_scaled_")
      import :: c_int, c_int64_t, c_intptr_t, FOMPI_Mem
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: factor
      !DIR$ IGNORE_TKR factor
      type(*), dimension(*), asynchronous :: factor
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      integer(c_int64_t), intent(in) :: number
      integer(c_int), intent(in) :: datatype, attributes
      type(FOMPI_Mem), intent(in) :: mem
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure mem_accumulate_scaled_f08
  end interface

  interface FOMPI_Mem_fetch_and_op
    subroutine mem_fetch_and_op_integer(origin, result, datatype, mem, disp, op, attributes, ierror) &
        bind(C, name="fompi_mem_fetch_and_op_")
      import :: c_int, c_intptr_t, FOMPI_Mem
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: result
      !DIR$ IGNORE_TKR result
      type(*), dimension(*), asynchronous :: result
      integer(c_int), intent(in) :: datatype, op, attributes
      type(FOMPI_Mem), intent(in) :: mem
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure mem_fetch_and_op_f08
  end interface

  interface FOMPI_Mem_compare_and_swap
    subroutine mem_compare_and_swap_integer(origin, compare, result, datatype, mem, disp, attributes, ierror) &
        bind(C, name="fompi_mem_compare_and_swap_")
      import :: c_int, c_intptr_t, FOMPI_Mem
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: compare
      !DIR$ IGNORE_TKR compare
      type(*), dimension(*), asynchronous :: compare
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: result
      !DIR$ IGNORE_TKR result
      type(*), dimension(*), asynchronous :: result
      integer(c_int), intent(in) :: datatype, attributes
      type(FOMPI_Mem), intent(in) :: mem
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure mem_compare_and_swap_f08
  end interface

  interface FOMPI_Xfer
    subroutine xfer_integer(kind, op, origin, origin_count, origin_type, result, result_count, result_type, &
        compare, mem, disp, number, datatype, attributes, request, ierror) bind(C, name="fompi_xfer_")
      import :: c_int, c_int64_t, c_intptr_t, FOMPI_Mem
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
      !DIR$ IGNORE_TKR origin
      type(*), dimension(*), asynchronous :: origin
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: result
      !DIR$ IGNORE_TKR result
      type(*), dimension(*), asynchronous :: result
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: compare
      !DIR$ IGNORE_TKR compare
      type(*), dimension(*), asynchronous :: compare
      integer(c_int), intent(in) :: kind, op, origin_type, result_type, datatype, attributes
      integer(c_int64_t), intent(in) :: origin_count, result_count, number
      type(FOMPI_Mem), intent(in) :: mem
      integer(c_intptr_t), intent(in) :: disp
      integer(c_int), intent(inout) :: request
      integer(c_int), intent(out) :: ierror
    end subroutine
    module procedure xfer_f08
  end interface

  interface
    subroutine c_mem_pack(mem, packed, ierror) bind(C, name="fompi_mem_pack_")
      import :: c_int, c_intptr_t, c_ptr, FOMPI_Mem
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: packed
      !DIR$ IGNORE_TKR packed
      type(*), dimension(*), asynchronous :: packed
      type(FOMPI_Mem), intent(in) :: mem
      integer(c_int), intent(out) :: ierror
    end subroutine
  end interface

  interface
    subroutine c_mem_query(mem, rank, size, baseptr, ierror) bind(C, name="fompi_mem_query_")
      import :: c_int, c_intptr_t, c_ptr, FOMPI_Mem
      type(FOMPI_Mem), intent(in) :: mem
      integer(c_int), intent(out) :: rank
      integer(c_intptr_t), intent(out) :: size
      type(c_ptr), intent(out) :: baseptr
      integer(c_int), intent(out) :: ierror
    end subroutine
  end interface

  interface
    subroutine c_mem_withdraw(mem, ierror) bind(C, name="fompi_mem_withdraw_")
      import :: c_int, c_intptr_t, c_ptr, FOMPI_Mem
      type(FOMPI_Mem), intent(inout) :: mem
      integer(c_int), intent(out) :: ierror
    end subroutine
  end interface

  interface
    subroutine c_mem_release(mem, ierror) bind(C, name="fompi_mem_release_")
      import :: c_int, c_intptr_t, c_ptr, FOMPI_Mem
      type(FOMPI_Mem), intent(inout) :: mem
      integer(c_int), intent(out) :: ierror
    end subroutine
  end interface

contains

  ! The attribute of a transfer that notifies a counter of its target.
  pure integer function FOMPI_NOTIFY(index)
    integer, intent(in) :: index
    FOMPI_NOTIFY = 16 + 256 * index
  end function

  subroutine mem_expose_f08(base, size, info, win, mem, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: base
    !DIR$ IGNORE_TKR base
    type(*), dimension(*), asynchronous :: base
    integer(MPI_ADDRESS_KIND), intent(in) :: size
    type(MPI_Info), intent(in) :: info
    type(MPI_Win), intent(in) :: win
    type(FOMPI_Mem), intent(out) :: mem
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Mem_expose(base, size, info%MPI_VAL, win%MPI_VAL, mem, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine mem_allocate_f08(size, info, win, baseptr, mem, ierror)
    integer(MPI_ADDRESS_KIND), intent(in) :: size
    type(MPI_Info), intent(in) :: info
    type(MPI_Win), intent(in) :: win
    type(c_ptr), intent(out) :: baseptr
    type(FOMPI_Mem), intent(out) :: mem
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Mem_allocate(size, info%MPI_VAL, win%MPI_VAL, baseptr, mem, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine mem_unpack_f08(packed, win, mem, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: packed
    !DIR$ IGNORE_TKR packed
    type(*), dimension(*), asynchronous :: packed
    type(MPI_Win), intent(in) :: win
    type(FOMPI_Mem), intent(out) :: mem
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Mem_unpack(packed, win%MPI_VAL, mem, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine complete_f08(rank, win, ierror)
    integer, intent(in) :: rank
    type(MPI_Win), intent(in) :: win
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Complete(rank, win%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine complete_collective_f08(win, ierror)
    type(MPI_Win), intent(in) :: win
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Complete_collective(win%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine win_order_f08(rank, win, ierror)
    integer, intent(in) :: rank
    type(MPI_Win), intent(in) :: win
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Win_order(rank, win%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine win_nflush_f08(rank, number, wins, ierror)
    integer, intent(in) :: rank, number
    type(MPI_Win), intent(in) :: wins(number)
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Win_nflush(rank, number, wins%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine win_dup_f08(win, info, newwin, ierror)
    type(MPI_Win), intent(in) :: win
    type(MPI_Info), intent(in) :: info
    type(MPI_Win), intent(out) :: newwin
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Win_dup(win%MPI_VAL, info%MPI_VAL, newwin%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine win_from_mem_f08(number, mems, info, newwin, ierror)
    integer, intent(in) :: number
    type(FOMPI_Mem), intent(in) :: mems(number)
    type(MPI_Info), intent(in) :: info
    type(MPI_Win), intent(out) :: newwin
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Win_from_mem(number, mems, info%MPI_VAL, newwin%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine mem_put_f08(origin, number, datatype, mem, disp, attributes, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    integer(MPI_COUNT_KIND), intent(in) :: number
    type(MPI_Datatype), intent(in) :: datatype
    type(FOMPI_Mem), intent(in) :: mem
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    integer, intent(in) :: attributes
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Mem_put(origin, number, datatype%MPI_VAL, mem, disp, attributes, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine mem_get_f08(origin, number, datatype, mem, disp, attributes, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    integer(MPI_COUNT_KIND), intent(in) :: number
    type(MPI_Datatype), intent(in) :: datatype
    type(FOMPI_Mem), intent(in) :: mem
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    integer, intent(in) :: attributes
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Mem_get(origin, number, datatype%MPI_VAL, mem, disp, attributes, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine mem_accumulate_f08(origin, number, datatype, mem, disp, op, attributes, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    integer(MPI_COUNT_KIND), intent(in) :: number
    type(MPI_Datatype), intent(in) :: datatype
    type(MPI_Op), intent(in) :: op
    type(FOMPI_Mem), intent(in) :: mem
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    integer, intent(in) :: attributes
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Mem_accumulate(origin, number, datatype%MPI_VAL, mem, disp, op%MPI_VAL, attributes, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine mem_accumulate_scaled_f08(factor, origin, number, datatype, mem, disp, attributes, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: factor
    !DIR$ IGNORE_TKR factor
    type(*), dimension(*), asynchronous :: factor
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    integer(MPI_COUNT_KIND), intent(in) :: number
    type(MPI_Datatype), intent(in) :: datatype
    type(FOMPI_Mem), intent(in) :: mem
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    integer, intent(in) :: attributes
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Mem_accumulate_scaled(factor, origin, number, datatype%MPI_VAL, mem, disp, attributes, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine xfer_f08(kind, op, origin, origin_count, origin_type, result, result_count, result_type, compare, &
      mem, disp, number, datatype, attributes, request, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: result
    !DIR$ IGNORE_TKR result
    type(*), dimension(*), asynchronous :: result
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: compare
    !DIR$ IGNORE_TKR compare
    type(*), dimension(*), asynchronous :: compare
    integer, intent(in) :: kind, attributes
    type(MPI_Op), intent(in) :: op
    integer(MPI_COUNT_KIND), intent(in) :: origin_count, result_count, number
    type(MPI_Datatype), intent(in) :: origin_type, result_type, datatype
    type(FOMPI_Mem), intent(in) :: mem
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Request), intent(inout) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Xfer(kind, op%MPI_VAL, origin, origin_count, origin_type%MPI_VAL, result, result_count, &
        result_type%MPI_VAL, compare, mem, disp, number, datatype%MPI_VAL, attributes, request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine mem_fetch_and_op_f08(origin, result, datatype, mem, disp, op, attributes, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: result
    !DIR$ IGNORE_TKR result
    type(*), dimension(*), asynchronous :: result
    type(MPI_Datatype), intent(in) :: datatype
    type(MPI_Op), intent(in) :: op
    type(FOMPI_Mem), intent(in) :: mem
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    integer, intent(in) :: attributes
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Mem_fetch_and_op(origin, result, datatype%MPI_VAL, mem, disp, op%MPI_VAL, attributes, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine mem_compare_and_swap_f08(origin, compare, result, datatype, mem, disp, attributes, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: compare
    !DIR$ IGNORE_TKR compare
    type(*), dimension(*), asynchronous :: compare
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: result
    !DIR$ IGNORE_TKR result
    type(*), dimension(*), asynchronous :: result
    type(MPI_Datatype), intent(in) :: datatype
    type(FOMPI_Mem), intent(in) :: mem
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    integer, intent(in) :: attributes
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Mem_compare_and_swap(origin, compare, result, datatype%MPI_VAL, mem, disp, attributes, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine FOMPI_Mem_pack(mem, packed, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: packed
    !DIR$ IGNORE_TKR packed
    type(*), dimension(*), asynchronous :: packed
    type(FOMPI_Mem), intent(in) :: mem
    integer, optional, intent(out) :: ierror
    integer :: code
    call c_mem_pack(mem, packed, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine FOMPI_Mem_query(mem, rank, size, baseptr, ierror)
    type(FOMPI_Mem), intent(in) :: mem
    integer(c_int), intent(out) :: rank
    integer(c_intptr_t), intent(out) :: size
    type(c_ptr), intent(out) :: baseptr
    integer, optional, intent(out) :: ierror
    integer :: code
    call c_mem_query(mem, rank, size, baseptr, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine FOMPI_Mem_withdraw(mem, ierror)
    type(FOMPI_Mem), intent(inout) :: mem
    integer, optional, intent(out) :: ierror
    integer :: code
    call c_mem_withdraw(mem, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine FOMPI_Mem_release(mem, ierror)
    type(FOMPI_Mem), intent(inout) :: mem
    integer, optional, intent(out) :: ierror
    integer :: code
    call c_mem_release(mem, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine put_notify_f08(origin, origin_count, origin_type, rank, disp, target_count, target_type, &
      index, win, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    integer, intent(in) :: origin_count, rank, target_count, index
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: origin_type, target_type
    type(MPI_Win), intent(in) :: win
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Put_notify(origin, origin_count, origin_type%MPI_VAL, rank, disp, target_count, &
        target_type%MPI_VAL, index, win%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine put_notify_large_f08(origin, origin_count, origin_type, rank, disp, target_count, &
      target_type, index, win, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    integer(MPI_COUNT_KIND), intent(in) :: origin_count, target_count
    integer, intent(in) :: rank, index
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: origin_type, target_type
    type(MPI_Win), intent(in) :: win
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Put_notify(origin, origin_count, origin_type%MPI_VAL, rank, disp, target_count, &
        target_type%MPI_VAL, index, win%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine get_notify_f08(origin, origin_count, origin_type, rank, disp, target_count, target_type, &
      index, win, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    integer, intent(in) :: origin_count, rank, target_count, index
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: origin_type, target_type
    type(MPI_Win), intent(in) :: win
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Get_notify(origin, origin_count, origin_type%MPI_VAL, rank, disp, target_count, &
        target_type%MPI_VAL, index, win%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine get_notify_large_f08(origin, origin_count, origin_type, rank, disp, target_count, &
      target_type, index, win, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    integer(MPI_COUNT_KIND), intent(in) :: origin_count, target_count
    integer, intent(in) :: rank, index
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: origin_type, target_type
    type(MPI_Win), intent(in) :: win
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Get_notify(origin, origin_count, origin_type%MPI_VAL, rank, disp, target_count, &
        target_type%MPI_VAL, index, win%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine accumulate_notify_f08(origin, origin_count, origin_type, rank, disp, target_count, &
      target_type, op, index, win, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    integer, intent(in) :: origin_count, rank, target_count, index
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: origin_type, target_type
    type(MPI_Op), intent(in) :: op
    type(MPI_Win), intent(in) :: win
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Accumulate_notify(origin, origin_count, origin_type%MPI_VAL, rank, disp, target_count, &
        target_type%MPI_VAL, op%MPI_VAL, index, win%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine accumulate_notify_large_f08(origin, origin_count, origin_type, rank, disp, target_count, &
      target_type, op, index, win, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    integer(MPI_COUNT_KIND), intent(in) :: origin_count, target_count
    integer, intent(in) :: rank, index
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: origin_type, target_type
    type(MPI_Op), intent(in) :: op
    type(MPI_Win), intent(in) :: win
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Accumulate_notify(origin, origin_count, origin_type%MPI_VAL, rank, disp, target_count, &
        target_type%MPI_VAL, op%MPI_VAL, index, win%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine get_accumulate_notify_f08(origin, origin_count, origin_type, result, result_count, &
      result_type, rank, disp, target_count, target_type, op, index, win, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin, result
    !DIR$ IGNORE_TKR origin, result
    type(*), dimension(*), asynchronous :: origin, result
    integer, intent(in) :: origin_count, result_count, rank, target_count, index
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: origin_type, result_type, target_type
    type(MPI_Op), intent(in) :: op
    type(MPI_Win), intent(in) :: win
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Get_accumulate_notify(origin, origin_count, origin_type%MPI_VAL, result, result_count, &
        result_type%MPI_VAL, rank, disp, target_count, target_type%MPI_VAL, op%MPI_VAL, index, win%MPI_VAL, &
        code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine get_accumulate_notify_large_f08(origin, origin_count, origin_type, result, result_count, &
      result_type, rank, disp, target_count, target_type, op, index, win, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin, result
    !DIR$ IGNORE_TKR origin, result
    type(*), dimension(*), asynchronous :: origin, result
    integer(MPI_COUNT_KIND), intent(in) :: origin_count, result_count, target_count
    integer, intent(in) :: rank, index
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: origin_type, result_type, target_type
    type(MPI_Op), intent(in) :: op
    type(MPI_Win), intent(in) :: win
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Get_accumulate_notify(origin, origin_count, origin_type%MPI_VAL, result, result_count, &
        result_type%MPI_VAL, rank, disp, target_count, target_type%MPI_VAL, op%MPI_VAL, index, win%MPI_VAL, &
        code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine rput_notify_f08(origin, origin_count, origin_type, rank, disp, target_count, target_type, &
      index, win, request, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    integer, intent(in) :: origin_count, rank, target_count, index
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: origin_type, target_type
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Rput_notify(origin, origin_count, origin_type%MPI_VAL, rank, disp, target_count, &
        target_type%MPI_VAL, index, win%MPI_VAL, request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine rput_notify_large_f08(origin, origin_count, origin_type, rank, disp, target_count, &
      target_type, index, win, request, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    integer(MPI_COUNT_KIND), intent(in) :: origin_count, target_count
    integer, intent(in) :: rank, index
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: origin_type, target_type
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Rput_notify(origin, origin_count, origin_type%MPI_VAL, rank, disp, target_count, &
        target_type%MPI_VAL, index, win%MPI_VAL, request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine rget_notify_f08(origin, origin_count, origin_type, rank, disp, target_count, target_type, &
      index, win, request, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    integer, intent(in) :: origin_count, rank, target_count, index
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: origin_type, target_type
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Rget_notify(origin, origin_count, origin_type%MPI_VAL, rank, disp, target_count, &
        target_type%MPI_VAL, index, win%MPI_VAL, request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine rget_notify_large_f08(origin, origin_count, origin_type, rank, disp, target_count, &
      target_type, index, win, request, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    integer(MPI_COUNT_KIND), intent(in) :: origin_count, target_count
    integer, intent(in) :: rank, index
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: origin_type, target_type
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Rget_notify(origin, origin_count, origin_type%MPI_VAL, rank, disp, target_count, &
        target_type%MPI_VAL, index, win%MPI_VAL, request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine raccumulate_notify_f08(origin, origin_count, origin_type, rank, disp, target_count, &
      target_type, op, index, win, request, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    integer, intent(in) :: origin_count, rank, target_count, index
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: origin_type, target_type
    type(MPI_Op), intent(in) :: op
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Raccumulate_notify(origin, origin_count, origin_type%MPI_VAL, rank, disp, target_count, &
        target_type%MPI_VAL, op%MPI_VAL, index, win%MPI_VAL, request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine raccumulate_notify_large_f08(origin, origin_count, origin_type, rank, disp, target_count, &
      target_type, op, index, win, request, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin
    !DIR$ IGNORE_TKR origin
    type(*), dimension(*), asynchronous :: origin
    integer(MPI_COUNT_KIND), intent(in) :: origin_count, target_count
    integer, intent(in) :: rank, index
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: origin_type, target_type
    type(MPI_Op), intent(in) :: op
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Raccumulate_notify(origin, origin_count, origin_type%MPI_VAL, rank, disp, target_count, &
        target_type%MPI_VAL, op%MPI_VAL, index, win%MPI_VAL, request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine rget_accumulate_notify_f08(origin, origin_count, origin_type, result, result_count, &
      result_type, rank, disp, target_count, target_type, op, index, win, request, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin, result
    !DIR$ IGNORE_TKR origin, result
    type(*), dimension(*), asynchronous :: origin, result
    integer, intent(in) :: origin_count, result_count, rank, target_count, index
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: origin_type, result_type, target_type
    type(MPI_Op), intent(in) :: op
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Rget_accumulate_notify(origin, origin_count, origin_type%MPI_VAL, result, result_count, &
        result_type%MPI_VAL, rank, disp, target_count, target_type%MPI_VAL, op%MPI_VAL, index, win%MPI_VAL, &
        request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine rget_accumulate_notify_large_f08(origin, origin_count, origin_type, result, result_count, &
      result_type, rank, disp, target_count, target_type, op, index, win, request, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin, result
    !DIR$ IGNORE_TKR origin, result
    type(*), dimension(*), asynchronous :: origin, result
    integer(MPI_COUNT_KIND), intent(in) :: origin_count, result_count, target_count
    integer, intent(in) :: rank, index
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: origin_type, result_type, target_type
    type(MPI_Op), intent(in) :: op
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Rget_accumulate_notify(origin, origin_count, origin_type%MPI_VAL, result, result_count, &
        result_type%MPI_VAL, rank, disp, target_count, target_type%MPI_VAL, op%MPI_VAL, index, win%MPI_VAL, &
        request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine rfetch_and_op_f08(origin, result, datatype, rank, disp, op, win, request, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin, result
    !DIR$ IGNORE_TKR origin, result
    type(*), dimension(*), asynchronous :: origin, result
    integer, intent(in) :: rank
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: datatype
    type(MPI_Op), intent(in) :: op
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Rfetch_and_op(origin, result, datatype%MPI_VAL, rank, disp, op%MPI_VAL, win%MPI_VAL, &
        request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine rcompare_and_swap_f08(origin, compare, result, datatype, rank, disp, win, request, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: origin, compare, result
    !DIR$ IGNORE_TKR origin, compare, result
    type(*), dimension(*), asynchronous :: origin, compare, result
    integer, intent(in) :: rank
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: datatype
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Rcompare_and_swap(origin, compare, result, datatype%MPI_VAL, rank, disp, win%MPI_VAL, &
        request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine win_set_num_notify_f08(win, info, number, ierror)
    integer, intent(in) :: number
    type(MPI_Win), intent(in) :: win
    type(MPI_Info), intent(in) :: info
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Win_set_num_notify(win%MPI_VAL, info%MPI_VAL, number, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine win_get_num_notify_f08(win, rank, found, ierror)
    integer, intent(in) :: rank
    type(MPI_Win), intent(in) :: win
    integer, intent(out) :: found
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Win_get_num_notify(win%MPI_VAL, rank, found, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine win_get_notify_value_f08(win, index, value, ierror)
    integer, intent(in) :: index
    type(MPI_Win), intent(in) :: win
    integer(MPI_COUNT_KIND), intent(out) :: value
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Win_get_notify_value(win%MPI_VAL, index, value, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine win_reset_notify_value_f08(win, index, value, ierror)
    integer, intent(in) :: index
    type(MPI_Win), intent(in) :: win
    integer(MPI_COUNT_KIND), intent(out) :: value
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Win_reset_notify_value(win%MPI_VAL, index, value, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine win_wait_notify_f08(win, index, threshold, ierror)
    integer, intent(in) :: index
    type(MPI_Win), intent(in) :: win
    integer(MPI_COUNT_KIND), intent(in) :: threshold
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Win_wait_notify(win%MPI_VAL, index, threshold, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine win_wait_any_notify_f08(win, first, number, threshold, found, ierror)
    integer, intent(in) :: first, number
    type(MPI_Win), intent(in) :: win
    integer(MPI_COUNT_KIND), intent(in) :: threshold
    integer, intent(out) :: found
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Win_wait_any_notify(win%MPI_VAL, first, number, threshold, found, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine win_notify_request_f08(win, index, threshold, request, ierror)
    integer, intent(in) :: index
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer(MPI_COUNT_KIND), intent(in) :: threshold
    integer, optional, intent(out) :: ierror
    integer :: code
    call FOMPI_Win_notify_request(win%MPI_VAL, index, threshold, request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

end module fompi
