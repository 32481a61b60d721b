//! MPI_Put and MPI_Get (MPI-4.1 §12.3.1, §12.3.2). Their fast path is in
//! `window::quick_window`.

use super::{Buffer, OpenTarget, Place, TargetBuffer, copies, elements, fits, not_null};
use crate::datatype::type_map::{Portion, Shape, each_portion, each_run};
use crate::error::{Error, Result};
use crate::fabric::Way;
use crate::fabric::cma::{Gathering, SMALL_BYTES_MAX};
use crate::fabric::location::{Distant, Location, Unmapped};
use crate::fabric::remote::{AtTarget, Bytes, Network, OPERANDS_COPIED_MAX, Portions};
use crate::messages;
use crate::number::{Number, Offset};
use crate::window::address::{By, Reach};
use core::slice;
use smallvec::SmallVec;

/// Transfers all runs of two type maps between the origin and window memory that is mapped; their
/// displacements zero are `here` and `zero`.
///
/// # Safety
/// All runs of the target are inside of the window, and those of the origin may be read or, for a
/// get, written.
#[inline(always)]
unsafe fn mapped(
    way: Way,
    zero: *mut u8,
    here: *mut u8,
    origin: (&Shape, u64),
    target: (&Shape, u64),
) {
    each_portion(origin, target, |portion| {
        // SAFETY: the caller guarantees both sides of each run.
        unsafe { copies::portion(way, zero, here, portion) };
    });
}

/// MPI_Put and MPI_Get.
///
/// # Safety
/// `origin` describes memory that may be read or, for a get, written.
#[inline(always)]
pub unsafe fn transfer(
    place: Place<'_>,
    way: Way,
    origin: Buffer,
    target: TargetBuffer,
) -> Result<()> {
    let Some((rank, record)) = place.record(target.rank)? else {
        return place.on_proc_null([origin], target);
    };
    if place.memory.is_none() && !place.window.epochs.access.opens(|| record.access()) {
        let closed = OpenTarget { place: &place, rank, record };
        // SAFETY: guaranteed by the caller.
        if unsafe { is_kept(closed, way, (origin, target)) }? {
            return Ok(());
        }
    }
    // Made where a function needs it, so that its parts are in registers.
    let to = || OpenTarget { place: &place, rank, record };
    let Some(length) = place.dense_transfer(origin, target) else {
        // SAFETY: guaranteed by the caller.
        return unsafe { transfer_shaped(to(), way, origin, target) };
    };
    if length == 0 {
        return Ok(());
    }
    not_null(origin.address, &messages::NULL_ORIGIN)?;
    let (here, reach) = (origin.address, Reach { first: 0, bytes: length });
    match place.node.at_once((rank, record), (target.disp, reach)) {
        // SAFETY: `at_once` checked the window's side, the caller guarantees the origin's.
        Some(location) => unsafe { block(&place, way, location, here, length) },
        // SAFETY: the caller guarantees the origin.
        None => unsafe { transfer_located(to(), way, target.disp, here, length) },
    }
}

/// Prepares a transfer with a target that is closed. If its lock is taken by its first use, keeps a
/// small put until then, and takes the lock for any other transfer. Returns whether the put is
/// kept.
///
/// # Errors
/// Those of [`Place::first_access`], and those of the arguments.
///
/// # Safety
/// As for [`transfer`].
#[cold]
unsafe fn is_kept(
    to: OpenTarget<'_>,
    way: Way,
    (origin, target): (Buffer, TargetBuffer),
) -> Result<bool> {
    let OpenTarget { place, rank, record } = to;
    if way == Way::Put
        && record.access().asked().is_some()
        && let Some(bytes @ 1..=OPERANDS_COPIED_MAX) = place.dense_transfer(origin, target)
    {
        not_null(origin.address, &messages::NULL_ORIGIN)?;
        let reach = Reach { first: 0, bytes };
        if let Some(Location::Unmapped(Unmapped::Distant(there))) =
            place.node.locate((rank, record), (target.disp, reach), By::Own)?
            // SAFETY: `locate` checked the window's side, the caller guarantees the origin's.
            && unsafe { place.node.keep_put(rank, there, origin.address, bytes) }
        {
            return Ok(true);
        }
    }
    place.first_access(rank, record).map(|()| false)
}

/// Transfers one block with memory that few accesses reach.
///
/// # Safety
/// The bytes at `here` may be read or, for a get, written.
#[inline(never)]
unsafe fn transfer_located(
    to: OpenTarget<'_>,
    way: Way,
    disp: i64,
    here: *mut u8,
    bytes: u64,
) -> Result<()> {
    to.at((disp, Reach { first: 0, bytes }), By::Own, move |location| {
        // SAFETY: `at` checked the window's side, the caller guarantees the origin's.
        unsafe { block(to.place, way, location, here, bytes) }
    })
}

