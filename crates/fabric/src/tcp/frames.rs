//! Requests and answers as bytes, little endian. A request has [`REQUEST_BYTES`] bytes; those that
//! a WRITE carries, or the operands of an accumulate, follow it. An answer has [`ANSWER_BYTES`]
//! bytes; those that a READ, an atomic or a fetching accumulate asked for follow it. Answers come
//! in the order of their requests. The bytes of a long READ or accumulate come in several partial
//! answers, and a last one without bytes says that these were all.
//!
//! | bytes  | contents of a request                                                     |
//! |--------|---------------------------------------------------------------------------|
//! | 0      | [`RequestKind`]                                                                  |
//! | 1      | 1: the origin wants an answer; 2: *guarded*; both: 3                      |
//! | 2      | compare-and-swap: bytes of the word (1, 2, 4, 8); accumulates: the number |
//! |        | of the operation; else 0                                                  |
//! | 3      | accumulates: the number of the type; else 0                               |
//! | 4..8   | key of the memory                                                         |
//! | 8..16  | address                                                                   |
//! | 16..24 | WRITE, READ, accumulates: length in bytes; atomics: what to add, or to    |
//! |        | compare with                                                              |
//! | 24..32 | compare-and-swap, take lock: the new value; add and ring: address of the  |
//! |        | doorbell; accumulates: [`Protection`]; over rows: plus 256 times the      |
//! |        | bytes of the rows; else 0                                                 |
//!
//! A request *over rows* is one for many blocks of memory. Their data follow it, if it carries any,
//! and then the [rows](crate::request_rows) of the blocks. Its answer has the data of all blocks.
//! It is carried out once all of its bytes have arrived.
//!
//! A *guarded* request is carried out only if the last compare-and-swap of its connection was
//! carried out and has changed its word; else the answer is [`AnswerStatus::Skipped`]. So an origin
//! takes a lock that is free, does something under it, and releases it, with one wait for all. A
//! compare-and-swap that is guarded itself takes a second lock, if the first one was free. A
//! guarded WRITE has at most [`GUARDED_BYTES_MAX`] bytes. Only WRITEs, additions and
//! compare-and-swaps are guarded.
//!
//! To *take a lock* is a compare-and-swap that the target repeats until it has changed the word.
//! Later requests of the connection wait for it. An addition to the same word releases the lock; if
//! the connection ends before that, the target does. The word [`SINGLES_BEHIND_ACC`] bytes behind
//! the lock says how the elements under it are changed ([`Protection::UnderLock`]).
//!
//! [`SINGLES_BEHIND_ACC`]: crate::layout::SINGLES_BEHIND_ACC
//!
//! A request for a page that the target's program has unmapped or protected is not carried out, or
//! only in part, and the connection goes on: the answer is [`AnswerStatus::NoPermission`]. For a
//! request that wants no answer it is [`AnswerStatus::NoPermissionBefore`], which comes ahead of
//! the answers of later requests. All other refusals end the connection.
//!
//! | bytes  | contents of an answer                        |
//! |--------|----------------------------------------------|
//! | 0..4   | [`AnswerStatus`]                                   |
//! | 4..8   | number of the bytes that follow              |

use crate::number::Number;
use crate::reduction::{Protection, Reduction};
use crate::request_rows::{DATA_BYTES_MAX, ROWS_BYTES_MAX};

/// Bytes of a request without its data.
pub const REQUEST_BYTES: usize = 32;
/// Bytes of an answer without its data.
pub const ANSWER_BYTES: usize = 8;
/// Bytes of the longest READ, WRITE or accumulate.
pub const MESSAGE_BYTES_MAX: u32 = 1 << 30;
/// Bytes of the longest guarded WRITE.
pub const GUARDED_BYTES_MAX: u64 = 8 << 10;

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
    /// combines elements with the operands that follow
    Accumulate = 7,
    /// combines elements with the operands that follow, and answers what the elements were before
    FetchAccumulate = 8,
    /// [`RequestKind::Write`] over rows
    WriteRows = 9,
    /// [`RequestKind::Read`] over rows
    ReadRows = 10,
    /// [`RequestKind::Accumulate`] over rows
    AccumulateRows = 11,
    /// [`RequestKind::FetchAccumulate`] over rows
    FetchAccumulateRows = 12,
    /// takes a lock; its answer has no data
    TakeLock = 13,
}

impl RequestKind {
    /// Whether it is over rows.
    #[inline]
    pub fn is_over_rows(self) -> bool {
        (RequestKind::WriteRows as u8..=RequestKind::FetchAccumulateRows as u8)
            .contains(&(self as u8))
    }

