//! Memory of this process that the other processes of the node can map (`heap`), their memory
//! mapped here (`maps`), and a range of either kind (`heap_view`). This crate knows no control
//! words and no MPI: memory of MPI_Alloc_mem and memory of windows are ranges of the same chunks,
//! so that other processes reach a window over either by load and store.

#![cfg(not(loom))]
#![cfg_attr(test, allow(clippy::pedantic))] // tests cast small numbers

use fompi_base::{config, error, messages, number, rank_numbers, sync};
use fompi_sys as sys;

#[allow(dead_code)] // pages move only when a window is made
pub mod adopted;
pub mod gpu;
pub mod heap;
pub mod heap_view;
pub mod maps;
#[allow(dead_code)] // pages move only when a window is made
pub mod own_ranges;
pub mod ranges;
pub mod retention;
pub mod slots;
pub mod window_memory;
pub mod window_memory_cache;

pub use heap::HeapPlace;
pub use heap_view::HeapView;