/// Transfers one block. A small put to memory that the system copies leaves later, and between
/// nodes the bytes may arrive later.
///
/// # Safety
/// `bytes` bytes at `location` are inside of the window, and those at `here` may be read or, for a
/// get, written; between nodes until a flush.
#[inline(always)]
unsafe fn block(
    place: &Place<'_>,
    way: Way,
    location: Location<'_>,
    here: *mut u8,
    bytes: u64,
) -> Result<()> {
    // SAFETY: the caller guarantees both sides.
    unsafe {
        match (location, way) {
            (Location::Mapped(at) | Location::Own(at), _) => {
                copies::mapped(way, at, here, bytes);
                Ok(())
            }
            (Location::Unmapped(Unmapped::Process(process, there)), Way::Put) => {
                put_later(place, process, there, here, bytes)
            }
            (Location::Unmapped(Unmapped::Process(process, there)), Way::Get) => {
                process.get(here, there, bytes)
            }
            (Location::Unmapped(Unmapped::Distant(to)), Way::Put) => {
                to.peer.put(to.at, here, bytes)
            }
            (Location::Unmapped(Unmapped::Distant(from)), Way::Get) => {
                from.peer.get(here, from.at, bytes)
            }
        }
    }
}

/// Puts one block to a process of this node, later if it is small.
///
/// # Safety
/// As for [`Gathering::put_later`].
unsafe fn put_later(
    place: &Place<'_>,
    process: Gathering<'_>,
    there: u64,
    here: *const u8,
    bytes: u64,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    unsafe { process.put_later(there, here, bytes, || place.window.begin_gathering(place.node)) }
}

/// Transfers all other types and counts: lays the runs of both type maps over each other.
///
/// # Safety
/// As for [`transfer`].
#[cold]
unsafe fn transfer_shaped(
    to: OpenTarget<'_>,
    way: Way,
    origin: Buffer,
    target: TargetBuffer,
) -> Result<()> {
    let origin_count = elements(&messages::ORIGIN_COUNT, origin.count)?;
    let target_count = elements(&messages::TARGET_COUNT, target.count)?;
    let origin_shape = to.place.shape(origin.datatype)?;
    let target_shape = to.place.shape(target.datatype)?;
    let origin_bytes = total(&origin_shape, origin_count)?;
    let target_bytes = total(&target_shape, target_count)?;
    match way {
        Way::Put => fits(origin_bytes, target_bytes)?,
        Way::Get => fits(target_bytes, origin_bytes)?,
    }
    if origin_bytes.min(target_bytes) == 0 {
        return Ok(());
    }
    if let Shape::Basic(_) = origin_shape {
        not_null(origin.address, &messages::NULL_ORIGIN)?;
    }
    let shaped = Shaped {
        to,
        way,
        disp: target.disp,
        address: origin.address,
        origin: (&origin_shape, origin_count),
        target: (&target_shape, target_count),
    };
    // SAFETY: the caller guarantees the origin's type map at its address.
    unsafe { shaped.transfer() }
}

/// The bytes of a small put.
type SmallBytes = SmallVec<[u8; 1 << 10]>;
const _: () = assert!(size_of::<[u8; 1 << 10]>() as u64 == SMALL_BYTES_MAX);

