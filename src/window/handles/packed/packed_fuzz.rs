//! Bytes that a program passes to FOMPI_Mem_unpack, made up: with the tag that they have they are
//! no handle, and with the right tag only if no sum of their numbers wraps around.

use super::{BYTES, Packed, TAGGED};
use crate::sys::secret::{Secret, TagPurpose};

/// A fuzz target: unpacks any bytes, as they are and with a right tag.
pub fn packed_handles(data: &[u8]) {
    let secret = Secret::from([1, 2]);
    let mut bytes = [0; BYTES];
    let length = data.len().min(BYTES);
    bytes[..length].copy_from_slice(&data[..length]);
    assert!(Packed::unpack(&bytes, secret, 4).is_err(), "nobody guesses a tag");
    let tag = secret.tag(TagPurpose::Handle, &[&bytes[..TAGGED]]);
    bytes[TAGGED..].copy_from_slice(&tag);
    if let Ok(packed) = Packed::unpack(&bytes, secret, 4) {
        assert!(packed.rank.0 < 4 && packed.base + packed.bytes <= i64::MAX as u64);
        let again = Packed::unpack(&packed.pack(secret), secret, 4);
        assert_eq!(again, Ok(packed));
    }
}

#[test]
fn kept_inputs() {
    fompi_testkit::replay("packed_handles", packed_handles);
}
