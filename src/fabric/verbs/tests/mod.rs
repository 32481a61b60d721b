//! The road on a device.

use super::*;
use crate::fabric::Fetch;

#[test]
#[ignore = "needs an RDMA device"]
fn verbs_first() {
    let nic = Nic::open(&Verbs::default()).unwrap();
    let target = Nic::open(&Verbs::default()).unwrap();
    let mut memory = vec![0u64; 1 << 16];
    let exposed = target.expose(memory.as_mut_ptr().cast(), 8 << 16).unwrap();
    for card in [target.card().unwrap()] {
        let peer = nic.peer(&card);
        let at = exposed.remote();
        assert_eq!(peer.fetch(at, Fetch::Add(5)).unwrap(), 0);
        assert_eq!(peer.fetch(at, Fetch::CompareSwap { expect: 5, new: 9 }).unwrap(), 5);
        peer.post(at, 1).unwrap();
        peer.flush().unwrap();
        assert_eq!(peer.read(at).unwrap(), 10);
        for bytes in [8u64, 100, 128, 129, 8192, 8193, 300_000] {
            let data: Vec<u8> = (0..bytes).map(|i| (i * 7 + bytes) as u8).collect();
            let mut back = vec![0u8; bytes as usize];
            // SAFETY: the buffer lives, the target's memory is long enough.
            unsafe { peer.put(at, data.as_ptr(), bytes) }.unwrap();
            peer.flush().unwrap();
            // SAFETY: likewise.
            unsafe { peer.get(back.as_mut_ptr(), at, bytes) }.unwrap();
            peer.flush_local().unwrap();
            assert_eq!(data, back);
        }
        eprintln!("{:?}", nic.counts());
    }
}
