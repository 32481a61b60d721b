//! How the simulated device executes requests, one step at a time.

use super::fake::{FakeQp, State, behind};
use crate::device_order::{DeviceOrder, Overtakers};
use crate::sys::ibverbs::verbs::*;

/// A request that was posted.
pub struct Job {
    id: u64,
    opcode: ibv_wr_opcode,
    flags: u32,
    pub pieces: Vec<ibv_sge>,
    pub inline: Option<Vec<u8>>,
    at: u64,
    key: u32,
    operands: [u64; 2],
    done: bool,
    status: ibv_wc_status,
    /// number of the last request at the time when this one was forgotten
    forgotten: Option<u64>,
}

impl Job {
    /// Decodes a work request.
    ///
    /// # Safety
    /// The caller guarantees that the request is valid, and its bytes too if they are inline.
    pub unsafe fn new(wr: &ibv_send_wr) -> Job {
        // SAFETY: as many pieces as the request says; all variants of the union are plain data.
        let (pieces, atomic, rdma): (Vec<ibv_sge>, _, _) = unsafe {
            let piece = |index: i32| *wr.sg_list.add(index as usize);
            ((0..wr.num_sge).map(piece).collect(), wr.wr.atomic, wr.wr.rdma)
        };
        let is_atomic =
            [IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD].contains(&wr.opcode);
        let inline = (wr.send_flags & IBV_SEND_INLINE != 0).then(|| {
            // SAFETY: the caller guarantees them.
            unsafe { copy_all(&pieces) }
        });
        Job {
            id: wr.wr_id,
            opcode: wr.opcode,
            flags: wr.send_flags,
            pieces,
            inline,
            at: if is_atomic { atomic.remote_addr } else { rdma.remote_addr },
            key: if is_atomic { atomic.rkey } else { rdma.rkey },
            operands: [atomic.compare_add, atomic.swap],
            done: false,
            status: IBV_WC_SUCCESS,
            forgotten: None,
        }
    }

    /// Bytes of its memory at the origin.
    fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| u64::from(piece.length)).sum()
    }

    fn is_write(&self) -> bool {
        self.opcode == IBV_WR_RDMA_WRITE
    }

    fn is_fenced(&self) -> bool {
        self.flags & IBV_SEND_FENCE != 0
    }

    /// Whether a device with this order may execute this request before an earlier one.
    fn may_overtake(&self, earlier: &Job, order: DeviceOrder) -> bool {
        let overtakers = match earlier.opcode {
            IBV_WR_RDMA_WRITE => order.writes,
            IBV_WR_RDMA_READ => order.reads,
            _ => order.atomics,
        };
        match self.opcode {
            IBV_WR_RDMA_READ => overtakers.has_reads(),
            _ => overtakers.has_changes(),
        }
    }
}

/// Copies the bytes at an address.
///
/// # Safety
/// The caller guarantees that they can be read.
unsafe fn copy(at: u64, bytes: u64) -> Vec<u8> {
    (0..bytes)
        .map(|offset| {
            // SAFETY: the caller guarantees them; other threads may write there.
            unsafe {
                core::ptr::with_exposed_provenance::<u8>((at + offset) as usize).read_volatile()
            }
        })
        .collect()
}

/// Copies the bytes of pieces, one after the other.
///
/// # Safety
/// As for [`copy`].
unsafe fn copy_all(pieces: &[ibv_sge]) -> Vec<u8> {
    // SAFETY: guaranteed by the caller.
    pieces.iter().flat_map(|piece| unsafe { copy(piece.addr, piece.length.into()) }).collect()
}

/// Stores bytes at an address, as one word if they are an aligned word.
///
/// # Safety
/// The caller guarantees that they can be written.
unsafe fn store(at: u64, bytes: &[u8]) {
    let to = core::ptr::with_exposed_provenance_mut::<u8>(at as usize);
    if let (Ok(word), true) = (<[u8; 8]>::try_from(bytes), at.is_multiple_of(8)) {
        // SAFETY: the caller guarantees them; aligned.
        unsafe { to.cast::<u64>().write_volatile(u64::from_ne_bytes(word)) };
        return;
    }
    for (offset, byte) in bytes.iter().enumerate() {
        // SAFETY: the caller guarantees them.
        unsafe { to.add(offset).write_volatile(*byte) };
    }
}

