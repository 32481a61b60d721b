//! Transfers of many blocks as few requests over rows, where the target scatters and gathers
//! blocks, or combines them. A request has a bounded number of bytes; data from the target to
//! several places of this process pass through a block of the pool. A longer block of a put or get
//! is a request of its own, which copies it less often.

use core::{mem, ptr, slice};

use super::chain::Chain;
use super::fault::Fault;
use super::pool::{HereRow, Kept};
use crate::Way;
use crate::datatype::type_map::{Offsets, Portion, Scattered, Strip};
use crate::number::{Number, Offset};
use crate::packing::pack;
use crate::reduction::{Protection, Reduction};
use crate::remote::{Elements, Portions, Remote};
use crate::request::{Leaves, Local, Order, Work};
use crate::request_rows::{
    DATA_BYTES_MAX, NUMBER_BYTES_MAX, ROW_BYTES_MAX, ROWS_BYTES_MAX, Row, RowWriter,
};

/// What is done with the blocks.
#[derive(Clone, Copy)]
pub enum BlockWork {
    /// a put or a get
    Transfer(Way),
    /// an accumulate
    Accumulate {
        /// the operation and the type of the elements
        what: Reduction,
        /// their protection
        protection: Protection,
    },
}

/// The displacements zero of both sides.
#[derive(Clone, Copy)]
pub struct Zeros {
    /// at the target
    pub there: Remote,
    /// of the data that this process sends, if it sends any
    pub source: Option<*const u8>,
    /// of the data that this process receives, if it receives any
    pub sink: Option<*mut u8>,
}

/// A transfer under way.
pub struct RowMessages<'c, 'a> {
    chain: &'c mut Chain<'a>,
    work: BlockWork,
    zeros: Zeros,
    /// bytes of the data of the blocks of this message
    bytes: usize,
    /// these data, if this process sends them, and later the rows behind them
    data: Vec<u8>,
    /// the rows at the target, and one that may still grow
    rows: RowWriter,
    pending: Option<Row>,
    /// the rows of this process, if it receives data
    parts: Vec<HereRow>,
}

impl<'c, 'a> RowMessages<'c, 'a> {
    /// Starts without blocks.
    pub fn new(chain: &'c mut Chain<'a>, work: BlockWork, zeros: Zeros) -> RowMessages<'c, 'a> {
        let (data, rows, parts) = (Vec::new(), RowWriter::default(), Vec::new());
        RowMessages { chain, work, zeros, bytes: 0, data, rows, pending: None, parts }
    }

    /// Sends all blocks of some portions.
    ///
    /// # Safety
    /// As for [`RowMessages::push`].
    pub unsafe fn send_all(mut self, portions: &Portions<'_>) -> Result<(), Fault> {
        let mut done = Ok(());
        (portions.each)(&mut |portion| {
            if done.is_ok() {
                // SAFETY: guaranteed by the caller.
                done = unsafe { self.push(portion) };
            }
        });
        // SAFETY: guaranteed by the caller.
        done.and_then(|()| unsafe { self.finish() })
    }

    /// Adds a run of elements, whose addresses are not relative to the displacements zero.
    ///
    /// # Safety
    /// As for [`RowMessages::push`].
    pub unsafe fn push_elements(&mut self, run: &Elements) -> Result<(), Fault> {
        let there = Remote { at: run.there, ..self.zeros.there };
        let source = self.zeros.source.map(|_| run.operands);
        self.zeros = Zeros { there, source, sink: run.result };
        // SAFETY: guaranteed by the caller.
        unsafe { self.push(Portion::Strip(Strip::single(0, 0, run.bytes))) }
    }

