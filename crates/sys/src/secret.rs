//! The secret of a job. The processes of the job share it through the host MPI when they make the
//! first window of a communicator; no message of a first contact contains it. A process proves that
//! it knows the secret by an authentication *tag*: SipHash-2-4 with a 128-bit key and a 128-bit
//! result over the transcript, which is everything that both sides have sent so far. Messages are
//! not encrypted.
//!
//! SipHash is a pseudorandom function for short messages, made to authenticate network traffic. A
//! process without the key can only guess a tag: one of 2^128, with one guess per connection.
//! Invariant: tags are compared in constant time only.

use core::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

use super::random;
use crate::error::Result;

/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;

/// The secret of a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret([u64; 2]);

/// The purpose of a tag. A tag for one purpose is not valid for another.
#[derive(Clone, Copy)]
pub enum TagPurpose {
    /// the name of the secret
    Name = 0,
    /// proves that the responder knows the secret
    Challenge = 1,
    /// proves that the initiator knows the secret, and covers its question
    Request = 2,
    /// covers the responder's answer
    Answer = 3,
    /// shows that a process with the secret has packed a memory handle
    Handle = 4,
}

impl Secret {
    /// Makes a new random secret.
    pub fn fresh() -> Result<Secret> {
        random::bytes::<16>().map(|bytes| Secret::from(words(bytes)))
    }

    /// Makes the secret from the words that another process has sent.
    pub fn from(words: [u64; 2]) -> Secret {
        Secret(words)
    }

    /// The words that are sent to the processes of the job.
    pub fn words(self) -> [u64; 2] {
        self.0
    }

    /// A public number that identifies the secret and reveals nothing about it.
    pub fn name(self) -> u64 {
        words(self.tag(TagPurpose::Name, &[]))[0]
    }

    /// The tag of a transcript. Both sides pass the same pieces in the same order, each of a fixed
    /// length.
    pub fn tag(self, purpose: TagPurpose, transcript: &[&[u8]]) -> [u8; TAG_BYTES] {
        let mut hasher = SipHasher24::new_with_keys(self.0[0], self.0[1]);
        hasher.write(&[purpose as u8]);
        transcript.iter().for_each(|piece| hasher.write(piece));
        hasher.finish128().as_bytes()
    }

    /// Whether `tag` is the tag of this transcript.
    pub fn verifies(
        self,
        tag: &[u8; TAG_BYTES],
        purpose: TagPurpose,
        transcript: &[&[u8]],
    ) -> bool {
        let (right, given) = (words(self.tag(purpose, transcript)), words(*tag));
        // One comparison of all bits: its duration does not depend on where they differ.
        core::hint::black_box((right[0] ^ given[0]) | (right[1] ^ given[1])) == 0
    }
}

fn words(bytes: [u8; 16]) -> [u64; 2] {
    let half = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    [half(0), half(8)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_that_of_the_published_test_vectors() {
        // Key 00 to 0f, message 00 to 0e, whose first byte is the purpose (siphash, vectors.h).
        let bytes: Vec<u8> = (0..16).collect();
        let secret = Secret::from(words(bytes.clone().try_into().unwrap()));
        let tag = secret.tag(TagPurpose::Name, &[&bytes[1..8], &bytes[8..15]]);
        let right = 0x5493_e999_33b0_a811_7e08_ec0f_97cf_c3d9_u128;
        assert_eq!(tag, right.to_be_bytes(), "{tag:02x?}");
    }

    #[test]
    fn a_tag_is_of_one_secret_one_part_and_one_message() {
        let (one, other) = (Secret::fresh().unwrap(), Secret::fresh().unwrap());
        let tag = one.tag(TagPurpose::Request, &[b"all", b"said"]);
        let made = |secret: Secret, purpose, transcript: &[&[u8]]| {
            secret.verifies(&tag, purpose, transcript)
        };
        assert!(made(one, TagPurpose::Request, &[b"all", b"said"]));
        assert!(!made(other, TagPurpose::Request, &[b"all", b"said"]));
        assert!(!made(one, TagPurpose::Answer, &[b"all", b"said"]));
        assert!(!made(one, TagPurpose::Request, &[b"all", b"said", b" "]));
        assert_ne!(one.name(), other.name());
        for bit in 0..128 {
            let wrong = (u128::from_le_bytes(tag) ^ 1 << bit).to_le_bytes();
            assert!(!one.verifies(&wrong, TagPurpose::Request, &[b"all", b"said"]));
        }
    }
}
