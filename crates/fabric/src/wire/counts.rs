//! Counts of this transport, which tests compare with formulas and people read.

/// Defines counts, and how those of another connection or device are added to them.
macro_rules! counts {
    ($(#[$doc:meta])* $name:ident { $($(#[$meaning:meta])* $count:ident,)* }
        $($(#[$of:meta])* $part:ident: $type:ident)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$meaning])* pub $count: u64,)*
            $($(#[$of])* pub $part: $type,)?
        }

        impl $name {
            /// Adds other counts of this kind.
            pub fn add(&mut self, other: &$name) {
                $(self.$count += other.$count;)*
                $(self.$part.add(&other.$part);)?
            }
        }
    };
}

counts! {
    /// Operations of one connection by their kind.
    Kinds {
        /// puts with inline data
        inline,
        /// puts that were copied into a block first
        copied,
        /// puts from the user's memory
        lent,
        /// gets
        gets,
        /// gets through a block
        gets_copied,
        /// atomics with an answer
        fetches,
        /// atomics without an answer
        posts,
        /// runs of accumulates that the target carries out
        accumulates,
        /// READs of a word
        reads,
        /// READs of flushes
        proofs,
        /// pings: empty WRITEs that show whether a process is still there
        pings,
        /// requests that an operation was split into, beyond the first one
        pieces,
        /// requests that were fenced: they waited for the answers of earlier ones
        fenced,
        /// operations that waited for room in the queue
        waits,
        /// waits for an answer or a completion: round trips one after the other. A wait for a
        /// request that was posted before another wait began is not counted, because both waits
        /// pass at the same time
        awaited,
        /// chains of requests that were posted; a single request is a chain of one
        doorbells,
    }
}

counts! {
    /// The counts of a process: its resources and its operations.
    Counts {
        /// queue pairs as the origin: processes that were contacted
        contacted,
        /// queue pairs as the target: processes that made contact
        accepted,
        /// registered regions, without the blocks and answers of this process itself
        regions,
        /// bytes of these regions
        registered_bytes,
        /// how often a buffer of the user was registered
        registrations,
    }
    /// operations of all connections
    kinds: Kinds
}

/// The rest of a queue after its end.
#[derive(Default)]
pub struct End {
    /// number of the last request that was done
    pub done: u64,
    /// its counts
    pub kinds: Kinds,
}