    /// Adds a portion.
    ///
    /// # Safety
    /// The blocks at the target may be used so. Those of this process may be read now and written
    /// until a flush; those of a put with more than [`DATA_BYTES_MAX`] bytes may be read until
    /// then.
    unsafe fn push(&mut self, portion: Portion<'_>) -> Result<(), Fault> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match portion {
                Portion::Strip(Strip { here, there, bytes, blocks: 1, .. })
                    if self.has_room(bytes) =>
                {
                    self.add_block(here, there, bytes);
                    Ok(())
                }
                Portion::Strip(strip) => self.push_strip(strip),
                Portion::Scattered(blocks) => self.push_scattered(blocks),
            }
        }
    }

    /// Whether a block fits into this message.
    #[inline]
    fn has_room(&self, bytes: u64) -> bool {
        bytes <= (DATA_BYTES_MAX - self.bytes).to_u64()
            && self.rows.bytes().len() <= ROWS_BYTES_MAX - 2 * ROW_BYTES_MAX
    }

    /// Adds a block that fits into this message: irregular ones come one by one.
    ///
    /// # Safety
    /// As for [`RowMessages::push`].
    #[inline]
    unsafe fn add_block(&mut self, here: i64, there: i64, bytes: u64) {
        let there = self.zeros.there.at.wrapping_add_signed(there);
        self.add_row(Row { at: there, bytes, blocks: 1, stride: 0 });
        if let Some(source) = self.zeros.source {
            // SAFETY: guaranteed by the caller.
            let block = unsafe { slice::from_raw_parts(at(source, here), bytes.to_usize()) };
            self.data.extend_from_slice(block);
        }
        if let Some(sink) = self.zeros.sink {
            let bytes = bytes.low_u32();
            self.add_part(HereRow { here: at(sink, here).cast_mut(), bytes, blocks: 1, stride: 0 });
        }
        self.bytes += bytes.to_usize();
    }

    /// # Safety
    /// As for [`RowMessages::push`].
    unsafe fn push_strip(&mut self, strip: Strip) -> Result<(), Fault> {
        let Strip { here, there, bytes, blocks, here_stride, there_stride } = strip;
        let here = Offsets::Every { first: here, stride: here_stride };
        let there = Offsets::Every { first: there, stride: there_stride };
        // SAFETY: guaranteed by the caller.
        unsafe { self.push_scattered(Scattered { here, there, bytes, blocks }) }
    }

    /// # Safety
    /// As for [`RowMessages::push`].
    unsafe fn push_scattered(&mut self, mut rest: Scattered<'_>) -> Result<(), Fault> {
        let block = rest.bytes.to_usize();
        while rest.blocks > 0 {
            if block > DATA_BYTES_MAX {
                // SAFETY: guaranteed by the caller.
                unsafe { self.push_long(&rest)? };
                skip(&mut rest, 1);
                continue;
            }
            // For the row that may still grow, and for one row or the beginning of a list.
            let row_bytes = 2 * ROW_BYTES_MAX;
            let room = (ROWS_BYTES_MAX - self.rows.bytes().len()).checked_sub(row_bytes);
            let fitting = (DATA_BYTES_MAX - self.bytes) / block;
            let Some(room) = room.filter(|_| fitting > 0) else {
                // SAFETY: guaranteed by the caller.
                unsafe { self.close(Leaves::WithLater)? };
                continue;
            };
            let blocks = fitting.to_u64().min(rest.blocks);
            let blocks = match rest.there {
                Offsets::Every { .. } => blocks,
                Offsets::Listed { .. } => blocks.min(1 + (room / NUMBER_BYTES_MAX).to_u64()),
            };
            // SAFETY: guaranteed by the caller.
            unsafe { self.add(Scattered { blocks, ..rest }) };
            skip(&mut rest, blocks);
        }
        Ok(())
    }

    /// Adds blocks that fit into this message.
    ///
    /// # Safety
    /// As for [`RowMessages::push`].
    unsafe fn add(&mut self, some: Scattered<'_>) {
        let (bytes, blocks) = (some.bytes.to_usize(), some.blocks.to_usize());
        let zero = self.zeros.there.at;
        match some.there {
            Offsets::Every { first, stride } => {
                let at = zero.wrapping_add_signed(first);
                self.add_row(Row::of(at, some.bytes, some.blocks, stride));
            }
            Offsets::Listed { places, base, .. } => {
                if let Some(row) = self.pending.take() {
                    self.rows.push(&row);
                }
                let zero = zero.wrapping_add_signed(base);
                self.rows.push_blocks(&places[..blocks], zero, some.bytes);
            }
        }
        if let Some(source) = self.zeros.source {
            self.data.reserve(DATA_BYTES_MAX + ROWS_BYTES_MAX);
            let end = self.data.len();
            let to = self.data.as_mut_ptr().wrapping_add(end);
            // SAFETY: the caller's promise, and there is room in the buffer.
            unsafe {
                match some.here {
                    Offsets::Every { first, stride } => {
                        let row = Row::of(first.cast_unsigned(), some.bytes, some.blocks, stride);
                        let place = |n: usize| at(source, row.place(n.to_u64()).cast_signed());
                        let (bytes, blocks) = (row.bytes.to_usize(), row.blocks.to_usize());
                        match blocks {
                            1 => ptr::copy_nonoverlapping(place(0), to, bytes),
                            _ => pack(to, (bytes, blocks), place),
                        }
                    }
                    Offsets::Listed { places, base, .. } => {
                        let source = at(source, base);
                        pack(to, (bytes, blocks), |n| at(source, places[n]));
                    }
                }
                self.data.set_len(end + bytes * blocks);
            }
        }
        if let Some(sink) = self.zeros.sink {
            self.note_sink(sink, &some);
        }
        self.bytes += bytes * blocks;
    }

    /// Adds a row at the target.
    #[inline]
    fn add_row(&mut self, row: Row) {
        if self.pending.as_mut().is_some_and(|pending| pending.absorb(&row)) {
            return;
        }
        if let Some(done) = self.pending.replace(row) {
            self.rows.push(&done);
        }
    }

    /// Records where blocks go in this process.
    fn note_sink(&mut self, sink: *mut u8, some: &Scattered<'_>) {
        let mut note = |first: i64, (bytes, blocks): (u64, u64), stride: i64| {
            let (here, row) = (at(sink, first).cast_mut(), Row::of(0, bytes, blocks, stride));
            let part = HereRow {
                here,
                bytes: row.bytes.low_u32(),
                blocks: row.blocks.low_u32(),
                stride: row.stride.to_isize(),
            };
            self.add_part(part);
        };
        match some.here {
            Offsets::Every { first, stride } => note(first, (some.bytes, some.blocks), stride),
            Offsets::Listed { places, base, .. } => {
                let places = &places[..some.blocks.to_usize()];
                places.iter().for_each(|at| note(at.wrapping_add(base), (some.bytes, 1), 0));
            }
        }
    }

    /// Adds a row of this process.
    #[inline]
    fn add_part(&mut self, part: HereRow) {
        match self.parts.last_mut() {
            Some(last) if last.is_followed_by(&part) => last.bytes += part.bytes,
            _ => self.parts.push(part),
        }
    }

    /// Adds the first block, which is long: a put or get by itself, an accumulate in pieces.
    ///
    /// # Safety
    /// As for [`RowMessages::push`].
    unsafe fn push_long(&mut self, blocks: &Scattered<'_>) -> Result<(), Fault> {
        let (here, there, bytes) = (blocks.here.first(), blocks.there.first(), blocks.bytes);
        let (peer, at_target) = (self.chain.peer, self.zeros.there.offset(there));
        // SAFETY: guaranteed by the caller.
        unsafe {
            match (self.work, self.zeros) {
                (BlockWork::Transfer(_), Zeros { sink: Some(sink), .. }) => {
                    self.close(Leaves::WithLater)?;
                    peer.get_on(self.chain.queue, at(sink, here).cast_mut(), at_target, bytes)
                }
                (BlockWork::Transfer(_), Zeros { source, .. }) => {
                    self.close(Leaves::WithLater)?;
                    let source = source.map_or(ptr::null(), |source| at(source, here));
                    peer.put_on(self.chain.queue, at_target, source, bytes)
                }
                (BlockWork::Accumulate { .. }, _) => {
                    let (most, mut done) = (DATA_BYTES_MAX.to_u64(), 0);
                    while done < bytes {
                        let piece = most.min(bytes - done);
                        let moved = |offset: i64| offset.wrapping_add_unsigned(done);
                        self.push_strip(Strip::single(moved(here), moved(there), piece))?;
                        done += piece;
                    }
                    Ok(())
                }
            }
        }
    }

    /// Sends what is left. A put or get that is one message leaves at once, if no answer is under
    /// way.
    ///
    /// # Safety
    /// As for [`RowMessages::push`].
    pub unsafe fn finish(mut self) -> Result<(), Fault> {
        let leaves = match self.work {
            BlockWork::Transfer(_) => {
                if !self.chain.queue.is_ready() {
                    self.chain.peer.make_ready(self.chain.queue)?;
                }
                Leaves::IfFirst
            }
            BlockWork::Accumulate { .. } => Leaves::WithLater,
        };
        // SAFETY: guaranteed by the caller.
        unsafe { self.close(leaves) }
    }

    /// Sends this message, if it has blocks.
    ///
    /// # Safety
    /// As for [`RowMessages::push`].
    unsafe fn close(&mut self, leaves: Leaves) -> Result<(), Fault> {
        if let Some(row) = self.pending.take() {
            self.rows.push(&row);
        }
        let (data, rows) = (mem::take(&mut self.bytes), self.rows.bytes());
        if data == 0 {
            return Ok(());
        }
        self.data.extend_from_slice(rows);
        let to = Remote { at: self.rows.first(), ..self.zeros.there };
        let (result, held) = match self.parts[..] {
            [] => (0, Kept::Nothing),
            [HereRow { here, blocks: 1, .. }] => (here as u64, Kept::of_user()),
            _ => {
                let (mut arriving, parts) =
                    (vec![0; data].into_boxed_slice(), self.parts[..].into());
                (arriving.as_mut_ptr() as u64, Kept::Unpacking { data: arriving, parts })
            }
        };
        let what = match self.work {
            BlockWork::Transfer(_) => None,
            BlockWork::Accumulate { what, protection } => Some((what, protection)),
        };
        let work =
            Work::OverRows { what, result, data: data.low_u16(), rows: rows.len().low_u16() };
        let from =
            Local { at: self.data.as_ptr() as u64, bytes: self.data.len().low_u32(), key: 0 };
        let order = Order { leaves, ..Order::new(work, to, from, result != 0) };
        self.count();
        // SAFETY: the bytes are copied now; what the caller has lent is held by the request.
        unsafe {
            self.chain.push(order, held)?;
            self.chain.post()?;
        }
        self.data.clear();
        self.rows.clear();
        self.parts.clear();
        Ok(())
    }

    fn count(&mut self) {
        let kinds = &mut self.chain.queue.kinds;
        match self.work {
            BlockWork::Transfer(Way::Put) => kinds.inline += 1,
            BlockWork::Transfer(Way::Get) => kinds.gets += 1,
            BlockWork::Accumulate { .. } => kinds.accumulates += 1,
        }
    }
}

/// Returns an address of this process.
fn at(zero: *const u8, offset: i64) -> *const u8 {
    zero.wrapping_offset(offset.to_isize())
}

/// Skips some blocks, or all.
fn skip(rest: &mut Scattered<'_>, blocks: u64) {
    rest.blocks -= blocks;
    rest.here.skip(blocks);
    rest.there.skip(blocks);
}
