//! The origin's end of a connection: a queue pair that sends, and its completion queue. It turns
//! requests into those of libibverbs. How the two ends are connected is in `connect`. Invariant:
//! requests complete in their order, so the number of the last one that is done is enough.

use core::ptr;

use smallvec::SmallVec;

use crate::Way;
use crate::device_order::DeviceOrder;
use crate::number::Number;
use crate::request::{Broken, CHAIN_MAX, Local, Order, SGE_MAX, Work};
use crate::sys::ibverbs::verbs::*;
use crate::sys::ibverbs::{
    Library, QueuePair, ibv_send_wr_wr, ibv_send_wr_wr_atomic, ibv_send_wr_wr_rdma,
};

/// Largest number of completions that one poll takes.
const POLL: usize = 8;

/// The origin's end of a connection.
pub struct VerbsLink {
    pair: QueuePair,
    /// the library that names the reasons of failures
    library: &'static Library,
    /// the order in which the target carries out requests
    order: DeviceOrder,
    /// largest number of pieces of memory in a READ
    read_sges: u32,
    /// why a request has failed whose predecessors have been reported
    failed: Option<ibv_wc_status>,
}

impl VerbsLink {
    /// Makes a link of a connected queue pair.
    pub fn new(
        pair: QueuePair,
        library: &'static Library,
        order: DeviceOrder,
        read_sges: u32,
    ) -> VerbsLink {
        VerbsLink { pair, library, order, read_sges, failed: None }
    }

    /// Number of requests that can be under way.
    pub fn places(&self) -> usize {
        self.pair.capacity().max_send_wr.to_usize()
    }

    /// Largest number of bytes that a request can carry inline.
    pub fn inline_bytes_max(&self) -> u64 {
        self.pair.capacity().max_inline_data.into()
    }

    /// Largest number of pieces of this process's memory in a WRITE or READ.
    pub fn sge_max(&self, way: Way) -> usize {
        let sges = self.pair.capacity().max_send_sge.to_usize().clamp(1, SGE_MAX);
        if way == Way::Get { sges.min(self.read_sges.to_usize()) } else { sges }
    }

    /// The order in which the target carries out requests.
    pub fn device_order(&self) -> DeviceOrder {
        self.order
    }

    /// Whether the device has failed for good, as far as it has reported.
    pub fn has_failed(&self) -> bool {
        self.pair.has_lost_its_device()
    }

    /// Posts requests, at most [`CHAIN_MAX`], with one doorbell. `pieces`: the memory of a single
    /// request in this process, if it is several pieces.
    ///
    /// # Safety
    /// The memory that they name is registered with the given key, and stays so until they are
    /// done. For inline data it is enough that the memory can be read now.
    pub unsafe fn post(&mut self, orders: &[Order], pieces: &[Local]) -> Result<(), Broken> {
        if let [order] = orders {
            let (mut own, mut request) = (piece(order.from), request(order));
            request.sg_list = &mut own;
            let mut list = SmallVec::<[ibv_sge; SGE_MAX]>::new();
            if !pieces.is_empty() {
                list.extend(pieces.iter().copied().map(piece));
                (request.sg_list, request.num_sge) = (list.as_mut_ptr(), list.len().to_i32());
            }
            // SAFETY: a chain of one; the caller guarantees the memory.
            return unsafe { self.pair.post(&mut request) }.map_err(Broken::Call);
        }
        let mut own = [ibv_sge::default(); CHAIN_MAX];
        let mut chain = [ibv_send_wr::default(); CHAIN_MAX];
        let mut next = ptr::null_mut();
        // From the last one, because each of them names the next one.
        for (index, order) in orders.iter().enumerate().rev() {
            own[index] = piece(order.from);
            let sg_list = &raw mut own[index];
            chain[index] = ibv_send_wr { sg_list, next, ..request(order) };
            next = &raw mut chain[index];
        }
        // SAFETY: a chain whose last link is null; the caller guarantees the memory.
        unsafe { self.pair.post(next) }.map_err(Broken::Call)
    }

    /// Polls for completions. Returns the number of the last request that is known to be done, if
    /// there is a new one.
    pub fn poll(&mut self) -> Result<Option<u64>, Broken> {
        if let Some(status) = self.failed {
            return Err(self.broken(status));
        }
        let mut found = [ibv_wc::default(); POLL];
        let count = self.pair.poll(&mut found).map_err(Broken::Call)?;
        let mut done = None;
        for completion in &found[..count] {
            if completion.status != IBV_WC_SUCCESS {
                self.failed = Some(completion.status);
                break;
            }
            done = Some(completion.wr_id);
        }
        match self.failed {
            Some(status) if done.is_none() => Err(self.broken(status)),
            _ => Ok(done),
        }
    }

    fn broken(&self, status: ibv_wc_status) -> Broken {
        Broken::Request(self.library.status(status))
    }
}

fn piece(memory: Local) -> ibv_sge {
    ibv_sge { addr: memory.at, length: memory.bytes, lkey: memory.key }
}

/// Makes a work request, without its memory in this process and without a successor.
fn request(order: &Order) -> ibv_send_wr {
    let (remote_addr, rkey) = (order.to.at, order.to.key.low_u32());
    let rdma = ibv_send_wr_wr { rdma: ibv_send_wr_wr_rdma { remote_addr, rkey } };
    let atomic = |compare_add, swap| ibv_send_wr_wr {
        atomic: ibv_send_wr_wr_atomic { remote_addr, compare_add, swap, rkey },
    };
    let (opcode, wr) = match order.work {
        Work::Write | Work::WriteInline | Work::Ping => (IBV_WR_RDMA_WRITE, rdma),
        Work::Read => (IBV_WR_RDMA_READ, rdma),
        Work::Add(add) => (IBV_WR_ATOMIC_FETCH_AND_ADD, atomic(add, 0)),
        Work::CompareSwap { expect, new } => (IBV_WR_ATOMIC_CMP_AND_SWP, atomic(expect, new)),
        Work::CompareSwapNarrow { .. }
        | Work::TakeLock { .. }
        | Work::Accumulate { .. }
        | Work::OverRows { .. } => {
            unreachable!("this device leaves such work to the origin, and says so")
        }
    };
    let flag = |set: bool, flag| if set { flag } else { 0 };
    ibv_send_wr {
        wr_id: order.number,
        num_sge: i32::from(order.from.bytes > 0),
        opcode,
        send_flags: flag(order.signaled, IBV_SEND_SIGNALED)
            | flag(order.fenced, IBV_SEND_FENCE)
            | flag(order.work == Work::WriteInline, IBV_SEND_INLINE),
        wr,
        ..ibv_send_wr::default()
    }
}
