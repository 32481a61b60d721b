//! The secret of a job: its processes share it through the MPI underneath when they make the first
//! window of a communicator, and it is in no message of the first contact. A process shows that it
//! knows the secret by a *tag*: SipHash-2-4 with a key and an answer of 128 bits over all that both
//! sides have transcript so far. Not for hiding what is transcript.
//!
//! SipHash is a pseudorandom function for short messages, made to authenticate what comes over a
//! network. Whoever does not know the key finds a tag by guessing alone: 2^128 of them, one a call.
//! Invariant: two tags are never compared but in constant time.

use core::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

use crate::error::Result;
use crate::sys::random;

/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;

/// The secret of a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret([u64; 2]);

/// What a tag is for: a tag for one of these is none for another.
#[derive(Clone, Copy)]
pub enum Purpose {
    /// the name of the secret
    Name = 0,
    /// the called process knows it
    Challenge = 1,
    /// the caller knows it, and asks this
    Request = 2,
    /// the called process answers this
    Answer = 3,
}

impl Secret {
    /// A new one.
    pub fn fresh() -> Result<Secret> {
        random::bytes::<16>().map(|bytes| Secret::from(words(bytes)))
    }

    /// The one that another process has told.
    pub fn from(words: [u64; 2]) -> Secret {
        Secret(words)
    }

    /// As it is told to the processes of the job.
    pub fn words(self) -> [u64; 2] {
        self.0
    }

    /// A number by which those who know the secret name it. It gives nothing of it away.
    pub fn name(self) -> u64 {
        words(self.tag(Purpose::Name, &[]))[0]
    }

    /// The tag of what was transcript: the same pieces in the same order, each of a fixed length.
    pub fn tag(self, purpose: Purpose, transcript: &[&[u8]]) -> [u8; TAG_BYTES] {
        let mut hasher = SipHasher24::new_with_keys(self.0[0], self.0[1]);
        hasher.write(&[purpose as u8]);
        transcript.iter().for_each(|piece| hasher.write(piece));
        hasher.finish128().as_bytes()
    }

    /// Whether this is the tag of what was transcript.
    pub fn verifies(self, tag: &[u8; TAG_BYTES], purpose: Purpose, transcript: &[&[u8]]) -> bool {
        let (right, given) = (words(self.tag(purpose, transcript)), words(*tag));
        // One comparison of all bits: how long it takes says nothing of where they differ.
        core::hint::black_box((right[0] ^ given[0]) | (right[1] ^ given[1])) == 0
    }
}

fn words(bytes: [u8; 16]) -> [u64; 2] {
    let both = u128::from_le_bytes(bytes);
    [both as u64, (both >> 64) as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_that_of_the_published_test_vectors() {
        // Key 00 to 0f, message 00 to 0e, whose first byte is the purpose (siphash, vectors.h).
        let bytes: Vec<u8> = (0..16).collect();
        let secret = Secret::from(words(bytes.clone().try_into().unwrap()));
        let tag = secret.tag(Purpose::Name, &[&bytes[1..8], &bytes[8..15]]);
        let right = 0x5493_e999_33b0_a811_7e08_ec0f_97cf_c3d9_u128;
        assert_eq!(tag, right.to_be_bytes(), "{tag:02x?}");
    }

    #[test]
    fn a_tag_is_of_one_secret_one_part_and_one_message() {
        let (one, other) = (Secret::fresh().unwrap(), Secret::fresh().unwrap());
        let tag = one.tag(Purpose::Request, &[b"all", b"said"]);
        let made = |secret: Secret, purpose, transcript: &[&[u8]]| {
            secret.verifies(&tag, purpose, transcript)
        };
        assert!(made(one, Purpose::Request, &[b"all", b"said"]));
        assert!(!made(other, Purpose::Request, &[b"all", b"said"]));
        assert!(!made(one, Purpose::Answer, &[b"all", b"said"]));
        assert!(!made(one, Purpose::Request, &[b"all", b"said", b" "]));
        assert_ne!(one.name(), other.name());
        for bit in 0..128 {
            let wrong = (u128::from_le_bytes(tag) ^ 1 << bit).to_le_bytes();
            assert!(!one.verifies(&wrong, Purpose::Request, &[b"all", b"said"]));
        }
    }
}
