//! Elements as values: how each kind is read from bytes and written to bytes, and which kinds are
//! single machine words. `ops` combines two values.
//!
//! Invariant: `read` and `write` touch the data of an element and never its padding, and they need
//! no alignment.

use core::mem::offset_of;
use core::ops::{Add, Mul, Sub};

use crate::sync::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// A value that lies in a buffer.
pub trait Element: Copy {
    /// Bytes from one element to the next.
    const EXTENT: usize;

    /// Whether it has no padding, so that copies of its bytes are copies of the value.
    const DENSE: bool = true;

    /// How many numbers an element consists of, if the processor's vectors can compute with them:
    /// one, or two of the same width. Otherwise 0.
    const NUMBERS: usize;

    /// Takes the value out of a buffer.
    ///
    /// # Safety
    /// The bytes of one element at `at` may be read.
    unsafe fn read(at: *const u8) -> Self;

    /// Puts the value into a buffer.
    ///
    /// # Safety
    /// The bytes of one element at `at` may be written.
    unsafe fn write(self, at: *mut u8);
}

/// The buffers of one call. Its maker guarantees: for `count` elements, `target` may be read and
/// written, `origin` read unless the op is NO_OP, and `result` written, if any. `origin` and
/// `result` overlap nowhere with `target`, and each other not at all or entirely.
pub struct ReduceCall {
    /// the target's elements
    pub target: *mut u8,
    /// the origin's elements
    pub origin: *const u8,
    /// where the old elements go, if they are wanted
    pub result: Option<*mut u8>,
    /// number of elements
    pub count: usize,
}

/// An element that the processor changes in one step, as the word of its extent.
pub trait Atom: Element {
    /// The unsigned integer of the same width.
    type Word: Word;
}

/// A word in memory that other processes change at the same time.
///
/// Changes are Acquire and Release although MPI orders accumulates of one location only, which
/// Relaxed gives too: users build locks from Fetch_and_op and Compare_and_swap. x86-64 gives these
/// orderings for nothing, and AArch64 has instructions with them.
///
/// # Safety
/// For every function: `at` is a multiple of the width, its bytes may be read and written, and
/// while several threads or processes use them, all use these functions.
#[allow(clippy::missing_safety_doc)] // said above, for all
pub trait Word: Copy + Eq {
    /// The value now.
    unsafe fn load(at: *mut u8) -> Self;
    /// Replaces the value.
    unsafe fn store(at: *mut u8, new: Self);
    /// Replaces the value and returns the old one, as all functions below do.
    unsafe fn swap(at: *mut u8, new: Self) -> Self;
    /// Adds and wraps around.
    unsafe fn add(at: *mut u8, addend: Self) -> Self;
    /// Clears the bits that are not in `mask`.
    unsafe fn and(at: *mut u8, mask: Self) -> Self;
    /// Sets the bits of `mask`.
    unsafe fn or(at: *mut u8, mask: Self) -> Self;
    /// Flips the bits of `mask`.
    unsafe fn xor(at: *mut u8, mask: Self) -> Self;
    /// Stores `new` if the value is `old`; otherwise the error is the value.
    unsafe fn compare_exchange(at: *mut u8, old: Self, new: Self) -> Result<Self, Self>;
}

macro_rules! words {
    ($($word:ident $atomic:ident;)*) => {$(
        impl Word for $word {
            #[inline(always)]
            unsafe fn load(at: *mut u8) -> $word {
                // SAFETY: aligned and shared through atomics only, as the trait asks.
                unsafe { $atomic::from_ptr(at.cast()) }.load(Ordering::Acquire)
            }
            #[inline(always)]
            unsafe fn store(at: *mut u8, new: $word) {
                // SAFETY: as in `load`.
                unsafe { $atomic::from_ptr(at.cast()) }.store(new, Ordering::Release)
            }
            #[inline(always)]
            unsafe fn swap(at: *mut u8, new: $word) -> $word {
                // SAFETY: as in `load`.
                unsafe { $atomic::from_ptr(at.cast()) }.swap(new, Ordering::AcqRel)
            }
            #[inline(always)]
            unsafe fn add(at: *mut u8, addend: $word) -> $word {
                // SAFETY: as in `load`.
                unsafe { $atomic::from_ptr(at.cast()) }.fetch_add(addend, Ordering::AcqRel)
            }
            #[inline(always)]
            unsafe fn and(at: *mut u8, mask: $word) -> $word {
                // SAFETY: as in `load`.
                unsafe { $atomic::from_ptr(at.cast()) }.fetch_and(mask, Ordering::AcqRel)
            }
            #[inline(always)]
            unsafe fn or(at: *mut u8, mask: $word) -> $word {
                // SAFETY: as in `load`.
                unsafe { $atomic::from_ptr(at.cast()) }.fetch_or(mask, Ordering::AcqRel)
            }
            #[inline(always)]
            unsafe fn xor(at: *mut u8, mask: $word) -> $word {
                // SAFETY: as in `load`.
                unsafe { $atomic::from_ptr(at.cast()) }.fetch_xor(mask, Ordering::AcqRel)
            }
            #[inline(always)]
            unsafe fn compare_exchange(
                at: *mut u8, old: $word, new: $word,
            ) -> Result<$word, $word> {
                // SAFETY: as in `load`.
                let word = unsafe { $atomic::from_ptr(at.cast()) };
                word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
            }
        }
    )*};
}

