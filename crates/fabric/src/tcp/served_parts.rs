//! The parts of the answers that the target's end of a connection has to send.

use super::frames::AnswerStatus;

/// A part of an answer.
pub enum AnswerPart {
    /// bytes, and how many of them are sent
    Bytes(Vec<u8>, usize),
    /// exposed memory
    Memory(AnswerMemory),
}

/// Exposed memory that is sent from its place.
#[derive(Clone, Copy)]
pub struct AnswerMemory {
    /// key of the memory
    pub key: u32,
    /// its address
    pub at: u64,
    /// its length in bytes
    pub left: u64,
}

/// Why no answers were sent.
pub enum Stopped {
    /// the socket has no room
    Wait,
    /// the connection has ended
    Ended,
    /// memory of a READ cannot be read any more
    Refused(AnswerStatus),
}
