//! The questions of processes to each other as bytes, as the table in `passing` has them, and the
//! addresses at which they are asked.

use crate::error::Error;
use crate::handshake::BYTES;
use crate::number::Number;
use crate::secret::{Secret, TagPurpose};
use crate::segment_name::Name;

/// A question of one process to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// for a file: its descriptor, device, inode and length
    File(Name),
    /// for a descriptor of the process
    Process,
}

impl Question {
    /// Returns it as bytes.
    pub fn to_bytes(self) -> [u8; BYTES] {
        let words = match self {
            Question::File(Name { fd, device, inode, bytes, .. }) => {
                [1, fd.cast_unsigned().to_u64(), device, inode, bytes, 0]
            }
            Question::Process => [2, 0, 0, 0, 0, 0],
        };
        to_bytes(words)
    }

    /// Returns the question, if the bytes are one.
    pub fn of_bytes(bytes: &[u8; BYTES]) -> Option<Question> {
        match to_words(bytes) {
            [1, fd, device, inode, bytes, 0] => {
                let fd = i32::try_from(fd).ok()?;
                Some(Question::File(Name { fd, device, inode, bytes, ..Name::default() }))
            }
            [2, 0, 0, 0, 0, 0] => Some(Question::Process),
            _ => None,
        }
    }
}

/// Returns words as bytes.
pub fn to_bytes(words: [u64; BYTES / 8]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Returns the words that `to_bytes` has converted.
pub fn to_words(bytes: &[u8; BYTES]) -> [u64; BYTES / 8] {
    let word = |at: usize| bytes[8 * at..8 * at + 8].try_into().expect("eight bytes");
    core::array::from_fn(|at| u64::from_le_bytes(word(at)))
}

/// Returns the number in the address of the process with this key.
pub fn address_of(key: Secret) -> u64 {
    let tag = key.tag(TagPurpose::Name, &[b"address"]);
    u64::from_le_bytes(tag[..8].try_into().expect("eight bytes"))
}

/// Returns the error of a call of the system.
pub fn system(call: &'static str, error: &std::io::Error) -> Error {
    Error::System { call, errno: error.raw_os_error().unwrap_or(libc::EPROTO) }
}
