//! The first segment of an arena. Rank 0 makes it, and the others map it. The ranks determine here
//! whether they can open each other's files through /proc, must request them from each other
//! (`sys::passing`), or share no memory. `records` has the layout of the segment.
//!
//! Permission need not be mutual, and each rank makes segments later. So a rank whose credentials
//! differ from those of rank 0 requests files, even if it could open the file of rank 0.

use crate::error::{Error, Result};
use crate::mpi::Host;
use crate::mpi::comm::Comm;
use crate::rank_numbers::RankOnNode;
use crate::report::Why;
use crate::report::collective_outcome::{self, CAUSE_ELSEWHERE};
use crate::sys::passing::{self, KeyWords};
use crate::sys::process;
use crate::sys::segment::{Mapping, Name, Segment};
use std::cell::Cell;

/// The first segment, as rank 0 has announced it.
pub struct FirstSegment {
    /// on rank 0: its own segment, open until all ranks have mapped it, or why there is none
    own: Option<Result<Segment>>,
    name: Name,
    bytes: u64,
    rights: u64,
    machine: u64,
    key: KeyWords,
    passed: Cell<bool>,
}

impl FirstSegment {
    /// Rank 0 makes a segment of `bytes` bytes, and all ranks learn its name. Collective.
    pub fn announce(host: &Host, comm: Comm, rank: RankOnNode, bytes: u64) -> Result<FirstSegment> {
        let made = || {
            let segment = Segment::create(bytes)?;
            segment.reserve(0, bytes)?;
            Ok(segment)
        };
        let own = (rank == RankOnNode::LEADER).then(made);
        let mut words = [0; 9];
        if let Some(Ok(segment)) = &own {
            words[..5].copy_from_slice(&segment.name().to_words());
            words[5..7].copy_from_slice(&[rights(), machine()]);
            words[7..].copy_from_slice(&passing::own_key());
        }
        comm.broadcast(host, &mut words)?;
        let [name @ .., rights, machine, low, high] = words;
        let (name, key) = (Name::from_words(&name), [low, high]);
        Ok(FirstSegment { own, name, bytes, rights, machine, key, passed: Cell::new(false) })
    }

    /// Maps the segment on all ranks, or returns the reason why they cannot. Collective.
    pub fn share(&self, host: &Host, comm: Comm) -> Result<core::result::Result<Mapping, Why>> {
        let seen = self.map().and_then(|mapping| match self.rights == rights() {
            true => Ok(mapping),
            false => Err(CAUSE_ELSEWHERE),
        });
        let seen = seen.map_err(|error| Why::no_segment(&error));
        let seen = collective_outcome::none_has_reasons(host, comm, seen)?;
        if !matches!(seen, Err(Why::NoTransport)) || !comm.all(host, self.machine == machine())? {
            return Ok(seen);
        }
        let serves = passing::serve().map_err(|error| Why::no_segment(&error));
        if let Err(why) = collective_outcome::none_has_reasons(host, comm, serves)? {
            return Ok(Err(why));
        }
        self.passed.set(true);
        passing::learn(self.key);
        let passed = self.map().map_err(|error| Why::no_segment(&error));
        collective_outcome::none_has_reasons(host, comm, passed)
    }

    /// Whether the ranks request files from each other.
    pub fn is_passed(&self) -> bool {
        self.passed.get()
    }

    fn map(&self) -> Result<Mapping> {
        match &self.own {
            Some(Ok(segment)) => segment.map(),
            Some(Err(error)) => Err(Error::clone(error)),
            None if self.name.bytes != self.bytes => Err(CAUSE_ELSEWHERE),
            None => Segment::open(&self.name)?.map(),
        }
    }
}

/// Returns a number that processes have in common if they may open each other's files by /proc.
fn rights() -> u64 {
    let mut bytes = process::place();
    bytes.extend(process::user().to_le_bytes());
    process::number_of(&bytes)
}

/// Returns a number that processes have in common if they reach each other's sockets.
fn machine() -> u64 {
    process::number_of(&process::machine())
}