/// A transfer whose arguments are checked.
struct Shaped<'a> {
    to: OpenTarget<'a>,
    way: Way,
    disp: i64,
    /// the origin's address
    address: *mut u8,
    origin: (&'a Shape, u64),
    target: (&'a Shape, u64),
}

impl Shaped<'_> {
    /// # Safety
    /// Each run of the origin's type map may be read or, for a get, written.
    unsafe fn transfer(&self) -> Result<()> {
        let (reach, offset) = reach(self.target.0, self.target.1)?;
        let whole = self.to.at((self.disp, reach), By::Own, |location| {
            // Displacement zero of the type map: `reach` begins `offset` bytes after it.
            // SAFETY: `at` checked the window's side, the caller guarantees the origin's.
            unsafe { self.at(location.offset(-offset)) }
        });
        match whole {
            // SAFETY: guaranteed by the caller.
            Err(Error::NotInRegion { .. }) => unsafe { self.run_by_run() },
            whole => whole,
        }
    }

    /// Returns the address of a run of the origin's type map.
    fn here(&self, offset: i64) -> *mut u8 {
        self.address.wrapping_offset(offset.to_isize())
    }

    /// Transfers all runs. `zero`: the location of displacement zero of the target's type map.
    ///
    /// # Safety
    /// As for `transfer`, and all runs of the target are inside of the window.
    unsafe fn at(&self, zero: Location<'_>) -> Result<()> {
        match zero {
            Location::Mapped(zero) | Location::Own(zero) => {
                // SAFETY: guaranteed by the caller.
                unsafe { mapped(self.way, zero, self.address, self.origin, self.target) };
                Ok(())
            }
            // SAFETY: guaranteed by the caller.
            Location::Unmapped(zero) => unsafe { self.unmapped(zero) },
        }
    }

    /// Transfers all runs to or from a target that is not mapped here.
    ///
    /// # Safety
    /// As for `at`.
    unsafe fn unmapped(&self, zero: Unmapped<'_>) -> Result<()> {
        if let (Way::Put, Unmapped::Process(process, there)) = (self.way, zero)
            // SAFETY: guaranteed by the caller.
            && let Some((first, block)) = unsafe { self.small_block() }
        {
            let (there, bytes) = (there.wrapping_add_signed(first), block.len().to_u64());
            // SAFETY: bytes of this function, and the caller guarantees those of the target.
            return unsafe { put_later(self.to.place, process, there, block.as_ptr(), bytes) };
        }
        if let Unmapped::Distant(Distant { peer, at: there }) = zero
            && let Some(to) = peer.at_target()
        {
            let each = |work: &mut dyn FnMut(Portion<'_>)| {
                each_portion(self.origin, self.target, work);
            };
            let portions = Portions { there, here: self.address, each: &each };
            // SAFETY: the caller guarantees both sides of each block until they are done.
            return unsafe { to.transfer(self.way, &portions) };
        }
        let mut runs = zero.runs(self.way);
        each_run(self.origin, self.target, |here, there, length| {
            let there = zero.address().wrapping_add_signed(there);
            // SAFETY: the caller guarantees both sides of each run until they are done.
            unsafe { runs.push(self.here(here), there, length) };
        });
        // SAFETY: the caller guarantees all runs until they are done.
        unsafe { runs.finish() }
    }

    /// Returns a copy of the bytes of a small put, and where they go from displacement zero of the
    /// target's type map, if that is one block.
    ///
    /// # Safety
    /// As for `transfer`.
    unsafe fn small_block(&self) -> Option<(i64, SmallBytes)> {
        let bytes = total(self.target.0, self.target.1).ok()?;
        let (reach, _) = reach(self.target.0, self.target.1).ok()?;
        if bytes > SMALL_BYTES_MAX || reach.bytes != bytes {
            return None;
        }
        let (mut block, mut is_one) = (SmallBytes::new(), true);
        each_run(self.origin, self.target, |here, there, length| {
            is_one &= there == reach.first + block.len().to_u64().cast_signed();
            // SAFETY: the caller guarantees the origin.
            let run =
                unsafe { slice::from_raw_parts(self.here(here).cast_const(), length.to_usize()) };
            block.extend_from_slice(run);
        });
        is_one.then_some((reach.first, block))
    }

    /// Transfers run by run: the regions of a dynamic window need not cover the gaps between the
    /// runs. All runs of the target's type map are found in regions before any byte moves.
    ///
    /// # Safety
    /// As for `transfer`.
    #[cold]
    unsafe fn run_by_run(&self) -> Result<()> {
        all_in_regions(self.target, |reach| self.to.at((self.disp, reach), By::Own, |_| Ok(())))?;
        let mut result = Ok(());
        each_run(self.origin, self.target, |here, there, bytes| {
            let reach = Reach { first: there, bytes };
            if result.is_ok() {
                result = self.to.at((self.disp, reach), By::Own, |location| {
                    // SAFETY: `at` checked the window's side, the caller guarantees the origin's.
                    unsafe { block(self.to.place, self.way, location, self.here(here), bytes) }
                });
            }
        });
        result
    }
}

/// Checks that each piece of a target's type map is in a region of a dynamic window.
pub(super) fn all_in_regions(
    (shape, count): (&Shape, u64),
    mut check: impl FnMut(Reach) -> Result<()>,
) -> Result<()> {
    shape.pieces(count).try_for_each(|piece| {
        let bytes = piece.count * piece.basic.extent().to_u64();
        check(Reach { first: piece.offset, bytes })
    })
}

/// Bytes of data in `count` items.
pub(super) fn total(shape: &Shape, count: u64) -> Result<u64> {
    let bytes = shape.size().checked_mul(count).filter(|bytes| *bytes < 1 << 63);
    bytes.ok_or_else(|| too_large(shape, count))
}

#[cold]
fn too_large(shape: &Shape, count: u64) -> Error {
    Error::DataTooLarge { count, item_bytes: shape.size() }
}

/// Returns the bytes that `count` items touch, and their begin relative to the address of the
/// items.
pub(super) fn reach(shape: &Shape, count: u64) -> Result<(Reach, i64)> {
    let (first, end) = shape.reach(count);
    let too_large = |_| Error::SpanTooLarge { count };
    let bytes = u64::try_from(end - first).map_err(too_large)?;
    let first = i64::try_from(first).map_err(too_large)?;
    Ok((Reach { first, bytes }, first))
}
