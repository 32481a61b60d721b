//! The road within a node: load and store. [`words`] is its half for control words; where the cells
//! live (mapped memory, or the heap of one process in tests) is not its business.

pub mod awake;
pub mod doorbell;
#[cfg(not(loom))]
pub mod mapped;
#[cfg(not(loom))]
mod sweep;
#[cfg(test)]
pub mod thread_words;
pub mod words;
