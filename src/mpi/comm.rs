//! Communicators and groups of the host MPI.

use super::functions::do_not_copy;
use super::handle::{Abi, Handle, Status};
use super::host::Host;
use crate::error::{Error, Result};
use crate::messages;
use crate::number::Number;
use crate::rank_numbers::Rank;
use core::ffi::{c_int, c_void};
use core::ptr;
use parking_lot::Mutex;

/// Returns the result of a function of the host MPI.
pub fn check(code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Error::Host(code)) }
}

/// A communicator of the host MPI. A non-owning handle; the owner frees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comm(pub Handle);

/// A tag that no message has: probing for it lets the host MPI make progress.
const PROGRESS_TAG: c_int = 0x7a0;

impl Comm {
    /// Returns the communicator that a user passed, if it may have windows.
    pub fn for_window(host: &Host, raw: usize) -> Result<Comm> {
        let comm = host.handle(raw);
        if comm == host.constants.comm_null || comm == 0 {
            return Err(Error::Wrong(&messages::COMM_NULL));
        }
        let mut inter = 0;
        // SAFETY: an out parameter of ours; a wrong handle is the MPI's to report.
        check(unsafe { (host.call.comm_test_inter)(comm, &mut inter) })?;
        if inter != 0 {
            return Err(Error::Wrong(&messages::COMM_INTER));
        }
        Ok(Comm(comm))
    }

    /// Returns this process's rank in it.
    pub fn rank(self, host: &Host) -> Result<u32> {
        let mut rank = 0;
        // SAFETY: a local out parameter.
        check(unsafe { (host.call.comm_rank)(self.0, &mut rank) })?;
        Ok(rank.cast_unsigned())
    }

    /// Returns the number of its processes.
    pub fn size(self, host: &Host) -> Result<u32> {
        let mut size = 0;
        // SAFETY: a local out parameter.
        check(unsafe { (host.call.comm_size)(self.0, &mut size) })?;
        Ok(size.cast_unsigned())
    }

    /// Makes a communicator of the same processes that belongs to this library. Its errors are
    /// returned. Collective.
    pub fn duplicate(self, host: &Host) -> Result<Comm> {
        let (mut new, group): (Handle, Group) = (0, self.group(host)?);
        // MPI_Comm_dup would call the copy callbacks of the user's attributes.
        // SAFETY: an out parameter of ours, as wide as any handle.
        let code = unsafe { (host.call.comm_create)(self.0, group.0, &mut new) };
        group.free(host);
        check(code)?;
        Comm(new).return_errors(host)
    }

    /// Makes the host MPI return errors on this communicator.
    fn return_errors(self, host: &Host) -> Result<Comm> {
        let errors_return = host.constants.errors_return;
        // SAFETY: both handles are valid.
        check(unsafe { (host.call.comm_set_errhandler)(self.0, errors_return) })?;
        Ok(self)
    }

    /// Returns the communicator of the ranks that gave the same color, in the order of their ranks
    /// here; `None` on ranks that gave none. It belongs to this library. Collective.
    pub fn split(self, host: &Host, color: Option<u32>) -> Result<Option<Comm>> {
        let color = color.map_or(host.constants.undefined, |color| color.cast_signed());
        let mut new: Handle = 0;
        // SAFETY: an out parameter of ours, as wide as any handle.
        check(unsafe { (host.call.comm_split)(self.0, color, 0, &mut new) })?;
        let new = host.handle(new);
        if new == host.constants.comm_null || new == 0 {
            return Ok(None);
        }
        Comm(new).return_errors(host).map(Some)
    }

    /// Returns the values of all ranks, in the order of the ranks. Collective.
    pub fn gather_all<const N: usize>(self, host: &Host, mine: &[u64; N]) -> Result<Vec<[u64; N]>> {
        let mut all = vec![[0; N]; self.size(host)?.to_usize()];
        let (bytes, byte) = (size_of_val(mine).to_i32(), host.byte());
        let (from, to) = (mine.as_ptr().cast(), all.as_mut_ptr().cast());
        // SAFETY: `bytes` bytes to read from, and as many for each rank to write to.
        check(unsafe { (host.call.allgather)(from, bytes, byte, to, bytes, byte, self.0) })?;
        Ok(all)
    }

    /// Frees a duplicate. Collective.
    pub fn free(self, host: &Host) {
        let mut comm = self.0;
        // SAFETY: made by `duplicate`, not used again.
        unsafe { (host.call.comm_free)(&mut comm) };
    }

