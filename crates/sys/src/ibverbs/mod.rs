//! libibverbs, found at run time, so that libfompi also loads where there is none. `verbs` has its
//! structures and constants under their names in C, generated from <infiniband/verbs.h> by
//! `scripts/dev/verbs-types`. This module wraps the objects of libibverbs, which free themselves.
//! No policy. Invariant: an object outlives the objects that are made in it.
//!
//! `ibv_post_send` and `ibv_poll_cq` are inline functions in C: they call through the context.

// The prototypes are compared with those of `library`, and never called: libibverbs would become a
// library that libfompi needs.
#[path = "generated/functions.rs"]
mod functions;
mod library;
#[allow(clippy::all, clippy::undocumented_unsafe_blocks, dead_code)]
#[allow(clippy::missing_docs_in_private_items, missing_docs, non_camel_case_types)]
#[path = "generated/verbs.rs"]
pub mod verbs;

use core::ffi::{CStr, c_int};
use std::sync::Arc;

use super::{last_error, page_bytes};
use crate::error::{Error, Result};
use crate::number::Number;
use crate::sync::{AtomicBool, Ordering};
pub use library::{Functions, GidQuery, Library};
// C has no names for the types of these members of `ibv_send_wr`.
use verbs::*;
pub use verbs::{
    ibv_send_wr__bindgen_ty_2 as ibv_send_wr_wr,
    ibv_send_wr__bindgen_ty_2__bindgen_ty_1 as ibv_send_wr_wr_rdma,
    ibv_send_wr__bindgen_ty_2__bindgen_ty_2 as ibv_send_wr_wr_atomic,
};

/// An address of a port: the bytes of an `ibv_gid`, in network byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gid(pub [u8; 16]);

impl From<ibv_gid> for Gid {
    fn from(gid: ibv_gid) -> Gid {
        // SAFETY: plain data; both members of the union have all its bytes.
        Gid(unsafe { gid.raw })
    }
}

impl From<Gid> for ibv_gid {
    fn from(Gid(raw): Gid) -> ibv_gid {
        ibv_gid { raw }
    }
}

/// `ibv_context_ops::poll_cq`.
type PollCq = unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int;
/// `ibv_context_ops::post_send`.
type PostSend = unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int;

/// A device of this machine that is not opened yet.
pub struct Listed {
    library: &'static Library,
    device: *mut ibv_device,
}

/// The list of the devices of this machine.
pub struct List {
    library: &'static Library,
    first: *mut *mut ibv_device,
    count: usize,
}

impl List {
    /// Gets the list from the library.
    pub fn new(library: &'static Library) -> Result<List> {
        let mut count: c_int = 0;
        // SAFETY: `count` is a local variable.
        let first = unsafe { (library.ibv_get_device_list)(&mut count) };
        if first.is_null() {
            return Err(last_error("ibv_get_device_list"));
        }
        Ok(List { library, first, count: count.max(0).cast_unsigned().to_usize() })
    }

    /// Iterates over the devices.
    pub fn devices(&self) -> impl Iterator<Item = Listed> {
        (0..self.count).map(|index| {
            // SAFETY: the list has `count` devices.
            let device = unsafe { *self.first.add(index) };
            Listed { library: self.library, device }
        })
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the library made the list, and it is freed once; opened devices stay.
        unsafe { (self.library.ibv_free_device_list)(self.first) }
    }
}

impl Listed {
    /// The name of the device, as `ibv_devices` shows it.
    pub fn name(&self) -> String {
        // SAFETY: the device is in a live list, and its name is a C string.
        let name = unsafe { CStr::from_ptr((&raw const (*self.device).name).cast()) };
        name.to_string_lossy().into_owned()
    }

    /// Whether the transport of the device is InfiniBand or RoCE.
    pub fn is_infiniband(&self) -> bool {
        // SAFETY: the device is in a live list.
        unsafe { (*self.device).transport_type == IBV_TRANSPORT_IB }
    }

    /// Opens the device.
    pub fn open(&self) -> Result<Opened> {
        // SAFETY: the device is in a live list.
        let context = unsafe { (self.library.ibv_open_device)(self.device) };
        if context.is_null() {
            return Err(last_error("ibv_open_device"));
        }
        // SAFETY: the context is open; this makes reads of its descriptor non-blocking.
        let tells = unsafe { libc::fcntl((*context).async_fd, libc::F_SETFL, libc::O_NONBLOCK) };
        let (name, failed) = (self.name(), AtomicBool::new(false));
        Ok(Opened { library: self.library, context, name, tells: tells == 0, failed })
    }
}

