! Coarrays as a layer of scripts/bench: what coarrays.c times and verifies. An image is a rank of
! MPI_COMM_WORLD and one more: the library has to be one on MPI, such as OpenCoarrays.
module coarray_operations
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: atomic_int_kind, lock_type
  implicit none
  integer, parameter :: rate = 1000, elements_max = 1024, bytes_max = 8 * 2**20
  ! All coarrays are whole pages: behind others, MPICH 4.0.2 puts to a wrong place.
  integer, parameter :: page = 4096
  ! What images expose: bytes, integers for atomics, a byte for each image, a lock and its number.
  integer(c_int8_t), allocatable, target :: exposed(:)[:], bytes_of_images(:)[:]
  integer(atomic_int_kind), allocatable, target :: integers(:)[:]
  integer(c_long), allocatable :: number(:)[:]
  type(lock_type), allocatable :: guard(:)[:]
  integer(c_int8_t), allocatable, target :: out(:), in(:)
  integer(atomic_int_kind), target :: results(elements_max)
  integer(atomic_int_kind) :: expected
  integer :: target_image, neighbours(2)

  ! The memory, as coarrays.c knows it.
  type, bind(c) :: memory
    type(c_ptr) :: exposed, bytes_of_images, integers, out, in, results
    integer(c_int) :: elements_max, integer_bytes
  end type

  interface
    subroutine run_coarrays() bind(c)
    end subroutine
  end interface

contains

  ! Collective, once; the number of a target is that of its rank.
  subroutine coarray_open(rank, known) bind(c)
    integer(c_int), value :: rank
    type(memory), intent(out) :: known
    integer :: me, images
    me = this_image()
    images = num_images()
    target_image = rank + 1
    neighbours = [merge(1, me + 1, me == images), merge(images, me - 1, me == 1)]
    allocate (exposed(bytes_max)[*], bytes_of_images(page)[*], integers(elements_max)[*])
    allocate (number(page / 8)[*], guard(page / 4)[*])
    allocate (out(bytes_max), in(bytes_max))
    known = memory(c_loc(exposed), c_loc(bytes_of_images), c_loc(integers), c_loc(out), c_loc(in), &
                   c_loc(results), elements_max, storage_size(expected) / 8)
  end subroutine

  ! A coarray put is complete at its image when its segment ends.
  subroutine coarray_put(bytes) bind(c)
    integer(c_long), value :: bytes
    exposed(1:bytes)[target_image] = out(1:bytes)
    sync memory
  end subroutine

  subroutine coarray_get(bytes) bind(c)
    integer(c_long), value :: bytes
    in(1:bytes) = exposed(1:bytes)[target_image]
  end subroutine

  subroutine coarray_put_rate(bytes) bind(c)
    integer(c_long), value :: bytes
    integer(c_long) :: k, at
    do k = 0, rate - 1
      at = mod(k, bytes_max / bytes) * bytes
      exposed(at + 1:at + bytes)[target_image] = out(at + 1:at + bytes)
    end do
    sync memory
  end subroutine

  ! As many calls as there are elements. An operand is 1 to 7, by the place of its element.
  subroutine coarray_add(count) bind(c)
    integer(c_long), value :: count
    integer(c_long) :: k
    do k = 1, count
      call atomic_add(integers(k)[target_image], int(1 + mod(k - 1, 7_c_long), atomic_int_kind))
    end do
    sync memory
  end subroutine

  ! Each round expects what the one before it has stored, so that every comparison succeeds.
  subroutine coarray_cas(count) bind(c)
    integer(c_long), value :: count
    integer(c_long) :: k
    do k = 1, count
      call atomic_cas(integers(k)[target_image], results(k), expected, expected + 1)
    end do
    expected = expected + 1
  end subroutine

  subroutine coarray_expect_zero() bind(c)
    expected = 0
  end subroutine

  subroutine coarray_sync_memory(ranks) bind(c)
    integer(c_long), value :: ranks
    sync memory
  end subroutine

  subroutine coarray_sync_all(ranks) bind(c)
    integer(c_long), value :: ranks
    sync all
  end subroutine

  ! Every image puts a byte to the next one, at the place of its own number.
  subroutine coarray_put_sync_all(ranks) bind(c)
    integer(c_long), value :: ranks
    bytes_of_images(this_image())[neighbours(1)] = 1_c_int8_t
    sync all
  end subroutine

  subroutine coarray_sync_images(count) bind(c)
    integer(c_long), value :: count
    sync images (neighbours)
  end subroutine

  subroutine coarray_put_sync_images(count) bind(c)
    integer(c_long), value :: count
    bytes_of_images(this_image())[neighbours(1)] = 1_c_int8_t
    bytes_of_images(this_image())[neighbours(2)] = 1_c_int8_t
    sync images (neighbours)
  end subroutine

  subroutine coarray_lock(ranks) bind(c)
    integer(c_long), value :: ranks
    lock (guard(1)[target_image])
    unlock (guard(1)[target_image])
  end subroutine

  subroutine coarray_lock_put(ranks) bind(c)
    integer(c_long), value :: ranks
    lock (guard(1)[target_image])
    exposed(1:1)[target_image] = out(1:1)
    unlock (guard(1)[target_image])
  end subroutine

  ! Every image adds 1 to a number of the target in some turns, by get and put under the lock.
  ! Returns the number of this image after all turns.
  function coarray_count(turns) result(total) bind(c)
    integer(c_long), value :: turns
    integer(c_long) :: total, turn
    number = 0
    sync all
    do turn = 1, turns
      lock (guard(1)[target_image])
      number(1)[target_image] = number(1)[target_image] + 1
      unlock (guard(1)[target_image])
    end do
    sync all
    total = number(1)
  end function
end module

program coarray_bench
  use coarray_operations, only: run_coarrays
  implicit none
  call run_coarrays()
end program