    /// Returns its group; the caller frees it.
    pub fn group(self, host: &Host) -> Result<Group> {
        let mut group: Handle = 0;
        // SAFETY: a local out parameter.
        check(unsafe { (host.call.comm_group)(self.0, &mut group) })?;
        Ok(Group(group))
    }

    /// Sends `data` from rank 0 to all ranks. Collective.
    pub fn broadcast<const N: usize>(self, host: &Host, data: &mut [u64; N]) -> Result<()> {
        self.broadcast_from(host, 0, data)
    }

    /// Sends `data` from a rank to all ranks. Collective.
    pub fn broadcast_from<const N: usize>(
        self,
        host: &Host,
        root: u32,
        data: &mut [u64; N],
    ) -> Result<()> {
        let (bytes, byte) = (size_of_val(data).to_i32(), host.byte());
        let data = data.as_mut_ptr().cast();
        // SAFETY: `data` is a live array of that length.
        check(unsafe { (host.call.bcast)(data, bytes, byte, root.to_i32(), self.0) })
    }

    /// Returns the least of the values of all ranks. They are signed, because MPICH 4.0 compares
    /// unsigned ones as if they were. Collective.
    pub fn least(self, host: &Host, mine: i64) -> Result<i64> {
        let mut all = 0_i64;
        let (from, to) = ((&raw const mine).cast(), (&raw mut all).cast());
        let (word, min) = (host.tables.word, host.tables.min);
        // SAFETY: one word each to read from and write to.
        check(unsafe { (host.call.allreduce)(from, to, 1, word, min, self.0) })?;
        Ok(all)
    }

    /// Returns the least of the values of all ranks, for each of several words. Does not wait
    /// inside of the MPI: calls `meanwhile` again and again. Collective.
    pub fn least_of_each<const N: usize>(
        self,
        host: &Host,
        mine: [i64; N],
        mut meanwhile: impl FnMut(),
    ) -> Result<[i64; N]> {
        let mut words = Box::new([mine, [0; N]]);
        let [from, to] = words.each_mut().map(|half| half.as_mut_ptr().cast::<c_void>());
        let (word, min) = (host.tables.word, host.tables.min);
        let (mut request, mut done, mut status): (Handle, c_int, Status) = (0, 0, [0; 8]);
        // SAFETY: N words each to read from and write to, which live until this is done.
        let mut code = unsafe {
            (host.call.iallreduce)(from, to, N.to_i32(), word, min, self.0, &mut request)
        };
        while code == 0 {
            // SAFETY: the request of above; a status that is large enough in every ABI.
            code = unsafe { (host.call.test)(&mut request, &mut done, &mut status) };
            if done != 0 {
                break;
            }
            meanwhile();
        }
        if code != 0 {
            // An operation that has failed may still be under way.
            Box::leak(words);
            return Err(Error::Host(code));
        }
        Ok(words[1])
    }

    /// Whether `yes` is true on all ranks. Collective.
    pub fn all(self, host: &Host, yes: bool) -> Result<bool> {
        Ok(self.least(host, i64::from(yes))? != 0)
    }

    /// Lets the host MPI make progress on its own operations. One thread at a time, since one call
    /// makes progress for all: MPICH and Intel MPI do not support several threads that come from a
    /// session.
    pub fn progress(self, host: &Host) {
        static TURN: Mutex<()> = Mutex::new(());
        let Some(_turn) = TURN.try_lock() else { return };
        let (mut found, mut status): (c_int, Status) = (0, [0; 8]);
        let any = host.constants.any_source;
        // SAFETY: out parameters of ours; the status buffer is large enough in every ABI.
        unsafe { (host.call.iprobe)(any, PROGRESS_TAG, self.0, &mut found, &mut status) };
    }

    /// Checks that messages of this type may be sent: it is a datatype, and committed (MPI-4.1
    /// §5.1.9).
    pub fn takes(self, host: &Host, datatype: Handle) -> Result<()> {
        let (nobody, mut request) = (host.constants.proc_null, 0);
        let buffer = (&raw const nobody).cast();
        // SAFETY: nothing is sent, so nothing is read; an out parameter of ours.
        let code =
            unsafe { (host.call.isend)(buffer, 1, datatype, nobody, 0, self.0, &mut request) };
        if code != 0 {
            return Err(Error::Wrong(&messages::TYPE_UNCOMMITTED));
        }
        let mut status: Status = [0; 8];
        // SAFETY: a request that was just made, and a status that is large enough in every ABI.
        check(unsafe { (host.call.wait)(&mut request, &mut status) })
    }

