//! The ranks of the conformance suite on each transport of the library: threads of this process.
//! Each rank exposes memory to the others. Not for the laws, nor for the ranks of the simulator.

use crate::example::Example;
use crate::simple_parts::Each;
use crate::thread_words::{self, Heap, HeapWords};
use fompi_base::error::Result;
use fompi_base::rank_numbers::{Rank, RankOnNode};
use fompi_base::sync::{AtomicU32, AtomicU64, full_fence};
use fompi_fabric::cma::{Gathering, Process, SmallPuts};
use fompi_fabric::net::Serving;
use fompi_fabric::remote::{Addressed, Bytes, Network, Remote, Transport};
use fompi_fabric::remote_words::{Far, FarWait, Locate};
use fompi_fabric::shm::mapped;
use fompi_fabric::shm::words::Idle;
use fompi_fabric::test_processes as wire;
use fompi_fabric::{Way, WordAt, WordId};
use fompi_sys::futex;
use fompi_sys::life::{Life, Mark};
use fompi_sys::process;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, Barrier, OnceLock};
use std::time::{Duration, Instant};

pub use wire::turn;

/// Number of ranks of each case.
pub const RANKS: u32 = 3;

/// A rank that exposes memory, zero at first, and reaches that of the others.
pub trait Exposing {
    /// A rank as this one reaches it.
    type Peer: Bytes;
    /// Returns the number of this rank.
    fn rank(&self) -> u32;
    /// Returns the number of bytes that each rank exposes.
    fn bytes(&self) -> usize;
    /// Returns a rank, and the start of the memory that it exposes.
    fn reach(&self, rank: u32) -> (&Self::Peer, Remote);
    /// Stores into the memory of this rank.
    fn store(&self, at: usize, bytes: &[u8]);
    /// Loads from the memory of this rank.
    fn load(&self, at: usize, to: &mut [u8]);
    /// Waits until all ranks have called it.
    fn meet(&self);
}

/// Number of words in the memory of a [`Threaded`] rank.
const WORDS: usize = 4096;

/// A rank that is a thread of this process.
pub struct Threaded<P> {
    rank: u32,
    peers: Vec<(P, Remote)>,
    memory: Arc<[AtomicU64]>,
    met: Arc<Barrier>,
    /// makes progress on the requests of this rank
    progress: Box<dyn Fn() + Send + Sync>,
    /// lets the rank serve others while it waits
    serving: Box<dyn Fn() -> Option<Serving> + Send + Sync>,
}

impl<P> Threaded<P> {
    /// Returns the peer of a rank, and the memory that the rank exposes.
    pub fn peer(&self, rank: u32) -> &(P, Remote) {
        &self.peers[rank as usize]
    }

    fn base(&self) -> *mut u8 {
        self.memory.as_ptr().cast_mut().cast()
    }
}

impl<P: core::ops::Deref<Target: Bytes + Sized>> Exposing for Threaded<P> {
    type Peer = P::Target;

    fn rank(&self) -> u32 {
        self.rank
    }

    fn bytes(&self) -> usize {
        8 * WORDS
    }

    fn reach(&self, rank: u32) -> (&P::Target, Remote) {
        let (peer, memory) = &self.peers[rank as usize];
        (peer, *memory)
    }

    fn store(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.bytes());
        // SAFETY: inside of the memory, which other ranks do not access now.
        unsafe { self.base().add(at).copy_from(bytes.as_ptr(), bytes.len()) };
    }

    fn load(&self, at: usize, to: &mut [u8]) {
        assert!(at + to.len() <= self.bytes());
        // SAFETY: as in `store`.
        unsafe { self.base().add(at).copy_to(to.as_mut_ptr(), to.len()) };
    }

    fn meet(&self) {
        self.met.wait();
    }
}

fn memory() -> Arc<[AtomicU64]> {
    (0..WORDS).map(|_| AtomicU64::new(0)).collect()
}

/// Runs a case on ranks that are threads. All memory stays until all ranks are done.
fn threads<P: Send + Sync>(
    ranks: &[Threaded<P>],
    case: impl Fn(&Threaded<P>) + Copy + Send + Sync,
) {
    std::thread::scope(|scope| {
        for rank in ranks {
            scope.spawn(move || case(rank));
        }
    });
}

