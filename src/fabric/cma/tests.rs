//! The road by the kernel's copy, with this process as the target.

use super::*;
use crate::error::Class;
use crate::sys::process;

fn own() -> Process {
    Process { rank: 3, pid: process::id() }
}

#[test]
fn a_put_is_there_and_a_get_is_here_when_it_returns() {
    let (from, mut to) = (*b"sixteen bytes ..", [0u8; 16]);
    let there = (&raw mut to).addr() as u64;
    // SAFETY: both buffers are 16 bytes of this test.
    unsafe { own().put(there, from.as_ptr(), 16) }.unwrap();
    let mut back = [0u8; 16];
    // SAFETY: likewise.
    unsafe { own().get(back.as_mut_ptr(), there, 16) }.unwrap();
    assert_eq!(back, from);
}

#[test]
fn an_address_that_is_not_there_is_named_with_its_rank() {
    let byte = 0u8;
    // SAFETY: nothing can be written there.
    let error = unsafe { own().put(16, &raw const byte, 1) }.unwrap_err();
    assert_eq!(error, Error::Fault { rank: 3, address: 16 });
    assert_eq!(error.class(), Class::RmaRange);
    assert_eq!(error.to_string(), "address 0x10 of rank 3 cannot be read or written");
}

#[test]
fn a_batch_moves_all_runs() {
    let from: Vec<u8> = (0..9000u32).map(|i| (i % 251) as u8).collect();
    let mut to = vec![0u8; 9000];
    let mut batch = Batch::new(own(), Way::Put);
    let there = to.as_mut_ptr().addr() as u64;
    for at in (0..9000).step_by(3) {
        // SAFETY: inside of both vectors, which live until the batch is finished.
        unsafe { batch.push(from.as_ptr().cast_mut().add(at), there + at as u64, 2) };
    }
    // SAFETY: likewise.
    unsafe { batch.finish() }.unwrap();
    for (at, byte) in to.iter().enumerate() {
        assert_eq!(*byte, if at % 3 == 2 { 0 } else { from[at] });
    }
}

#[test]
fn a_cookie_is_seen_or_not() {
    let cookie = 0x1234_5678_9abc_def0u64;
    let address = (&raw const cookie).addr() as u64;
    assert!(own().shows(address, cookie));
    assert!(!own().shows(address, cookie + 1));
    assert!(!own().shows(0, cookie));
}
