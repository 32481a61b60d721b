! The benchmark's mathematics for ft_f.f90: the classes, the random numbers that fill the grid, the
! factors by which the heat equation damps each wave in time, the checksum.
module ft_grid
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  implicit none

  integer, parameter :: dp = c_double

  ! A class, as published.c has it.
  type, bind(c) :: class_t
    integer(c_int) :: nx, ny, nz, iterations
    real(c_double) :: checksums(2, 20) ! real and imaginary part, of each iteration
  end type

  interface
    type(c_ptr) function ft_class(letter) bind(c)
      import :: c_ptr, c_char
      character(c_char), value :: letter
    end function
  end interface

contains

  ! The share of `rank` (from 0) of `n` planes begins after this one, and ends with
  ! first_of(n, rank + 1, ranks).
  pure integer function first_of(n, rank, ranks)
    integer, intent(in) :: n, rank, ranks
    first_of = int(int(n, int64) * rank / ranks)
  end function

  ! a * b modulo 2^46. Fortran's integers must not overflow, so b is split in halves of 23 bits.
  pure integer(int64) function times(a, b)
    integer(int64), intent(in) :: a, b
    integer(int64), parameter :: half = 2_int64**23, mask = 2_int64**46 - 1
    integer(int64) :: upper
    upper = mod(a / half * mod(b, half) + mod(a, half) * (b / half), half)
    times = iand(upper * half + mod(a, half) * mod(b, half), mask)
  end function

  ! Fills `to` from number `first` (from 0) of the grid on: any rank starts in the sequence where
  ! its share does. An element takes two numbers.
  subroutine fill_with_random(to, first)
    complex(dp), intent(out) :: to(:)
    integer(int64), intent(in) :: first
    integer(int64), parameter :: multiplier = 5_int64**13
    real(dp), parameter :: scale = 2.0_dp**(-46)
    integer(int64) :: x, power, exponent
    real(dp) :: parts(2)
    integer :: i, part
    x = 314159265
    power = multiplier
    exponent = 2 * first
    do while (exponent > 0)
      if (mod(exponent, 2_int64) == 1) x = times(x, power)
      power = times(power, power)
      exponent = exponent / 2
    end do
    do i = 1, size(to)
      do part = 1, 2
        x = times(x, multiplier)
        parts(part) = scale * real(x, dp)
      end do
      to(i) = cmplx(parts(1), parts(2), dp)
    end do
  end subroutine

  ! exp(-4 alpha pi^2 k^2 t) for the wave numbers k of one dimension: 0 .. n/2-1, -n/2 .. -1.
  function decay_factors(n, t) result(factors)
    integer, intent(in) :: n, t
    real(dp) :: factors(n)
    real(dp), parameter :: alpha = 1e-6_dp, pi = 3.14159265358979323846_dp
    integer :: i, k
    do i = 1, n
      k = merge(i - 1, i - 1 - n, i <= n / 2)
      factors(i) = exp(-4 * alpha * pi**2 * real(k, dp)**2 * t)
    end do
  end function

  ! What the planes of this rank contribute, which follow plane first_z of nz. FFTW's inverse
  ! transform lacks the division by the number of points.
  complex(dp) function checksum(planes, first_z, nz)
    complex(dp), intent(in) :: planes(:, :, :)
    integer, intent(in) :: first_z, nz
    integer :: j, z
    checksum = 0
    do j = 0, 1023
      z = mod(5 * j, nz) - first_z + 1
      if (z < 1 .or. z > size(planes, 3)) cycle
      checksum = checksum + planes(mod(j, size(planes, 1)) + 1, mod(3 * j, size(planes, 2)) + 1, z)
    end do
    checksum = checksum / (real(size(planes, 1), dp) * size(planes, 2) * nz)
  end function
end module