/// Ranks that reach each other's memory through peers without connections.
fn unconnected<P>(peer: impl Fn() -> P) -> Vec<Threaded<P>> {
    let (memories, met) = ([(); RANKS as usize].map(|()| memory()), barrier());
    let at = |memory: &Arc<[AtomicU64]>| Remote {
        at: memory.as_ptr().expose_provenance() as u64,
        key: 0,
    };
    (0..RANKS)
        .map(|rank| Threaded {
            rank,
            peers: memories.iter().map(|memory| (peer(), at(memory))).collect(),
            memory: memories[rank as usize].clone(),
            met: met.clone(),
            progress: Box::new(|| ()),
            serving: Box::new(|| None),
        })
        .collect()
}

fn barrier() -> Arc<Barrier> {
    Arc::new(Barrier::new(RANKS as usize))
}

type Connected<R> = Threaded<Arc<<R as Transport>::Peer>>;

/// Runs a case on ranks. Each rank opens a transport for itself, exposes memory, and connects to
/// all.
fn connected<R>(
    open: impl Fn() -> R,
    address: impl Fn(&R) -> R::Address,
    serving: fn(&R) -> Option<Serving>,
    case: impl Fn(&Connected<R>) + Copy + Send + Sync,
) where
    R: Transport + Send + Sync + 'static,
    R::Peer: Send + Sync,
{
    let met = barrier();
    let transports: Vec<Arc<R>> = (0..RANKS).map(|_| Arc::new(open())).collect();
    let memories: Vec<_> = transports.iter().map(|_| memory()).collect();
    let expose = |(transport, memory): (&Arc<R>, &Arc<[AtomicU64]>)| {
        transport.expose(memory.as_ptr().cast_mut().cast(), 8 * WORDS as u64).unwrap()
    };
    let exposed: Vec<R::Exposed> = transports.iter().zip(&memories).map(expose).collect();
    let rank_of = |(rank, transport): (usize, &Arc<R>)| {
        let connect = |(other, exposed): (&Arc<R>, &R::Exposed)| {
            (transport.connect(&address(other)), exposed.remote())
        };
        let (advancing, server) = (transport.clone(), transport.clone());
        Threaded {
            rank: rank as u32,
            peers: transports.iter().zip(&exposed).map(connect).collect(),
            memory: memories[rank].clone(),
            met: met.clone(),
            progress: Box::new(move || _ = advancing.progress()),
            serving: Box::new(move || serving(&server)),
        }
    };
    let ranks: Vec<Connected<R>> = transports.iter().enumerate().map(rank_of).collect();
    threads(&ranks, case);
}

/// Threads on the example transport.
pub fn example(case: impl Fn(&Connected<Example>) + Copy + Send + Sync) {
    connected(Example::open, |transport| transport.address.clone(), |_| None, case);
}

/// Threads, each with a simulated RDMA device.
pub fn fake_device(case: impl Fn(&Connected<wire::Wire>) + Copy + Send + Sync) {
    connected(wire::on_fake, wire::address, |_| None, case);
}

/// Threads, each with a simulated device whose READs overtake WRITEs.
pub fn write_after_write(case: impl Fn(&Connected<wire::Wire>) + Copy + Send + Sync) {
    connected(wire::on_write_after_write, wire::address, |_| None, case);
}

/// Threads, each with a simulated device that keeps no order.
pub fn unordered(case: impl Fn(&Connected<wire::Wire>) + Copy + Send + Sync) {
    connected(wire::on_unordered, wire::address, |_| None, case);
}

/// Threads, each with a service thread for TCP.
pub fn tcp(case: impl Fn(&Connected<wire::Wire>) + Copy + Send + Sync) {
    connected(wire::on_tcp, wire::address, wire::Wire::serving, case);
}

/// Threads, each with the RDMA device of this machine.
pub fn device(case: impl Fn(&Connected<wire::Wire>) + Copy + Send + Sync) {
    connected(wire::on_device, wire::address, |_| None, case);
}

/// Load and store, by the function that copies mapped window memory.
pub struct Mapped;

impl core::ops::Deref for Mapped {
    type Target = Mapped;

    fn deref(&self) -> &Mapped {
        self
    }
}

impl Bytes for Mapped {
    type Runs<'a> = Each<'a, Mapped>;

    unsafe fn put(&self, to: Remote, from: *const u8, bytes: u64) -> Result<()> {
        // SAFETY: memory of this process.
        unsafe {
            mapped::copy(core::ptr::with_exposed_provenance_mut(to.at as usize), from, bytes)
        };
        Ok(())
    }

    unsafe fn get(&self, to: *mut u8, from: Remote, bytes: u64) -> Result<()> {
        // SAFETY: as for `put`.
        unsafe { mapped::copy(to, core::ptr::with_exposed_provenance(from.at as usize), bytes) };
        Ok(())
    }

