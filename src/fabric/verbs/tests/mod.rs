//! A simulated device for tests of this room, and of the road over it.

#[allow(clippy::missing_safety_doc)] // the C library's functions, as its manual pages say
pub mod fake;
mod jobs;
mod profile;
