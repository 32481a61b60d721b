//! A request over rows that a target carries out, once all of its bytes have arrived. Each row is
//! checked before its blocks are used. Invariant: the blocks that a request moves have as many
//! bytes together as it says, so their number has a bound.

use core::ptr;

use super::exposures::ExposedMemory;
use super::frames::{ANSWER_BYTES, Answer, AnswerStatus, Detail, RequestKind, TcpRequest};
use super::page_probes::PageAccess;
use crate::number::Number;
use crate::packing::{pack, unpack};
use crate::reduction::{Protection, Reduction};
use crate::request_rows::{DATA_BYTES_MAX, LISTED_MAX, RowBlocks, RowReader};
use crate::sync::full_fence;

/// Bytes of answers for which there is room behind the first one of a series.
const SERIES_BYTES: usize = 8 * (DATA_BYTES_MAX + ANSWER_BYTES);

/// What is done with each block.
#[derive(Clone, Copy)]
enum BlockWork {
    Write,
    Read,
    Accumulate(Reduction, Protection),
}

impl BlockWork {
    fn of(request: &TcpRequest) -> Option<BlockWork> {
        Some(match (request.kind, request.detail) {
            (RequestKind::WriteRows, _) => BlockWork::Write,
            (RequestKind::ReadRows, _) => BlockWork::Read,
            (_, Detail::Reduction(what)) => BlockWork::Accumulate(what, request.protection()?),
            _ => return None,
        })
    }

    fn access(self) -> PageAccess {
        match self {
            BlockWork::Write => PageAccess::Store,
            BlockWork::Accumulate(what, _) if what.has_operands() => PageAccess::Store,
            BlockWork::Read | BlockWork::Accumulate(..) => PageAccess::Load,
        }
    }

    /// Fails if a request cannot have these blocks.
    fn check(self, blocks: &RowBlocks<'_>) -> Result<(), AnswerStatus> {
        let BlockWork::Accumulate(what, protection) = self else { return Ok(()) };
        if what.whole(blocks.bytes()) != blocks.bytes() {
            return Err(AnswerStatus::NoRequest);
        }
        // The second block of a row is aligned only if the distance is, and then so are the others.
        let checked = match blocks {
            RowBlocks::Row(row) => row.blocks.min(2),
            RowBlocks::Listed(..) => blocks.count(),
        };
        match (0..checked).all(|n| what.fits(protection, blocks.place(n))) {
            true => Ok(()),
            false => Err(AnswerStatus::Unaligned),
        }
    }

    /// Moves or combines blocks of `bytes` bytes at the addresses that `place` returns.
    ///
    /// # Safety
    /// The blocks may be accessed so. `data` and `result` have room for their data, where they are
    /// used.
    unsafe fn carry_out(
        self,
        (bytes, blocks): (usize, usize),
        place: impl Fn(usize) -> u64,
        data: *const u8,
        result: Option<*mut u8>,
    ) {
        let place = |n: usize| ptr::with_exposed_provenance_mut::<u8>(place(n).to_usize());
        // SAFETY: guaranteed by the caller.
        unsafe {
            match (self, result) {
                (BlockWork::Write, _) => unpack(data, (bytes, blocks), place),
                (BlockWork::Read, Some(to)) => pack(to, (bytes, blocks), |n| place(n).cast_const()),
                (BlockWork::Read, None) => unreachable!("a READ has an answer"),
                (BlockWork::Accumulate(what, protection), _) => {
                    let combine = protection.combine();
                    let count = what.elements(bytes.to_u64()).to_usize();
                    for n in 0..blocks {
                        let old = result.map(|result| result.wrapping_add(n * bytes));
                        let operands = data.wrapping_add(n * bytes);
                        combine(what.op(), what.basic(), place(n), operands, old, count);
                    }
                }
            }
        }
    }
}

/// Carries out a request over rows, with the bytes that follow it. The answer, with the data of the
/// blocks, is appended to `answers`, if the request fetches.
pub fn carry_out(
    memory: &ExposedMemory<'_>,
    request: &TcpRequest,
    bytes: &[u8],
    answers: Option<&mut Vec<u8>>,
) -> Result<(), AnswerStatus> {
    let work = BlockWork::of(request).ok_or(AnswerStatus::NoRequest)?;
    let Some(answers) = answers else { return each_row(memory, request, work, bytes, None) };
    let (before, bytes_max) = (answers.len(), request.first.to_usize());
    // Requests with as much data as they may have come in series.
    let more = if bytes_max == DATA_BYTES_MAX { SERIES_BYTES } else { 0 };
    answers.reserve(ANSWER_BYTES + bytes_max + more);
    answers.extend_from_slice(&Answer::new(AnswerStatus::Done, request.first.low_u32()).bytes());
    let begin = answers.len();
    // Zeroed: the padding of an element is not written.
    answers.resize(begin + bytes_max, 0);
    let result = answers[begin..].as_mut_ptr();
    // An accumulate ahead of it is done before what is read now, and that before what is read next.
    full_fence();
    let done = each_row(memory, request, work, bytes, Some(result));
    full_fence();
    if done.is_err() {
        answers.truncate(before);
    }
    done
}

