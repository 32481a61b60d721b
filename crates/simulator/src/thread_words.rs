//! Control words on the heap, with threads as ranks: the load and store transport for tests and
//! loom. A thread that no other thread wakes fails the test instead of hanging.

use crate::test_overrides::Passed;
use fompi_base::error::Result;
use fompi_base::rank_numbers::Rank;
use fompi_base::sync::{AtomicU32, AtomicU64, Ordering};
use fompi_fabric::layout;
use fompi_fabric::shm::words::{Cells, CpuWords, Idle};
use fompi_fabric::{WordAt, WordId, Words};

#[cfg(loom)]
use loom::sync::{Arc, Condvar, Mutex};
#[cfg(not(loom))]
use std::sync::{Arc, Condvar, Mutex};

/// The memory that the ranks share.
pub struct Heap {
    size: u32,
    per_rank: u32,
    words: Vec<AtomicU64>,
    doorbells: Vec<AtomicU32>,
    bed: Mutex<()>,
    wake: Condvar,
}

impl Heap {
    /// Makes zero words for `size` ranks. `per_rank` may be less than the layout has.
    pub fn new(size: u32, per_rank: u32) -> Arc<Heap> {
        Arc::new(Heap {
            size,
            per_rank,
            words: (0..size * per_rank).map(|_| AtomicU64::new(0)).collect(),
            doorbells: (0..size).map(|_| AtomicU32::new(0)).collect(),
            bed: Mutex::new(()),
            wake: Condvar::new(),
        })
    }

    /// Fresh words, with the layout of a window.
    pub fn window(size: u32) -> Arc<Heap> {
        Heap::new(size, layout::words_per_rank(size))
    }
}

/// The words of one rank, which spins `spins` times before it sleeps.
pub fn words(heap: &Arc<Heap>, rank: Rank, spins: u32) -> HeapWords {
    let cells = HeapCells { heap: heap.clone(), rank };
    CpuWords::new(cells, HeapIdle { heap: heap.clone(), spins })
}

/// The transport on the heap.
pub type HeapWords = CpuWords<HeapCells, HeapIdle>;

/// The transport on the heap, as if its words were a round trip away.
pub type FarHeapWords = Passed<HeapWords, true, { HeapWords::HOLDERS_MAX }>;

/// [`Cells`] on the heap.
pub struct HeapCells {
    heap: Arc<Heap>,
    rank: Rank,
}

impl Cells for HeapCells {
    fn cell(&self, at: WordAt) -> &AtomicU64 {
        assert!(at.word.0 < self.heap.per_rank);
        &self.heap.words[(at.rank.0 * self.heap.per_rank + at.word.0) as usize]
    }

    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.heap.size
    }

    fn doorbell(&self, rank: Rank) -> &AtomicU32 {
        &self.heap.doorbells[rank.0 as usize]
    }
}

/// [`Idle`] by a condition variable, without the bound: a wake-up that is lost is seen.
pub struct HeapIdle {
    heap: Arc<Heap>,
    spins: u32,
}

impl Idle for HeapIdle {
    type Wait = ();

    fn begin(&self, _word: WordId) {}

    fn end(&self, _wait: ()) {}

    fn progress(&self) {}

    fn round(&self, _round: u32) {}

    fn check(&self, _wait: &mut ()) -> Result<()> {
        Ok(())
    }

    fn sleep(&self, doorbell: &AtomicU32, value: u32, _ns: u64) {
        let mut bed = self.heap.bed.lock().unwrap();
        // Relaxed: a thread that changes it takes the mutex afterwards.
        while doorbell.load(Ordering::Relaxed) == value {
            #[cfg(loom)]
            {
                bed = self.heap.wake.wait(bed).unwrap();
            }
            #[cfg(not(loom))]
            {
                let watchdog = std::time::Duration::from_secs(60);
                let (bed_again, slept) = self.heap.wake.wait_timeout(bed, watchdog).unwrap();
                assert!(!slept.timed_out(), "a wake-up was lost");
                bed = bed_again;
            }
        }
        drop(bed);
    }

    fn wake(&self, _doorbell: &AtomicU32) {
        drop(self.heap.bed.lock().unwrap());
        self.heap.wake.notify_all();
    }

    fn spins(&self) -> u32 {
        self.spins
    }
}
