//! The connection of two queue pairs: the data that both sides exchange, and the state changes of a
//! queue pair. The origin's end sends; the target's end only receives requests. How the data reach
//! the other side is decided elsewhere.
//!
//! | word | contents of an end                                                   |
//! |------|----------------------------------------------------------------------|
//! | 0    | number of the queue pair (high half), its first PSN (low half)       |
//! | 1    | order, READs, path MTU, LID (from bit 40, 24, 16, 0)                 |
//! | 2, 3 | GID                                                                  |

use std::sync::Arc;

use super::port::Port;
use crate::device_order::DeviceOrder;
use crate::error::Result;
use crate::number::Number;
use crate::request::END_BYTES;
use crate::sys::ibverbs::verbs::*;
use crate::sys::ibverbs::{Completions, Gid, QueuePair};
/// Inline data of a request: enough for control words, single elements, small rows.
const INLINE_BYTES: u32 = 128;
/// Transport time-out (4.096 us * 2^18, one second, and up to four times that) and number of
/// retries. Not 7 retries, the largest number, because Soft-RoCE takes it as infinite.
const TIMEOUT: u8 = 18;
const RETRIES: u8 = 6;
const HOPS: u8 = 64;

/// One end of a connection, as the other end needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerbsEnd {
    number: u32,
    /// first packet sequence number (PSN) that this end sends
    pub psn: u32,
    /// the order in which this end, as the target, carries out requests
    pub order: DeviceOrder,
    /// number of READs that this end executes at once
    pub reads: u8,
    mtu: u8,
    lid: u16,
    gid: Gid,
}

impl VerbsEnd {
    fn new(port: &Port, pair: &QueuePair, psn: u32) -> VerbsEnd {
        VerbsEnd {
            number: pair.number(),
            psn,
            order: port.order,
            reads: port.reads_as_target,
            mtu: port.mtu,
            lid: port.lid,
            gid: port.gid,
        }
    }

    /// The end in the form in which it is sent.
    pub fn bytes(&self) -> [u8; END_BYTES] {
        let bits = u64::from(self.lid)
            | u64::from(self.mtu) << 16
            | u64::from(self.reads) << 24
            | code(self.order) << 40;
        let number = u64::from(self.number) << 32 | u64::from(self.psn);
        let mut bytes = [0; END_BYTES];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        bytes[8..16].copy_from_slice(&bits.to_le_bytes());
        bytes[16..].copy_from_slice(&self.gid.0);
        bytes
    }

