//! The transport's device over TCP: a service thread of the target carries out the requests of an
//! origin, so no call of the target is needed (docs/decisions/0017). [`TcpDevice`] has the memory
//! that this process exposes and the connections that it serves; a [`TcpLink`] is the origin's end
//! of a connection. What is sent, and when, is decided in `wire`, which this room does not name.
//! Invariant: the requests of one connection take effect in their order, one at a time, by
//! instructions of the target's processor.

mod connections;
#[cfg(all(test, not(loom)))]
mod connections_tests;
#[cfg(not(loom))]
mod descriptors;
#[cfg(not(loom))]
mod epoll;
#[cfg(not(loom))]
mod exposures;
#[cfg(not(loom))]
mod frames;
mod hand_over;
#[cfg(test)]
mod hand_over_tests;
#[cfg(not(loom))]
mod origin_end;
#[cfg(all(any(test, fuzzing), not(loom)))]
mod origin_fuzz;
#[cfg(all(test, not(loom)))]
mod origin_tests;
#[cfg(not(loom))]
mod page_probes;
#[cfg(all(test, not(loom)))]
mod proxy_tests;
#[cfg(not(loom))]
mod served;
#[cfg(not(loom))]
mod served_accumulate;
#[cfg(all(any(test, fuzzing), not(loom)))]
mod served_fuzz;
#[cfg(not(loom))]
mod served_lock;
#[cfg(all(test, not(loom)))]
mod served_model;
#[cfg(not(loom))]
mod served_parts;
#[cfg(not(loom))]
mod served_rows;
#[cfg(not(loom))]
mod served_streams;
#[cfg(all(test, not(loom)))]
mod served_tests;
#[cfg(not(loom))]
mod served_words;
#[cfg(not(loom))]
mod served_write;
#[cfg(not(loom))]
mod service_thread;
#[cfg(not(loom))]
mod serving;
#[cfg(test)]
mod serving_model;
#[cfg(all(test, not(loom)))]
mod serving_order_tests;
#[cfg(test)]
mod serving_tests;
mod stream_calls;
#[cfg(not(loom))]
mod stream_options;
#[cfg(not(loom))]
mod tcp_device;
mod unsent;

#[cfg(not(loom))]
pub use frames::MESSAGE_BYTES_MAX;
#[cfg(not(loom))]
pub use origin_end::{INLINE_BYTES_MAX, PLACES, TcpLink};
#[cfg(all(any(test, fuzzing), not(loom)))]
pub use origin_fuzz::tcp_answers;
#[cfg(all(any(test, fuzzing), not(loom)))]
pub use served_fuzz::tcp_requests;
#[cfg(not(loom))]
pub use serving::Serving;
#[cfg(not(loom))]
pub use stream_options::wait;
#[cfg(not(loom))]
pub use tcp_device::{TcpDevice, TcpOpening};
