//! The meaning of the bytes of a transfer. `type_map` is a datatype flattened, and walks two
//! buffers at once; `basic` names the kinds of predefined elements and the operations defined for
//! each; `reduce` applies operations to window memory. Nothing here knows MPI handles, windows or
//! roads, and nothing keeps state.

pub mod basic;
#[cfg(not(loom))]
pub mod reduce;
pub mod type_map;