/// A device that this process uses.
pub struct Opened {
    library: &'static Library,
    context: *mut ibv_context,
    name: String,
    /// whether its events can be read without waiting
    tells: bool,
    /// whether it has reported a fatal error
    failed: AtomicBool,
}

// SAFETY: the functions of libibverbs may be called from any thread (ibv_open_device(3)).
unsafe impl Send for Opened {}
// SAFETY: as for `Send`.
unsafe impl Sync for Opened {}

/// Turns the result of a function that returns 0 or an `errno` into a `Result`.
fn checked(call: &'static str, errno: c_int) -> Result<()> {
    match errno {
        0 => Ok(()),
        // In some versions some functions return -1 and set `errno`.
        -1 => Err(last_error(call)),
        errno => Err(Error::System { call, errno: errno.abs() }),
    }
}

/// Returns a function of the driver, or an error if the driver has none.
fn given<F>(call: &'static str, function: Option<F>) -> Result<F> {
    function.ok_or(Error::System { call, errno: libc::ENOSYS })
}

impl Opened {
    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The library that the device was opened with.
    pub fn library(&self) -> &'static Library {
        self.library
    }

    /// Whether the device has reported a fatal error. Other events, such as a port that goes down
    /// or comes up, are read and ignored, because connections retry.
    pub fn has_failed(&self) -> bool {
        let mut event = ibv_async_event::default();
        let next = self.library.ibv_get_async_event;
        // SAFETY: the context is open, and `event` is a local variable; the read does not block.
        while self.tells && unsafe { next(self.context, &mut event) } == 0 {
            // SAFETY: the event was read just now, and is acknowledged once.
            unsafe { (self.library.ibv_ack_async_event)(&mut event) };
            if event.event_type == IBV_EVENT_DEVICE_FATAL {
                // Relaxed: the flag alone matters, and it is never reset.
                self.failed.store(true, Ordering::Relaxed);
            }
        }
        self.failed.load(Ordering::Relaxed)
    }

    /// The attributes of the device.
    pub fn attributes(&self) -> Result<ibv_device_attr> {
        let mut found = ibv_device_attr::default();
        // SAFETY: the context is open, and `found` is a local variable.
        let answer = unsafe { (self.library.ibv_query_device)(self.context, &mut found) };
        checked("ibv_query_device", answer).map(|()| found)
    }

    /// The attributes of a port; the first port is 1. The library fills in the members that the
    /// structure had when the function got its version, up to `flags`; the rest stays zero.
    pub fn port(&self, port: u8) -> Result<ibv_port_attr> {
        let mut found = ibv_port_attr::default();
        let start = (&raw mut found).cast();
        // SAFETY: the context is open, and `found` is a local variable; the structure that the
        // library fills in is its first part.
        let answer = unsafe { (self.library.ibv_query_port)(self.context, port, start) };
        checked("ibv_query_port", answer).map(|()| found)
    }

    /// The GID of a port at an index.
    pub fn gid(&self, port: u8, index: u32) -> Result<Gid> {
        let mut gid = ibv_gid::default();
        // SAFETY: the context is open, and `gid` is a local variable.
        let answer = unsafe {
            (self.library.ibv_query_gid)(self.context, port, index.cast_signed(), &mut gid)
        };
        checked("ibv_query_gid", answer).map(|()| gid.into())
    }

    /// The type of a GID (`enum ibv_gid_type`), if library and device report it.
    pub fn gid_type(&self, port: u8, index: u32) -> Option<u32> {
        let query = self.library.gid_query.as_ref()?._ibv_query_gid_ex;
        let mut entry = ibv_gid_entry::default();
        // SAFETY: the context is open, and `entry` is a local variable of the given size.
        let answer = unsafe {
            query(self.context, port.into(), index, &mut entry, 0, size_of::<ibv_gid_entry>())
        };
        (answer == 0).then_some(entry.gid_type)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: all objects that were made in the context kept it alive, so none is left.
        unsafe { (self.library.ibv_close_device)(self.context) };
    }
}

/// A protection domain: a key is valid for queue pairs of the same domain.
pub struct Domain {
    device: Opened,
    pd: *mut ibv_pd,
}

