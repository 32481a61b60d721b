//! A window of one flavour with its memory, and the calls on it in the words of the checks. All
//! numbers are MPI_INT64_T; a slot is the place of one.

use crate::job_rank::{JobRank, RankIn, call, number};
use crate::job_report::CheckPlace;
use fompi_base::number::Number;
use fompi_datatype::reduce::Op;
use fompi_host::handle::{Handle, Status};
use std::cell::RefCell;
use std::ffi::{c_int, c_void};

/// The slots that checks use; they are 0 when a check begins.
pub const SLOTS: usize = 64;
/// The slots behind them, for measurements.
pub const BULK_SLOTS: usize = 1 << 17;
const BYTES: isize = 8 * (SLOTS + BULK_SLOTS).cast_signed();

/// The transport of windows that libfompi does not serve.
const HOST_MPI: &str = "host MPI";

/// The calls that make windows, and the memory of their windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestedFlavour {
    /// MPI_Win_create over memory of malloc
    Create,
    /// MPI_Win_create over memory of MPI_Alloc_mem
    CreateAllocMem,
    /// MPI_Win_allocate
    Allocate,
    /// MPI_Win_allocate_shared, of the ranks of each node
    Shared,
    /// MPI_Win_create_dynamic, with memory of malloc attached
    Dynamic,
}

impl TestedFlavour {
    /// All of them.
    pub const ALL: [TestedFlavour; 5] = [
        TestedFlavour::Create,
        TestedFlavour::CreateAllocMem,
        TestedFlavour::Allocate,
        TestedFlavour::Shared,
        TestedFlavour::Dynamic,
    ];

    /// The call, without its prefix.
    pub fn call(self) -> &'static str {
        match self {
            TestedFlavour::Create | TestedFlavour::CreateAllocMem => "win_create",
            TestedFlavour::Allocate => "win_allocate",
            TestedFlavour::Shared => "win_allocate_shared",
            TestedFlavour::Dynamic => "win_create_dynamic",
        }
    }

    /// Its name in a report.
    pub fn name(self) -> &'static str {
        match self {
            TestedFlavour::Create => "MPI_Win_create",
            TestedFlavour::CreateAllocMem => "MPI_Win_create over MPI_Alloc_mem",
            TestedFlavour::Allocate => "MPI_Win_allocate",
            TestedFlavour::Shared => "MPI_Win_allocate_shared",
            TestedFlavour::Dynamic => "MPI_Win_create_dynamic",
        }
    }
}

/// A window.
pub struct TestedWindow<'a> {
    /// this rank of the job
    pub rank: &'a JobRank,
    /// this rank of the window
    pub ranks: RankIn,
    /// its flavour
    pub flavour: TestedFlavour,
    /// its handle
    pub win: Handle,
    /// the memory of this rank
    pub memory: *mut i64,
    /// data that operations may read until they are complete
    sent: RefCell<Vec<Box<[i64]>>>,
    /// memory of malloc
    _own: Vec<i64>,
    /// the displacement of the first slot of each rank
    first: Vec<isize>,
    /// the transport that the library reports
    pub transport: String,
}

