//! The connection of two queue pairs: the data that both sides exchange, and the state changes of a
//! queue pair. The origin's end sends; the target's end only receives requests. Sockets are
//! elsewhere.
//!
//! | word | contents in a question and in its answer                             |
//! |------|----------------------------------------------------------------------|
//! | 0    | `MAGIC`                                                              |
//! | 1    | number of the sending process                                        |
//! | 2    | number of the queue pair (high half), of its first packet (low half) |
//! | 3    | `errno`, order, link layer, READs, path MTU, LID (16, 8, 8, 8, 8, 16 bits) |
//! | 4, 5 | GID                                                                  |

use super::link::Link;
use super::queue::{PLACES_MAX, Queue};
use super::{Core, device::Device};
use crate::error::{Error, Result};
use crate::fabric::contact::{self, BYTES, Contact, Secret};
use crate::sys::ibverbs::verbs::*;
use crate::sys::ibverbs::{Completions, Gid, QueuePair};
use crate::sys::is_shortage;

const MAGIC: u64 = u64::from_be_bytes(*b"fompi-v1");
/// Inline data of a request: enough for control words, single elements, small rows.
const INLINE_BYTES: u32 = 128;
/// Transport time-out (4.096 us * 2^18, one second, and up to four times that) and number of
/// retries. Not 7 retries, the largest number, because Soft-RoCE takes it as infinite.
const TIMEOUT: u8 = 18;
const RETRIES: u8 = 6;
const HOPS: u8 = 64;

/// One end of a connection, as the other end needs to know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// number of its process
    pub uid: u64,
    /// why the end could not be made, or 0
    pub errno: u16,
    pub number: u32,
    pub packet: u32,
    pub ethernet: bool,
    pub in_order: bool,
    pub reads: u8,
    pub mtu: u8,
    pub lid: u16,
    pub gid: Gid,
}

impl End {
    fn new(device: &Device, uid: u64, pair: &QueuePair, packet: u32) -> End {
        End {
            uid,
            errno: 0,
            number: pair.number(),
            packet,
            ethernet: device.ethernet,
            in_order: device.in_order,
            reads: device.reads_as_target,
            mtu: device.mtu,
            lid: device.lid,
            gid: device.gid,
        }
    }

    /// The end in the form in which it is sent.
    pub fn bytes(&self) -> [u8; BYTES] {
        let bits = u64::from(self.lid)
            | u64::from(self.mtu) << 16
            | u64::from(self.reads) << 24
            | u64::from(self.ethernet) << 32
            | u64::from(self.in_order) << 40
            | u64::from(self.errno) << 48;
        let number = u64::from(self.number) << 32 | u64::from(self.packet);
        let mut bytes = [0; BYTES];
        for (index, word) in [MAGIC, self.uid, number, bits].into_iter().enumerate() {
            bytes[8 * index..][..8].copy_from_slice(&word.to_le_bytes());
        }
        bytes[32..].copy_from_slice(&self.gid.0);
        bytes
    }

