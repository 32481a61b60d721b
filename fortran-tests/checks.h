! What the programs of three bindings share: start and end, and checks that name the program and
! what does not hold.

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    write (0, *) PROGRAM_NAME, ': rank ', my_rank, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine check

  ! The call before must have stored MPI_SUCCESS in ierr, where -1 was before.
  subroutine ok(what)
    character(*), intent(in) :: what
    call check(ierr == MPI_SUCCESS, what)
    ierr = -1
  end subroutine ok

  ! The call before must have stored an error of this class in ierr.
  subroutine expect(class, what)
    integer, intent(in) :: class
    character(*), intent(in) :: what
    integer :: got, code
    got = MPI_SUCCESS
    if (ierr /= MPI_SUCCESS) call MPI_Error_class(ierr, got, code)
    if (got /= class) write (0, *) 'error class', got, ', not', class
    call check(got == class, what)
    ierr = -1
  end subroutine expect

  subroutine start()
    call MPI_Init(ierr)
    call count_in(MPI_COMM_WORLD)
  end subroutine start

  ! Ranks and neighbours are those of this communicator from here on.
  subroutine count_in(comm)
    COMM_T, intent(in) :: comm
    call MPI_Comm_rank(comm, my_rank, ierr)
    call MPI_Comm_size(comm, ranks, ierr)
    next = mod(my_rank + 1, ranks)
    previous = mod(my_rank + ranks - 1, ranks)
    ierr = -1
  end subroutine count_in

  subroutine finish()
    call MPI_Finalize(ierr)
    call check(ierr == MPI_SUCCESS, 'finalize')
  end subroutine finish

  ! The address behind what the binding stores where the memory of a window is asked for.
  type(c_ptr) function pointer_of(base)
    BASE_T, intent(in) :: base
    pointer_of = transfer(base, c_null_ptr)
  end function pointer_of
