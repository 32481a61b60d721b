//! Allocated bytes of a segment, in the order in which a move back or a child of fork(2) asks for
//! them: from low offsets to high ones, step by step. The end of a run is searched for once, since
//! the kernel visits all of its pages for that.

use super::last_error;
use crate::error::{Error, Result};

/// The run that was found last.
pub struct DataRuns {
    descriptor: i32,
    first: u64,
    end: u64,
    /// calls of the kernel, for tests
    #[cfg(test)]
    pub seeks: u32,
}

impl DataRuns {
    /// No run of the segment with this descriptor was searched for.
    pub fn of(descriptor: i32) -> DataRuns {
        DataRuns {
            descriptor,
            first: 0,
            end: 0,
            #[cfg(test)]
            seeks: 0,
        }
    }

    /// Returns the first bytes with memory from one offset to another, both of whole pages: the
    /// first one, and one past the last. `None`: there are none. Threads may touch new pages after
    /// `end` meanwhile, but no page loses its memory.
    pub fn next(&mut self, from: u64, end: u64) -> Result<Option<(u64, u64)>> {
        if !(self.first..self.end).contains(&from) {
            self.first = match self.seek(from, libc::SEEK_DATA) {
                Err(Error::System { errno: libc::ENXIO, .. }) => return Ok(None),
                first => first?,
            };
            self.end = self.seek(self.first, libc::SEEK_HOLE).unwrap_or(end);
        }
        let first = self.first.max(from);
        Ok((first < end).then(|| (first, self.end.min(end))))
    }

    fn seek(&mut self, from: u64, whence: i32) -> Result<u64> {
        #[cfg(test)]
        {
            self.seeks += 1;
        }
        // SAFETY: a query; no code uses the position of the descriptor.
        let found = unsafe { libc::syscall(libc::SYS_lseek, self.descriptor, from, whence) };
        u64::try_from(found).map_err(|_| last_error("lseek"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_bytes;
    use crate::segment::Segment;

    #[test]
    #[cfg_attr(miri, ignore = "lseek(2) with SEEK_DATA")]
    fn the_end_of_a_run_is_looked_for_once() {
        let page = page_bytes();
        let segment = Segment::create(100 * page).unwrap();
        let mapping = segment.map().unwrap();
        let touch = |at: u64| {
            // SAFETY: a page of the segment.
            unsafe { mapping.base().wrapping_add((at * page) as usize).write_volatile(1) }
        };
        (3..70).for_each(touch);
        let mut runs = DataRuns::of(segment.name().fd);
        let mut next = |from: u64, end: u64| runs.next(from * page, end * page).unwrap();
        let pages = |first: u64, end: u64| Some((first * page, end * page));
        assert_eq!(next(0, 2), None);
        (0..60).for_each(|at| assert_eq!(next(at, 61), pages(at.max(3), 61)));
        assert_eq!((next(60, 90), next(70, 90)), (pages(60, 70), None));
        touch(80);
        touch(75);
        assert_eq!((next(70, 78), next(76, 90)), (pages(75, 76), pages(80, 81)));
        touch(78);
        assert_eq!(next(77, 90), pages(78, 79), "what was touched since is found, too");
        assert_eq!(runs.seeks, 2 + 2 * 3 + 1 + 2 * 3, "from a hole, and no more");
    }
}
