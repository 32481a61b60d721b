//! Making and freeing windows (MPI-4.1 §12.2). The steps of a call that makes a window:
//!
//! 1. The first window of a communicator needs a [`CommResources`]: [`settings_check`] compares the
//!    library and the settings of all ranks, and then the ranks make an arena, on one node or on
//!    several. While a rank waits there for others, `report::missing_ranks` reports them.
//! 2. The rank reserves a place for the handle (`window::registry`) and checks the arguments.
//! 3. The ranks agree on the window: [`agreement`] on one node, `wide::exchange` over several. If
//!    one rank cannot make the window, none does.
//! 4. If libfompi does not implement the window, the host MPI makes it; it also gets a handle of
//!    libfompi.
//!
//! Freeing a window waits until all ranks are done with it, and releases its slot.
//!
//! On paper, for the second and later windows of a communicator on one node:
//!
//! | window                       | barriers | system calls of rank 0 | of other ranks       |
//! |------------------------------|----------|------------------------|----------------------|
//! | created                      | 1        | none                   | none                 |
//! | dynamic                      | 1        | getrandom              | none                 |
//! | allocated, kept memory       | 1        | statx, lseek           | none                 |
//! | allocated, kept, was touched | 2        | statx, lseek, mincore  | mincore              |
//! | small, touched again         | 2        | none                   | none                 |
//! | large, all of it touched     | 2        | statx                  | none                 |
//! | small, memory not kept       | 3        | mincore, madvise       | mincore, madvise     |
//! | large, memory not kept       | 3        | memfd_create, mmap, .. | stat, open, mmap, .. |
//!
//! MPI_Win_free adds one barrier to each. The host MPI is called twice, for the kind of the
//! communicator and for the attribute with its resources.

pub mod agreement;
mod communicator_arenas;
pub mod counter_tables;
mod quiet;
mod reuse;
mod settings_check;
mod symmetric;

use super::countdown::{Countdown, QUICK_PER_FULL};
use super::in_use::InUse;
use super::quick_window::{Targets, WindowHead};
use super::registry::Entry;
use super::target::NoTargets;
use super::wide::exchange::Agreed;
use super::{
    Carrier, Delegated, Facts, Flavor, LocalWindow, Window, handles, library_loads, registry,
    synchronise, waits, wide,
};
use crate::config::Config;
use crate::epoch::lock::standing::leaves_after;
use crate::epoch::state::Epochs;
use crate::error::{Error, Result};
use crate::fabric::layout;
use crate::memory::gpu;
use crate::memory::own_ranges::OwnRange;
use crate::messages;
use crate::mpi::attributes::Attributes;
use crate::mpi::comm::{Comm, check};
use crate::mpi::hints::{ADOPT, CONFLICTS, Hints, NONCONTIG};
use crate::mpi::{Handle, Host};
use crate::number::{Number, Offset};
use crate::rank_numbers::{Rank, RankOnNode};
use crate::report::{self, Why};
use crate::sync::{AtomicBool, AtomicU32, AtomicUsize};
use crate::sys::page_bytes;
use agreement::{Memory, Outcome, OwnRequest};
use communicator_arenas::CommResources;
use core::ffi::{c_int, c_void};
use core::ptr;
use parking_lot::Mutex;
use quiet::Arrival;

/// The user's arguments of a call that makes a window.
#[derive(Clone, Copy)]
pub struct WindowRequest {
    /// the call that makes the window
    pub flavor: Flavor,
    /// memory of the user's, for MPI_Win_create
    pub base: *mut c_void,
    /// bytes that this rank exposes
    pub size: isize,
    /// displacement unit in bytes
    pub disp_unit: isize,
    /// the user's info object
    pub info: Handle,
    /// the user's communicator
    pub comm: Handle,
}

/// The result for the user.
pub enum Made {
    /// a window of libfompi
    Window(&'static Window),
    /// a window of the host MPI, because FOMPI_DISABLE is set
    Native(Handle, usize),
}

/// The reason why no window was made.
pub enum Failure {
    /// for the communicator's error handler
    Ours(Error),
    /// an error for which the host MPI has called the error handler already
    Host(c_int),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Ours(error)
    }
}