/// Finds a queue pair by its number.
pub fn pair(state: &State, number: u32) -> Option<&'static mut FakeQp> {
    // SAFETY: it is in the map until it is destroyed, and the caller has locked the state.
    state.pairs.get(&number).map(|at| unsafe { &mut *(*at as *mut FakeQp) })
}

/// Stores into memory what a queue pair has completed.
pub fn land(pair: &mut FakeQp) {
    for (at, bytes) in pair.landing.drain(..) {
        // SAFETY: it was checked against its region, whose end comes after all stores to it.
        unsafe { store(at, &bytes) };
    }
}

/// Stores into memory what all queue pairs have completed.
pub fn land_all(state: &mut State) {
    for number in state.pairs.keys() {
        land(pair(state, *number).unwrap());
    }
}

/// Whether the device has forgotten the next work request of a queue pair.
fn has_forgotten(pair: &mut FakeQp) -> bool {
    // SAFETY: its context belongs to the simulated device.
    let forgets = unsafe { behind(pair.head().context) }.profile.forgets;
    let last = pair.jobs.back().map_or(0, |job| job.id);
    match pair.jobs.iter_mut().find(|job| !job.done) {
        Some(job) if forgets && job.flags & IBV_SEND_FENCE != 0 => {
            *job.forgotten.get_or_insert(last) == last
        }
        _ => false,
    }
}

/// Whether a request may be executed now; `first` is the oldest one that was not executed.
fn may_be_next(pair: &FakeQp, first: usize, chosen: usize, order: DeviceOrder) -> bool {
    let Some(job) = pair.jobs.get(chosen).filter(|job| !job.done) else { return false };
    let mut earlier = pair.jobs.range(first..chosen).filter(|job| !job.done);
    let mut later = pair.jobs.range(first + 1..=chosen);
    earlier.all(|earlier| job.may_overtake(earlier, order)) && !later.any(Job::is_fenced)
}

/// Takes one step of one queue pair, chosen at random. Returns false if there is nothing to do.
pub fn step(state: &mut State, random: &mut u64) -> bool {
    *random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    let dice = *random >> 33;
    let busy: Vec<u32> = state.pairs.keys().copied().collect();
    let busy: Vec<u32> = busy
        .into_iter()
        .filter(|number| {
            let pair = pair(state, *number).unwrap();
            (!pair.jobs.is_empty() || !pair.landing.is_empty()) && !has_forgotten(pair)
        })
        .collect();
    if busy.is_empty() {
        return false;
    }
    let number = busy[dice as usize % busy.len()];
    let pair = pair(state, number).unwrap();
    // An idle device stores the data late, hardly before the origin has polled the last completion,
    // so that a process often loads the memory before.
    let rarely = match (pair.jobs.is_empty(), pair.is_polled()) {
        (false, _) => 3,
        (true, true) => 127,
        (true, false) => 8191,
    };
    if dice >> 8 & rarely == 0 {
        land(pair);
    }
    let waiting = |job: &Job| !job.done;
    let Some(first) = pair.jobs.iter().position(waiting) else { return true };
    // SAFETY: its context belongs to the simulated device.
    let order = unsafe { behind(pair.head().context) }.profile.order;
    // Requests are rarely overtaken unless several are there.
    let waits = order.writes != Overtakers::Nothing && pair.jobs.len() < first + 4;
    if waits && dice >> 13 & 7 != 0 {
        return true;
    }
    let mut last = (first..(first + 16).min(pair.jobs.len())).rev();
    let overtaker = last.find(|chosen| may_be_next(pair, first, *chosen, order));
    execute(state, pair, overtaker.filter(|_| dice >> 10 & 1 == 0).unwrap_or(first));
    while pair.jobs.front().is_some_and(|job| job.done) {
        let job = pair.jobs.pop_front().unwrap();
        let status = if pair.broken { IBV_WC_WR_FLUSH_ERR } else { job.status };
        if status != IBV_WC_SUCCESS || job.flags & IBV_SEND_SIGNALED != 0 {
            let qp_num = number;
            pair.tell(ibv_wc { wr_id: job.id, status, qp_num, ..ibv_wc::default() });
        }
        pair.broken |= status != IBV_WC_SUCCESS;
    }
    true
}

