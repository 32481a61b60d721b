//! Random requests at the target's end of a connection, and a model that carries them out one after
//! the other. Not the target itself.

use core::ops::Range;

use super::exposures::Exposures;
use super::frames::RequestKind::{AccumulateRows, FetchAccumulateRows, ReadRows, WriteRows};
use super::frames::{Answer, AnswerStatus, Detail, GUARDED_BYTES_MAX, RequestKind, TcpRequest};
use crate::datatype::basic::Basic;
use crate::datatype::reduce::{self, OPS};
use crate::layout::SINGLES_BEHIND_ACC;
use crate::reduction::{Protection, Reduction};
use crate::request::MemoryOf;
use crate::request_rows::{DATA_BYTES_MAX, Row, RowWriter};

/// Bytes of the exposed memory, and of the memory on either side of it, which must not change.
pub const BYTES: usize = 64 << 10;
pub const GUARD: usize = 4 << 10;
/// Bytes that the model needs to be multiples of words.
pub const WORD: usize = 8;

/// A generator of numbers that look random.
pub struct RandomNumbers(pub u64);

impl RandomNumbers {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    /// Mostly small lengths, sometimes long ones.
    pub fn length(&mut self) -> usize {
        match self.below(8) {
            0 => 8 << 10,
            1 => self.below(40 << 10),
            2 => 4 << 10,
            _ => self.below(64),
        }
    }
}

/// The exposed memory, what it should hold, and the answers that should come.
pub struct Model {
    memory: Vec<u64>,
    /// the key of the memory
    pub key: u32,
    /// what it and the memory around it should hold
    pub wanted: Vec<u8>,
    /// the answers that should come
    pub answers: Vec<u8>,
    /// whether the last compare-and-swap was carried out and has changed its word
    swapped: bool,
}