impl<'a> TestedWindow<'a> {
    /// Makes a window. `None`: the call failed, and is recorded as a failure.
    pub fn make(rank: &'a JobRank, flavour: TestedFlavour) -> Option<TestedWindow<'a>> {
        let ranks = if flavour == TestedFlavour::Shared { rank.node } else { rank.world };
        let is_own = matches!(flavour, TestedFlavour::Create | TestedFlavour::Dynamic);
        let mut own = vec![0_i64; if is_own { SLOTS + BULK_SLOTS } else { 0 }];
        let mut memory: *mut i64 = own.as_mut_ptr();
        let (mut win, base) = (rank.mpi.constants.win_null, (&raw mut memory).cast::<c_void>());
        let (info, comm) = (rank.mpi.constants.info_null, ranks.comm);
        let made = match flavour {
            TestedFlavour::Create => {
                call!(rank, win_create(memory.cast(), BYTES, 8, info, comm, &mut win))
            }
            TestedFlavour::CreateAllocMem => {
                call!(rank, alloc_mem(BYTES, info, base))
                    && call!(rank, win_create(memory.cast(), BYTES, 8, info, comm, &mut win))
            }
            TestedFlavour::Allocate => {
                call!(rank, win_allocate(BYTES, 8, info, comm, base, &mut win))
            }
            TestedFlavour::Shared => {
                call!(rank, win_allocate_shared(BYTES, 8, info, comm, base, &mut win))
            }
            TestedFlavour::Dynamic => {
                call!(rank, win_create_dynamic(info, comm, &mut win))
                    && call!(rank, win_attach(win, memory.cast(), BYTES))
            }
        };
        if !made {
            return None;
        }
        let mut window = TestedWindow {
            rank,
            ranks,
            flavour,
            win,
            memory,
            _own: own,
            sent: RefCell::default(),
            first: vec![0; ranks.ranks.cast_unsigned().to_usize()],
            transport: String::new(),
        };
        window.prepare();
        Some(window)
    }

    /// Lets calls return errors, and learns the places of the memory and the transport.
    fn prepare(&mut self) {
        let rank = self.rank;
        call!(rank, win_set_errhandler(self.win, rank.mpi.constants.errors_return));
        if self.flavour == TestedFlavour::Dynamic {
            let (own, to) = (self.memory.addr().cast_signed(), self.first.as_mut_ptr().cast());
            let (from, word) = ((&raw const own).cast(), rank.word);
            call!(rank, allgather(from, 1, word, to, 1, word, self.ranks.comm));
        }
        let transport = self.hint(c"fompi_transport");
        self.transport = transport.unwrap_or_else(|| HOST_MPI.into());
    }

    /// Whether the host MPI serves the window.
    pub fn is_of_host_mpi(&self) -> bool {
        self.transport == HOST_MPI
    }

    /// Returns a hint of the window, if it has it.
    pub fn hint(&self, key: &std::ffi::CStr) -> Option<String> {
        let mut info = self.rank.mpi.constants.info_null;
        call!(self.rank, win_get_info(self.win, &mut info));
        self.rank.mpi.value_of(info, key)
    }

    /// Frees the window and its memory.
    pub fn free(mut self) {
        let rank = self.rank;
        if self.flavour == TestedFlavour::Dynamic {
            rank.barrier(self.ranks);
            call!(rank, win_detach(self.win, self.memory.cast()));
        }
        call!(rank, win_free(&mut self.win));
        rank.expect("win_free", rank.mpi.constants.win_null, self.win);
        if self.flavour == TestedFlavour::CreateAllocMem {
            call!(rank, free_mem(self.memory.cast()));
        }
    }

    /// Where a check on this window is.
    pub fn place(&self, check: &str) -> CheckPlace {
        let (window, transport) = (self.flavour.name().into(), self.transport.clone());
        CheckPlace { check: check.into(), window, transport }
    }

    /// The next rank.
    pub fn next(&self) -> c_int {
        (self.ranks.me + 1) % self.ranks.ranks
    }

    /// The rank whose next one this is.
    pub fn previous(&self) -> c_int {
        (self.ranks.me + self.ranks.ranks - 1) % self.ranks.ranks
    }

    /// The displacement of a slot of a rank.
    pub fn at(&self, target: c_int, slot: usize) -> isize {
        let step = if self.flavour == TestedFlavour::Dynamic { 8 } else { 1 };
        self.first[target.cast_unsigned().to_usize()] + step * slot.cast_signed()
    }

    /// Reads a slot of this rank.
    pub fn own(&self, slot: usize) -> i64 {
        // SAFETY: inside of the window's memory.
        unsafe { self.memory.add(slot).read_volatile() }
    }

    /// Writes a slot of this rank.
    pub fn set_own(&self, slot: usize, value: i64) {
        // SAFETY: inside of the window's memory.
        unsafe { self.memory.add(slot).write_volatile(value) }
    }

    /// Waits for all ranks.
    pub fn barrier(&self) {
        self.rank.barrier(self.ranks);
    }

    /// Makes the checked slots 0 on all ranks.
    pub fn reset(&self) {
        self.barrier();
        self.sent.borrow_mut().clear();
        self.lock_exclusive(self.ranks.me);
        (0..SLOTS).for_each(|slot| self.set_own(slot, 0));
        self.unlock(self.ranks.me);
        self.barrier();
    }

    /// Copies data for an operation to memory that lives until the next check.
    fn sent(&self, values: &[i64]) -> *const c_void {
        let copy = Box::<[i64]>::from(values);
        let at = copy.as_ptr().cast();
        self.sent.borrow_mut().push(copy);
        at
    }

    /// MPI_Put.
    pub fn put(&self, values: &[i64], target: c_int, slot: usize) {
        let (count, word, at) = (number(values.len()), self.rank.word, self.at(target, slot));
        let from = self.sent(values);
        call!(self.rank, put(from, count, word, target, at, count, word, self.win));
    }

    /// MPI_Get. The result is there when the epoch ends, or after a flush.
    pub fn get(&self, values: &mut [i64], target: c_int, slot: usize) {
        let (count, word, at) = (number(values.len()), self.rank.word, self.at(target, slot));
        let to = values.as_mut_ptr().cast();
        call!(self.rank, get(to, count, word, target, at, count, word, self.win));
    }

    /// MPI_Accumulate.
    pub fn accumulate(&self, values: &[i64], target: c_int, slot: usize, op: Op) {
        let (count, word, at) = (number(values.len()), self.rank.word, self.at(target, slot));
        let (from, op) = (self.sent(values), self.rank.mpi.op(op));
        call!(self.rank, accumulate(from, count, word, target, at, count, word, op, self.win));
    }

    /// MPI_Get_accumulate. The result is there when the epoch ends, or after a flush.
    pub fn get_accumulate(
        &self,
        values: &[i64],
        fetched: &mut [i64],
        (target, slot): (c_int, usize),
        op: Op,
    ) {
        let (count, word, at) = (number(values.len()), self.rank.word, self.at(target, slot));
        let (from, to) = (self.sent(values), fetched.as_mut_ptr().cast());
        let (op, win) = (self.rank.mpi.op(op), self.win);
        call!(
            self.rank,
            get_accumulate(from, count, word, to, count, word, target, at, count, word, op, win)
        );
    }

    /// MPI_Fetch_and_op and a flush: returns the value before it.
    pub fn fetch_and_op(&self, value: i64, target: c_int, slot: usize, op: Op) -> i64 {
        let (mut fetched, at) = (i64::MIN, self.at(target, slot));
        let (from, to) = ((&raw const value).cast(), (&raw mut fetched).cast());
        let op = self.rank.mpi.op(op);
        call!(self.rank, fetch_and_op(from, to, self.rank.word, target, at, op, self.win));
        self.flush(target);
        // SAFETY: a local variable, which the call has written.
        unsafe { (&raw const fetched).read_volatile() }
    }

    /// MPI_Compare_and_swap and a flush: returns the value before it.
    pub fn compare_and_swap(&self, old: i64, new: i64, target: c_int, slot: usize) -> i64 {
        let (mut fetched, at) = (i64::MIN, self.at(target, slot));
        let (new, old) = ((&raw const new).cast(), (&raw const old).cast());
        let to = (&raw mut fetched).cast();
        call!(self.rank, compare_and_swap(new, old, to, self.rank.word, target, at, self.win));
        self.flush(target);
        // SAFETY: a local variable, which the call has written.
        unsafe { (&raw const fetched).read_volatile() }
    }

    /// MPI_Wait for the request of an operation.
    pub fn wait(&self, mut request: Handle) {
        let mut status: Status = [0; 8];
        call!(self.rank, wait(&mut request, &mut status));
    }

    /// MPI_Win_flush.
    pub fn flush(&self, target: c_int) {
        call!(self.rank, win_flush(target, self.win));
    }

    /// MPI_Win_fence.
    pub fn fence(&self, assertions: c_int) {
        call!(self.rank, win_fence(assertions, self.win));
    }

    /// MPI_Win_lock, exclusive.
    pub fn lock_exclusive(&self, target: c_int) {
        let kind = self.rank.mpi.constants.lock_exclusive;
        call!(self.rank, win_lock(kind, target, 0, self.win));
    }

    /// MPI_Win_lock, shared.
    pub fn lock_shared(&self, target: c_int) {
        let kind = self.rank.mpi.constants.lock_shared;
        call!(self.rank, win_lock(kind, target, 0, self.win));
    }

    /// MPI_Win_unlock.
    pub fn unlock(&self, target: c_int) {
        call!(self.rank, win_unlock(target, self.win));
    }

    /// MPI_Win_lock_all.
    pub fn lock_all(&self) {
        call!(self.rank, win_lock_all(0, self.win));
    }

    /// MPI_Win_unlock_all.
    pub fn unlock_all(&self) {
        call!(self.rank, win_unlock_all(self.win));
    }

    /// Reads slots of this rank in an epoch of its own, after operations of other ranks.
    pub fn own_slots<const N: usize>(&self, first: usize) -> [i64; N] {
        self.lock_shared(self.ranks.me);
        let values = std::array::from_fn(|at| self.own(first + at));
        self.unlock(self.ranks.me);
        values
    }
}