/// Executes a request, or records its error.
fn execute(state: &State, pair: &mut FakeQp, index: usize) {
    let job = &pair.jobs[index];
    let status = match check(state, pair, job) {
        _ if pair.broken => IBV_WC_WR_FLUSH_ERR,
        Ok(()) => IBV_WC_SUCCESS,
        Err(status) => status,
    };
    if status == IBV_WC_SUCCESS {
        let job = &pair.jobs[index];
        let (at, opcode) = (job.at, job.opcode);
        let [first, second] = job.operands;
        if job.is_write() {
            let bytes = job.inline.clone().unwrap_or_else(|| {
                // SAFETY: they were checked against their regions.
                unsafe { copy_all(&job.pieces) }
            });
            pair.landing.push_back((at, bytes));
        } else {
            let (pieces, bytes) = (job.pieces.clone(), job.bytes());
            land(pair);
            // SAFETY: it was checked against its region.
            let before = unsafe { copy(at, bytes) };
            let mut rest = &before[..];
            for piece in pieces {
                let (arrived, behind) = rest.split_at(piece.length as usize);
                // SAFETY: it was checked against its region.
                unsafe { store(piece.addr, arrived) };
                rest = behind;
            }
            let held = || u64::from_ne_bytes(before[..8].try_into().unwrap());
            let after = match opcode {
                IBV_WR_ATOMIC_FETCH_AND_ADD => Some(held().wrapping_add(first)),
                IBV_WR_ATOMIC_CMP_AND_SWP => (held() == first).then_some(second),
                _ => None,
            };
            if let Some(after) = after {
                // SAFETY: it was checked against its region.
                unsafe { store(at, &after.to_ne_bytes()) };
            }
        }
    }
    (pair.jobs[index].status, pair.jobs[index].done) = (status, true);
}

/// Whether a request is allowed.
fn check(state: &State, origin: &FakeQp, job: &Job) -> Result<(), ibv_wc_status> {
    let Some(target) = pair(state, origin.attributes.dest_qp_num) else {
        return Err(IBV_WC_RETRY_EXC_ERR);
    };
    let (remote, local) = match job.opcode {
        IBV_WR_RDMA_WRITE => (IBV_ACCESS_REMOTE_WRITE, 0),
        IBV_WR_RDMA_READ => (IBV_ACCESS_REMOTE_READ, IBV_ACCESS_LOCAL_WRITE),
        _ => (IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_LOCAL_WRITE),
    };
    // A request of zero bytes needs no valid key, but the access rights of the other end apply.
    let open = target.attributes.qp_access_flags & remote != 0;
    let bytes = job.bytes();
    if bytes == 0 {
        return if open { Ok(()) } else { Err(IBV_WC_REM_ACCESS_ERR) };
    }
    let allows = |key: u32, domain: usize, (at, bytes): (u64, u64), access: ibv_access_flags| {
        state.keys.get(&key).is_some_and(|region| {
            let inside = at >= region.base && at + bytes <= region.base + region.bytes;
            inside && region.domain == domain && region.access & access == access
        })
    };
    let atomic = remote == IBV_ACCESS_REMOTE_ATOMIC;
    if atomic && (bytes != 8 || !job.at.is_multiple_of(8)) {
        return Err(9);
    }
    let own = |piece: &ibv_sge| {
        let memory = (piece.addr, u64::from(piece.length));
        allows(piece.lkey, origin.head().pd as usize, memory, local)
    };
    if job.inline.is_none() && !job.pieces.iter().all(own) {
        return Err(4);
    }
    if !open || !allows(job.key, target.head().pd as usize, (job.at, bytes), remote) {
        return Err(IBV_WC_REM_ACCESS_ERR);
    }
    Ok(())
}
