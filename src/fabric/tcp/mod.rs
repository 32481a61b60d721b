//! The road's device over TCP: a service thread of the target carries out the requests of an
//! origin, so no call of the target is needed (docs/decisions/0017). [`TcpDevice`] has the memory
//! that this process exposes and the connections that it serves; a [`TcpLink`] is the origin's end
//! of a connection. What is sent, and when, is decided in `wire`, which this room does not name.
//! Invariant: the requests of one connection take effect in their order, one at a time, by
//! instructions of the target's processor.

mod exposures;
mod frames;
mod origin_end;
#[cfg(test)]
mod origin_tests;
mod page_probes;
#[cfg(test)]
mod proxy_tests;
mod served;
mod served_accumulate;
#[cfg(test)]
mod served_model;
#[cfg(test)]
mod served_tests;
mod served_words;
mod served_write;
mod service_thread;
mod stream_options;
mod tcp_device;
mod unsent;
mod word_copies;

pub use origin_end::TcpLink;
pub use stream_options::wait;
pub use tcp_device::{TcpDevice, TcpOpening};
