//! Counts of this transport, which tests compare with formulas and people read.

/// Operations of one connection by their kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// puts with inline data
    pub inline: u64,
    /// puts that were copied into a block first
    pub copied: u64,
    /// puts from the user's memory
    pub lent: u64,
    /// gets
    pub gets: u64,
    /// gets through a block
    pub gets_copied: u64,
    /// atomics with an answer
    pub fetches: u64,
    /// atomics without an answer
    pub posts: u64,
    /// runs of accumulates that the target carries out
    pub accumulates: u64,
    /// READs of a word
    pub reads: u64,
    /// READs of flushes
    pub proofs: u64,
    /// pings: empty WRITEs that show whether a process is still there
    pub pings: u64,
    /// requests that an operation was split into, beyond the first one
    pub pieces: u64,
    /// requests that were fenced: they waited for the answers of earlier ones
    pub fenced: u64,
    /// operations that waited for room in the queue
    pub waits: u64,
    /// waits for an answer or a completion: round trips one after the other. A wait for a request
    /// that was posted before another wait began is not counted, because both waits pass at the
    /// same time
    pub awaited: u64,
    /// chains of requests that were posted; a single request is a chain of one
    pub doorbells: u64,
}

impl Kinds {
    /// Adds the counts of another connection.
    pub fn add(&mut self, other: &Kinds) {
        let Kinds { inline, copied, lent, gets, gets_copied, fetches, posts, accumulates, .. } =
            other;
        self.inline += inline;
        self.copied += copied;
        self.lent += lent;
        self.gets += gets;
        self.gets_copied += gets_copied;
        self.fetches += fetches;
        self.posts += posts;
        self.accumulates += accumulates;
        let Kinds { reads, proofs, pings, pieces, fenced, waits, awaited, doorbells, .. } = other;
        self.reads += reads;
        self.proofs += proofs;
        self.pings += pings;
        self.pieces += pieces;
        self.fenced += fenced;
        self.waits += waits;
        self.awaited += awaited;
        self.doorbells += doorbells;
    }
}

/// The counts of a process: its resources and its operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// queue pairs as the origin: processes that were contacted
    pub contacted: u64,
    /// queue pairs as the target: processes that made contact
    pub accepted: u64,
    /// registered regions, without the blocks and answers of this process itself
    pub regions: u64,
    /// bytes of these regions
    pub registered_bytes: u64,
    /// how often a buffer of the user was registered
    pub registrations: u64,
    /// operations of all connections
    pub kinds: Kinds,
}

impl Counts {
    /// Adds the counts of this process on another kind of device.
    pub fn add(&mut self, other: &Counts) {
        let Counts { contacted, accepted, regions, registered_bytes, registrations, kinds } = other;
        self.contacted += contacted;
        self.accepted += accepted;
        self.regions += regions;
        self.registered_bytes += registered_bytes;
        self.registrations += registrations;
        self.kinds.add(kinds);
    }
}

/// The rest of a queue after its end.
#[derive(Default)]
pub struct End {
    /// number of the last request that was done
    pub done: u64,
    /// its counts
    pub kinds: Kinds,
}
