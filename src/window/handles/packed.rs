//! The packed form of a memory handle: 128 bytes that a program sends to other processes in any
//! way. Not for the memory itself. No unsafe, no MPI.
//!
//! | bytes    | contents                                                              |
//! |----------|-----------------------------------------------------------------------|
//! | 0..4     | `FMH` and the version of this form                                    |
//! | 4        | byte order of the owner: 1 little, 2 big                              |
//! | 5        | bytes of an address of the owner                                      |
//! | 6        | 1: the owner cannot order announcements (`epoch::memory_handles`); else 0    |
//! | 7        | 0                                                                     |
//! | 8..12    | rank of the owner in the window                                       |
//! | 12..16   | key by which a device reaches the validity, or 0                      |
//! | 16..24   | address of the memory at the owner                                    |
//! | 24..32   | its bytes                                                             |
//! | 32..40   | generation of the handle                                              |
//! | 40..48   | key by which other nodes reach the memory, or 0                       |
//! | 48..56   | address of the record of the handle at the owner                      |
//! | 56..96   | name of the segment of that record                                    |
//! | 96..104  | its offset there                                                      |
//! | 104..112 | 0                                                                     |
//! | 112..128 | tag: SipHash-2-4 of the bytes before, with the secret of the window   |
//!
//! Numbers are little endian. A process without the secret can only guess a tag, and one with it
//! has no need to: a handle with a right tag is one that a process of the window has packed for
//! this window. A tag says nothing about time: whether the memory is still exposed, the generation
//! says at each access.

#[cfg(any(test, fuzzing))]
mod packed_fuzz;
#[cfg(any(test, fuzzing))]
pub use packed_fuzz::packed_handles;

use crate::arena::descriptor::Descriptor;
use crate::error::{Error, Result};
use crate::fabric::remote::Remote;
use crate::memory::heap::HeapPlace;
use crate::messages;
use crate::number::Number;
use crate::rank_numbers::{Rank, RankOnNode};
use crate::sys::secret::{Secret, TAG_BYTES, TagPurpose};
use crate::sys::segment::Name;

/// Bytes of a packed handle.
pub const BYTES: usize = 128;
const TAGGED: usize = BYTES - TAG_BYTES;
const VERSION: [u8; 4] = *b"FMH\x01";
const ORDER: u8 = if cfg!(target_endian = "little") { 1 } else { 2 };

/// What a packed handle says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// the owner's rank in the window
    pub rank: Rank,
    /// whether each access needs a fence of its own
    pub fences: bool,
    /// the address of the memory at the owner
    pub base: u64,
    /// its bytes
    pub bytes: u64,
    /// the generation of the handle
    pub generation: u64,
    /// the key by which other nodes reach the memory
    pub key: u64,
    /// where the record of the handle is for a device
    pub record: Remote,
    /// where the processes of the owner's node find that record
    pub place: HeapPlace,
}

/// Returns the descriptor of a rank of a new dynamic window. That of the leader has a fresh secret
/// for the handles of the window.
pub fn described(disp_unit: u64, rank: RankOnNode) -> Result<Descriptor> {
    let mut descriptor = Descriptor::owned(0, 0, disp_unit);
    if rank == RankOnNode::LEADER {
        let [at, key] = Secret::fresh()?.words();
        descriptor.remote = Remote { at, key };
    }
    Ok(descriptor)
}

/// Returns the secret that [`described`] has made.
pub fn secret_of(shared: Remote) -> Secret {
    Secret::from([shared.at, shared.key])
}

