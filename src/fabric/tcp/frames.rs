//! Requests and answers as bytes, little endian. A request has [`REQUEST_BYTES`] bytes; those that
//! a WRITE carries follow it. An answer has [`ANSWER_BYTES`] bytes; those that a READ or an atomic
//! asked for follow it. Answers come in the order of their requests. The bytes of a long READ come
//! in several partial answers, and a last one without bytes says that all were read.
//!
//! | bytes  | contents of a request                                                     |
//! |--------|---------------------------------------------------------------------------|
//! | 0      | [`RequestKind`]                                                                  |
//! | 1      | 1 if the origin wants an answer, else 0                                   |
//! | 2, 3   | 0                                                                         |
//! | 4..8   | key of the memory                                                         |
//! | 8..16  | address                                                                   |
//! | 16..24 | WRITE and READ: length in bytes; atomics: what to add, or to compare with |
//! | 24..32 | compare-and-swap: the new value; add and ring: the address of the         |
//! |        | doorbell; else 0                                                          |
//!
//! | bytes  | contents of an answer                        |
//! |--------|----------------------------------------------|
//! | 0..4   | [`AnswerStatus`]                                   |
//! | 4..8   | number of the bytes that follow              |

/// Bytes of a request without its data.
pub const REQUEST_BYTES: usize = 32;
/// Bytes of an answer without its data.
pub const ANSWER_BYTES: usize = 8;
/// Bytes of the longest READ or WRITE.
pub const MESSAGE_BYTES_MAX: u32 = 1 << 30;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RequestKind {
    /// writes the bytes that follow
    Write = 1,
    /// reads bytes
    Read = 2,
    /// adds to a word
    Add = 3,
    /// changes a word if it holds an expected value
    CompareSwap = 4,
    /// nothing; its answer shows that the process is there
    Ping = 5,
    /// adds to a word and wakes the threads that sleep on a doorbell of the same memory; its answer
    /// has no data
    AddAndRing = 6,
}

/// A request, without the data of a WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpRequest {
    /// what it does
    pub kind: RequestKind,
    /// whether the origin wants an answer
    pub answered: bool,
    /// key of the memory
    pub key: u32,
    /// address of the memory
    pub at: u64,
    /// length, addend or expected value
    pub first: u64,
    /// new value, or address of a doorbell
    pub second: u64,
}

impl TcpRequest {
    /// Returns its bytes.
    pub fn bytes(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        (bytes[0], bytes[1]) = (self.kind as u8, u8::from(self.answered));
        bytes[4..8].copy_from_slice(&self.key.to_le_bytes());
        for (place, word) in bytes[8..].chunks_exact_mut(8).zip([self.at, self.first, self.second])
        {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Decodes received bytes, or returns `None` if no request has these bytes.
    pub fn from(bytes: &[u8; REQUEST_BYTES]) -> Option<TcpRequest> {
        let kind = match bytes[0] {
            1 => RequestKind::Write,
            2 => RequestKind::Read,
            3 => RequestKind::Add,
            4 => RequestKind::CompareSwap,
            5 => RequestKind::Ping,
            6 => RequestKind::AddAndRing,
            _ => return None,
        };
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let request = TcpRequest {
            kind,
            answered: bytes[1] == 1,
            key: u32::from_le_bytes(bytes[4..8].try_into().expect("4 bytes")),
            at: word(8),
            first: word(16),
            second: word(24),
        };
        let is_long = matches!(kind, RequestKind::Write | RequestKind::Read)
            && request.first > u64::from(MESSAGE_BYTES_MAX);
        // What this side would not have sent is no request: a stream that is out of step ends.
        (!is_long && request.bytes() == *bytes).then_some(request)
    }

    /// Number of bytes that follow the request.
    pub fn data_bytes(&self) -> u64 {
        if self.kind == RequestKind::Write { self.first } else { 0 }
    }
}

/// AnswerStatus of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum AnswerStatus {
    /// it is done
    Done = 0,
    /// the process does not expose this memory under this key
    NotExposed = 1,
    /// an atomic on an address that is not a multiple of 8
    Unaligned = 2,
    /// the bytes are no request
    NoRequest = 3,
    /// the process may not access a page of this memory, or nothing is there
    NoPermission = 4,
    /// it is in progress: after the bytes that follow, another answer comes
    Partial = 5,
}

impl AnswerStatus {
    /// Why a request was refused, in the words of libibverbs where it has some.
    pub fn reason(number: u32) -> &'static str {
        match number {
            _ if number == AnswerStatus::NotExposed as u32 => "remote access error",
            _ if number == AnswerStatus::Unaligned as u32 => "remote invalid request error",
            _ if number == AnswerStatus::NoPermission as u32 => "remote access error",
            _ if number == AnswerStatus::NoRequest as u32 => "it received no valid request",
            _ => "it sent an answer that is not valid",
        }
    }
}

/// An answer, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// outcome
    pub status: u32,
    /// number of the bytes that follow
    pub bytes: u32,
}

impl Answer {
    /// Makes the answer to a request.
    pub fn new(status: AnswerStatus, bytes: u32) -> Answer {
        Answer { status: status as u32, bytes }
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> [u8; ANSWER_BYTES] {
        let [a, b, c, d] = self.status.to_le_bytes();
        let [e, f, g, h] = self.bytes.to_le_bytes();
        [a, b, c, d, e, f, g, h]
    }

    /// Decodes received bytes.
    pub fn from([a, b, c, d, e, f, g, h]: [u8; ANSWER_BYTES]) -> Answer {
        let (status, bytes) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        Answer { status, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_arrives_as_it_was_sent() {
        let kinds = [
            RequestKind::Write,
            RequestKind::Read,
            RequestKind::Add,
            RequestKind::CompareSwap,
            RequestKind::Ping,
            RequestKind::AddAndRing,
        ];
        for (kind, answered) in kinds.into_iter().flat_map(|kind| [(kind, true), (kind, false)]) {
            let [at, first, second] = [u64::MAX - 6, 1 << 20, 5];
            let request = TcpRequest { kind, answered, key: 0x0102_0304, at, first, second };
            assert_eq!(TcpRequest::from(&request.bytes()), Some(request));
        }
        let answer = Answer::new(AnswerStatus::Unaligned, 77);
        assert_eq!(Answer::from(answer.bytes()), answer);
    }

    #[test]
    fn what_no_origin_sends_is_no_request() {
        let ping = TcpRequest {
            kind: RequestKind::Ping,
            answered: true,
            key: 0,
            at: 0,
            first: 0,
            second: 0,
        };
        for (at, value) in [(0, 0), (0, 7), (1, 2), (2, 1), (3, 9)] {
            let mut bytes = ping.bytes();
            bytes[at] = value;
            assert_eq!(TcpRequest::from(&bytes), None, "byte {at} is {value}");
        }
        let long = TcpRequest { kind: RequestKind::Read, first: 1 << 31, ..ping };
        assert_eq!(TcpRequest::from(&long.bytes()), None);
    }
}
