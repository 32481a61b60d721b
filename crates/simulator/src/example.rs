//! An example of a transport between nodes, to copy for a new one: the processes are threads of one
//! process. Each [`Example`] has a service thread, which executes the requests of the others in the
//! order in which they arrive, so that `order` has nothing to do (law 13). A flush is a request,
//! too, and waits for its answer (law 11). A real transport also needs the connection, over which
//! requests and answers travel as bytes. It passes the suite of `conformance`.

use super::simple_parts::{Copied, Each};
use core::ops::Range;
use core::ptr;
use fompi_base::error::{Error, Result};
use fompi_base::rank_numbers::Rank;
use fompi_base::sync::{AtomicU64, Ordering};
use fompi_fabric::reduction::Reduction;
use fompi_fabric::remote::{
    AccumulateAt, Addressed, AtTarget, Bytes, LockAnswers, LockAt, Network, Portions, PutAt,
    Remote, Transport,
};
use fompi_fabric::shm::{mapped, words};
use fompi_fabric::{Fetch, Way};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The memory that a process exposes, by its keys less one. Keys are not used again.
type Table = Arc<Mutex<Vec<Option<Range<u64>>>>>;

/// A request: what to do, where, and where the answer goes.
pub struct Request(Work, Remote, Option<Sender<Result<u64>>>);

enum Work {
    Put(Vec<u8>),
    Get(*mut u8, u64),
    Change(Fetch),
    Read,
    Flush,
}

// SAFETY: the buffer of a get belongs to the request until it is executed (law 10).
unsafe impl Send for Work {}

/// A process: the way to its service thread, and the memory that it exposes.
pub struct Example {
    /// where its requests are sent
    pub address: Sender<Request>,
    table: Table,
}

impl Example {
    /// Starts the service thread of a process, which ends when no way to it is left.
    pub fn open() -> Example {
        let ((address, requests), table) = (channel(), Table::default());
        let exposed = table.clone();
        std::thread::spawn(move || serve(&requests, &exposed));
        Example { address, table }
    }
}

/// Executes requests until no process can send one. The error of a request without an answer is the
/// answer of the next request that has one (law 16).
fn serve(requests: &Receiver<Request>, table: &Table) {
    let mut failed = Ok(0);
    for Request(work, at, answer) in requests {
        // The lock is held meanwhile: memory is not concealed in the middle of a request.
        let done = execute(work, at, &table.lock());
        failed = failed.and(done);
        if let Some(answer) = answer {
            let _ = answer.send(core::mem::replace(&mut failed, Ok(0)));
        }
    }
}

/// Executes one request. The process itself checks each address, whatever the origin has checked.
fn execute(work: Work, at: Remote, exposed: &[Option<Range<u64>>]) -> Result<u64> {
    let bytes = match &work {
        Work::Put(from) => from.len() as u64,
        Work::Get(_, bytes) => *bytes,
        Work::Change(_) | Work::Read => 8,
        Work::Flush => return Ok(0),
    };
    let region = exposed.get(at.key.wrapping_sub(1) as usize).and_then(Option::as_ref);
    let fits = |region: &&Range<u64>| region.start <= at.at && at.at + bytes <= region.end;
    region.filter(fits).ok_or(Error::Fault { rank: Rank::FIRST, address: at.at })?;
    let there = ptr::with_exposed_provenance_mut::<u8>(at.at as usize);
    // SAFETY: the process has exposed these bytes, and nothing else uses the buffer of a get. The
    // caller of `Network` makes sure that words are aligned.
    unsafe {
        match work {
            Work::Put(from) => mapped::copy(there, from.as_ptr(), bytes),
            Work::Get(to, _) => mapped::copy(to, there, bytes),
            Work::Change(op) => return Ok(words::fetch(&*there.cast::<AtomicU64>(), op)),
            // Acquire: as for any answer.
            Work::Read => return Ok((*there.cast::<AtomicU64>()).load(Ordering::Acquire)),
            Work::Flush => {}
        }
    }
    Ok(0)
}

/// Memory that a process exposes.
pub struct Shown(Table, Remote);

impl Addressed for Shown {
    fn remote(&self) -> Remote {
        self.1
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.lock()[self.1.key as usize - 1] = None;
    }
}

impl Transport for Example {
    type Peer = ExamplePeer;
    type Exposed = Shown;
    type Address = Sender<Request>;