words! {
    u8 AtomicU8;
    u16 AtomicU16;
    u32 AtomicU32;
    u64 AtomicU64;
}

macro_rules! elements {
    ($numbers:literal: $($element:ty),* $(,)?) => {$(
        impl Element for $element {
            const EXTENT: usize = size_of::<$element>();
            const NUMBERS: usize = $numbers;
            #[inline(always)]
            unsafe fn read(at: *const u8) -> $element {
                // SAFETY: the caller guarantees the bytes; all bits are a value, none is padding.
                unsafe { at.cast::<$element>().read_unaligned() }
            }
            #[inline(always)]
            unsafe fn write(self, at: *mut u8) {
                // SAFETY: the caller guarantees the bytes; the type has no padding.
                unsafe { at.cast::<$element>().write_unaligned(self) }
            }
        }
    )*};
}

elements! { 1: u8, u16, u32, u64, i8, i16, i32, i64, f32, f64 }
elements! { 2: Complex<f32>, Complex<f64> }
elements! { 0: u128, i128, LongDouble, Complex<LongDouble>, [u8; 32] }

macro_rules! atoms {
    ($($atom:ty: $word:ty;)*) => {$(
        impl Atom for $atom {
            type Word = $word;
        }
        const _: () = assert!(size_of::<$atom>() == size_of::<$word>());
    )*};
}

atoms! {
    u8: u8;
    i8: u8;
    u16: u16;
    i16: u16;
    u32: u32;
    i32: u32;
    f32: u32;
    u64: u64;
    i64: u64;
    f64: u64;
    Complex<f32>: u64;
    Pair<f32, i32>: u64;
    Pair<f32, f32>: u64;
    Pair<i32, i32>: u64;
    Pair<i16, i32>: u64;
}

/// The bytes of a C `long double`; `long_double` gives it arithmetic on x86-64, `binary128` on
/// AArch64.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct LongDouble(pub [u8; 16]);

/// A complex number. The product is the plain formula, without the rules of C's Annex G for
/// infinities.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Complex<T> {
    /// real part
    pub re: T,
    /// imaginary part
    pub im: T,
}

impl<T: Add<Output = T>> Add for Complex<T> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Complex { re: self.re + other.re, im: self.im + other.im }
    }
}

impl<T: Copy + Add<Output = T> + Sub<Output = T> + Mul<Output = T>> Mul for Complex<T> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Complex {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

/// A value with its index, laid out as the C structure.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Pair<V, I> {
    /// the value that is compared
    pub value: V,
    /// the index that goes with it
    pub index: I,
}

impl<V: Element, I: Element> Element for Pair<V, I> {
    const EXTENT: usize = size_of::<Self>();
    const DENSE: bool = size_of::<V>() + size_of::<I>() == size_of::<Self>();
    const NUMBERS: usize =
        if V::NUMBERS * I::NUMBERS == 1 && size_of::<V>() == size_of::<I>() { 2 } else { 0 };
    #[inline(always)]
    unsafe fn read(at: *const u8) -> Self {
        // SAFETY: the caller guarantees one element; both members lie inside.
        unsafe { Pair { value: V::read(at), index: I::read(at.add(offset_of!(Self, index))) } }
    }
    #[inline(always)]
    unsafe fn write(self, at: *mut u8) {
        // SAFETY: the caller guarantees one element; both members lie inside. Member by member, so
        // that the padding stays as it was.
        unsafe {
            self.value.write(at);
            self.index.write(at.add(offset_of!(Self, index)));
        }
    }
}