impl Model {
    pub fn new(exposures: &Exposures, seed: u64) -> Model {
        let words = (BYTES + 2 * GUARD) / WORD;
        let mut numbers = RandomNumbers(seed | 1);
        let memory: Vec<u64> = (0..words).map(|_| numbers.below(usize::MAX) as u64).collect();
        let base = memory.as_ptr().expose_provenance() + GUARD;
        let key = exposures.add(base as u64, BYTES as u64, MemoryOf::Library).unwrap();
        let (wanted, answers) = (Vec::new(), Vec::new());
        let mut model = Model { memory, key, wanted, answers, swapped: false };
        model.wanted = model.bytes();
        model
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.memory.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The address of a byte of the exposed memory.
    pub fn at(&self, offset: usize) -> u64 {
        (self.memory.as_ptr().expose_provenance() + GUARD + offset) as u64
    }

    /// Records the answer to a request that is carried out.
    fn answer(&mut self, status: AnswerStatus, data: &[u8]) {
        let header = Answer::new(status, data.len() as u32);
        self.answers.extend(header.bytes().iter().chain(data));
    }

    /// Returns a random request with its data, and carries it out in the model.
    pub fn request(&mut self, numbers: &mut RandomNumbers) -> Vec<u8> {
        match numbers.below(11) {
            10 => self.take_lock(numbers),
            8 | 9 => self.over_rows(numbers),
            0 | 1 => self.accumulate(numbers),
            2 => self.compare_and_swap(numbers),
            3 => self.add(numbers),
            4 => self.add_and_ring(numbers),
            5 => self.ping(numbers),
            _ => self.copy(numbers),
        }
    }

    fn ping(&mut self, numbers: &mut RandomNumbers) -> Vec<u8> {
        let answered = numbers.below(2) == 0;
        if answered {
            self.answer(AnswerStatus::Done, &[]);
        }
        TcpRequest { answered, key: self.key, ..blank(RequestKind::Ping) }.bytes().to_vec()
    }

    /// A WRITE or a READ.
    fn copy(&mut self, numbers: &mut RandomNumbers) -> Vec<u8> {
        let length = numbers.length();
        let offset = numbers.below(BYTES - length + 1);
        let place = GUARD + offset..GUARD + offset + length;
        let (answered, first) = (numbers.below(2) == 0, length as u64);
        let request = TcpRequest { key: self.key, at: self.at(offset), first, ..blank(READ) };
        if numbers.below(2) == 0 {
            let there = self.wanted[place].to_vec();
            self.answer(AnswerStatus::Done, &there);
            return TcpRequest { answered: true, ..request }.bytes().to_vec();
        }
        let data: Vec<u8> = (0..length).map(|_| numbers.below(256) as u8).collect();
        let guarded = first <= GUARDED_BYTES_MAX && numbers.below(2) == 0;
        let skipped = guarded && !self.swapped;
        if !skipped {
            self.wanted[place].copy_from_slice(&data);
        }
        if answered {
            let status = if skipped { AnswerStatus::Skipped } else { AnswerStatus::Done };
            self.answer(status, &[]);
        }
        let request = TcpRequest { answered, guarded, kind: RequestKind::Write, ..request };
        request.bytes().into_iter().chain(data).collect()
    }

    /// Random rows of blocks of `width` bytes or a multiple, and the places of all blocks.
    fn rows(&self, width: usize, numbers: &mut RandomNumbers) -> (RowWriter, Vec<Range<usize>>) {
        let (mut writer, mut places) = (RowWriter::default(), Vec::new());
        while places.is_empty() || numbers.below(4) > 0 && writer.bytes().len() < 1000 {
            let bytes = width * (1 + numbers.below(12));
            let blocks = [1, 1, 1 + numbers.below(40)][numbers.below(3)];
            let stride = width * numbers.below(1500 / width);
            let base = GUARD + width * numbers.below((BYTES - blocks * stride - bytes) / width);
            let is_back = numbers.below(2) == 0;
            let order = |n: usize| if is_back { blocks - 1 - n } else { n };
            let all: Vec<usize> = (0..blocks).map(|n| base + order(n) * stride).collect();
            let at = self.at(all[0] - GUARD);
            let stride = if is_back { -(stride as i64) } else { stride as i64 };
            if numbers.below(2) == 0 {
                writer.push(&Row::of(at, bytes as u64, blocks as u64, stride));
            } else {
                let listed: Vec<i64> = (0..blocks as i64).map(|n| n * stride).collect();
                writer.push_blocks(&listed, at, bytes as u64);
            }
            places.extend(all.into_iter().map(|place| place..place + bytes));
        }
        (writer, places)
    }

    /// Replaces the bytes of blocks, or adds to their elements of four bytes. Without data they
    /// stay. Returns what was there.
    fn change_blocks(&mut self, places: &[Range<usize>], adds: bool, data: &[u8]) -> Vec<u8> {
        let mut old = Vec::new();
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
        for place in places {
            let done = old.len();
            let memory = &mut self.wanted[place.clone()];
            old.extend_from_slice(memory);
            let Some(new) = data.get(done..old.len()) else { continue };
            if adds {
                for (there, new) in memory.chunks_mut(4).zip(new.chunks(4)) {
                    let sum = number(there).wrapping_add(number(new));
                    there.copy_from_slice(&sum.to_le_bytes());
                }
            } else {
                memory.copy_from_slice(new);
            }
        }
        old
    }

    /// A request over rows, of each kind.
    fn over_rows(&mut self, numbers: &mut RandomNumbers) -> Vec<u8> {
        let what = Reduction::new(reduce::Op::Sum, Basic::U32).unwrap();
        let kind = [WriteRows, ReadRows, AccumulateRows, FetchAccumulateRows][numbers.below(4)];
        let adds = matches!(kind, AccumulateRows | FetchAccumulateRows);
        let (writer, places) = self.rows(if adds { 4 } else { 1 }, numbers);
        let first: usize = places.iter().map(ExactSizeIterator::len).sum();
        if first > DATA_BYTES_MAX {
            return Vec::new();
        }
        let protection = if adds { numbers.below(4) as u64 } else { 0 };
        let fetches = kind.fetches();
        let answered = fetches || numbers.below(2) == 0;
        let count = if adds || kind == WriteRows { first } else { 0 };
        let data: Vec<u8> = (0..count).map(|_| numbers.below(256) as u8).collect();
        let old = self.change_blocks(&places, adds, &data);
        if answered {
            self.answer(AnswerStatus::Done, if fetches { &old } else { &[] });
        }
        let request = TcpRequest {
            kind,
            answered,
            guarded: false,
            detail: if adds { Detail::Reduction(what) } else { Detail::Nothing },
            key: self.key,
            at: writer.first(),
            first: first as u64,
            second: (writer.bytes().len() as u64) << 8 | protection,
        };
        [&request.bytes(), &data[..], writer.bytes()].concat()
    }

    fn add(&mut self, numbers: &mut RandomNumbers) -> Vec<u8> {
        let (answered, guarded) = (numbers.below(2) == 0, numbers.below(2) == 0);
        let (word, first) = (numbers.below(BYTES / WORD) * WORD, numbers.below(99) as u64);
        let place = &mut self.wanted[GUARD + word..GUARD + word + WORD];
        let old = u64::from_le_bytes((&*place).try_into().unwrap());
        let skipped = guarded && !self.swapped;
        if !skipped {
            place.copy_from_slice(&old.wrapping_add(first).to_le_bytes());
        }
        match (answered, skipped) {
            (true, false) => self.answer(AnswerStatus::Done, &old.to_le_bytes()),
            (true, true) => self.answer(AnswerStatus::Skipped, &[]),
            _ => {}
        }
        let (key, at) = (self.key, self.at(word));
        let request = blank(RequestKind::Add);
        TcpRequest { answered, guarded, key, at, first, ..request }.bytes().to_vec()
    }

    /// Two words: a doorbell that is odd becomes even, in its 32 bits.
    fn add_and_ring(&mut self, numbers: &mut RandomNumbers) -> Vec<u8> {
        let answered = numbers.below(2) == 0;
        let [word, bell] = [0; 2].map(|_| numbers.below(BYTES / WORD) * WORD);
        let (first, second) = (numbers.below(99) as u64, self.at(bell));
        let place = &mut self.wanted[GUARD + word..GUARD + word + WORD];
        let old = u64::from_le_bytes((&*place).try_into().unwrap());
        place.copy_from_slice(&old.wrapping_add(first).to_le_bytes());
        let place = &mut self.wanted[GUARD + bell..GUARD + bell + 4];
        let value = u32::from_le_bytes((&*place).try_into().unwrap());
        place.copy_from_slice(&value.wrapping_add(value % 2).to_le_bytes());
        if answered {
            self.answer(AnswerStatus::Done, &[]);
        }
        let (key, at) = (self.key, self.at(word));
        let request = blank(RequestKind::AddAndRing);
        TcpRequest { answered, key, at, first, second, ..request }.bytes().to_vec()
    }

    /// Takes a lock that is free.
    fn take_lock(&mut self, numbers: &mut RandomNumbers) -> Vec<u8> {
        let word = numbers.below((BYTES - SINGLES_BEHIND_ACC as usize) / WORD) * WORD;
        let place = &mut self.wanted[GUARD + word..GUARD + word + WORD];
        let first = u64::from_le_bytes((&*place).try_into().unwrap());
        let (answered, second) = (numbers.below(2) == 0, numbers.below(99) as u64);
        place.copy_from_slice(&second.to_le_bytes());
        if answered {
            self.answer(AnswerStatus::Done, &[]);
        }
        let (key, at) = (self.key, self.at(word));
        let request = blank(RequestKind::TakeLock);
        TcpRequest { answered, key, at, first, second, ..request }.bytes().to_vec()
    }

    fn compare_and_swap(&mut self, numbers: &mut RandomNumbers) -> Vec<u8> {
        let width = 1 << numbers.below(4);
        let at = numbers.below(BYTES / width) * width;
        let place = &mut self.wanted[GUARD + at..GUARD + at + width];
        let mut old = [0; WORD];
        old[..width].copy_from_slice(place);
        let old = u64::from_le_bytes(old);
        let first = if numbers.below(2) == 0 { old } else { numbers.below(99) as u64 };
        let (answered, second) = (numbers.below(2) == 0, numbers.below(99) as u64);
        let guarded = numbers.below(2) == 0;
        let skipped = guarded && !self.swapped;
        self.swapped = !skipped && first == old;
        if self.swapped {
            place.copy_from_slice(&second.to_le_bytes()[..width]);
        }
        match (answered, skipped) {
            (true, false) => self.answer(AnswerStatus::Done, &old.to_le_bytes()[..width]),
            (true, true) => self.answer(AnswerStatus::Skipped, &[]),
            _ => {}
        }
        let (key, at, detail) = (self.key, self.at(at), Detail::Width(width as u8));
        let request = blank(RequestKind::CompareSwap);
        TcpRequest { answered, guarded, detail, key, at, first, second, ..request }.bytes().to_vec()
    }

    /// An accumulate of any operation and type, under any protection that fits.
    fn accumulate(&mut self, numbers: &mut RandomNumbers) -> Vec<u8> {
        let what = loop {
            let (op, basic) = (numbers.below(OPS.len()), numbers.below(Basic::ALL.len()));
            if let Some(what) = Reduction::from_numbers([op as u8, basic as u8]) {
                break what;
            }
        };
        let extent = what.extent() as usize;
        let count = 1 + numbers.length() / extent;
        let offset = match numbers.below(2) {
            0 => numbers.below((BYTES - count * extent) / extent) * extent,
            _ => numbers.below(BYTES - count * extent),
        };
        let mut protection = Protection::from_number(numbers.below(4) as u64).unwrap();
        if !what.fits(protection, self.at(offset)) {
            protection = Protection::Locked;
        }
        let fetches = numbers.below(2) == 0 || !what.has_operands();
        let answered = fetches || numbers.below(2) == 0;
        let operands = if what.has_operands() { count * extent } else { 0 };
        let data: Vec<u8> = (0..operands).map(|_| numbers.below(256) as u8).collect();
        let mut old = vec![0; count * extent];
        let place = self.wanted[GUARD + offset..].as_mut_ptr();
        let (op, basic) = (what.op(), what.basic());
        let (from, to) = (data.as_ptr(), fetches.then_some(old.as_mut_ptr()));
        // SAFETY: there is room for the elements in all three.
        unsafe { reduce::accumulate_exclusive(op, basic, place, from, to, count) };
        if answered {
            self.answer(AnswerStatus::Done, if fetches { &old } else { &[] });
        }
        let request = TcpRequest {
            kind: if fetches { RequestKind::FetchAccumulate } else { RequestKind::Accumulate },
            answered,
            guarded: false,
            detail: Detail::Reduction(what),
            key: self.key,
            at: self.at(offset),
            first: (count * extent) as u64,
            second: protection as u64,
        };
        request.bytes().into_iter().chain(data).collect()
    }
}

pub const READ: RequestKind = RequestKind::Read;

/// A request that is zero otherwise.
pub fn blank(kind: RequestKind) -> TcpRequest {
    let (answered, guarded, detail) = (false, false, Detail::Nothing);
    TcpRequest { kind, answered, guarded, detail, key: 0, at: 0, first: 0, second: 0 }
}

/// Returns the answer to a request that was done, with these bytes.
pub fn answer_with(bytes: &[u8]) -> Vec<u8> {
    [&Answer::new(AnswerStatus::Done, bytes.len() as u32).bytes(), bytes].concat()
}