// SAFETY: as for `Opened`.
unsafe impl Send for Domain {}
// SAFETY: as for `Send`.
unsafe impl Sync for Domain {}

impl Domain {
    /// Allocates a domain of a device.
    pub fn new(device: Opened) -> Result<Arc<Domain>> {
        // SAFETY: the context is open.
        let pd = unsafe { (device.library.ibv_alloc_pd)(device.context) };
        match pd.is_null() {
            true => Err(last_error("ibv_alloc_pd")),
            false => Ok(Arc::new(Domain { device, pd })),
        }
    }

    /// The device of the domain.
    pub fn device(&self) -> &Opened {
        &self.device
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: all objects that were made in the domain kept it alive, so none is left.
        unsafe { (self.device.library.ibv_dealloc_pd)(self.pd) };
    }
}

/// Registered memory: the device may use it, and its pages are pinned.
pub struct MemoryRegion {
    domain: Arc<Domain>,
    mr: *mut ibv_mr,
    base: u64,
    bytes: u64,
    access: ibv_access_flags,
}

// SAFETY: as for `Opened`.
unsafe impl Send for MemoryRegion {}
// SAFETY: as for `Send`.
unsafe impl Sync for MemoryRegion {}

impl MemoryRegion {
    /// Registers memory. Its pages are pinned, and stay pinned even if the memory is unmapped. The
    /// owner of the keys decides what the device writes there.
    pub fn new(
        domain: &Arc<Domain>,
        base: u64,
        bytes: u64,
        access: ibv_access_flags,
    ) -> Result<Arc<MemoryRegion>> {
        let library = domain.device.library;
        let at = core::ptr::without_provenance_mut(base.to_usize());
        // SAFETY: the domain lives; the kernel checks the memory.
        let mr =
            unsafe { (library.ibv_reg_mr)(domain.pd, at, bytes.to_usize(), access.cast_signed()) };
        if mr.is_null() {
            return Err(last_error("ibv_reg_mr"));
        }
        if library.kernel_copies_at_forks {
            give_to_children(base, bytes);
        }
        Ok(Arc::new(MemoryRegion { domain: domain.clone(), mr, base, bytes, access }))
    }

    /// The length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the memory was registered with all of these access flags.
    pub fn allows(&self, access: ibv_access_flags) -> bool {
        self.access & access == access
    }

    /// Whether `bytes` bytes at `at` are within the region.
    pub fn holds(&self, at: u64, bytes: u64) -> bool {
        at >= self.base && at.wrapping_sub(self.base).saturating_add(bytes) <= self.bytes
    }

    /// The key for requests of this process (`lkey`).
    pub fn local_key(&self) -> u32 {
        // SAFETY: the region lives.
        unsafe { (*self.mr).lkey }
    }

    /// The key for requests of other processes (`rkey`).
    pub fn remote_key(&self) -> u32 {
        // SAFETY: the region lives.
        unsafe { (*self.mr).rkey }
    }
}

/// Lets children of fork(2) have registered memory, as they have all other memory. If a part of the
/// program has called `ibv_fork_init`, as UCX does in each process, libibverbs has just taken it
/// away from them, and they would end by a signal when they use it.
fn give_to_children(base: u64, bytes: u64) {
    let first = base / page_bytes() * page_bytes();
    let length = (base + bytes).next_multiple_of(page_bytes()) - first;
    let at = core::ptr::without_provenance_mut(first.to_usize());
    // A refusal, as for mapped registers of a device, leaves the pages as they were.
    // SAFETY: the advice changes nothing for this process.
    unsafe { libc::madvise(at, length.to_usize(), libc::MADV_DOFORK) };
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        // SAFETY: registered by `new`, and this was the last reference.
        unsafe { (self.domain.device.library.ibv_dereg_mr)(self.mr) };
    }
}

/// A completion queue.
pub struct Completions {
    domain: Arc<Domain>,
    cq: *mut ibv_cq,
    poll: PollCq,
}

// SAFETY: as for `Opened`.
unsafe impl Send for Completions {}
// SAFETY: as for `Send`.
unsafe impl Sync for Completions {}

