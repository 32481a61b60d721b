! The 3-D FFT of the NAS Parallel Benchmarks in Fortran, as ft.c is in C: slabs of planes, which the
! ranks exchange by one collective or by a put of each plane as soon as it is ready.
program ft_f
  use mpi_f08
  use ft_grid
  implicit none
  include 'fftw3.f03'

  ! One direction: `rows` and `planes` of the whole grid, my_ of this rank; first_row(r) and
  ! first_plane(r) precede those of rank r. The same memory has another shape in each direction.
  type direction_t
    integer :: rows, planes, my_rows, my_planes
    integer, allocatable :: first_row(:), first_plane(:)
    complex(dp), pointer, contiguous :: slab(:, :, :)     ! nx, rows, my_planes
    complex(dp), pointer, contiguous :: received(:, :, :) ! nx, my_rows, planes: the window
    complex(dp), pointer, contiguous :: result(:, :, :)   ! nx, planes, my_rows
    type(c_ptr) :: in_plane, across_planes
  end type

  type(class_t), pointer :: class
  type(direction_t), target :: forward, inverse
  type(MPI_Win) :: window
  complex(dp), pointer, contiguous :: waves(:), slab(:), received(:), one_plane(:, :)
  real(dp), allocatable :: fx(:), fy(:), fz(:)
  character(:), allocatable :: variants
  character(*), parameter :: known(2) = [character(8) :: 'alltoall', 'onesided']
  integer :: nx, rank, ranks, iterations, rounds, i
  real(dp) :: last_progress
  logical :: is_verified

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call read_options()
  call allocate_all()
  last_progress = MPI_Wtime()
  is_verified = .true.
  do i = 1, size(known)
    if (is_chosen(known(i))) is_verified = measure(trim(known(i))) .and. is_verified
  end do
  call MPI_Win_free(window)
  call MPI_Finalize()
  if (.not. is_verified) stop 1