/// Makes a window. Collective over its communicator. `place`: an error if the user's pointer for
/// the handle is null.
pub fn make(
    host: &'static Host,
    request: WindowRequest,
    place: Result<()>,
) -> core::result::Result<Made, Failure> {
    if request.comm == host.constants.comm_null {
        // MPI_COMM_NULL has no error handler; the host MPI knows which one to call instead.
        return Err(native(host, &request).err().unwrap_or(Failure::Host(0)));
    }
    let comm = match Comm::for_window(host, request.comm) {
        // An invalid communicator has no error handler; the host MPI has called the appropriate
        // one.
        Err(Error::Host(code)) => return Err(Failure::Host(code)),
        Err(_) if Config::get().disable => return pass_to_host(host, &request, place),
        other => other?,
    };
    let Some(resources) = CommResources::of(host, comm, request.flavor.call())? else {
        return pass_to_host(host, &request, place);
    };
    let entry = registry::reserve();
    let why = match resources {
        CommResources::None(why) => why,
        resources => {
            // A failure of this rank is reported to the others, which wait for it in `agree`.
            let mut hints = Hints::of(request.flavor);
            let taken = hints.take(host, request.info);
            let ready =
                place.clone().and(taken).and(entry.as_ref().map(drop).map_err(Error::clone));
            let own_request = || ready.clone().and_then(|()| own_request(&request, &hints));
            let agreed = match agree(host, &resources, request.flavor, own_request())? {
                Agreed::Delegate(Why::Denied) => {
                    agree_apart(host, (&resources, comm), &request, own_request())?
                }
                agreed => agreed,
            };
            match agreed {
                Agreed::Delegate(why) => why,
                Agreed::Made(mut node) => {
                    report_made(host, request.flavor, &node);
                    // Nothing copies the memory of a rank that is alone on its node.
                    let range = node.own_range.as_ref().filter(|_| node.arena().size > 1);
                    report::adoption(request.flavor, node.rank, range);
                    symmetric::place(host, comm, &mut node, &mut hints)?;
                    return Ok(Made::Window(own(host, &request, entry?, hints, *node)));
                }
            }
        }
    };
    let allowed = place.and(entry.as_ref().map(drop).map_err(Error::clone));
    let allowed = allowed.and_then(|()| why.refuses(request.flavor));
    let allowed = allowed.and_then(|()| report::may_delegate(why));
    if !comm.all(host, allowed.is_ok())? {
        allowed?;
        return Err(Error::Wrong(&messages::ANOTHER_REFUSES).into());
    }
    report::delegated(request.flavor, why, Rank(comm.rank(host)?));
    Ok(Made::Window(delegate(host, &request, entry?)?))
}

/// Prints that a window was made, if FOMPI_VERBOSE is set.
fn report_made(host: &Host, flavor: Flavor, node: &LocalWindow) {
    if node.rank == Rank::FIRST && Config::get().verbose {
        let (call, abi, ranks) = (flavor.call(), host.abi_name(), node.size);
        let (bytes, _) = node.exposed();
        let transport = node.transport();
        let mut way = node.way().map(|way| format!(" by {way}")).unwrap_or_default();
        if node.many_nodes().is_some_and(|many| many.part.wide.is_apart) {
            way += ", because its processes may not copy each other's memory";
        }
        let ranks = if ranks == 1 { String::from("1 rank") } else { format!("{ranks} ranks") };
        report::inform_once(format!(
            "{call}: {ranks}, {bytes} bytes, transport: {transport}{way} ({abi})"
        ));
    }
}

/// Lets the host MPI make a window of its own.
fn pass_to_host(
    host: &Host,
    request: &WindowRequest,
    place: Result<()>,
) -> core::result::Result<Made, Failure> {
    place?;
    let (native, base) = native(host, request)?;
    Ok(Made::Native(native, base))
}