    fn expose(&self, base: *mut u8, bytes: u64) -> Result<Shown> {
        let (mut table, at) = (self.table.lock(), base.expose_provenance() as u64);
        table.push(Some(at..at + bytes));
        Ok(Shown(self.table.clone(), Remote { at, key: table.len() as u64 }))
    }

    fn progress(&self) -> u64 {
        0 // the other process is never lost
    }

    fn connect(&self, address: &Sender<Request>) -> Arc<ExamplePeer> {
        Arc::new(ExamplePeer(address.clone()))
    }
}

/// The service thread of a process, as another process reaches it.
pub struct ExamplePeer(Sender<Request>);

impl ExamplePeer {
    fn send(&self, work: Work, at: Remote, answer: Option<Sender<Result<u64>>>) {
        // The service thread runs until all senders are dropped, so it runs now.
        self.0.send(Request(work, at, answer)).unwrap_or_else(|_| unreachable!());
    }

    fn ask(&self, work: Work, at: Remote) -> Receiver<Result<u64>> {
        let (sender, answer) = channel();
        self.send(work, at, Some(sender));
        answer
    }
}

impl Bytes for ExamplePeer {
    type Runs<'a> = Each<'a, ExamplePeer>;

    unsafe fn put(&self, to: Remote, from: *const u8, bytes: u64) -> Result<()> {
        if bytes > 0 {
            // SAFETY: guaranteed by the caller.
            let bytes = unsafe { core::slice::from_raw_parts(from, bytes as usize) };
            self.send(Work::Put(bytes.to_vec()), to, None);
        }
        Ok(())
    }

    unsafe fn get(&self, to: *mut u8, from: Remote, bytes: u64) -> Result<()> {
        if bytes > 0 {
            self.send(Work::Get(to, bytes), from, None);
        }
        Ok(())
    }

    fn runs(&self, within: Remote, way: Way) -> Each<'_, ExamplePeer> {
        Each::new(self, within, way)
    }

    fn order(&self) {}

    fn flush(&self) -> Result<()> {
        self.finish(self.ask(Work::Flush, Remote::default())).map(|_| ())
    }
}

impl Network for ExamplePeer {
    type Ticket = Receiver<Result<u64>>;
    type BounceBuffer<'a> = Copied<'a, ExamplePeer>;
    type AtTarget = NoWay;
    const WORDS_MAX: usize = 64;

    fn at_target(&self) -> Option<&NoWay> {
        None
    }

    fn begin(&self, at: Remote, op: Fetch) -> Result<Self::Ticket> {
        Ok(self.ask(Work::Change(op), at))
    }

    fn begin_read(&self, at: Remote) -> Result<Self::Ticket> {
        Ok(self.ask(Work::Read, at))
    }

    fn finish(&self, ticket: Self::Ticket) -> Result<u64> {
        ticket.recv().expect("each request is answered")
    }

    fn post(&self, at: Remote, add: u64) -> Result<()> {
        self.send(Work::Change(Fetch::Add(add)), at, None);
        Ok(())
    }

    fn bounce_buffer(&self) -> Copied<'_, ExamplePeer> {
        Copied::new(self)
    }
}

/// The [`AtTarget`] of a transport without one; the type has no value. The transports of the
/// library share a type of peers, so only the transports of tests need it.
pub enum NoWay {}

impl AtTarget for NoWay {
    unsafe fn transfer(&self, _: Way, _: &Portions<'_>) -> Result<()> {
        match *self {}
    }

    unsafe fn accumulate(&self, _call: &AccumulateAt<'_>) -> Result<()> {
        match *self {}
    }

    unsafe fn accumulate_one(&self, _: Reduction, _: Remote, _: *const u8) -> Result<()> {
        match *self {}
    }

    fn locking(&self) -> &Mutex<()> {
        match *self {}
    }

    fn take_lock(&self, _: LockAt) -> Result<()> {
        match *self {}
    }

    fn release_lock(&self, _: LockAt) -> Result<()> {
        match *self {}
    }

    unsafe fn put_under(&self, _: &[PutAt], _: &[LockAt], _: bool) -> Result<LockAnswers> {
        match *self {}
    }

    unsafe fn compare_and_swap(
        &self,
        _word: (Remote, u8),
        _values: (u64, u64),
        _result: *mut u8,
    ) -> Result<()> {
        match *self {}
    }
}
