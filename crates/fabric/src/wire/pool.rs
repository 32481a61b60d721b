//! Registered memory of this process that requests use for a while: blocks for small puts and gets,
//! and words for the answers of atomics. All peers share them. Invariant: a block or word has one
//! owner until it is given back.

use core::ptr;
use std::alloc::Layout;

use parking_lot::Mutex;

use super::device::{Device, Region};
use crate::error::Result;
use crate::number::Number;
use crate::packing::unpack;
use crate::request::Local;
use crate::sync::AtomicU64;
use crate::sys::page_bytes;

/// Bytes of a block. Longer buffers are registered rather than copied.
pub const BLOCK_BYTES: usize = 8 << 10;
/// Number of blocks.
pub const BLOCKS: usize = 128;
/// Number of words that are added at once.
const WORDS: usize = 512;

/// Whole pages that contain nothing else, so that a fork takes no other data away.
struct Memory {
    at: *mut u8,
    layout: Layout,
}

// SAFETY: memory of this process; the pool decides which thread may access which bytes.
unsafe impl Send for Memory {}
// SAFETY: as for `Send`.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(bytes: usize) -> Memory {
        let page = page_bytes().to_usize();
        let layout = Layout::from_size_align(bytes.next_multiple_of(page), page).expect("a size");
        // SAFETY: the size is not zero.
        let at = unsafe { std::alloc::alloc_zeroed(layout) };
        if at.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Memory { at, layout }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and not used any more.
        unsafe { std::alloc::dealloc(self.at, self.layout) };
    }
}

/// Registered memory. The fields are dropped in their order: the registration ends first.
struct Pages {
    region: Region,
    memory: Memory,
}

impl Pages {
    fn new(device: &Device, bytes: usize) -> Result<Pages> {
        let memory = Memory::new(bytes);
        let (at, length) = (memory.at as u64, memory.layout.size() as u64);
        let region = device.register(at, length)?;
        Ok(Pages { region, memory })
    }
}

/// The blocks.
pub struct Blocks {
    pages: Pages,
    free: Mutex<Vec<u32>>,
}

impl Blocks {
    /// Makes all blocks.
    pub fn new(device: &Device) -> Result<Blocks> {
        let pages = Pages::new(device, BLOCKS * BLOCK_BYTES)?;
        Ok(Blocks { pages, free: Mutex::new((0..BLOCKS.to_u32()).rev().collect()) })
    }

    /// Returns a free block, if there is one.
    pub fn try_take(&self) -> Option<u32> {
        self.free.lock().pop()
    }

    /// Returns a block for a caller that may keep it for long, if more than half of the blocks are
    /// free.
    pub fn try_take_spare(&self) -> Option<u32> {
        let mut free = self.free.lock();
        if free.len() > BLOCKS / 2 { free.pop() } else { None }
    }

    /// Takes a block back.
    pub fn give_back(&self, block: u32) {
        self.free.lock().push(block);
    }

    /// Address of a block, for its owner to read and write.
    pub fn at(&self, block: u32) -> *mut u8 {
        assert!(block.to_usize() < BLOCKS);
        // SAFETY: inside of the pages.
        unsafe { self.pages.memory.at.add(block.to_usize() * BLOCK_BYTES) }
    }

    /// Takes a block back from a request that is done, and copies what has arrived in it.
    pub fn finish(&self, kept: Kept) {
        match &kept {
            Kept::Nothing | Kept::Buffer { .. } | Kept::Buffers { .. } => {}
            Kept::Leaving(_) | Kept::Streamed => {}
            Kept::Arriving { block, to, bytes } => {
                assert!(bytes.to_usize() <= BLOCK_BYTES);
                // SAFETY: the block belongs to this request and is long enough; the caller of the
                // get has lent `bytes` bytes at `to` until the get is done, which is now.
                unsafe { ptr::copy_nonoverlapping(self.at(*block), *to, bytes.to_usize()) };
            }
            Kept::Scattering { block, parts } => {
                for part in parts {
                    assert!(part.end() <= BLOCK_BYTES);
                    let from = self.at(*block).wrapping_add(part.at.to_usize());
                    // SAFETY: inside of the block, which belongs to this request; the user has lent
                    // the part.
                    unsafe { ptr::copy_nonoverlapping(from, part.here, part.bytes.to_usize()) };
                }
            }
            // SAFETY: the user has lent the rows.
            Kept::Unpacking { data, parts } => unsafe { unpack_rows(data, parts) },
        }
        if let Some(block) = kept.block() {
            self.give_back(block);
        }
    }

    /// Local key (lkey) of the blocks.
    pub fn key(&self) -> u32 {
        self.pages.region.local_key()
    }
}

/// Copies data to rows, one after the other.
///
/// # Safety
/// The rows may be written.
unsafe fn unpack_rows(mut data: &[u8], rows: &[HereRow]) {
    for row in rows {
        let (of_row, rest) = data.split_at(row.bytes.to_usize() * row.blocks.to_usize());
        // SAFETY: as many bytes; the caller guarantees the row.
        unsafe { row.unpack(of_row.as_ptr()) };
        data = rest;
    }
}

#[cfg(test)]
impl Blocks {
    /// Number of free blocks.
    pub fn free(&self) -> usize {
        self.free.lock().len()
    }
}

/// A part of a message.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// its address in this process
    pub here: *mut u8,
    /// its offset in the message
    pub at: u32,
    /// its length in bytes
    pub bytes: u32,
}

// SAFETY: the pointer is to memory of this process that the user has lent until the get is done.
unsafe impl Send for Part {}