/// Carries out the rows of a request. `result`: room for their data, if they are wanted.
fn each_row(
    memory: &ExposedMemory<'_>,
    request: &TcpRequest,
    work: BlockWork,
    bytes: &[u8],
    result: Option<*mut u8>,
) -> Result<(), AnswerStatus> {
    let (data, rows) = bytes.split_at(bytes.len() - request.rows_bytes().to_usize());
    let (mut reader, mut done) = (RowReader::new(rows, request.at), 0);
    let mut places = [0; LISTED_MAX];
    while !reader.is_empty() {
        let blocks = reader.read(&mut places).ok_or(AnswerStatus::NoRequest)?;
        let (bytes, count) = (blocks.bytes(), blocks.count());
        let moved = bytes.checked_mul(count).filter(|moved| *moved <= request.first - done);
        let moved = moved.ok_or(AnswerStatus::NoRequest)?;
        work.check(&blocks)?;
        memory.check_blocks(request.key, &blocks, work.access())?;
        let at = done.to_usize();
        let (data, result) =
            (data.as_ptr().wrapping_add(at), result.map(|result| result.wrapping_add(at)));
        let size = (bytes.to_usize(), count.to_usize());
        // SAFETY: the blocks are exposed, and stay so while the table is locked; what the program
        // owns was probed. The request has data, and the answer room, for `first` bytes.
        unsafe {
            match blocks {
                RowBlocks::Row(row) => {
                    work.carry_out(size, |n| row.place(n.to_u64()), data, result);
                }
                RowBlocks::Listed(_, places) => work.carry_out(size, |n| places[n], data, result),
            }
        }
        done += moved;
    }
    if done == request.first { Ok(()) } else { Err(AnswerStatus::NoRequest) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::basic::Basic;
    use crate::datatype::reduce::Op;
    use crate::request::MemoryOf;
    use crate::request_rows::{Row, RowWriter};
    use crate::sys::page_bytes;
    use crate::tcp::exposures::Exposures;

    const PAGES: u64 = 8;
    const READ_ONLY: u64 = 3;
    const GONE: u64 = 6;

    /// Memory of the program, with a read-only page and one that is not there.
    struct Holes {
        exposures: Exposures,
        key: u32,
        base: u64,
    }

    impl Holes {
        fn new() -> Holes {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let bytes = PAGES * page_bytes();
            let none = core::ptr::null_mut();
            // SAFETY: a new mapping, which nothing else uses.
            let base = unsafe {
                let base = libc::mmap(none, bytes.to_usize(), access, flags, -1, 0);
                assert_ne!(base, libc::MAP_FAILED);
                for (page, access) in [(READ_ONLY, libc::PROT_READ), (GONE, libc::PROT_NONE)] {
                    let page = base.byte_add((page * page_bytes()).to_usize());
                    assert_eq!(libc::mprotect(page, 1, access), 0);
                }
                base.expose_provenance().to_u64()
            };
            let exposures = Exposures::default();
            let key = exposures.add(base, bytes, MemoryOf::Program).unwrap();
            Holes { exposures, key, base }
        }

        fn at(&self, page: u64, offset: i64) -> u64 {
            (self.base + page * page_bytes()).wrapping_add_signed(offset)
        }

        /// Carries out a request, whose data are ones. Returns the answer of one that fetches.
        fn play(
            &self,
            kind: RequestKind,
            rows: &[Row],
            change: impl FnOnce(&mut TcpRequest),
        ) -> Result<Vec<u8>, AnswerStatus> {
            let mut writer = RowWriter::default();
            rows.iter().for_each(|row| writer.push(row));
            let sum = Detail::Reduction(Reduction::new(Op::Sum, Basic::I32).unwrap());
            let is_transfer = matches!(kind, RequestKind::WriteRows | RequestKind::ReadRows);
            let mut request = TcpRequest {
                kind,
                answered: true,
                guarded: false,
                detail: if is_transfer { Detail::Nothing } else { sum },
                key: self.key,
                at: writer.first(),
                first: rows.iter().map(|row| row.bytes * row.blocks).sum(),
                second: writer.bytes().len().to_u64() << 8,
            };
            let data = vec![1; request.data_bytes().to_usize()];
            let bytes = [&data[..], writer.bytes()].concat();
            change(&mut request);
            let mut answers = vec![9];
            let fetched = request.kind.fetches().then_some(&mut answers);
            let done = carry_out(&self.exposures.read(), &request, &bytes, fetched);
            assert!(done.is_ok() || answers == [9], "no part of an answer");
            done.map(|()| answers.split_off(1))
        }
    }

    fn row(at: u64, bytes: u64, blocks: u64, stride: i64) -> Row {
        Row { at, bytes, blocks, stride }
    }

    #[test]
    fn only_pages_that_blocks_touch_are_needed() {
        use RequestKind::{AccumulateRows, FetchAccumulateRows, ReadRows, WriteRows};
        let (holes, page) = (Holes::new(), page_bytes().cast_signed());
        let at = |page, offset| holes.at(page, offset);
        let near = row(at(READ_ONLY, -16), 4, 5, 8);
        let over = row(at(READ_ONLY - 1, 0), 4, 2, 2 * page);
        let onto = row(at(READ_ONLY - 2, 0), 4, 2, 2 * page);
        let back = row(at(READ_ONLY + 1, 0), 4, 2, -page);
        let single = row(at(READ_ONLY, -4), 8, 1, 0);
        for kind in [WriteRows, AccumulateRows, FetchAccumulateRows] {
            for rows in [near, onto, back, single] {
                let came = holes.play(kind, &[rows], |_| ()).unwrap_err();
                assert_eq!(came, AnswerStatus::NoPermission, "{kind:?} {rows:?}");
            }
            assert!(holes.play(kind, &[over, row(at(1, 0), 4, 1, 0)], |_| ()).is_ok(), "{kind:?}");
        }
        for rows in [near, onto, back, single] {
            let answer = holes.play(ReadRows, &[rows], |_| ()).unwrap();
            let wanted = Answer::new(AnswerStatus::Done, (rows.bytes * rows.blocks).to_u32());
            assert_eq!(answer[..8], wanted.bytes());
            assert_eq!(answer.len().to_u64(), 8 + rows.bytes * rows.blocks);
        }
        let gone = row(at(GONE, -8), 4, 3, 4);
        assert_eq!(holes.play(ReadRows, &[gone], |_| ()), Err(AnswerStatus::NoPermission));
    }

    #[test]
    fn blocks_outside_of_the_memory_are_refused() {
        let (holes, page) = (Holes::new(), page_bytes().cast_signed());
        let at = |page, offset| holes.at(page, offset);
        let outside = [
            row(at(0, -1), 4, 1, 0),
            row(at(PAGES, -3), 4, 1, 0),
            row(at(0, 4), 4, 3, -4),
            row(at(PAGES, -8), 4, 3, 8),
            row(at(1, 0), 4, 3, -page - 1),
            row(at(PAGES - 1, 0), 4, 3, 2 * page),
            row(at(0, 0), 4, 2, i64::MIN),
            row(at(0, 0), 4, 2, i64::MAX),
            row(u64::MAX, 4, 1, 0),
        ];
        for rows in outside {
            for kind in [RequestKind::WriteRows, RequestKind::ReadRows] {
                let came = holes.play(kind, &[rows], |_| ());
                assert_eq!(came, Err(AnswerStatus::NotExposed), "{kind:?} {rows:?}");
            }
        }
        let good = row(at(0, 0), 4, 2, 8);
        assert!(holes.play(RequestKind::ReadRows, &[good], |_| ()).is_ok());
        let wrong_key = |request: &mut TcpRequest| request.key ^= 1 << 20;
        let came = holes.play(RequestKind::ReadRows, &[good], wrong_key);
        assert_eq!(came, Err(AnswerStatus::NotExposed));
    }

    #[test]
    fn rows_have_as_many_bytes_as_the_request_and_whole_elements() {
        use RequestKind::{AccumulateRows, ReadRows};
        let holes = Holes::new();
        let at = |offset| holes.at(0, offset);
        let good = [row(at(0), 4, 2, 8), row(at(32), 8, 1, 0)];
        for first in [15, 17] {
            let came = holes.play(ReadRows, &good, |request| request.first = first);
            assert_eq!(came, Err(AnswerStatus::NoRequest));
        }
        let came = holes.play(ReadRows, &[row(at(0), 1, u64::MAX, 0)], |request| request.first = 9);
        assert_eq!(came, Err(AnswerStatus::NoRequest));
        assert!(holes.play(AccumulateRows, &good, |_| ()).is_ok());
        let came = holes.play(AccumulateRows, &[row(at(0), 6, 2, 8)], |_| ());
        assert_eq!(came, Err(AnswerStatus::NoRequest));
        for rows in [row(at(2), 4, 1, 0), row(at(0), 4, 2, 6)] {
            let came = holes.play(AccumulateRows, &[rows], |_| ());
            assert_eq!(came, Err(AnswerStatus::Unaligned));
            let locked = |request: &mut TcpRequest| request.second |= 1;
            assert!(holes.play(AccumulateRows, &[rows], locked).is_ok());
        }
    }
}