contains

  subroutine read_options()
    character(200) :: name, value
    character :: letter
    integer :: argument, status
    type(c_ptr) :: found
    letter = 'S'
    variants = 'all'
    iterations = 0
    rounds = 3
    do argument = 1, command_argument_count(), 2
      call get_command_argument(argument, name)
      call get_command_argument(argument + 1, value)
      status = 0
      select case (name)
      case ('--class')
        letter = value(1:1)
        if (len_trim(value) /= 1) status = 1
      case ('--variant')
        variants = trim(value)
      case ('--iterations')
        read (value, *, iostat=status) iterations
      case ('--rounds')
        read (value, *, iostat=status) rounds
      case ('--help')
        call usage(0)
      case default
        status = 1
      end select
      if (status /= 0) call usage(2)
    end do
    found = ft_class(letter)
    if (.not. c_associated(found)) call usage(2)
    call c_f_pointer(found, class)
    if (iterations == 0) iterations = class%iterations
    if (iterations < 0 .or. iterations > class%iterations .or. rounds < 1) call usage(2)
    if (.not. any(is_chosen(known))) call usage(2)
  end subroutine

  elemental logical function is_chosen(variant)
    character(*), intent(in) :: variant
    is_chosen = variants == 'all' .or. &
      index(',' // variants // ',', ',' // trim(variant) // ',') > 0
  end function

  subroutine usage(status)
    integer, intent(in) :: status
    if (rank == 0) print '(a)', 'usage: mpirun -n RANKS ft_f [--OPTION VALUE]...', '', &
      'The 3-D FFT of the NAS Parallel Benchmarks.', '', &
      '  --class       S 64x64x64, W 128x128x32, A 256x256x128, B 512x256x256 (S)', &
      '  --variant     alltoall, onesided (all)', &
      '  --iterations  steps in time; 0: as many as the class has, 6 or 20 (0)', &
      '  --rounds      runs of each variant, of which the median is printed (3)', &
      '  --help        this text'
    call MPI_Finalize()
    if (status /= 0) stop 2
    stop
  end subroutine

  subroutine allocate_all()
    integer(int64) :: sent, exposed
    type(c_ptr) :: memory
    nx = class%nx
    forward = direction(class%ny, class%nz)
    inverse = direction(class%nz, class%ny)
    ! Slabs of z and of y can differ in size.
    sent = int(nx, int64) * max(forward%my_planes * forward%rows, inverse%my_planes * inverse%rows)
    exposed = int(nx, int64) * &
      max(forward%my_rows * forward%planes, inverse%my_rows * inverse%planes)
    call c_f_pointer(fftw_alloc_complex(max(sent, 1_int64)), waves, [sent])
    call c_f_pointer(fftw_alloc_complex(max(sent, 1_int64)), slab, [sent])
    call c_f_pointer(fftw_alloc_complex(int(nx, int64) * max(class%ny, class%nz)), one_plane, &
      [nx, max(class%ny, class%nz)])
    call MPI_Win_allocate(exposed * 16, 16, MPI_INFO_NULL, MPI_COMM_WORLD, memory, window)
    call c_f_pointer(memory, received, [exposed])
    call shape_of(forward, waves, FFTW_FORWARD)
    call shape_of(inverse, slab, FFTW_BACKWARD)
    allocate (fx(nx), fy(class%ny), fz(class%nz))
  end subroutine

  type(direction_t) function direction(rows, planes) result(d)
    integer, intent(in) :: rows, planes
    integer :: r
    d%rows = rows
    d%planes = planes
    allocate (d%first_row(0:ranks), d%first_plane(0:ranks))
    d%first_row = [(first_of(rows, r, ranks), r = 0, ranks)]
    d%first_plane = [(first_of(planes, r, ranks), r = 0, ranks)]
    d%my_rows = d%first_row(rank + 1) - d%first_row(rank)
    d%my_planes = d%first_plane(rank + 1) - d%first_plane(rank)
  end function

  ! Measuring plans overwrite the memory, so they are made before there are data.
  subroutine shape_of(d, result, sign)
    type(direction_t), intent(inout) :: d
    complex(dp), pointer, contiguous, intent(in) :: result(:)
    integer, intent(in) :: sign
    complex(dp), pointer, contiguous :: output(:, :, :)
    d%slab(1:nx, 1:d%rows, 1:d%my_planes) => slab
    d%received(1:nx, 1:d%my_rows, 1:d%planes) => received
    d%result(1:nx, 1:d%planes, 1:d%my_rows) => result
    ! In place; C counts dimensions from the other end.
    output => d%slab
    if (d%my_planes > 0) &
      d%in_plane = fftw_plan_dft_2d(d%rows, nx, d%slab, output, sign, FFTW_MEASURE)
    output => d%result
    if (d%my_rows > 0) &
      d%across_planes = fftw_plan_many_dft(1, [d%planes], nx, d%result, [d%planes], nx, 1, output, &
      [d%planes], nx, 1, sign, FFTW_MEASURE)
  end subroutine

  ! Transforms the planes, puts each one as soon as it is ready, and then transforms across them. t:
  ! the time of the inverse transform; 0: the forward one.
  subroutine transform(d, variant, t)
    type(direction_t), intent(inout) :: d
    character(*), intent(in) :: variant
    integer, intent(in) :: t
    integer :: plane, row
    if (variant == 'onesided') then
      ! All ranks have called it when it returns, and so do not read their windows any longer.
      call MPI_Win_fence(MPI_MODE_NOPRECEDE, window)
      do plane = 1, d%my_planes
        call compute(d, plane, t, d%slab(:, :, plane))
        call put(d, plane)
      end do
      call MPI_Win_fence(MPI_MODE_NOSUCCEED, window)
      ! Other ranks have written to the window: the compiler must not use what it has read before
      ! (MPI-4.1 §19.1.17).
      call MPI_F_sync_reg(received)
    else
      do plane = 1, d%my_planes
        call compute(d, plane, t, one_plane(:, 1:d%rows))
        call pack(d, plane)
      end do
      call exchange_packed(d)
    end if
    ! A row is copied to one place first: an FFT of numbers that are a large power of two apart
    ! takes several times as long.
    do row = 1, d%my_rows
      d%result(:, :, row) = d%received(:, row, :)
      call fftw_execute_dft(d%across_planes, d%result(:, :, row), d%result(:, :, row))
    end do
  end subroutine

  ! Writes the transform of a plane to `to`: of the grid, or of the spectrum at time t.
  subroutine compute(d, plane, t, to)
    type(direction_t), intent(in) :: d
    integer, intent(in) :: plane, t
    complex(dp), contiguous, intent(inout) :: to(:, :)
    complex(dp), pointer, contiguous :: from(:, :, :)
    integer :: z
    from(1:nx, 1:d%rows, 1:d%my_planes) => waves
    if (t == 0) then
      to = from(:, :, plane)
    else
      do z = 1, d%rows
        to(:, z) = from(:, z, plane) * (fx * (fy(d%first_plane(rank) + plane) * fz(z)))
      end do
    end if
    call fftw_execute_dft(d%in_plane, to, to)
  end subroutine

  ! What one rank gets of a plane is contiguous here and there. The first element is passed, not a
  ! section: a compiler might pass a copy of it that ends with the call.
  subroutine put(d, plane)
    type(direction_t), intent(in) :: d
    integer, intent(in) :: plane
    integer :: i, target, count
    do i = 1, ranks
      target = mod(rank + i, ranks) ! so that not all ranks put into one
      count = nx * (d%first_row(target + 1) - d%first_row(target))
      if (count > 0) call MPI_Put(d%slab(1, d%first_row(target) + 1, plane), count, &
        MPI_DOUBLE_COMPLEX, target, &
        int(d%first_plane(rank) + plane - 1, MPI_ADDRESS_KIND) * count, count, &
        MPI_DOUBLE_COMPLEX, window)
    end do
  end subroutine

  ! Copies a plane to where a collective expects the blocks for the ranks, while it is in the cache.
  subroutine pack(d, plane)
    type(direction_t), intent(in) :: d
    integer, intent(in) :: plane
    integer :: r, rows
    integer(int64) :: at
    do r = 0, ranks - 1
      rows = d%first_row(r + 1) - d%first_row(r)
      at = int(nx, int64) * (d%my_planes * d%first_row(r) + (plane - 1) * rows)
      slab(at + 1:at + nx * rows) = reshape(one_plane(:, d%first_row(r) + 1:d%first_row(r + 1)), &
        [nx * rows])
    end do
  end subroutine

  subroutine exchange_packed(d)
    type(direction_t), intent(in) :: d
    integer :: rows(0:ranks - 1), planes(0:ranks - 1)
    rows = d%first_row(1:) - d%first_row(:ranks - 1)
    planes = d%first_plane(1:) - d%first_plane(:ranks - 1)
    call MPI_Alltoallv(slab, nx * d%my_planes * rows, &
      nx * d%my_planes * d%first_row(:ranks - 1), MPI_DOUBLE_COMPLEX, &
      received, nx * d%my_rows * planes, nx * d%my_rows * d%first_plane(:ranks - 1), &
      MPI_DOUBLE_COMPLEX, MPI_COMM_WORLD)
  end subroutine

  ! One run of the benchmark: the seconds of the slowest rank, and the checksums.
  real(dp) function run(variant, sums)
    character(*), intent(in) :: variant
    complex(dp), intent(out) :: sums(:)
    integer :: t, first_z
    real(dp) :: began
    first_z = forward%first_plane(rank)
    call fill_with_random(waves(:nx * forward%rows * forward%my_planes), &
      int(nx, int64) * forward%rows * first_z)
    call MPI_Barrier(MPI_COMM_WORLD)
    began = MPI_Wtime()
    call transform(forward, variant, 0)
    do t = 1, iterations
      fx = decay_factors(nx, t)
      fy = decay_factors(class%ny, t)
      fz = decay_factors(class%nz, t)
      call transform(inverse, variant, t)
      sums(t) = checksum(inverse%result, first_z, class%nz)
      call progress(variant, t)
    end do
    call MPI_Allreduce(MPI_IN_PLACE, sums, iterations, MPI_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD)
    run = MPI_Wtime() - began
    call MPI_Allreduce(MPI_IN_PLACE, run, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
  end function

  subroutine progress(variant, t)
    use, intrinsic :: iso_fortran_env, only: error_unit
    character(*), intent(in) :: variant
    integer, intent(in) :: t
    if (rank /= 0 .or. MPI_Wtime() - last_progress < 2) return
    last_progress = MPI_Wtime()
    write (error_unit, '(3a,i0,a,i0)') '... ', variant, ': iteration ', t, ' of ', iterations
  end subroutine

  ! Whether the checksums of all rounds are the published ones.
  logical function measure(variant)
    character(*), intent(in) :: variant
    complex(dp) :: sums(iterations)
    real(dp) :: seconds(rounds), published(2, iterations), error
    integer :: round, least
    character(20) :: median
    published = class%checksums(:, :iterations)
    error = 0
    do round = 1, rounds
      seconds(round) = run(variant, sums)
      error = max(error, maxval(abs(real(sums) - published(1, :)) / abs(published(1, :))), &
        maxval(abs(aimag(sums) - published(2, :)) / abs(published(2, :))))
      if (any(sums /= sums)) error = huge(error)
    end do
    do round = 1, rounds / 2 ! takes the smaller ones away, then the median is the smallest
      least = minloc(seconds, 1)
      seconds(least) = huge(seconds)
    end do
    measure = error <= 1e-12_dp
    write (median, '(f20.9)') minval(seconds)
    if (rank == 0) print '(3a,i0,3a,i1,4(a,i0),a,es7.1)', 'example=ft_f variant=', variant, &
      ' ranks=', ranks, ' seconds=', trim(adjustl(median)), ' verified=', merge(1, 0, measure), &
      ' nx=', nx, ' ny=', class%ny, ' nz=', class%nz, ' iterations=', iterations, ' error=', error
  end function
end program
