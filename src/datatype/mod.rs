//! The shape: what the bytes of a transfer mean. `layout` is a datatype flattened, and walks two
//! buffers at once; `basic` names the kinds of predefined elements and says which operation goes
//! with which; `reduce` applies operations to window memory. Nothing here knows MPI handles,
//! windows or roads, and nothing keeps state.

pub mod basic;
pub mod layout;
#[cfg(not(loom))]
pub mod reduce;
