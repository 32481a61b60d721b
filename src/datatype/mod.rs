//! Layout and operations of the bytes of a transfer. `type_map` is a flattened datatype, and walks
//! two buffers at once; `basic` names the kinds of predefined elements and the operations defined
//! for each; `reduce` applies operations to window memory. No code here knows MPI handles, windows
//! or transports, and none keeps state.

pub mod basic;
#[cfg(not(loom))]
pub mod reduce;
pub mod type_map;