    /// Whether its answer has what was in the memory that it names.
    #[inline]
    pub fn fetches(self) -> bool {
        matches!(
            self,
            RequestKind::Read
                | RequestKind::Add
                | RequestKind::CompareSwap
                | RequestKind::FetchAccumulate
                | RequestKind::ReadRows
                | RequestKind::FetchAccumulateRows
        )
    }
}

/// What bytes 2 and 3 of a request say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// nothing
    Nothing,
    /// bytes of the word of a compare-and-swap
    Width(u8),
    /// the operation of an accumulate and the type of its elements
    Reduction(Reduction),
}

impl Detail {
    fn bytes(self) -> [u8; 2] {
        match self {
            Detail::Nothing => [0; 2],
            Detail::Width(bytes) => [bytes, 0],
            Detail::Reduction(reduction) => reduction.numbers(),
        }
    }

    /// Decodes what a request of this kind has there.
    fn of(kind: RequestKind, bytes: [u8; 2]) -> Option<Detail> {
        match (kind, bytes) {
            (RequestKind::CompareSwap, [width @ (1 | 2 | 4 | 8), 0]) => Some(Detail::Width(width)),
            (RequestKind::CompareSwap, _) => None,
            (
                RequestKind::Accumulate
                | RequestKind::FetchAccumulate
                | RequestKind::AccumulateRows
                | RequestKind::FetchAccumulateRows,
                _,
            ) => Reduction::from_numbers(bytes).map(Detail::Reduction),
            (_, [0, 0]) => Some(Detail::Nothing),
            _ => None,
        }
    }
}

/// A request, without the data that follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpRequest {
    /// what it does
    pub kind: RequestKind,
    /// whether the origin wants an answer
    pub answered: bool,
    /// whether it depends on the last compare-and-swap before it
    pub guarded: bool,
    /// what else there is to know of its kind
    pub detail: Detail,
    /// key of the memory
    pub key: u32,
    /// address of the memory
    pub at: u64,
    /// length, addend or expected value
    pub first: u64,
    /// new value, address of a doorbell, or number of a protection
    pub second: u64,
}

