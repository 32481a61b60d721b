//! The origin's end of a connection: which requests leave by the call that posts them.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use super::exposures::Exposures;
use super::frames::REQUEST_BYTES;
use super::origin_end::TcpLink;
use super::service_thread::ServiceThread;
use crate::fabric::remote::Remote;
use crate::fabric::request::{Local, Order, Work};

#[test]
fn a_post_that_a_rank_waits_for_leaves_at_once() {
    let thread = ServiceThread::start(&Arc::new(Exposures::default())).unwrap();
    let (here, mut there) = UnixStream::pair().unwrap();
    there.set_nonblocking(true).unwrap();
    let mut link = TcpLink::new(thread.sender(here.into()).unwrap());
    let answer = Box::new(0u64);
    let local = Local { at: (&raw const *answer).expose_provenance() as u64, bytes: 8, key: 0 };
    for number in 1..=20 {
        let order = Order::new(Work::Add(1), Remote::default(), local, true);
        // SAFETY: the answer lives until the end, and none comes.
        unsafe { link.post(&[Order { number, awaited: true, ..order }]) }.unwrap();
        let mut bytes = [0; 2 * REQUEST_BYTES];
        assert_eq!(there.read(&mut bytes).unwrap(), REQUEST_BYTES);
    }
}
