//! Memory of this process that the other processes of the node can map (`heap`), their memory
//! mapped here (`maps`), and a range of either kind (`heap_view`). This room knows no windows and
//! no MPI: memory of MPI_Alloc_mem and memory of windows are ranges of the same chunks, so that
//! other processes reach a window over either by load and store.

#[allow(dead_code)] // pages move only when a window is made
pub mod adopted;
pub mod gpu;
pub mod heap;
pub mod heap_view;
pub mod maps;
pub mod ranges;
pub mod retention;

pub use heap::HeapPlace;
pub use heap_view::HeapView;