    fn runs(&self, within: Remote, way: Way) -> Each<'_, Mapped> {
        Each::new(self, within, way)
    }

    fn order(&self) {}

    fn flush(&self) -> Result<()> {
        full_fence();
        Ok(())
    }

    fn flush_local(&self) -> Result<()> {
        Ok(())
    }
}

/// Threads that map each other's memory.
pub fn mapped(case: impl Fn(&Threaded<Mapped>) + Copy + Send + Sync) {
    threads(&unconnected(|| Mapped), case);
}

/// This process, as another one of its node.
pub struct OwnProcess(Process<'static>);

impl core::ops::Deref for OwnProcess {
    type Target = Process<'static>;

    fn deref(&self) -> &Process<'static> {
        &self.0
    }
}

/// Threads whose memory process_vm copies.
pub fn process_vm(case: impl Fn(&Threaded<OwnProcess>) + Copy + Send + Sync) {
    threads(&unconnected(own_process), case);
}

/// Returns this process, as another one of its node reaches it.
pub fn own_process() -> OwnProcess {
    static LIFE: OnceLock<Life> = OnceLock::new();
    let life = LIFE.get_or_init(|| Life::new(Mark::of(process::id())));
    OwnProcess(Process::new(RankOnNode(0), life))
}

/// This process, as another one of its node, for which small puts are gathered.
pub struct OwnGathering(Gathering<'static>);

impl core::ops::Deref for OwnGathering {
    type Target = Gathering<'static>;

    fn deref(&self) -> &Gathering<'static> {
        &self.0
    }
}

/// Threads whose memory process_vm copies, with gathered small puts.
pub fn process_vm_gathered(case: impl Fn(&Threaded<OwnGathering>) + Copy + Send + Sync) {
    threads(&unconnected(own_process_gathered), case);
}

/// Returns this process, as another one of its node reaches it by small puts that are gathered.
pub fn own_process_gathered() -> OwnGathering {
    let small_puts = Some(&*Box::leak(Box::new(SmallPuts::default())));
    OwnGathering(Gathering { process: *own_process(), small_puts })
}

/// Threads that spin before they sleep.
pub fn shm_awake(case: impl Fn(&HeapWords) + Copy + Send + Sync) {
    shm(100, case);
}

/// Threads that sleep at once.
pub fn shm_asleep(case: impl Fn(&HeapWords) + Copy + Send + Sync) {
    shm(0, case);
}

fn shm(spins: u32, case: impl Fn(&HeapWords) + Copy + Send + Sync) {
    for _ in 0..20 {
        let heap = Heap::window(RANKS);
        std::thread::scope(|scope| {
            for rank in 0..RANKS {
                let words = thread_words::words(&heap, Rank(rank), spins);
                scope.spawn(move || case(&words));
            }
        });
    }
}

/// The words of ranks that are threads: at the start of their memory.
pub struct Located<'a, P> {
    of: &'a Threaded<P>,
    idle: Watched,
    wait: FarWait,
    /// whether the rank serves others while it waits
    serves: bool,
    /// the memory of ranks of the same node, which have the lowest numbers
    near: &'a [Arc<[AtomicU64]>],
}

/// [`Far`] over such words.
pub type FarWords<'a, R> = Far<Located<'a, Arc<<R as Transport>::Peer>>>;

impl<'a, N: Network> Locate for Located<'a, Arc<N>> {
    type Held = &'a N;
    type Idle = Watched;

    fn rank(&self) -> Rank {
        Rank(self.of.rank)
    }

    fn size(&self) -> u32 {
        RANKS
    }

    fn own(&self, word: WordId) -> &AtomicU64 {
        &self.of.memory[word.0 as usize]
    }

    fn mapped(&self, at: WordAt) -> Option<&AtomicU64> {
        let mapped = self.near.get(at.rank.0 as usize)?;
        Some(&mapped[at.word.0 as usize])
    }

    fn is_coherent(&self) -> bool {
        !self.near.is_empty()
    }

    fn find(&self, rank: Rank) -> Result<(&'a N, Remote)> {
        let (peer, words) = &self.of.peers[rank.0 as usize];
        Ok((peer, *words))
    }

    fn known(&self, rank: Rank) -> Option<&'a N> {
        Some(&self.of.peers[rank.0 as usize].0)
    }

    fn flush_all(&self, but: Option<Rank>) -> Result<()> {
        let peers = (0..).map(Rank).zip(&self.of.peers);
        peers.filter(|(rank, _)| Some(*rank) != but).try_for_each(|(_, (peer, _))| peer.flush())
    }

    fn wait(&self) -> FarWait {
        self.wait
    }

    fn serving(&self) -> Option<Serving> {
        if self.serves { (self.of.serving)() } else { None }
    }

    fn idle(&self) -> &Watched {
        &self.idle
    }

    fn progress(&self) {
        (self.of.progress)();
    }

    fn check(&self, _losses: &mut u64) -> Result<()> {
        Ok(())
    }
}

