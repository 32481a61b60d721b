//! Decoding of the host MPI's datatypes (MPI-4.1 §5.1.13). This file asks the MPI level by level
//! how a type was made, and `decode` makes the layout from the answers. It calls only functions
//! that cannot fail, since errors of datatype calls may end the process: so it checks handles
//! first, as far as a handle shows that it is a datatype. The result is kept with the type, see
//! `cache`, and found by its handle, see `handles`.

mod arguments;
mod array;
mod cache;
mod decode;
#[cfg(any(test, fuzzing))]
mod decode_fuzz;
mod handles;
#[cfg(test)]
mod tests;

#[cfg(fuzzing)]
pub use decode_fuzz::datatypes;

use super::comm::{Comm, check};
use super::handle::{Abi, Handle};
use super::host::Host;
use crate::datatype::basic::Basic;
use crate::datatype::type_map::Shape;
use crate::error::{Error, Result};
use crate::messages;
use crate::number::Number;
use array::ArrayNumbers;
use core::ffi::c_int;
use core::ptr;
use decode::{Arguments, Combiner, Contents, Envelope};

/// The first value of handles that are not predefined in the MPI-5 ABI (MPI-5.0 §20.3).
pub const STANDARD_PREDEFINED_END: Handle = 0x1000;

impl Host {
    /// Returns the type map of a datatype. `comm` is a communicator of this library, so errors are
    /// returned.
    #[inline]
    pub fn shape(&self, comm: Comm, datatype: Handle) -> Result<Shape> {
        match self.tables.types.find(datatype) {
            Some(known) => Ok(Shape::Basic(known.basic)),
            None => match cache::find(datatype) {
                Some(layout) => Ok(Shape::Derived(layout)),
                None => self.derived(comm, datatype),
            },
        }
    }

    #[cold]
    fn derived(&self, comm: Comm, datatype: Handle) -> Result<Shape> {
        if datatype == self.constants.datatype_null {
            return Err(Error::Wrong(&messages::TYPE_NULL));
        }
        if !may_be_datatype(self.abi, datatype) {
            return Err(Error::Wrong(&messages::TYPE_HANDLE));
        }
        if let Some(layout) = cache::get(self, datatype)? {
            return Ok(Shape::Derived(layout));
        }
        comm.takes(self, datatype)?;
        let shape = decode::shape(self, datatype)?;
        if let Shape::Derived(layout) = &shape {
            cache::set(self, datatype, layout)?;
        }
        Ok(shape)
    }

    /// Whether the MPI has the functions for types that were made with large counts. If so they
    /// serve all types; if not, there are no such types.
    fn large_counts(&self) -> bool {
        self.call.type_get_envelope_c.is_some() && self.call.type_get_contents_c.is_some()
    }
}

/// Whether a handle that is not in the table of predefined types can be one of a datatype.
fn may_be_datatype(abi: Abi, handle: Handle) -> bool {
    match abi {
        // Bits 30 and 31 are the storage, 0 is none; bits 26 to 29 are the kind of object.
        Abi::Mpich => handle >> 30 != 0 && handle >> 26 & 0xf == 3,
        Abi::OpenMpi => handle != 0 && handle.is_multiple_of(align_of::<usize>()),
        Abi::Standard => handle >= STANDARD_PREDEFINED_END,
    }
}

impl Contents for Host {
    fn predefined(&self, datatype: Handle) -> Option<Basic> {
        self.tables.types.find(datatype).map(|known| known.basic)
    }

    fn envelope(&self, datatype: Handle) -> Result<Envelope> {
        let mut combiner: c_int = 0;
        let [mut integers, mut addresses, mut counts, mut types] = [0_i64; 4];
        match self.call.type_get_envelope_c {
            Some(get_envelope) if self.large_counts() => {
                let (i, a, c, t) = (&mut integers, &mut addresses, &mut counts, &mut types);
                // SAFETY: local out parameters.
                check(unsafe { get_envelope(datatype, i, a, c, t, &mut combiner) })?;
            }
            _ => {
                let [mut i, mut a, mut t]: [c_int; 3] = [0; 3];
                let get_envelope = self.call.type_get_envelope;
                // SAFETY: local out parameters.
                check(unsafe { get_envelope(datatype, &mut i, &mut a, &mut t, &mut combiner) })?;
                (integers, addresses, types) = (i64::from(i), i64::from(a), i64::from(t));
            }
        }
        let combiner = Combiner::of(&self.constants, combiner)?;
        let [integers, addresses, counts, types] = [integers, addresses, counts, types]
            .map(|number| number.max(0).cast_unsigned().to_usize());
        Ok(Envelope { combiner, integers, addresses, counts, types })
    }

    fn contents(&self, datatype: Handle, envelope: &Envelope) -> Result<Arguments> {
        let mut integers: Vec<c_int> = vec![0; envelope.integers];
        let mut addresses: Vec<isize> = vec![0; envelope.addresses];
        let mut counts: Vec<i64> = vec![0; envelope.counts];
        let mut types: Vec<Handle> = vec![0; envelope.types];
        let (i, a, t) = (integers.as_mut_ptr(), addresses.as_mut_ptr(), types.as_mut_ptr());
        let (ni, na, nt) = (envelope.integers, envelope.addresses, envelope.types);
        match self.call.type_get_contents_c {
            Some(get_contents) if self.large_counts() => {
                let ([ni, na, nt], nc) = (
                    [ni, na, nt].map(|n| n.to_u64().cast_signed()),
                    counts.len().to_u64().cast_signed(),
                );
                let c = counts.as_mut_ptr();
                // SAFETY: each array has the length that is given; handles are no wider than ours.
                check(unsafe { get_contents(datatype, ni, na, nc, nt, i, a, c, t) })?;
            }
            _ => {
                let [ni, na, nt] = [ni, na, nt].map(|n| n.to_i32());
                let get_contents = self.call.type_get_contents;
                // SAFETY: as above.
                check(unsafe { get_contents(datatype, ni, na, nt, i, a, t) })?;
            }
        }
        let width = self.constants.handle_bytes.cast_unsigned().to_usize();
        let types = (0..envelope.types)
            // SAFETY: the MPI wrote that many handles of its own width, side by side.
            .map(|n| unsafe { self.fetch(t.byte_add(n * width)) })
            .collect();
        let mut numbers: Vec<i64> = integers.into_iter().map(i64::from).collect();
        numbers.extend(addresses.into_iter().map(|address| address as i64));
        numbers.extend(counts);
        Ok(Arguments { numbers, types })
    }

    fn bounds(&self, datatype: Handle) -> Result<(i64, i64)> {
        let (mut lower, mut extent) = (0, 0);
        // SAFETY: local out parameters.
        check(unsafe { (self.call.type_get_extent_x)(datatype, &mut lower, &mut extent) })?;
        Ok((lower, extent))
    }

    fn size(&self, datatype: Handle) -> Result<i64> {
        let mut size = 0;
        // SAFETY: a local out parameter.
        check(unsafe { (self.call.type_size_x)(datatype, &mut size) })?;
        Ok(size)
    }

    fn release(&self, datatype: Handle) {
        let mut slot = datatype;
        let slot = ptr::from_mut(&mut slot);
        // SAFETY: `contents` returned this handle, and it is not used after this.
        unsafe {
            self.store(slot, datatype);
            (self.call.type_free)(slot);
        }
    }

    fn arrays(&self) -> &'static ArrayNumbers {
        ArrayNumbers::of(self.abi)
    }
}