    /// Calls the user's error handler of this communicator.
    pub fn raise(self, host: &Host, code: c_int) {
        // SAFETY: any communicator may be asked to call its handler.
        unsafe { (host.call.comm_call_errhandler)(self.0, code) };
    }
}

/// The most ranks of a group that are listed without an allocation.
const FEW_RANKS: usize = 16;
/// As many ranks, from the first one on.
const FIRST_RANKS: [c_int; FEW_RANKS] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// A group of the host MPI. A non-owning handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(pub Handle);

impl Group {
    /// Returns the number of its processes.
    pub fn size(self, host: &Host) -> Result<u32> {
        let mut size = 0;
        // SAFETY: a local out parameter.
        check(unsafe { (host.call.group_size)(self.0, &mut size) })?;
        Ok(size.cast_unsigned())
    }

    /// Passes to `work` the ranks that its processes have in `of`; an error if one is not in `of`.
    /// The ranks of a small group need no memory.
    #[inline]
    pub fn with_ranks_in<T>(
        self,
        host: &Host,
        of: Group,
        work: impl FnOnce(&[Rank]) -> Result<T>,
    ) -> Result<T> {
        let size = self.size(host)?.to_usize();
        if size > FEW_RANKS {
            return work(&self.many_ranks_in(host, of, size)?);
        }
        let mut there = [0; FEW_RANKS];
        self.translate(host, of, &FIRST_RANKS[..size], &mut there[..size])?;
        // The numbers after the last one are not used.
        work(&there.map(|rank| Rank(rank.cast_unsigned()))[..size])
    }

    /// Returns the ranks in `of` of a group of `size` processes.
    #[cold]
    fn many_ranks_in(self, host: &Host, of: Group, size: usize) -> Result<Vec<Rank>> {
        let here: Vec<c_int> = (0..).take(size).collect();
        let mut there = vec![0; size];
        self.translate(host, of, &here, &mut there)?;
        Ok(there.into_iter().map(|rank| Rank(rank.cast_unsigned())).collect())
    }

    /// Stores the ranks of `of` that are the processes with the ranks `here`, which is as long as
    /// `there`. An error if a process is not in `of`.
    fn translate(self, host: &Host, of: Group, here: &[c_int], there: &mut [c_int]) -> Result<()> {
        let size = c_int::try_from(here.len()).unwrap_or(c_int::MAX);
        let (from, to) = (here.as_ptr(), there.as_mut_ptr());
        // SAFETY: both arrays have `size` elements.
        check(unsafe { (host.call.group_translate_ranks)(self.0, size, from, of.0, to) })?;
        if there.iter().any(|rank| *rank < 0) {
            return Err(outside(size));
        }
        Ok(())
    }

    /// Frees the group.
    pub fn free(self, host: &Host) {
        let mut group = self.0;
        // SAFETY: made by `Comm::group`, not used again.
        unsafe { (host.call.group_free)(&mut group) };
    }
}

/// The error of a group of `size` processes that has one outside of the window.
#[cold]
fn outside(size: c_int) -> Error {
    Error::Argument(&messages::GROUP_OUTSIDE, i64::from(size))
}

impl Host {
    /// Returns MPI_BYTE.
    pub fn byte(&self) -> Handle {
        self.tables.byte
    }

    /// Whether MPI_Init was called. With sessions it need not be.
    pub fn initialized(&self) -> bool {
        let mut yes = 0;
        // SAFETY: a local out parameter.
        unsafe { (self.call.initialized)(&mut yes) };
        yes != 0
    }

    /// Creates the keyval under which this library keeps its state on communicators.
    pub fn comm_keyval(&self, delete: super::functions::DeleteFn) -> Result<c_int> {
        let mut keyval = 0;
        let nothing = ptr::null_mut();
        // SAFETY: both callbacks have the signatures of MPI-4.1 §7.7.2.
        check(unsafe {
            (self.call.comm_create_keyval)(do_not_copy, delete, &mut keyval, nothing)
        })?;
        Ok(keyval)
    }

    /// Returns the name of the ABI, for messages.
    pub fn abi_name(&self) -> &'static str {
        match self.abi {
            Abi::Mpich => "MPICH ABI",
            Abi::OpenMpi => "Open MPI ABI",
            Abi::Standard => "MPI-5 ABI",
        }
    }
}
