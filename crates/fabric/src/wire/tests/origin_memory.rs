//! Tests of registrations of the origin's memory that outlive their operations.

use super::*;
use parking_lot::Mutex;

/// Memory that the tests give back as the library does.
static LASTING: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// Finds it.
pub fn lasting(at: u64, bytes: u64) -> Option<(u64, u64)> {
    let list = LASTING.lock();
    list.iter().copied().find(|(base, length)| (*base..=base + length - bytes).contains(&at))
}

/// Whole pages, which are unmapped on drop.
pub struct Pages {
    at: *mut libc::c_void,
    bytes: usize,
}

impl Pages {
    /// Maps new pages, which count as memory of the library; in place of others of the tests if
    /// their address is given.
    pub fn lasting(at: *mut libc::c_void, bytes: usize) -> Pages {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
        let fixed = if at.is_null() { 0 } else { libc::MAP_FIXED };
        let flags = flags | libc::MAP_ANONYMOUS | fixed;
        // SAFETY: new memory, or in place of pages that nothing uses.
        let at = unsafe { libc::mmap(at, bytes, rights, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        LASTING.lock().push((at as u64, bytes as u64));
        Pages { at, bytes }
    }

    /// Its words.
    pub fn words(&mut self) -> &mut [u64] {
        // SAFETY: whole pages, which this value owns.
        unsafe { core::slice::from_raw_parts_mut(self.at.cast(), self.bytes / 8) }
    }

    /// Ends the registrations of the pages, and counts them as other memory.
    fn give_back(&self, wire: &Wire) {
        wire.deregister(self.at as u64, self.bytes as u64);
        LASTING.lock().retain(|(base, _)| *base != self.at as u64);
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and not used any more.
        unsafe { libc::munmap(self.at, self.bytes) };
    }
}

/// Any address.
pub const NEW: *mut libc::c_void = core::ptr::null_mut();
const MIB: usize = 1 << 20;

fn memory_of_the_library_is_registered_once_in_pieces(open: Open) {
    let (wire, target, mut pages) = (open(), Side::new(open, 2000), Pages::lasting(NEW, 6 * MIB));
    wire.set_lasting_memory(lasting);
    let peer = target.seen_by(&wire);
    let mut put_from = |word: usize| {
        pages.words()[word..word + 2000].copy_from_slice(&numbers(2000, word as u64));
        put(&peer, target.at(0), &pages.words()[word..word + 2000]).unwrap();
        peer.flush().unwrap();
        assert_eq!(target.word(1999), numbers(2000, word as u64)[1999]);
        let Counts { registrations, regions, registered_bytes, .. } = wire.counts();
        (registrations, regions, registered_bytes / MIB as u64)
    };
    assert_eq!([0, 0, 8, 20_000].map(&mut put_from), [(1, 1, 2); 4]);
    // Across the end of the first piece: one region in place of that one.
    assert_eq!(put_from(2 * MIB / 8 - 1000), (2, 1, 4));
    assert_eq!(put_from(6 * MIB / 8 - 2000), (3, 2, 6));
    assert_eq!([0, 3 * MIB / 8, 5 * MIB / 8].map(&mut put_from), [(3, 2, 6); 3]);
    pages.give_back(&wire);
    assert_eq!((wire.counts().regions, wire.counts().registered_bytes), (0, 0));
}

fn memory_at_the_address_of_other_memory_is_sent_as_it_is(open: Open) {
    let (wire, target, mut pages) = (open(), Side::new(open, 2000), Pages::lasting(NEW, MIB));
    wire.set_lasting_memory(lasting);
    let (peer, at) = (target.seen_by(&wire), pages.at);
    for round in 1..=10 {
        pages.words().fill(round);
        put(&peer, target.at(0), &pages.words()[..2000]).unwrap();
        peer.flush().unwrap();
        assert!((0..2000).all(|index| target.word(index) == round));
        assert_eq!((wire.counts().regions, wire.counts().registrations), (1, round));
        pages.give_back(&wire);
        core::mem::forget(pages);
        pages = Pages::lasting(at, MIB);
    }
    pages.give_back(&wire);
}

/// Makes a process that may register `bytes` bytes beyond the blocks and answers of the transport.
fn limited(bytes: usize) -> Wire {
    let own = pool::BLOCKS * pool::BLOCK_BYTES + 4096;
    let profile = Profile { locked_max: own + bytes, ..Profile::default() };
    let wire = on_profile(&profile, &Verbs::default()).unwrap();
    wire.set_lasting_memory(lasting);
    wire
}

#[test]
fn at_the_limit_the_memory_that_was_used_longest_ago_makes_room() {
    let (wire, target) = (limited(5 * MIB), Side::new(on_fake, 4 * MIB / 8));
    let peer = target.seen_by(&wire);
    let mut all = [(); 3].map(|()| Pages::lasting(NEW, 2 * MIB));
    let mut put_from = |index: usize| {
        put(&peer, target.at(0), &all[index].words()[..2000]).unwrap();
        peer.flush().unwrap();
        (wire.counts().registrations, wire.counts().regions)
    };
    assert_eq!([0, 1, 0].map(&mut put_from), [(1, 1), (2, 2), (2, 2)]);
    assert_eq!([2, 0].map(&mut put_from), [(3, 2), (3, 2)], "in place of 1");
    assert_eq!([1, 0].map(&mut put_from), [(4, 2), (4, 2)], "in place of 2");
    // Other buffers and windows come first, too.
    let other = numbers(4 * MIB / 8, 0);
    put(&peer, target.at(0), &other).unwrap();
    peer.flush().unwrap();
    assert_eq!(wire.counts().regions, 0);
    assert_eq!(put_from(0), (6, 1));
    let mut words = vec![0u64; 4 * MIB / 8];
    let exposed = wire.expose(words.as_mut_ptr().cast(), 4 * MIB as u64).unwrap();
    assert_eq!(wire.counts().regions, 1);
    // No piece fits any more, but a buffer alone.
    assert_eq!(put_from(0), (7, 1));
    drop(exposed);
    assert_eq!(put_from(0), (8, 1));
    all.iter().for_each(|pages| pages.give_back(&wire));
    assert_eq!(wire.counts().regions, 0);
}

#[test]
fn memory_in_use_stays_registered_at_the_limit() {
    let (wire, target) = (limited(5 * MIB), Side::new(on_fake, 4 * MIB / 8));
    let (peer, mut pages) = (target.seen_by(&wire), Pages::lasting(NEW, 2 * MIB));
    let other = numbers(4 * MIB / 8, 0);
    pages.words().fill(3);
    put(&peer, target.at(0), pages.words()).unwrap();
    let refused = put(&peer, target.at(0), &other).unwrap_err();
    assert!(matches!(refused, Error::Registration { .. }), "{refused}");
    peer.flush().unwrap();
    assert_eq!((target.word(0), target.word(2 * MIB / 8 - 1)), (3, 3));
    put(&peer, target.at(0), &other).unwrap();
    peer.flush().unwrap();
    assert_eq!(target.word(0), other[0]);
    pages.give_back(&wire);
}

rdma_cases! {
    memory_of_the_library_is_registered_once_in_pieces
    memory_at_the_address_of_other_memory_is_sent_as_it_is
}
