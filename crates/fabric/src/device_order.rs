//! The order that a device keeps among the requests of one connection, and the order that the
//! library needs. A device declares which requests may overtake others ([`DeviceOrder`]). Where it
//! promises less than a step needs, the queue (`wire/queue.rs`) fences a request; no other code
//! depends on it.
//!
//! Each device promises this much:
//!
//! - Requests complete in their order, and a completed READ or atomic has stored its answer.
//! - A READ that begins when a WRITE has completed returns what that WRITE has written, and its own
//!   completion shows that the WRITE is in the target's memory.
//! - A fenced request, and each request after it, begins when all requests before it have
//!   completed. A device without a fence holds such a request back until then. Only requests that
//!   can be overtaken matter: the fence of verbs (`IBV_SEND_FENCE`) waits for READs and atomics,
//!   and nothing overtakes a WRITE of a reliable connection.
//!
//! These steps rely on an order, and no others. Changes are WRITEs and atomics.
//!
//! | step | order that it needs | without that promise |
//! |------|---------------------|----------------------|
//! | 1    | change after WRITE  | the change is fenced |
//! | 2    | READ after WRITE    | the READ is fenced   |
//! | 3    | any after READ      | the next is fenced   |
//! | 4    | change after atomic  | the change is fenced |
//! | 5    | READ after atomic   | the READ is fenced   |
//! | 6    | atomic after WRITE  | the atomic is fenced |
//! | 7    | READ after READ     | the READ is fenced   |
//! | 8    | READ after WRITE    | the READ is fenced   |
//! | 9    | READ or atomic after WRITE  | it proves nothing, and a flush sends a READ |
//!
//! 1. `order` after puts, then a change: the release of a lock (law 6), a `post` after data, the
//!    next accumulate of a rank that is alone at the target.
//! 2. `order` after puts, then a get or a read: an accumulate that reads what the one before it
//!    wrote.
//! 3. `order` after gets: a release after gets, a put to the location of a get.
//! 4. `order` after atomics, then a change: a swap after an addition without an answer.
//! 5. `order` after atomics, then a get or a read: elements that are read while their lock is being
//!    taken (law 9), the lock that is read after the change of a word.
//! 6. `order_puts`: the addition to a word, without an answer, of a rank that was alone at the
//!    target and has written the word.
//! 7. `order_reads`: the lock that is read after words.
//! 8. A flush after WRITEs: the READ proves that they are in memory.
//! 9. An answer that makes the proof of a flush unnecessary: it counts if its request is fenced, or
//!    could not overtake the WRITEs.
//!
//! The requests of a chain, the parts of a long message and the runs of a transfer need no order
//! among each other, nor do pings. The order of accumulates that the target carries out (law 22) is
//! a promise of such a device.

/// The later requests that may overtake an earlier one: a device may carry them out first, unless
/// one of them, or one between, is fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overtakers {
    /// none
    Nothing,
    /// READs
    Reads,
    /// WRITEs and atomics
    Changes,
    /// all
    All,
}

impl Overtakers {
    /// Whether READs are among them.
    pub const fn has_reads(self) -> bool {
        matches!(self, Overtakers::Reads | Overtakers::All)
    }

    /// Whether WRITEs and atomics are among them.
    pub const fn has_changes(self) -> bool {
        matches!(self, Overtakers::Changes | Overtakers::All)
    }
}

/// The order that a device keeps among the requests of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceOrder {
    /// what may overtake a WRITE
    pub writes: Overtakers,
    /// what may overtake a READ
    pub reads: Overtakers,
    /// what may overtake an atomic
    pub atomics: Overtakers,
}

impl DeviceOrder {
    /// The target carries out all requests in their order.
    pub const STRICT: DeviceOrder = DeviceOrder {
        writes: Overtakers::Nothing,
        reads: Overtakers::Nothing,
        atomics: Overtakers::Nothing,
    };
    /// A reliable connection of verbs (decision 0005).
    pub const RELIABLE: DeviceOrder = DeviceOrder {
        writes: Overtakers::Nothing,
        reads: Overtakers::Changes,
        atomics: Overtakers::All,
    };
    /// A reliable connection whose target carries out one request after the other, and a READ again
    /// if its answer is lost: Soft-RoCE.
    pub const ONE_AT_A_TIME: DeviceOrder =
        DeviceOrder { atomics: Overtakers::Nothing, ..DeviceOrder::RELIABLE };
    /// Changes among each other alone: `FI_ORDER_WAW` of libfabric.
    pub const WRITE_AFTER_WRITE: DeviceOrder = DeviceOrder {
        writes: Overtakers::Reads,
        reads: Overtakers::All,
        atomics: Overtakers::Reads,
    };
    /// None at all: `FI_ORDER_NONE` of libfabric.
    pub const NONE: DeviceOrder =
        DeviceOrder { writes: Overtakers::All, reads: Overtakers::All, atomics: Overtakers::All };
}
