! Conjugate gradients in coarray Fortran: the Laplace equation on a square of points, divided among
! a grid of images. Each iteration gets one line of points from each of four neighbours: two of them
! contiguous in memory, two with a stride. It is the kind of kernel by which "Problems with using
! MPI 1.1 and 2.0 as compilation targets" judges a one-sided layer; scripts/clients runs it.
!
! usage: coarray_cg [points in each dimension] [iterations]
!
! The right-hand side belongs to a known solution, from which the residual and the error are known:
! the program verifies both, and prints one line.
program coarray_cg
  use, intrinsic :: iso_fortran_env, only: real64, int64
  implicit none
  integer :: points = 128, iterations = 200
  integer :: images, me, columns, rows, my_column, my_row, nx, ny
  integer :: neighbours(4), count_of_neighbours
  real(real64), allocatable :: p(:, :)[:]   ! the search direction, with a halo of one point
  real(real64), allocatable :: x(:, :), r(:, :), q(:, :), solution(:, :)
  integer(int64) :: began, ended, ticks
  real(real64) :: rr, rr_before, first

  call read_arguments()
  call divide()
  allocate (p(0:nx + 1, 0:ny + 1)[*], source=0.0_real64)
  allocate (x(nx, ny), r(nx, ny), q(nx, ny), solution(nx, ny))
  call right_hand_side()
  sync all
  call system_clock(began, ticks)
  call solve()
  sync all
  call system_clock(ended)
  call report(real(ended - began, real64) / real(ticks, real64))

contains

  subroutine read_arguments()
    character(len=32) :: text
    if (command_argument_count() >= 1) then
      call get_command_argument(1, text)
      read (text, *) points
    end if
    if (command_argument_count() >= 2) then
      call get_command_argument(2, text)
      read (text, *) iterations
    end if
  end subroutine

  ! The grid of images that is nearest to a square, and the neighbours of this one.
  subroutine divide()
    images = num_images()
    me = this_image()
    columns = int(sqrt(real(images)))
    do while (mod(images, columns) /= 0)
      columns = columns - 1
    end do
    rows = images / columns
    if (mod(points, columns) /= 0 .or. mod(points, rows) /= 0) &
      error stop "coarray_cg: the points do not divide evenly among the images"
    my_column = mod(me - 1, columns)
    my_row = (me - 1) / columns
    nx = points / columns
    ny = points / rows
    count_of_neighbours = 0
    call add_neighbour(my_column > 0, me - 1)
    call add_neighbour(my_column < columns - 1, me + 1)
    call add_neighbour(my_row > 0, me - columns)
    call add_neighbour(my_row < rows - 1, me + columns)
  end subroutine

  subroutine add_neighbour(is_there, image)
    logical, intent(in) :: is_there
    integer, intent(in) :: image
    if (.not. is_there) return
    count_of_neighbours = count_of_neighbours + 1
    neighbours(count_of_neighbours) = image
  end subroutine

  subroutine synchronise()
    sync images (neighbours(1:count_of_neighbours))
  end subroutine

  ! The halo of p, by gets. The first synchronisation: the neighbours have stored their p; the
  ! second one: they have read ours, which may change.
  subroutine exchange()
    call synchronise()
    if (my_column > 0) p(0, 1:ny) = p(nx, 1:ny)[me - 1]
    if (my_column < columns - 1) p(nx + 1, 1:ny) = p(1, 1:ny)[me + 1]
    if (my_row > 0) p(1:nx, 0) = p(1:nx, ny)[me - columns]
    if (my_row < rows - 1) p(1:nx, ny + 1) = p(1:nx, 1)[me + columns]
    call synchronise()
  end subroutine

  ! q = A p
  subroutine multiply()
    integer :: i, j
    call exchange()
    do j = 1, ny
      do i = 1, nx
        q(i, j) = 4 * p(i, j) - p(i - 1, j) - p(i + 1, j) - p(i, j - 1) - p(i, j + 1)
      end do
    end do
  end subroutine

  function product_of(a, b) result(total)
    real(real64), intent(in) :: a(:, :), b(:, :)
    real(real64) :: total
    total = sum(a * b)
    call co_sum(total)
  end function

  ! The solution is a number for each point that does not depend on the number of images.
  subroutine right_hand_side()
    integer :: i, j
    real(real64) :: gx, gy
    do j = 1, ny
      do i = 1, nx
        gx = real(my_column * nx + i, real64)
        gy = real(my_row * ny + j, real64)
        solution(i, j) = sin(0.7_real64 * gx) + cos(0.3_real64 * gy + 0.1_real64 * gx)
      end do
    end do
    p(1:nx, 1:ny) = solution
    call multiply()
    r = q
    x = 0
    p(1:nx, 1:ny) = r
  end subroutine

  subroutine solve()
    integer :: iteration
    real(real64) :: step
    rr = product_of(r, r)
    first = rr
    do iteration = 1, iterations
      call multiply()
      step = rr / product_of(p(1:nx, 1:ny), q)
      x = x + step * p(1:nx, 1:ny)
      r = r - step * q
      rr_before = rr
      rr = product_of(r, r)
      p(1:nx, 1:ny) = r + rr / rr_before * p(1:nx, 1:ny)
    end do
  end subroutine

  ! The residual of x, computed anew, must be the one that the iteration carried along.
  subroutine report(seconds)
    real(real64), intent(in) :: seconds
    real(real64) :: error, true_rr
    logical :: is_right
    p(1:nx, 1:ny) = x
    call multiply()
    p(1:nx, 1:ny) = solution
    r = q
    call multiply()
    r = q - r
    true_rr = product_of(r, r)
    error = maxval(abs(x - solution))
    call co_max(error)
    is_right = abs(sqrt(true_rr) - sqrt(rr)) <= 1e-9_real64 * sqrt(first) .and. rr < first
    if (me == 1) print '(a, i0, a, f0.6, 3(a, es10.3), a, l1)', "images=", images, " seconds=", &
      seconds, " residual=", sqrt(true_rr / first), " carried=", sqrt(rr / first), " error=", &
      error, " verified=", is_right
    if (.not. is_right) error stop "coarray_cg: the residual is wrong"
  end subroutine
end program
