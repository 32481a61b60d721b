//! The road by its own operations. `cases` run on a device that is not there, always, and on a real
//! one where that is asked for: `cargo test verbs -- --ignored`, on a machine that has one. Several
//! [`Nic`]s of this process stand for several processes.

mod accepted;
mod cases;
mod contact;
mod device;
mod fake;
mod faked;
mod handshake;
mod incoming;
mod leases;
mod wire;
pub mod words;

use std::sync::Arc;

use super::device::Device;
use super::*;
use crate::config::Config;
use crate::fabric::Fetch;

/// How a test gets one more process.
pub type Open = fn() -> Nic;

/// What all processes of the tests know.
pub fn secret() -> Secret {
    Secret::from([3, 4])
}

/// One of them.
fn of_the_job(nic: Nic) -> Nic {
    nic.admit(secret());
    nic
}

/// A process on the device of this machine, or on those that TEST_DEVICES names, in turns.
pub fn on_device() -> Nic {
    static TURNS: AtomicU64 = AtomicU64::new(0);
    let mut settings = Config::get().verbs.clone();
    if let Ok(names) = std::env::var("TEST_DEVICES") {
        let names: Vec<&str> = names.split(',').collect();
        // Relaxed: only its being unique counts.
        let turn = TURNS.fetch_add(1, Ordering::Relaxed) as usize;
        settings.device = Some(names[turn % names.len()].to_owned());
    }
    of_the_job(Nic::open(&settings).unwrap())
}

/// One test at a time has the device.
pub fn turn() -> impl Drop {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock()
}

/// A process on a device that is not there.
pub fn on_fake() -> Nic {
    let settings = Verbs::default();
    of_the_job(Nic::on(Device::of(&fake::FAKE, &settings).unwrap(), &settings).unwrap())
}

/// A process with memory for others. The order of the fields is that in which they go.
pub struct Side {
    exposed: Exposed,
    nic: Nic,
    words: Box<[AtomicU64]>,
}

impl Side {
    /// One with so many words.
    pub fn new(open: Open, words: usize) -> Side {
        let words: Box<[AtomicU64]> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let nic = open();
        let bytes = 8 * words.len() as u64;
        let exposed = nic.expose(words.as_ptr().cast_mut().cast(), bytes).unwrap();
        Side { exposed, nic, words }
    }

    /// This process as another one sees it.
    pub fn seen_by(&self, nic: &Nic) -> Arc<Peer> {
        nic.peer(&self.nic.contact().unwrap(), secret())
    }

    /// Where word `index` is for others.
    pub fn at(&self, index: usize) -> Remote {
        self.exposed.remote().offset(8 * index as i64)
    }

    /// What this process sees in its memory.
    pub fn word(&self, index: usize) -> u64 {
        self.words[index].load(Ordering::Acquire)
    }
}

/// Processes that are waited for together.
pub fn together(peers: &[&Arc<Peer>]) -> Peers<usize> {
    let all = Peers::default();
    for (key, peer) in peers.iter().enumerate() {
        all.get(key, || Arc::clone(peer));
    }
    all
}

/// Puts a buffer that lives until it may be used again.
pub fn put(peer: &Peer, to: Remote, from: &[u64]) -> Result<()> {
    // SAFETY: the tests flush before they drop or change it.
    unsafe { peer.put(to, from.as_ptr().cast(), 8 * from.len() as u64) }
}

/// Gets into a buffer that nobody looks at before it has arrived.
pub fn get(peer: &Peer, to: &mut [u64], from: Remote) -> Result<()> {
    // SAFETY: likewise.
    unsafe { peer.get(to.as_mut_ptr().cast(), from, 8 * to.len() as u64) }
}

/// Whether nothing is under way. On a busy machine a wait may have reminded the device, and that
/// request still is; the next flush waits for it.
pub fn is_settled(peer: &Peer) -> bool {
    (0..10).any(|_| {
        let idle = peer.is_idle();
        peer.flush().unwrap();
        idle
    })
}

/// Numbers that are told apart.
pub fn numbers(count: usize, salt: u64) -> Vec<u64> {
    (0..count as u64).map(|index| (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt).collect()
}

/// Waits until what others do has come; a test that waits in vain fails.
pub fn until(what: &str, mut come: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !come() {
        assert!(start.elapsed().as_secs() < 120, "waited in vain: {what}");
        std::thread::yield_now();
    }
}
