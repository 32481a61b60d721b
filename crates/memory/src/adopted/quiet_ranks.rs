//! The proof that the ranks of a node are quiet, so that pages may move, and what the policy says
//! of this process meanwhile.

use super::policy;
use super::refusal::{Adoption, NotAdopted};
use crate::sys::adopt::helper_threads::OtherThreads;
use crate::sys::adopt::smaps::{KeptFlags, Smaps};
use core::cell::OnceCell;

/// A proof that the ranks of this node are quiet: while it lives, no thread of the job on this node
/// runs code of the program or of the MPI but helpers that touch no memory of the program.
pub struct Quiet {
    /// the other threads of this process
    pub others: OtherThreads,
    /// what the policy says of the process, once it was asked: nothing changes that meanwhile
    process: OnceCell<Adoption<Smaps>>,
}

impl Quiet {
    /// Returns the other threads of this process, if they permit that it is quiet.
    pub fn own_threads() -> Adoption<OtherThreads> {
        match OtherThreads::now() {
            OtherThreads::Unknown => Err(NotAdopted::Threads),
            others => Ok(others),
        }
    }

    /// Begins to rely on it. `others`: the answer of [`Quiet::own_threads`].
    ///
    /// # Safety
    /// All ranks of the job on this node are in one collective call, each has had an answer from
    /// [`Quiet::own_threads`] since it entered it, and none of them calls the host MPI or
    /// returns to the program until all have dropped this.
    pub unsafe fn begin(others: OtherThreads) -> Quiet {
        Quiet { others, process: OnceCell::new() }
    }

    /// Whether the pages from `first` to `end` may move, by what this process has open and mapped,
    /// and by the flags of their mappings. Returns the flags that a new mapping there gets.
    pub fn permits(&self, first: u64, end: u64) -> Adoption<KeptFlags> {
        policy::of_flags(self.process()?, first, end)
    }

    /// Whether a mapping with pages from `first` to `end` has a huge page.
    pub fn has_huge_page(&self, first: u64, end: u64) -> bool {
        self.process().is_ok_and(|smaps| smaps.has_huge_page(first, end))
    }

    fn process(&self) -> Adoption<&Smaps> {
        self.process.get_or_init(policy::of_process_now).as_ref().map_err(|why| *why)
    }
}