/// Agrees on a window. Collective.
fn agree(
    host: &'static Host,
    resources: &CommResources,
    flavor: Flavor,
    own_request: Result<OwnRequest>,
) -> Result<Agreed> {
    let arena = match resources {
        CommResources::None(why) => return Ok(Agreed::Delegate(*why)),
        CommResources::Wide(wide, _) => {
            return wide::exchange::agree(host, wide, flavor, own_request);
        }
        CommResources::Node(arena, _) => arena,
    };
    let memory = own_request.as_ref().map(|own_request| &own_request.memory);
    let is_consecutive = matches!(memory, Ok(Memory::Allocate { contiguous: true, .. }));
    Ok(match agreement::agree(arena, flavor, own_request)? {
        Outcome::Delegate(why) => Agreed::Delegate(why),
        Outcome::Made { slot, common, range } => {
            let mut node = LocalWindow::new(arena, slot, flavor, common, host.threads(), None);
            (node.own_range, node.is_consecutive) = (range, is_consecutive);
            Agreed::Made(Box::new(node))
        }
    })
}

/// Agrees on a window over memory of processes that may not copy each other's memory: they access
/// it like memory of other nodes. Collective.
fn agree_apart(
    host: &'static Host,
    (resources, comm): (&CommResources, Comm),
    request: &WindowRequest,
    own_request: Result<OwnRequest>,
) -> Result<Agreed> {
    match resources.apart(host, comm)? {
        Ok(wide) => wide::exchange::agree(host, &wide, request.flavor, own_request),
        Err(Why::NetOff | Why::NoTransport) => Ok(Agreed::Delegate(Why::Denied)),
        Err(why) => Ok(Agreed::Delegate(why)),
    }
}

/// Returns the request of this rank for the window, or the error that prevents it.
fn own_request(request: &WindowRequest, hints: &Hints) -> Result<OwnRequest> {
    let bytes = request.size.cast_unsigned().to_u64();
    if request.size < 0 {
        return Err(Error::Argument(&messages::SIZE, request.size as i64));
    }
    if request.disp_unit <= 0 {
        return Err(Error::Argument(&messages::DISP_UNIT, request.disp_unit as i64));
    }
    let memory = match request.flavor {
        Flavor::Dynamic => Memory::Dynamic,
        Flavor::Create => {
            let address = request.base.expose_provenance().to_u64();
            if address.checked_add(bytes).is_none() {
                return Err(Error::Argument(&messages::SIZE_BEYOND, request.size as i64));
            }
            Memory::Expose { address, bytes }
        }
        Flavor::Allocate | Flavor::Shared => Memory::Allocate {
            bytes,
            alignment: hints.alignment().max(page_bytes()),
            contiguous: request.flavor == Flavor::Shared && !hints.is_set(NONCONTIG),
        },
    };
    Ok(OwnRequest {
        disp_unit: request.disp_unit.cast_unsigned().to_u64(),
        memory,
        gpu: library_loads::needs_mpi(memory.existing()),
        adopt: Config::get().adopt.for_window(hints.given(ADOPT)),
    })
}

/// Returns a displacement unit as an int; MPI_UNDEFINED if it does not fit into an int, because any
/// other number would be a wrong unit.
pub fn int_or_undefined(host: &Host, disp_unit: isize) -> c_int {
    c_int::try_from(disp_unit).unwrap_or(host.constants.undefined)
}

fn own(
    host: &'static Host,
    request: &WindowRequest,
    entry: Entry,
    hints: Hints,
    mut node: LocalWindow,
) -> &'static Window {
    if hints.is_set(CONFLICTS) {
        node.check_conflicts();
    }
    let c = &host.constants;
    let facts = Facts {
        base: node.base(),
        size: request.size,
        disp_unit: request.disp_unit,
        disp_unit_in_c: int_or_undefined(host, request.disp_unit),
        create_flavor: match request.flavor {
            Flavor::Create => c.flavor_create,
            Flavor::Allocate => c.flavor_allocate,
            Flavor::Shared => c.flavor_shared,
            Flavor::Dynamic => c.flavor_dynamic,
        },
        model: c.unified,
        flavor: request.flavor,
    };
    insert(host, entry, hints, facts, Carrier::Own(node))
}

