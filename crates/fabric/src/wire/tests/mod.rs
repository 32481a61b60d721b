//! Tests of this transport by its own operations. The `cases` always run on a simulated device; on
//! a machine with a real one they run there, too: `cargo test -p fompi-fabric --lib -- --ignored`.
//! Several [`Wire`]s of this process stand for several processes.

/// Runs these cases on each kind of RDMA device.
macro_rules! rdma_cases {
    ($($case:ident)*) => {
        mod fake {
            $(#[test] fn $case() { super::$case(super::on_fake); })*
        }
        mod unordered {
            $(#[test] fn $case() { super::$case(super::on_unordered); })*
        }
        mod device {
            $(
                #[test]
                #[ignore = "needs an RDMA device"]
                fn $case() {
                    let _turn = super::turn();
                    super::$case(super::on_device);
                }
            )*
        }
    };
}

mod accepted;
mod bounce_buffers;
mod cases;
mod contact;
mod device;
mod faked;
mod gathered_rows;
mod orders;
mod origin_memory;
mod polling;
mod refused_requests;
mod results;
mod streamed;

use std::sync::Arc;

use super::counts::Counts;
use super::device::DeviceKind;
pub use super::test_processes::*;
pub use super::*;
use crate::Fetch;
use crate::config::{NetSettings, Verbs};
pub use crate::contact::tests::until;
pub use crate::contact::{Contact, Secret};
pub use crate::device_order::DeviceOrder;
pub use crate::error::{Class, Error, Result};
pub use crate::remote::{Addressed, BounceBuffer, Bytes, Network, Remote, Transport};
use crate::sync::{AtomicU64, Ordering};
use crate::verbs::fake_device::profile::Profile;

/// Makes one more process for a test.
pub type Open = fn() -> Wire;

/// A process with memory for others. The fields are dropped in their order.
pub struct Side {
    exposed: Exposed,
    wire: Wire,
    words: Box<[AtomicU64]>,
}

impl Side {
    /// Makes a process with `words` words.
    pub fn new(open: Open, words: usize) -> Side {
        let words: Box<[AtomicU64]> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let wire = open();
        let bytes = 8 * words.len() as u64;
        let exposed = wire.expose(words.as_ptr().cast_mut().cast(), bytes).unwrap();
        Side { exposed, wire, words }
    }

    /// Returns the peer for this process at another one.
    pub fn seen_by(&self, wire: &Wire) -> Arc<Peer> {
        wire.connect(&address(&self.wire))
    }

    /// Address of word `index` for other processes.
    pub fn at(&self, index: usize) -> Remote {
        self.exposed.remote().offset(8 * index as i64)
    }

    /// Value of word `index` in this process.
    pub fn word(&self, index: usize) -> u64 {
        self.words[index].load(Ordering::Acquire)
    }
}

/// Collects peers that are waited for together.
pub fn together(peers: &[&Arc<Peer>]) -> Peers<usize> {
    let all = Peers::default();
    for (key, peer) in peers.iter().enumerate() {
        all.get(key, || Arc::clone(peer));
    }
    all
}

/// Puts a buffer. The test keeps it until it may be used again.
pub fn put(peer: &Peer, to: Remote, from: &[u64]) -> Result<()> {
    // SAFETY: the tests flush before they drop or change it.
    unsafe { peer.put(to, from.as_ptr().cast(), 8 * from.len() as u64) }
}

/// Gets into a buffer. The test reads it only after the data have arrived.
pub fn get(peer: &Peer, to: &mut [u64], from: Remote) -> Result<()> {
    // SAFETY: the tests flush before they drop or read it.
    unsafe { peer.get(to.as_mut_ptr().cast(), from, 8 * to.len() as u64) }
}

/// Whether nothing is under way. On a busy machine a wait may have sent a ping that is still under
/// way; the next flush waits for it.
pub fn is_settled(peer: &Peer) -> bool {
    (0..10).any(|_| {
        let idle = peer.is_idle();
        peer.flush().unwrap();
        idle
    })
}

/// Returns distinct numbers.
pub fn numbers(count: usize, salt: u64) -> Vec<u64> {
    (0..count as u64).map(|index| (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt).collect()
}