impl Completions {
    /// Creates a queue for `count` completions.
    pub fn new(domain: &Arc<Domain>, count: u32) -> Result<Arc<Completions>> {
        let context = domain.device.context;
        // SAFETY: the context is open.
        let poll = given("ibv_poll_cq", unsafe { (*context).ops.poll_cq })?;
        // SAFETY: the context is open; no channel, no vector.
        let cq = unsafe {
            let (none, channel) = (core::ptr::null_mut(), core::ptr::null_mut());
            (domain.device.library.ibv_create_cq)(context, count.cast_signed(), none, channel, 0)
        };
        if cq.is_null() {
            return Err(last_error("ibv_create_cq"));
        }
        Ok(Arc::new(Completions { domain: domain.clone(), cq, poll }))
    }

    /// Polls the queue into `found`. Returns the number of completions.
    pub fn poll(&self, found: &mut [ibv_wc]) -> Result<usize> {
        // SAFETY: the queue lives, and `found` has room for as many as its length says.
        let count = unsafe { (self.poll)(self.cq, found.len().to_i32(), found.as_mut_ptr()) };
        usize::try_from(count).map_err(|_| last_error("ibv_poll_cq"))
    }
}

impl Drop for Completions {
    fn drop(&mut self) {
        // SAFETY: its queue pairs kept it alive, so none is left.
        unsafe { (self.domain.device.library.ibv_destroy_cq)(self.cq) };
    }
}

/// A queue pair: one end of a reliable connection.
pub struct QueuePair {
    completions: Arc<Completions>,
    qp: *mut ibv_qp,
    post: PostSend,
    capacity: ibv_qp_cap,
}

// SAFETY: as for `Opened`.
unsafe impl Send for QueuePair {}
// SAFETY: as for `Send`.
unsafe impl Sync for QueuePair {}

impl QueuePair {
    /// Creates a queue pair whose completions go to `completions`.
    pub fn new(completions: &Arc<Completions>, wanted: ibv_qp_cap) -> Result<QueuePair> {
        let domain = &completions.domain;
        // SAFETY: the context is open.
        let post = given("ibv_post_send", unsafe { (*domain.device.context).ops.post_send })?;
        let mut init = ibv_qp_init_attr {
            qp_context: core::ptr::null_mut(),
            send_cq: completions.cq,
            recv_cq: completions.cq,
            srq: core::ptr::null_mut(),
            cap: wanted,
            qp_type: IBV_QPT_RC,
            sq_sig_all: 0,
        };
        // SAFETY: domain and completion queue live, and `init` is a local variable.
        let qp = unsafe { (domain.device.library.ibv_create_qp)(domain.pd, &mut init) };
        if qp.is_null() {
            return Err(last_error("ibv_create_qp"));
        }
        Ok(QueuePair { completions: completions.clone(), qp, post, capacity: init.cap })
    }

    /// The capacity of the queue pair, at least the requested one.
    pub fn capacity(&self) -> ibv_qp_cap {
        self.capacity
    }

    /// The number of the queue pair on its port.
    pub fn number(&self) -> u32 {
        // SAFETY: the queue pair lives.
        unsafe { (*self.qp).qp_num }
    }

    /// Changes the attributes that `mask` names.
    pub fn modify(&self, attributes: &mut ibv_qp_attr, mask: ibv_qp_attr_mask) -> Result<()> {
        let modify = self.completions.domain.device.library.ibv_modify_qp;
        // SAFETY: the queue pair lives, and `attributes` is the caller's own.
        checked("ibv_modify_qp", unsafe { modify(self.qp, attributes, mask.cast_signed()) })
    }

    /// Polls the completion queue.
    pub fn poll(&self, found: &mut [ibv_wc]) -> Result<usize> {
        self.completions.poll(found)
    }

    /// Whether the device has reported a fatal error.
    pub fn has_lost_its_device(&self) -> bool {
        self.completions.domain.device.has_failed()
    }

    /// Posts a chain of requests.
    ///
    /// # Safety
    /// The caller guarantees that the chain and its pieces are valid, and that the memory that they
    /// name stays registered, and may be read or written as they say, until they are done.
    pub unsafe fn post(&self, first: *mut ibv_send_wr) -> Result<()> {
        let mut refused = core::ptr::null_mut();
        // SAFETY: the queue pair lives; the caller guarantees the chain.
        checked("ibv_post_send", unsafe { (self.post)(self.qp, first, &mut refused) })
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        // SAFETY: created by `new`, and this is its owner.
        unsafe { (self.completions.domain.device.library.ibv_destroy_qp)(self.qp) };
    }
}