impl Part {
    /// Offset of the end of the part in the message.
    pub fn end(&self) -> usize {
        self.at.to_usize() + self.bytes.to_usize()
    }
}

/// Equal blocks of this process at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HereRow {
    /// address of the first block
    pub here: *mut u8,
    /// bytes of each block
    pub bytes: u32,
    /// number of blocks
    pub blocks: u32,
    /// bytes from one block to the next
    pub stride: isize,
}

// SAFETY: the pointer is to memory of this process that the user has lent until the get is done.
unsafe impl Send for HereRow {}

impl HereRow {
    /// Whether the other one is one block with this one.
    pub fn is_followed_by(&self, other: &HereRow) -> bool {
        let end = self.here.wrapping_add(self.bytes.to_usize());
        self.blocks == 1 && other.blocks == 1 && end == other.here
    }

    /// Copies contiguous bytes to the blocks.
    ///
    /// # Safety
    /// The blocks may be written, and as many bytes read at `from`.
    pub unsafe fn unpack(&self, from: *const u8) {
        let place = |n: usize| self.here.wrapping_offset(n.cast_signed() * self.stride);
        // SAFETY: guaranteed by the caller.
        unsafe { unpack(from, (self.bytes.to_usize(), self.blocks.to_usize()), place) };
    }
}

/// The resources that a request holds until it is done.
#[derive(Default)]
pub enum Kept {
    /// nothing
    #[default]
    Nothing,
    /// a block that the device reads
    Leaving(u32),
    /// a block that the device writes, and the place to which its bytes are copied then
    Arriving { block: u32, to: *mut u8, bytes: u32 },
    /// a block that the device writes, and the places to which its parts are copied then
    Scattering { block: u32, parts: Box<[Part]> },
    /// memory into which data arrive, and the rows to which they are then copied, one after the
    /// other. No block: a request that holds a lock must not wait for one, because the request that
    /// has it may wait for another lock
    Unpacking { data: Box<[u8]>, parts: Box<[HereRow]> },
    /// registered memory of the user
    Buffer { _region: Region },
    /// several pieces of it
    Buffers { _regions: Box<[Region]> },
    /// memory of the user that a stream copies: it is used until the stream has taken its bytes
    Streamed,
}

impl Kept {
    /// Returns its block, if it has one.
    pub fn block(&self) -> Option<u32> {
        match self {
            Kept::Nothing | Kept::Buffer { .. } | Kept::Buffers { .. } => None,
            Kept::Streamed | Kept::Unpacking { .. } => None,
            Kept::Leaving(block)
            | Kept::Arriving { block, .. }
            | Kept::Scattering { block, .. } => Some(*block),
        }
    }

    /// Returns memory of the user where nothing has to be registered.
    pub fn of_user() -> Kept {
        Kept::Buffer { _region: Region::OF_USER }
    }
}

// SAFETY: the pointer is to memory of this process that the user has lent until the get is done.
unsafe impl Send for Kept {}

/// A word into which the device stores the answer of an atomic.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// its address
    pub at: *const AtomicU64,
    /// its local key (lkey)
    pub key: u32,
}

// SAFETY: the address of an atomic that lives as long as the pool.
unsafe impl Send for Word {}
// SAFETY: as for `Send`.
unsafe impl Sync for Word {}

impl Word {
    /// The word as memory that a request writes.
    pub fn local(self) -> Local {
        Local { at: self.at as u64, bytes: size_of::<u64>().to_u32(), key: self.key }
    }
}

/// The words. There are as many as answers were ever outstanding at once, rounded up.
pub struct Answers {
    free: Mutex<(Vec<Word>, Vec<Pages>)>,
    scratch: Word,
}

impl Answers {
    /// Makes the first words.
    pub fn new(device: &Device) -> Result<Answers> {
        let mut free = Vec::new();
        let pages = words(device, &mut free)?;
        let scratch = free.pop().expect("there are some");
        Ok(Answers { free: Mutex::new((free, vec![pages])), scratch })
    }

    /// Returns a word that has no other owner.
    pub fn take(&self, device: &Device) -> Result<Word> {
        let mut word = self.scratch;
        self.take_all(device, core::slice::from_mut(&mut word))?;
        Ok(word)
    }

    /// Fills `places` with words that have no other owner.
    pub fn take_all(&self, device: &Device, places: &mut [Word]) -> Result<()> {
        let mut free = self.free.lock();
        while free.0.len() < places.len() {
            let pages = words(device, &mut free.0)?;
            free.1.push(pages);
        }
        let rest = free.0.len() - places.len();
        places.copy_from_slice(&free.0[rest..]);
        free.0.truncate(rest);
        Ok(())
    }

    /// Takes words back.
    pub fn give_all_back(&self, words: &[Word]) {
        self.free.lock().0.extend_from_slice(words);
    }

    /// Takes a word back.
    pub fn give_back(&self, word: Word) {
        self.give_all_back(&[word]);
    }

    /// The scratch word: the device stores answers there that no thread reads.
    pub fn scratch(&self) -> Word {
        self.scratch
    }
}

/// Makes more words, and returns the pages that contain them.
fn words(device: &Device, free: &mut Vec<Word>) -> Result<Pages> {
    let pages = Pages::new(device, WORDS * size_of::<u64>())?;
    let key = pages.region.local_key();
    for index in (0..WORDS).rev() {
        // SAFETY: inside of the pages, which are aligned and zeroed.
        let at = unsafe { pages.memory.at.cast::<AtomicU64>().add(index) };
        free.push(Word { at, key });
    }
    Ok(pages)
}
