//! The stock: memory of this process that the other processes of the node can map (`heap`), their
//! memory mapped here (`maps`), and a range of either as one thing (`view`). It knows no windows
//! and no MPI: what MPI_Alloc_mem hands out and what a window's memory is taken from are ranges of
//! the same chunks, so that a window over either is reached by load and store.

pub mod gpu;
pub mod heap;
pub mod maps;
pub mod ranges;
pub mod retention;
pub mod view;

pub use heap::Place;
pub use view::View;