/// Makes a window of what implements it.
pub(super) fn insert(
    host: &'static Host,
    entry: Entry,
    hints: Hints,
    facts: Facts,
    carrier: Carrier,
) -> &'static Window {
    let node = match &carrier {
        Carrier::Own(node) => Some(node),
        Carrier::Duplicate(duplicate) => Some(duplicate.node),
        Carrier::Host(_) => None, // that MPI checks its epochs
    };
    let size = node.map_or(0, |node| node.size);
    let (pass, targets) = match node {
        Some(node) if !node.spans_nodes() => {
            let arena = node.arena();
            let none = arena.shared_by_windows(|| NoTargets::new(arena.size));
            // SAFETY: the carrier keeps the arena, and is dropped after the targets. The window
            // itself, whose arena that of a duplicate is, is freed after the duplicate.
            (layout::bit_of(arena.rank.in_node_words()).1, unsafe { Targets::new(none) })
        }
        _ => (0, Targets::elsewhere()),
    };
    let is_checked = node.is_some_and(|node| node.conflicts.is_some());
    let is_duplicate = matches!(carrier, Carrier::Duplicate(_));
    if is_checked || is_duplicate || !hints.attributes().is_none() {
        gpu::watch();
    }
    let window = entry.insert(|handle| Window {
        head: WindowHead {
            handle,
            pass,
            host: ptr::from_ref(host),
            targets,
            wide: match &carrier {
                Carrier::Own(node) => node.wide_records(handle),
                _ => ptr::null(),
            },
            epochs: Epochs::new(host.threads()).offering_after(leaves_after(size)),
            countdown: Countdown::new(),
        },
        carrier,
        facts,
        errhandler: AtomicUsize::new(host.constants.errors_are_fatal),
        name: Mutex::new(Vec::new()),
        defaults: hints.attributes(),
        duplicates: AtomicU32::new(0),
        info: Mutex::new(hints),
        attributes: Attributes::default(),
        notifications: InUse::default(),
        raised: AtomicBool::new(false),
    });
    // A window that checks for conflicts takes each lock at once, as with several threads.
    if is_checked || library_loads::may_have_sessions(host) {
        window.several_threads();
    }
    window
}

/// Lets the host MPI create and implement a window. libfompi keeps its handle, name, info and error
/// handler.
fn delegate(
    host: &'static Host,
    request: &WindowRequest,
    entry: Entry,
) -> core::result::Result<&'static Window, Failure> {
    let (native, _) = native(host, request)?;
    let errors_return = host.constants.errors_return;
    // SAFETY: a window that was just made, and a predefined handler.
    check(unsafe { (host.call.win_set_errhandler)(native, errors_return) })?;
    let hints = Hints::of(request.flavor);
    let facts = native_facts(host, native, request.flavor);
    let range = match request.flavor {
        Flavor::Create => {
            let base = request.base.addr().to_u64();
            OwnRange::new(base, request.size.max(0).cast_unsigned().to_u64())
        }
        _ => None,
    };
    Ok(insert(host, entry, hints, facts, Carrier::Host(Delegated { native, _range: range })))
}

/// The attributes of a window of the host MPI.
fn native_facts(host: &Host, native: Handle, flavor: Flavor) -> Facts {
    let attribute = |keyval: c_int| {
        let (mut value, mut found): (*mut c_void, c_int) = (ptr::null_mut(), 0);
        let out = (&raw mut value).cast();
        // SAFETY: local out parameters.
        let code = unsafe { (host.call.win_get_attr)(native, keyval, out, &mut found) };
        if code == 0 && found != 0 { value } else { ptr::null_mut() }
    };
    let number = |keyval: c_int| {
        let value = attribute(keyval).cast::<c_int>();
        // SAFETY: the attribute is a pointer to an int, or absent.
        if value.is_null() { 0 } else { unsafe { *value } }
    };
    let c = &host.constants;
    let size = attribute(c.win_size).cast::<isize>();
    Facts {
        base: attribute(c.win_base).addr(),
        // SAFETY: the attribute is a pointer to an MPI_Aint, or absent.
        size: if size.is_null() { 0 } else { unsafe { *size } },
        disp_unit: number(c.win_disp_unit).to_isize(),
        disp_unit_in_c: number(c.win_disp_unit),
        create_flavor: number(c.win_create_flavor),
        model: number(c.win_model),
        flavor,
    }
}