impl Packed {
    /// Returns the packed form, with the tag of a window.
    pub fn pack(&self, secret: Secret) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&VERSION);
        bytes[4..7].copy_from_slice(&[ORDER, size_of::<usize>().low_u8(), self.fences.into()]);
        bytes[8..12].copy_from_slice(&self.rank.0.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.record.key.low_u32().to_le_bytes());
        let [pid_and_fd, device, inode, length, passer] = self.place.name.to_words();
        let words = [
            self.base,
            self.bytes,
            self.generation,
            self.key,
            self.record.at,
            pid_and_fd,
            device,
            inode,
            length,
            passer,
            self.place.offset,
        ];
        for (place, word) in bytes[16..104].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let tag = secret.tag(TagPurpose::Handle, &[&bytes[..TAGGED]]);
        bytes[TAGGED..].copy_from_slice(&tag);
        bytes
    }

    /// Returns what a packed form says, if a process of a window of `size` ranks with this secret
    /// has packed it.
    ///
    /// # Errors
    /// MPI_ERR_ARG for all other bytes.
    pub fn unpack(bytes: &[u8; BYTES], secret: Secret, size: u32) -> Result<Packed> {
        let tag = bytes[TAGGED..].try_into().expect("the rest");
        let is_right = secret.verifies(&tag, TagPurpose::Handle, &[&bytes[..TAGGED]]);
        // Also with the right tag: the owner may have another version of the library.
        let begin = [VERSION.as_slice(), &[ORDER, size_of::<usize>().low_u8()]].concat();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let name = [word(56), word(64), word(72), word(80), word(88)];
        let packed = Packed {
            rank: Rank(half(8)),
            fences: bytes[6] == 1,
            base: word(16),
            bytes: word(24),
            generation: word(32),
            key: word(40),
            record: Remote { at: word(48), key: half(12).to_u64() },
            place: HeapPlace { name: Name::from_words(&name), offset: word(96) },
        };
        match is_right && bytes[..6] == *begin && bytes[6] <= 1 && packed.may_be(size) {
            true => Ok(packed),
            false => Err(Error::Wrong(&messages::MEM_UNKNOWN)),
        }
    }

    /// Whether the numbers are such that no sum of them wraps around.
    fn may_be(&self, size: u32) -> bool {
        let end = self.base.checked_add(self.bytes).filter(|end| *end <= i64::MAX as u64);
        self.rank.0 < size && end.is_some() && self.generation != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fompi_testkit::Random;

    fn any(random: &mut Random) -> Packed {
        let words: [u64; 5] = core::array::from_fn(|_| random.number());
        Packed {
            rank: Rank(random.below(4) as u32),
            fences: random.below(2) == 1,
            base: random.below(1 << 40),
            bytes: random.below(1 << 40),
            generation: 1 + random.below(1 << 30),
            key: random.number(),
            record: Remote { at: random.number(), key: random.below(1 << 32) },
            place: HeapPlace { name: Name::from_words(&words), offset: random.number() },
        }
    }

    #[test]
    fn a_handle_is_unpacked_by_its_window_alone() {
        let mut random = Random(1);
        let (secret, other) = (Secret::fresh().unwrap(), Secret::fresh().unwrap());
        for _ in 0..1000 {
            let packed = any(&mut random);
            let bytes = packed.pack(secret);
            assert_eq!(Packed::unpack(&bytes, secret, 4), Ok(packed));
            assert!(Packed::unpack(&bytes, other, 4).is_err());
            assert!(Packed::unpack(&bytes, secret, packed.rank.0).is_err(), "no such rank");
        }
    }

    #[test]
    fn a_changed_or_truncated_handle_is_none() {
        let (mut random, secret) = (Random(2), Secret::fresh().unwrap());
        let bytes = any(&mut random).pack(secret);
        for bit in 0..8 * BYTES {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Packed::unpack(&changed, secret, 4).is_err(), "bit {bit}");
        }
        for length in 0..BYTES {
            let mut cut = [0; BYTES];
            cut[..length].copy_from_slice(&bytes[..length]);
            assert!(Packed::unpack(&cut, secret, 4).is_err() || cut == bytes, "{length}");
        }
    }

    #[test]
    fn any_bytes_are_refused_or_safe() {
        let mut random = Random(3);
        for _ in 0..10_000 {
            let bytes: [u8; BYTES] = core::array::from_fn(|_| random.number() as u8);
            packed_handles(&bytes);
            // Bytes whose begin is right.
            let mut right = any(&mut random).pack(Secret::from([1, 2]));
            let at = random.index(BYTES);
            right[at] ^= 1 << random.below(8);
            packed_handles(&right);
        }
    }
}
