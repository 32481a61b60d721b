//! Descriptor of the memory that a rank exposes in a window.

use crate::fabric::remote::Remote;

/// A descriptor of the memory that a rank exposes. Its owner writes it at creation, before other
/// ranks may read it. Which bytes of it other processes can map is in [`super::mapped_bytes`].
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Descriptor {
    /// offset of the memory in the window's common segment, in bytes
    pub offset: u64,
    /// the owner's displacement unit in bytes
    pub disp_unit: u64,
    /// bytes that the rank exposes, in any memory
    pub exposed: u64,
    /// address of the memory in the owner's process
    pub address: u64,
    /// address of the memory for the device, if the owner has registered it itself; of the leader,
    /// in a dynamic window: the secret of the window's memory handles
    pub remote: Remote,
    /// address of the owner's control words for the device, if the owner has registered them itself
    pub words: Remote,
}

const _: () = assert!(size_of::<Descriptor>() == 64);

impl Descriptor {
    /// Returns a descriptor of memory in the window's common segment.
    pub fn common(offset: u64, address: u64, bytes: u64, disp_unit: u64) -> Descriptor {
        Descriptor { offset, disp_unit, exposed: bytes, address, ..Descriptor::default() }
    }

    /// Returns a descriptor of memory that the owner had before, in its heap or elsewhere.
    pub fn owned(address: u64, exposed: u64, disp_unit: u64) -> Descriptor {
        Descriptor { disp_unit, exposed, address, ..Descriptor::default() }
    }
}