/// Waits that fail after a minute. A sleep has no other bound, so a lost wake-up is detected.
pub struct Watched;

const WATCHDOG: Duration = Duration::from_secs(60);

impl Idle for Watched {
    type Wait = Instant;

    fn begin(&self, _word: WordId) -> Instant {
        Instant::now()
    }

    fn end(&self, _wait: Instant) {}

    fn round(&self, _round: u32) {}

    fn progress(&self) {}

    fn check(&self, began: &mut Instant) -> Result<()> {
        assert!(began.elapsed() < WATCHDOG, "a word does not change");
        Ok(())
    }

    fn sleep(&self, doorbell: &AtomicU32, value: u32, _ns: u64) {
        let began = Instant::now();
        futex::wait(doorbell, value, WATCHDOG.as_nanos() as u64);
        assert!(began.elapsed() < WATCHDOG, "a wake-up was lost");
    }

    fn wake(&self, doorbell: &AtomicU32) {
        futex::wake(doorbell);
    }

    fn spins(&self) -> u32 {
        10
    }
}

fn far<R: Transport>(of: &Connected<R>, wait: FarWait) -> FarWords<'_, R> {
    Far(Located { of, idle: Watched, wait, serves: false, near: &[] })
}

/// The library's words between nodes, over the example transport.
pub fn far_over_example(case: impl Fn(&FarWords<'_, Example>) + Copy + Send + Sync) {
    example(|rank| case(&far::<Example>(rank, FarWait::Polls)));
}

/// The library's words between nodes, over simulated RDMA devices.
pub fn far_over_fake_device(case: impl Fn(&FarWords<'_, wire::Wire>) + Copy + Send + Sync) {
    fake_device(|rank| case(&far::<wire::Wire>(rank, FarWait::Polls)));
}

/// The library's words between nodes, over simulated devices whose READs overtake WRITEs.
pub fn far_over_write_after_write(case: impl Fn(&FarWords<'_, wire::Wire>) + Copy + Send + Sync) {
    write_after_write(|rank| case(&far::<wire::Wire>(rank, FarWait::Polls)));
}

/// The library's words between nodes, over simulated devices that keep no order.
pub fn far_over_unordered(case: impl Fn(&FarWords<'_, wire::Wire>) + Copy + Send + Sync) {
    unordered(|rank| case(&far::<wire::Wire>(rank, FarWait::Polls)));
}

/// The library's words between nodes, over TCP: a waiting rank sleeps at once.
pub fn far_over_tcp(case: impl Fn(&FarWords<'_, wire::Wire>) + Copy + Send + Sync) {
    tcp(|rank| case(&far::<wire::Wire>(rank, FarWait::Sleeps(Duration::ZERO))));
}

/// The library's words over TCP, where a waiting rank serves the others: at once, or after it has
/// spun for a time.
pub fn far_served_over_tcp(case: impl Fn(&FarWords<'_, wire::Wire>) + Copy + Send + Sync) {
    for spin in [Duration::ZERO, Duration::from_micros(50)] {
        tcp(|rank| {
            let wait = FarWait::Sleeps(spin);
            case(&Far(Located { of: rank, idle: Watched, wait, serves: true, near: &[] }));
        });
    }
}

/// The library's words over TCP, where two of the three ranks are on one node.
pub fn near_and_far_over_tcp(case: impl Fn(&FarWords<'_, wire::Wire>) + Copy + Send + Sync) {
    let memories: Mutex<BTreeMap<u32, Arc<[AtomicU64]>>> = Mutex::default();
    tcp(|rank| {
        memories.lock().insert(rank.rank, rank.memory.clone());
        rank.meet();
        let all: Vec<_> = memories.lock().values().cloned().collect();
        let near = if rank.rank < 2 { &all[..2] } else { &[] };
        let wait = FarWait::Sleeps(Duration::ZERO);
        case(&Far(Located { of: rank, idle: Watched, wait, serves: false, near }));
    });
}

/// The library's words between nodes, over the RDMA device of this machine.
pub fn far_over_device(case: impl Fn(&FarWords<'_, wire::Wire>) + Copy + Send + Sync) {
    device(|rank| case(&far::<wire::Wire>(rank, FarWait::Polls)));
}