impl TcpRequest {
    /// Returns its bytes.
    #[inline]
    pub fn bytes(&self) -> [u8; REQUEST_BYTES] {
        let flags = u8::from(self.answered) | u8::from(self.guarded) << 1;
        let [a, b] = self.detail.bytes();
        let head = u32::from_le_bytes([self.kind as u8, flags, a, b]);
        let head = u64::from(head) | u64::from(self.key) << 32;
        let mut bytes = [0; REQUEST_BYTES];
        for (index, word) in [head, self.at, self.first, self.second].into_iter().enumerate() {
            bytes[8 * index..][..8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Decodes received bytes, or returns `None` if no request has these bytes.
    #[inline]
    pub fn from(bytes: &[u8; REQUEST_BYTES]) -> Option<TcpRequest> {
        let kind = match bytes[0] {
            1 => RequestKind::Write,
            2 => RequestKind::Read,
            3 => RequestKind::Add,
            4 => RequestKind::CompareSwap,
            5 => RequestKind::Ping,
            6 => RequestKind::AddAndRing,
            7 => RequestKind::Accumulate,
            8 => RequestKind::FetchAccumulate,
            9 => RequestKind::WriteRows,
            10 => RequestKind::ReadRows,
            11 => RequestKind::AccumulateRows,
            12 => RequestKind::FetchAccumulateRows,
            13 => RequestKind::TakeLock,
            _ => return None,
        };
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        // What this side would not have sent is no request: a stream that is out of step ends.
        if bytes[1] & !3 != 0 {
            return None;
        }
        let request = TcpRequest {
            kind,
            answered: bytes[1] & 1 != 0,
            guarded: bytes[1] & 2 != 0,
            detail: Detail::of(kind, [bytes[2], bytes[3]])?,
            key: u32::from_le_bytes(bytes[4..8].try_into().expect("4 bytes")),
            at: word(8),
            first: word(16),
            second: word(24),
        };
        request.is_sent().then_some(request)
    }

    /// Whether an origin sends such numbers.
    #[inline]
    fn is_sent(&self) -> bool {
        let short = self.first <= u64::from(MESSAGE_BYTES_MAX);
        match (self.kind, self.detail) {
            (RequestKind::Write, _) if self.guarded => self.first <= GUARDED_BYTES_MAX,
            (RequestKind::Write, _) => short,
            (RequestKind::Read, _) => short && !self.guarded,
            (RequestKind::Accumulate | RequestKind::FetchAccumulate, Detail::Reduction(what)) => {
                let elements = self.first > 0 && what.whole(self.first) == self.first;
                let has_answer = self.answered || self.kind == RequestKind::Accumulate;
                let protection = Protection::from_number(self.second);
                short && elements && has_answer && protection.is_some() && !self.guarded
            }
            (RequestKind::CompareSwap, Detail::Width(bytes)) => {
                let is_whole = |value: u64| bytes == 8 || value >> (8 * bytes) == 0;
                is_whole(self.first) && is_whole(self.second)
            }
            (RequestKind::Add, _) => true,
            _ if self.kind.is_over_rows() => self.is_sent_over_rows(),
            _ => !self.guarded,
        }
    }

    /// [`TcpRequest::is_sent`] of a request over rows.
    #[inline(never)]
    fn is_sent_over_rows(&self) -> bool {
        let sizes = [(self.first, DATA_BYTES_MAX), (self.rows_bytes(), ROWS_BYTES_MAX)];
        let is_short = sizes.iter().all(|(bytes, most)| (1..=most.to_u64()).contains(bytes));
        let has_answer = self.answered || !self.kind.fetches();
        is_short
            && has_answer
            && !self.guarded
            && match self.detail {
                Detail::Reduction(_) => self.protection().is_some(),
                _ => self.second & 0xff == 0,
            }
    }

    /// The protection of the elements of an accumulate.
    pub fn protection(&self) -> Option<Protection> {
        match self.kind.is_over_rows() {
            true => Protection::from_number(self.second & 0xff),
            false => Protection::from_number(self.second),
        }
    }

    /// Whether it is an accumulate with [`Protection::UnderLock`].
    #[inline]
    pub fn is_under_lock(&self) -> bool {
        matches!(self.detail, Detail::Reduction(_))
            && self.second & 0xff == Protection::UnderLock as u64
    }

    /// Replaces the protection by another one.
    pub fn set_protection(&mut self, protection: Protection) {
        self.second = self.second & !0xff | protection as u64;
    }

    /// Bytes of the rows of a request over rows.
    pub fn rows_bytes(&self) -> u64 {
        self.second >> 8
    }

    /// Number of bytes that follow the request; over rows, ahead of them.
    #[inline]
    pub fn data_bytes(&self) -> u64 {
        match (self.kind, self.detail) {
            (RequestKind::Write | RequestKind::WriteRows, _) => self.first,
            (_, Detail::Reduction(what)) if what.has_operands() => self.first,
            _ => 0,
        }
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
    /// an atomic on an address that is not a multiple of its bytes
    Unaligned = 2,
    /// the bytes are no request
    NoRequest = 3,
    /// the process may not access a page of this memory, or nothing is there
    NoPermission = 4,
    /// it is in progress: after the bytes that follow, another answer comes
    Partial = 5,
    /// a guarded request: the compare-and-swap ahead of it was skipped, or has not changed its word
    Skipped = 6,
    /// as `NoPermission`, of an earlier request that wants no answer: it answers none
    NoPermissionBefore = 7,
}

impl AnswerStatus {
    /// Why a request was refused, in the words of libibverbs where it has some.
    pub fn reason(number: u32) -> &'static str {
        match number {
            _ if number == AnswerStatus::NotExposed as u32 => "remote access error",
            _ if number == AnswerStatus::Unaligned as u32 => "remote invalid request error",
            _ if number == AnswerStatus::NoPermission as u32 => "remote access error",
            _ if number == AnswerStatus::NoRequest as u32 => "it received an invalid request",
            _ => "it sent an invalid answer",
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
    use crate::datatype::basic::Basic;
    use crate::datatype::reduce::Op;

    #[test]
    fn a_request_arrives_as_it_was_sent() {
        let sum = Detail::Reduction(Reduction::new(Op::Sum, Basic::F64).unwrap());
        let kinds = [
            (RequestKind::Write, Detail::Nothing, 5, true),
            (RequestKind::Read, Detail::Nothing, 5, false),
            (RequestKind::Add, Detail::Nothing, 5, true),
            (RequestKind::CompareSwap, Detail::Width(8), u64::MAX, true),
            (RequestKind::CompareSwap, Detail::Width(4), 5, true),
            (RequestKind::Ping, Detail::Nothing, 5, false),
            (RequestKind::AddAndRing, Detail::Nothing, 5, false),
            (RequestKind::Accumulate, sum, 1, false),
            (RequestKind::FetchAccumulate, sum, 2, false),
            (RequestKind::WriteRows, Detail::Nothing, 2 << 8, false),
            (RequestKind::ReadRows, Detail::Nothing, 8192 << 8, false),
            (RequestKind::AccumulateRows, sum, 2 << 8 | 1, false),
            (RequestKind::FetchAccumulateRows, sum, 9 << 8 | 2, false),
            (RequestKind::TakeLock, Detail::Nothing, 5, false),
        ];
        for (kind, detail, second, may_guard) in kinds {
            for (answered, guarded) in [(true, false), (false, false), (true, true)] {
                let [at, first] = [u64::MAX - 6, GUARDED_BYTES_MAX];
                let key = 0x0102_0304;
                let request =
                    TcpRequest { kind, answered, guarded, detail, key, at, first, second };
                let fetches = matches!(
                    kind,
                    RequestKind::FetchAccumulate
                        | RequestKind::ReadRows
                        | RequestKind::FetchAccumulateRows
                );
                let has_answer = answered || !fetches;
                let wanted = (has_answer && (may_guard || !guarded)).then_some(request);
                assert_eq!(TcpRequest::from(&request.bytes()), wanted);
            }
        }
        let answer = Answer::new(AnswerStatus::Unaligned, 77);
        assert_eq!(Answer::from(answer.bytes()), answer);
    }

    #[test]
    fn what_no_origin_sends_is_no_request() {
        let ping = TcpRequest {
            kind: RequestKind::Ping,
            answered: true,
            guarded: false,
            detail: Detail::Nothing,
            key: 0,
            at: 0,
            first: 0,
            second: 0,
        };
        for (at, value) in [(0, 0), (0, 14), (1, 2), (1, 4), (2, 1), (3, 9)] {
            let mut bytes = ping.bytes();
            bytes[at] = value;
            assert_eq!(TcpRequest::from(&bytes), None, "byte {at} is {value}");
        }
        let long = TcpRequest { kind: RequestKind::Read, first: 1 << 31, ..ping };
        assert_eq!(TcpRequest::from(&long.bytes()), None);
        let first = GUARDED_BYTES_MAX + 1;
        let long = TcpRequest { kind: RequestKind::Write, guarded: true, first, ..ping };
        assert_eq!(TcpRequest::from(&long.bytes()), None);
        let narrow = TcpRequest { kind: RequestKind::CompareSwap, ..ping };
        for (width, second) in [(0, 0), (3, 0), (16, 0), (1, 256), (4, 1 << 32)] {
            let narrow = TcpRequest { detail: Detail::Width(width), second, ..narrow };
            assert_eq!(TcpRequest::from(&narrow.bytes()), None, "{narrow:?}");
        }
    }

    #[test]
    fn a_request_over_rows_has_data_and_rows_in_bounds() {
        let sum = Detail::Reduction(Reduction::new(Op::Sum, Basic::F64).unwrap());
        let kinds = [
            (RequestKind::WriteRows, Detail::Nothing, 8),
            (RequestKind::ReadRows, Detail::Nothing, 0),
            (RequestKind::AccumulateRows, sum, 8),
            (RequestKind::FetchAccumulateRows, sum, 8),
        ];
        for (kind, detail, data) in kinds {
            let (answered, guarded, key) = (true, false, 1);
            let second = 5 << 8;
            let good = TcpRequest { kind, answered, guarded, detail, key, at: 8, first: 8, second };
            assert_eq!(TcpRequest::from(&good.bytes()), Some(good));
            assert_eq!((good.data_bytes(), good.rows_bytes()), (data, 5));
            let is_sent = |request: TcpRequest| TcpRequest::from(&request.bytes()).is_some();
            for (first, wanted) in [(0, false), (1, true), (8192, true), (8193, false)] {
                assert_eq!(is_sent(TcpRequest { first, ..good }), wanted, "{kind:?} {first}");
                let second = first << 8;
                assert_eq!(is_sent(TcpRequest { second, ..good }), wanted, "{kind:?} {first}");
            }
            let is_accumulate = detail != Detail::Nothing;
            assert!(!is_sent(TcpRequest { guarded: true, ..good }));
            assert_eq!(is_sent(TcpRequest { second: second | 1, ..good }), is_accumulate);
            assert!(!is_sent(TcpRequest { second: second | 4, ..good }));
        }
    }

    #[test]
    fn an_accumulate_has_whole_elements_of_an_operation_that_there_is() {
        let sum = |basic| Detail::Reduction(Reduction::new(Op::Sum, basic).unwrap());
        let good = TcpRequest {
            kind: RequestKind::Accumulate,
            answered: false,
            guarded: false,
            detail: sum(Basic::I32),
            key: 1,
            at: 8,
            first: 12,
            second: 0,
        };
        assert_eq!(TcpRequest::from(&good.bytes()), Some(good));
        let bad = [
            TcpRequest { detail: sum(Basic::F64), ..good },
            TcpRequest { first: 0, ..good },
            TcpRequest { first: 1 << 31, ..good },
            TcpRequest { second: 4, ..good },
        ];
        assert!(bad.iter().all(|bad| TcpRequest::from(&bad.bytes()).is_none()));
        for (op, basic) in [(Op::Band, Basic::F64), (Op::Sum, Basic::Packed)] {
            let mut bytes = good.bytes();
            (bytes[2], bytes[3]) = (op as u8, basic as u8);
            assert_eq!(TcpRequest::from(&bytes), None, "{op:?} of {basic:?}");
        }
    }
}