/// MPI_Win_allocate and MPI_Win_allocate_shared of the host MPI.
type AllocateFn =
    unsafe extern "C-unwind" fn(isize, c_int, Handle, Handle, *mut c_void, *mut Handle) -> c_int;
/// The same with large displacement units.
type AllocateLargeFn =
    unsafe extern "C-unwind" fn(isize, isize, Handle, Handle, *mut c_void, *mut Handle) -> c_int;

/// Makes the window with the host MPI. Returns it and the address of allocated memory.
fn native(host: &Host, request: &WindowRequest) -> core::result::Result<(Handle, usize), Failure> {
    let WindowRequest { flavor, base, size, disp_unit, info, comm } = *request;
    let (mut native, mut memory): (Handle, usize) = (0, 0);
    let (out, made) = ((&raw mut memory).cast::<c_void>(), &raw mut native);
    let call = &host.call;
    let unit = c_int::try_from(disp_unit);
    let wide = || Error::Argument(&messages::DISP_UNIT, disp_unit as i64);
    let allocate = |small: AllocateFn, large: Option<AllocateLargeFn>| match (unit, large) {
        // SAFETY: the arguments are the user's own, passed on unchanged, and out parameters.
        (Ok(unit), _) => Ok(unsafe { small(size, unit, info, comm, out, made) }),
        // SAFETY: as above.
        (_, Some(large)) => Ok(unsafe { large(size, disp_unit, info, comm, out, made) }),
        _ => Err(wide()),
    };
    let code = match flavor {
        // SAFETY: as in `allocate`.
        Flavor::Dynamic => unsafe { (call.win_create_dynamic)(info, comm, made) },
        Flavor::Allocate => allocate(call.win_allocate, call.win_allocate_c)?,
        Flavor::Shared => allocate(call.win_allocate_shared, call.win_allocate_shared_c)?,
        Flavor::Create => match (unit, call.win_create_c) {
            // SAFETY: as in `allocate`.
            (Ok(unit), _) => unsafe { (call.win_create)(base, size, unit, info, comm, made) },
            // SAFETY: as in `allocate`.
            (_, Some(create)) => unsafe { create(base, size, disp_unit, info, comm, made) },
            _ => return Err(wide().into()),
        },
    };
    if code == 0 { Ok((host.handle(native), memory)) } else { Err(Failure::Host(code)) }
}

/// Frees a window. Collective over its communicator: it waits until all ranks are done with the
/// window.
pub fn free(host: &Host, window: &'static Window) -> Result<()> {
    const CALL: &str = "MPI_Win_free";
    window.epochs.may_free()?;
    let mut quiet = None;
    match &window.carrier {
        Carrier::Duplicate(_) => unreachable!("`duplicate::free` frees it"),
        Carrier::Own(node) => {
            if window.is_due::<QUICK_PER_FULL>() {
                window.countdown_ended();
            }
            let leaves = node.own_range.as_ref().is_some_and(OwnRange::leaves_pages);
            let arrival = Arrival::begin(node.arena(), leaves);
            synchronise::last_fence(node, CALL)?;
            quiet = arrival.quiet();
            waits::freed(window, node);
            handles::end_all(window);
            if node.report_waits_of_nodes() {
                // The ranks of other nodes keep their times until rank 0 has read them.
                synchronise::fence_all(node, false)?;
            }
            if node.arena().rank == RankOnNode::LEADER {
                node.arena().slots.free(node.slot);
            }
        }
        Carrier::Host(delegated) => {
            let mut native = delegated.native;
            // SAFETY: an object of this library, not used again.
            check(unsafe { (host.call.win_free)(&mut native) })?;
        }
    }
    let mut window = registry::remove(window);
    if let Carrier::Own(node) = &mut window.carrier
        && !node.spans_nodes()
        && let Some(memory) = node.take_kept()
    {
        reuse::keep(node.arena(), memory);
    }
    drop(window); // no process accesses its memory any more
    quiet.map_or(Ok(()), |quiet| quiet.give_back(CALL))
}