    /// Decodes received bytes, or returns `None` if they are not an end.
    pub fn from(bytes: &[u8; BYTES]) -> Option<End> {
        let word = |index: usize| {
            let bytes = bytes[8 * index..][..8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        };
        let bits = word(3);
        (word(0) == MAGIC).then(|| End {
            uid: word(1),
            errno: (bits >> 48) as u16,
            number: (word(2) >> 32) as u32,
            packet: word(2) as u32,
            ethernet: bits >> 32 & 1 != 0,
            in_order: bits >> 40 & 1 != 0,
            reads: (bits >> 24) as u8,
            mtu: (bits >> 16) as u8,
            lid: bits as u16,
            gid: Gid(bytes[32..].try_into().expect("sixteen bytes")),
        })
    }
}

/// Brings a queue pair to INIT, on both sides.
fn begin(device: &Device, pair: &QueuePair, access: ibv_access_flags) -> Result<()> {
    let mut attributes = ibv_qp_attr {
        qp_state: IBV_QPS_INIT,
        port_num: device.port,
        qp_access_flags: access,
        ..ibv_qp_attr::default()
    };
    pair.modify(
        &mut attributes,
        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
    )
}

/// Brings a queue pair to RTR: it receives requests of the other end.
fn receive(device: &Device, pair: &QueuePair, other: &End) -> Result<()> {
    let mut attributes = ibv_qp_attr {
        qp_state: IBV_QPS_RTR,
        path_mtu: device.mtu.min(other.mtu).max(1).into(),
        dest_qp_num: other.number,
        rq_psn: other.packet,
        max_dest_rd_atomic: device.reads_as_target,
        min_rnr_timer: 12,
        ah_attr: way(device, other),
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

/// Brings a queue pair to RTS: it can send, first a packet of number `packet`. The other end
/// executes `reads` READs at once.
pub fn send(device: &Device, pair: &QueuePair, packet: u32, reads: u8) -> Result<()> {
    let mut attributes = ibv_qp_attr {
        qp_state: IBV_QPS_RTS,
        timeout: TIMEOUT,
        retry_cnt: RETRIES,
        rnr_retry: RETRIES,
        sq_psn: packet,
        // The initiator's depth must not exceed the responder's.
        max_rd_atomic: device.reads_as_origin.min(reads).max(1),
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
fn way(device: &Device, other: &End) -> ibv_ah_attr {
    let unicast = (1..0xc000).contains(&other.lid);
    let elsewhere = device.gid.0[..8] != other.gid.0[..8];
    let global = device.global || !unicast || elsewhere;
    let grh = ibv_global_route {
        dgid: other.gid.into(),
        sgid_index: device.gid_index,
        hop_limit: HOPS,
        ..ibv_global_route::default()
    };
    ibv_ah_attr {
        grh: if global { grh } else { ibv_global_route::default() },
        dlid: other.lid,
        is_global: global.into(),
        port_num: device.port,
        ..ibv_ah_attr::default()
    }
}

/// Makes the origin's queue pair, with as much inline data as the device allows.
fn origins_pair(core: &Core) -> Result<QueuePair> {
    let domain = &core.device.domain;
    let depth = (PLACES_MAX as u32).min(core.device.requests_max);
    // One completion queue for each queue pair: it never overflows, even when all requests fail at
    // once.
    let completions = Completions::new(domain, depth + 1)?;
    let capacity = |inline| ibv_qp_cap {
        max_send_wr: depth,
        max_recv_wr: 1,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: inline,
    };
    QueuePair::new(&completions, capacity(INLINE_BYTES))
        .or_else(|_| QueuePair::new(&completions, capacity(0)))
}

/// Connects to the process of a contact, which may be this one. Both processes know the secret.
pub fn to(core: &Core, contact: &Contact, secret: Secret) -> Result<Queue> {
    let device = &core.device;
    let packet = core.random() as u32 & 0x00ff_ffff;
    // The other end pings this one by an empty WRITE.
    let access = IBV_ACCESS_REMOTE_WRITE;
    let pair = origins_pair(core).and_then(|pair| begin(device, &pair, access).map(|()| pair));
    let pair = pair.map_err(|error| local_error(contact, error))?;
    let origin = End::new(device, core.uid(), &pair, packet);
    let other = match contact.uid() == core.uid() {
        true => accept(core, &origin),
        false => {
            let read =
                |answer: &[u8; BYTES]| End::from(answer).filter(|end| end.uid == contact.uid());
            contact::exchange(&core.identity, contact, secret, &origin.bytes(), read)?
        }
    };
    if other.errno != 0 {
        let what = format!("it cannot make its end of the connection (errno {})", other.errno);
        return Err(contact.lost(what));
    }
    if other.ethernet != device.ethernet {
        return Err(contact.lost("one side is InfiniBand, the other RoCE"));
    }
    receive(device, &pair, &other)
        .and_then(|()| send(device, &pair, packet, other.reads))
        .map_err(|error| local_error(contact, error))?;
    let link = Link::new(pair, device.domain.device().library());
    Ok(Queue::new(link, other.in_order))
}

/// The error for a failure of this side: a shortage is an error of this call alone, because a later
/// call may succeed; any other failure means that the other process cannot be reached.
fn local_error(contact: &Contact, error: Error) -> Error {
    match error {
        Error::System { errno, .. } if is_shortage(errno) => error,
        error => contact.lost(error.to_string()),
    }
}

/// Makes the target's end for an origin. It stays as long as the origin answers.
pub fn accept(core: &Core, origin: &End) -> End {
    let make = || {
        let device = &core.device;
        let capacity = ibv_qp_cap {
            max_send_wr: 1,
            max_recv_wr: 1,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
        };
        let pair = QueuePair::new(core.accepted.completions(), capacity)?;
        let access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
        begin(device, &pair, access)?;
        receive(device, &pair, origin)?;
        let packet = core.random() as u32 & 0x00ff_ffff;
        let end = End::new(device, core.uid(), &pair, packet);
        core.accepted.add(pair, packet, origin.reads);
        Ok(end)
    };
    make().unwrap_or_else(|error| End {
        uid: core.uid(),
        errno: match error {
            Error::System { errno, .. } => errno as u16,
            _ => u16::MAX,
        },
        ethernet: core.device.ethernet,
        ..End::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_arrives_as_it_was_sent() {
        let end = End {
            uid: u64::MAX - 5,
            errno: 12,
            number: 0x0012_3456,
            packet: 0x00ab_cdef,
            ethernet: true,
            in_order: true,
            reads: 16,
            mtu: 5,
            lid: 0xbeef,
            gid: Gid(*b"0123456789abcdef"),
        };
        assert_eq!(End::from(&end.bytes()), Some(end));
        assert_eq!(End::from(&[0; BYTES]), None);
    }
}
