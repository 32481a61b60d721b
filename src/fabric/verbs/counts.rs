//! What the road counts: for tests, which hold it against formulas, and for people.

/// Operations of one connection by their kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// puts that were taken along with the request
    pub inline: u64,
    /// puts that were copied to a block first
    pub copied: u64,
    /// puts out of the user's memory
    pub lent: u64,
    /// gets
    pub gets: u64,
    /// gets that went through a block
    pub gets_copied: u64,
    /// atomics with an answer
    pub fetches: u64,
    /// atomics without
    pub posts: u64,
    /// READs of a word
    pub reads: u64,
    /// READs that a flush sent
    pub proofs: u64,
    /// empty WRITEs that ask whether a process answers
    pub pings: u64,
    /// requests that one of the above was split into, beyond the first
    pub pieces: u64,
    /// requests that had to wait for the answers of others
    pub fenced: u64,
    /// operations that had to wait until the queue had room
    pub waits: u64,
    /// answers, or ends of others, that were waited for: round trips one after the other
    pub awaited: u64,
    /// how often requests were handed to the device, one or a chain of them
    pub doorbells: u64,
}

impl Kinds {
    /// Adds what another connection did.
    pub fn add(&mut self, other: &Kinds) {
        let Kinds { inline, copied, lent, gets, gets_copied, fetches, posts, .. } = other;
        self.inline += inline;
        self.copied += copied;
        self.lent += lent;
        self.gets += gets;
        self.gets_copied += gets_copied;
        self.fetches += fetches;
        self.posts += posts;
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

/// What this process has and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// queue pairs as the origin: processes that were contacted
    pub contacted: u64,
    /// queue pairs as the target: processes that made contact
    pub accepted: u64,
    /// regions that are registered, without the blocks and answers of this process itself
    pub regions: u64,
    /// their bytes
    pub registered_bytes: u64,
    /// how often a buffer of the user was registered
    pub registrations: u64,
    /// operations of all connections
    pub kinds: Kinds,
}