    /// Decodes received bytes.
    pub fn from(bytes: &[u8; END_BYTES]) -> VerbsEnd {
        let word = |index: usize| {
            let bytes = bytes[8 * index..][..8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        };
        let (number, bits) = (word(0), word(1));
        VerbsEnd {
            number: (number >> 32) as u32,
            psn: number.low_u32(),
            order: order((bits >> 40).low_u8()),
            reads: (bits >> 24).low_u8(),
            mtu: (bits >> 16).low_u8(),
            lid: bits.low_u16(),
            gid: Gid(bytes[16..].try_into().expect("sixteen bytes")),
        }
    }
}

/// The orders that an end may keep, by their numbers in word 1.
const ORDERS: [DeviceOrder; 4] = [
    DeviceOrder::RELIABLE,
    DeviceOrder::ONE_AT_A_TIME,
    DeviceOrder::WRITE_AFTER_WRITE,
    DeviceOrder::NONE,
];

fn code(order: DeviceOrder) -> u64 {
    ORDERS.iter().position(|known| *known == order).expect("an order of verbs").to_u64()
}

/// Returns the order with a number; for an unknown one that which promises least.
fn order(code: u8) -> DeviceOrder {
    ORDERS.get(usize::from(code)).copied().unwrap_or(DeviceOrder::NONE)
}

/// Brings a queue pair to INIT, on both sides.
fn to_init(port: &Port, pair: &QueuePair, access: ibv_access_flags) -> Result<()> {
    let mut attributes = ibv_qp_attr {
        qp_state: IBV_QPS_INIT,
        port_num: port.port,
        qp_access_flags: access,
        ..ibv_qp_attr::default()
    };
    pair.modify(
        &mut attributes,
        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
    )
}

/// Brings a queue pair to RTR: it receives requests of the other end.
fn to_rtr(port: &Port, pair: &QueuePair, other: &VerbsEnd) -> Result<()> {
    let mut attributes = ibv_qp_attr {
        qp_state: IBV_QPS_RTR,
        path_mtu: port.mtu.min(other.mtu).max(1).into(),
        dest_qp_num: other.number,
        rq_psn: other.psn,
        max_dest_rd_atomic: port.reads_as_target,
        min_rnr_timer: 12,
        ah_attr: address_of(port, other),
        ..ibv_qp_attr::default()
    };
    let mask = IBV_QP_STATE
        | IBV_QP_AV
        | IBV_QP_PATH_MTU
        | IBV_QP_DEST_QPN
        | IBV_QP_RQ_PSN
        | IBV_QP_MAX_DEST_RD_ATOMIC
        | IBV_QP_MIN_RNR_TIMER;
    pair.modify(&mut attributes, mask)
}

/// Brings a queue pair to RTS: it can send, from packet sequence number `psn` on. The other end
/// executes `reads` READs at once.
pub fn to_rts(port: &Port, pair: &QueuePair, psn: u32, reads: u8) -> Result<()> {
    let mut attributes = ibv_qp_attr {
        qp_state: IBV_QPS_RTS,
        timeout: TIMEOUT,
        retry_cnt: RETRIES,
        rnr_retry: RETRIES,
        sq_psn: psn,
        // The initiator's depth must not exceed the responder's.
        max_rd_atomic: port.reads_as_origin.min(reads).max(1),
        ..ibv_qp_attr::default()
    };
    let mask = IBV_QP_STATE
        | IBV_QP_TIMEOUT
        | IBV_QP_RETRY_CNT
        | IBV_QP_RNR_RETRY
        | IBV_QP_SQ_PSN
        | IBV_QP_MAX_QP_RD_ATOMIC;
    pair.modify(&mut attributes, mask)
}

/// The route to the other end: by its GID on Ethernet, by its LID within an InfiniBand subnet, and
/// by both where the LID alone does not lead there.
fn address_of(port: &Port, other: &VerbsEnd) -> ibv_ah_attr {
    let unicast = (1..0xc000).contains(&other.lid);
    let elsewhere = port.gid.0[..8] != other.gid.0[..8];
    let global = port.global || !unicast || elsewhere;
    let grh = ibv_global_route {
        dgid: other.gid.into(),
        sgid_index: port.gid_index,
        hop_limit: HOPS,
        ..ibv_global_route::default()
    };
    ibv_ah_attr {
        grh: if global { grh } else { ibv_global_route::default() },
        dlid: other.lid,
        is_global: global.into(),
        port_num: port.port,
        ..ibv_ah_attr::default()
    }
}

/// Makes the origin's queue pair, with inline data and several pieces of memory in a request if the
/// device allows them.
fn origins_pair(port: &Port, places: usize) -> Result<QueuePair> {
    let depth = places.to_u32().min(port.requests_max);
    // One completion queue for each queue pair: it never overflows, even when all requests fail at
    // once.
    let completions = Completions::new(&port.domain, depth + 1)?;
    let capacity = |inline, sges| ibv_qp_cap {
        max_send_wr: depth,
        max_recv_wr: 1,
        max_send_sge: sges,
        max_recv_sge: 1,
        max_inline_data: inline,
    };
    QueuePair::new(&completions, capacity(INLINE_BYTES, port.sges.0))
        .or_else(|_| QueuePair::new(&completions, capacity(0, 1)))
}

/// Makes the origin's end, whose first PSN is `psn`.
pub fn origin(port: &Port, places: usize, psn: u32) -> Result<(QueuePair, VerbsEnd)> {
    let pair = origins_pair(port, places)?;
    // The other end pings this one by an empty WRITE.
    to_init(port, &pair, IBV_ACCESS_REMOTE_WRITE)?;
    let end = VerbsEnd::new(port, &pair, psn);
    Ok((pair, end))
}

/// Connects the origin's end `own`, whose queue pair is `pair`, to the target's end.
pub fn finish(port: &Port, pair: &QueuePair, own: &VerbsEnd, other: &VerbsEnd) -> Result<()> {
    to_rtr(port, pair, other)?;
    to_rts(port, pair, own.psn, other.reads)
}

/// Makes the target's end for an origin. Its first PSN is `psn`, and its completions go to
/// `completions`.
pub fn accept(
    port: &Port,
    completions: &Arc<Completions>,
    origin: &VerbsEnd,
    psn: u32,
) -> Result<(QueuePair, VerbsEnd)> {
    let capacity = ibv_qp_cap {
        max_send_wr: 1,
        max_recv_wr: 1,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 0,
    };
    let pair = QueuePair::new(completions, capacity)?;
    let access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    to_init(port, &pair, access)?;
    to_rtr(port, &pair, origin)?;
    let end = VerbsEnd::new(port, &pair, psn);
    Ok((pair, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_arrives_as_it_was_sent() {
        let end = VerbsEnd {
            number: 0x0012_3456,
            psn: 0x00ab_cdef,
            order: DeviceOrder::ONE_AT_A_TIME,
            reads: 16,
            mtu: 5,
            lid: 0xbeef,
            gid: Gid(*b"0123456789abcdef"),
        };
        assert_eq!(VerbsEnd::from(&end.bytes()), end);
    }
}
