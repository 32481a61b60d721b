//! Adoption: pages that the program has already, such as those of malloc, become pages of the heap
//! at the same addresses, so that other processes reach them by load and store. They stay so while
//! a window is over them, and are private again before the window is freed. Each window that wants
//! its memory adopted calls [`take`], and keeps the [`Adopted`] as long as it lives. Several
//! windows over one page share its adoption; the last one gives it back.
//!
//! The bytes are right at any time, whatever fails: stores of other threads wait while their page
//! moves, and a move that fails half-way is undone. What cannot move safely is refused, with the
//! reason ([`NotAdopted`]); the window then reaches it as before (`fabric::cma`).
//!
//! Not for finding out whether a window is worth a move ([`price`] only says what it costs), nor
//! for keeping other processes away during a move: the caller does both.
//!
//! | page                        | in the books          | mapped here                      |
//! |-----------------------------|-----------------------|----------------------------------|
//! | private                     | no                    | the program's anonymous memory   |
//! | adopted                     | n > 0 windows over it | a page of the heap               |
//! | left over (give back failed)| 0 windows over it     | a page of the heap, tried again  |

mod refusal;

pub use refusal::NotAdopted;

use super::HeapPlace;
use crate::config::Adopt;
use crate::error::Result;

/// The moment of a move in the life of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The window is being made: no other process knows the memory, and the calling thread owns it.
    /// The move must fit the budget of this process (unless the consent is `Adopt::Always`).
    Creation,
    /// The window is in use: the caller keeps other processes from copying to the memory
    /// (process_vm) until the call returns. There is no budget; the caller calls when the origins
    /// have spent the price. Where userfaultfd cannot stop the kernel's own writes, the memory
    /// moves only while all other threads of this process sleep in calls without a pointer into it.
    MidLife,
}

/// A part of a window whose pages belong to the heap, until this is given back or dropped.
#[derive(Debug)]
pub struct Adopted {
    address: u64,
    bytes: u64,
    place: HeapPlace,
}

impl Adopted {
    /// Returns the address and the length in bytes of what other processes reach by load and store:
    /// the whole part, or the part without bytes at its begin and end that lie in pages with other
    /// objects. Never empty.
    pub fn inner(&self) -> (u64, u64) {
        (self.address, self.bytes)
    }

    /// Returns the place at which other processes find the first byte of `inner`.
    pub fn place(&self) -> HeapPlace {
        self.place
    }

    /// Makes the pages private again that no other window is over, with the bytes that they have
    /// now. To be called when no other process accesses them any more, neither by load and store
    /// nor by process_vm, and before MPI_Win_free or MPI_Win_detach returns.
    ///
    /// # Errors
    /// The system's refusal. The bytes are right all XX not move stay pages
    /// of the heap, and are tried again at the next call of this room. Dropping does the same and
    /// returns nothing.
    pub fn give_back(self) -> Result<()> {
        Ok(())
    }
}

/// Adopts `bytes` bytes at `address`, which belong to a window of this process, as far as the
/// policy permits it (see [`NotAdopted`]). Waits for other moves of this process, and takes about
/// [`price`] nanoseconds. Makes system calls only, and calls of the C library that memory caches
/// intercept (mmap); it calls no MPI.
///
/// If a page is adopted already, for another window, it is shared. If the pages belong to several
/// earlier adoptions, `inner` is the longest run of pages that lie in one.
///
/// `when`: see [`When`]. `consent`: FOMPI_ADOPT, as the window's info modifies it
/// ([`Adopt::for_window`]).
///
/// # Errors
/// The reason why nothing was adopted. Nothing has changed then for the program.
/// [`NotAdopted::may_pass`] says whether a later call may succeed.
pub fn take(
    address: u64,
    bytes: u64,
    when: When,
    consent: Adopt,
) -> core::result::Result<Adopted, NotAdopted> {
    let _ = (address, bytes, when, consent);
    Err(NotAdopted::Setting)
}

/// Returns the nanoseconds that it costs to move the pages of `bytes` bytes at `address` into the
/// heap and back, as far as this process has measured it: a + b * pages. `None`: this process never
/// adopts memory (no userfaultfd, a limit of the process). Cheap: no system call after the first.
pub fn price(address: u64, bytes: u64) -> Option<u64> {
    let _ = (address, bytes);
    None
}

/// Notes that a window whose memory was adopted at its creation is being freed, and that its peers
/// have saved less than the move has cost. From now on no memory is adopted at creation
/// (`NotAdopted::Budget`), until [`note_used`].
pub fn note_unused() {}

/// Notes that a move has paid: a window with adopted memory is being freed, and its peers have
/// saved what the move has cost. Opens the budget for moves at creation again.
pub fn note_used() {}
