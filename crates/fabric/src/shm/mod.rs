//! Transport within a node: loads and stores. [`words`] has the control words, for cells in mapped
//! memory and, in tests, on the heap of one process.

pub mod awake;
pub mod doorbell;
#[cfg(not(loom))]
pub mod mapped;
#[cfg(not(loom))]
mod sweep;
pub mod words;
