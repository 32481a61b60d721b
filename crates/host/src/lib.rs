//! Host MPIs as libfompi and its programs know them: the numbers of each ABI, the types of the
//! functions, and the family of a library. Nothing here is a program of an MPI.

#![cfg(not(loom))]

pub mod constants;
pub mod family;
pub mod functions;
pub mod handle;
