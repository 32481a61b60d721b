//! [`crate::remote`]'s traits for process_vm. A transfer is complete when its call returns,
//! so there is nothing to order or to flush except small puts that are gathered.

use super::{Batch, Gathering, Process};
use crate::Way;
use crate::error::Result;
use crate::pending_puts::PendingCount;
use crate::remote::{Bytes, Remote, Runs};
use crate::sync::full_fence;
use parking_lot::Mutex;

/// A count on which nothing depends: each flush checks for puts.
pub struct NoCount;

impl PendingCount for NoCount {
    fn change(&self, change: impl FnOnce() -> i32) {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock();
        let _difference = change();
    }
}

impl Bytes for Process<'_> {
    type Runs<'a>
        = Batch<'a>
    where
        Self: 'a;

    unsafe fn put(&self, to: Remote, from: *const u8, bytes: u64) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { Process::put(*self, to.at, from, bytes) }
    }

    unsafe fn get(&self, to: *mut u8, from: Remote, bytes: u64) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { Process::get(*self, to, from.at, bytes) }
    }

    fn runs(&self, _within: Remote, way: Way) -> Batch<'_> {
        Batch::new(*self, way)
    }

    fn order(&self) {}

    fn flush(&self) -> Result<()> {
        full_fence();
        Ok(())
    }

    fn flush_local(&self) -> Result<()> {
        Ok(())
    }
}

impl Bytes for Gathering<'_> {
    type Runs<'a>
        = Batch<'a>
    where
        Self: 'a;

    unsafe fn put(&self, to: Remote, from: *const u8, bytes: u64) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.put_later(to.at, from, bytes, || &NoCount) }
    }

    unsafe fn get(&self, to: *mut u8, from: Remote, bytes: u64) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { Gathering::get(*self, to, from.at, bytes) }
    }

    fn runs(&self, _within: Remote, way: Way) -> Batch<'_> {
        Gathering::runs(*self, way)
    }

    fn order(&self) {}

    fn flush(&self) -> Result<()> {
        let has_error = self.small_puts.is_some_and(|puts| puts.complete(self.process, &NoCount));
        full_fence();
        self.small_puts.filter(|_| has_error).map_or(Ok(()), |puts| puts.take_error(&NoCount))
    }

    fn flush_local(&self) -> Result<()> {
        Ok(())
    }
}

impl Runs for Batch<'_> {
    unsafe fn push(&mut self, here: *mut u8, there: u64, bytes: u64) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.push(here, there, bytes) };
    }

    unsafe fn finish(mut self) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { Batch::finish(&mut self) }
    }
}
