! A window that libfompi leaves to the host MPI, through mpif.h: its integer, its attributes,
! and an error handler of the program, which gets that integer.
      program doors
      implicit none
      include 'mpif.h'
      integer ours, theirs, rank, nranks, value, i, ierr
      integer (kind=MPI_ADDRESS_KIND) disp, bytes, attribute
      logical flag
      integer, volatile :: memory(16)
      external handler
      integer h, calls, lastwin
      common /seen/ calls, lastwin
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, nranks, ierr)
      bytes = 64
      disp = 0
      memory(1) = 0
      call MPI_WIN_CREATE(memory, bytes, 4, MPI_INFO_NULL,
     & MPI_COMM_WORLD, theirs, ierr)
      call MPI_WIN_GET_ATTR(theirs, MPI_WIN_DISP_UNIT, attribute, flag,
     & ierr)
      if (.not. flag .or. attribute .ne. 4) stop 2
      do i = 1, 3
        value = 10 * i + rank
        call MPI_WIN_FENCE(0, theirs, ierr)
        call MPI_PUT(value, 1, MPI_INTEGER, mod(rank + 1, nranks), disp,
     &   1, MPI_INTEGER, theirs, ierr)
        call MPI_WIN_FENCE(0, theirs, ierr)
        if (memory(1) .ne. 10*i + mod(rank+nranks-1,nranks)) stop 4
      end do
      call MPI_WIN_CREATE_ERRHANDLER(handler, h, ierr)
      call MPI_WIN_SET_ERRHANDLER(theirs, h, ierr)
      calls = 0
      call MPI_WIN_FENCE(0, theirs, ierr)
      call MPI_PUT(value, 1, MPI_INTEGER, nranks, disp,
     & 1, MPI_INTEGER, theirs, ierr)
      if (calls .ne. 1 .or. lastwin .ne. theirs) stop 7
      call MPI_WIN_FENCE(0, theirs, ierr)
      call MPI_WIN_FREE(theirs, ierr)
      if (theirs .ne. MPI_WIN_NULL) stop 6
      call MPI_FINALIZE(ierr)
      end
      subroutine handler(win, code)
      integer win, code, calls, lastwin
      common /seen/ calls, lastwin
      calls = calls + 1
      lastwin = win
      end
