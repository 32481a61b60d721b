//! libibverbs, found at run time: the library loads where there is none, and names it nowhere as
//! needed. `types` are its structures; here are its functions, and what they make as objects that
//! give themselves back. No policy. Invariant: an object outlives those that are made in it.
//!
//! `ibv_post_send` and `ibv_poll_cq` are inline functions in C: they call through the context.

mod library;
#[cfg(test)]
mod proof;
pub mod types;

use core::ffi::{CStr, c_int};
use std::sync::Arc;

use super::last_error;
use crate::error::{Error, Result};
use crate::sync::{AtomicBool, Ordering};
pub use library::Library;
use types::*;

/// A device of this machine that is not opened yet.
pub struct Listed {
    library: &'static Library,
    device: *mut Device,
}

/// The devices of this machine, as long as it lives.
pub struct List {
    library: &'static Library,
    first: *mut *mut Device,
    count: usize,
}

impl List {
    /// Asks the library for all devices.
    pub fn new(library: &'static Library) -> Result<List> {
        let mut count: c_int = 0;
        // SAFETY: `count` is ours.
        let first = unsafe { (library.get_device_list)(&mut count) };
        if first.is_null() {
            return Err(last_error("ibv_get_device_list"));
        }
        Ok(List { library, first, count: count.max(0) as usize })
    }

    /// One after the other.
    pub fn devices(&self) -> impl Iterator<Item = Listed> {
        (0..self.count).map(|index| {
            // SAFETY: the list has so many devices.
            let device = unsafe { *self.first.add(index) };
            Listed { library: self.library, device }
        })
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the list is the library's and is freed once; opened devices stay.
        unsafe { (self.library.free_device_list)(self.first) }
    }
}

impl Listed {
    /// Its name, as `ibv_devices` shows it.
    pub fn name(&self) -> String {
        // SAFETY: the device is in a list that lives, and its name is a C string.
        let name = unsafe { CStr::from_ptr((&raw const (*self.device).name).cast()) };
        name.to_string_lossy().into_owned()
    }

    /// Whether its reliable connections are those of InfiniBand or RoCE.
    pub fn is_infiniband(&self) -> bool {
        // SAFETY: the device is in a list that lives.
        unsafe { (*self.device).transport_type == TRANSPORT_IB }
    }

    /// Opens it.
    pub fn open(&self) -> Result<Opened> {
        // SAFETY: the device is in a list that lives.
        let context = unsafe { (self.library.open_device)(self.device) };
        if context.is_null() {
            return Err(last_error("ibv_open_device"));
        }
        // SAFETY: the context is open; its descriptor is asked for events without waiting.
        let tells = unsafe { libc::fcntl((*context).async_fd, libc::F_SETFL, libc::O_NONBLOCK) };
        let (name, failed) = (self.name(), AtomicBool::new(false));
        Ok(Opened { library: self.library, context, name, tells: tells == 0, failed })
    }
}

/// A device that this process uses.
pub struct Opened {
    library: &'static Library,
    context: *mut Context,
    name: String,
    /// whether it can be asked for events
    tells: bool,
    /// whether it has told that it failed
    failed: AtomicBool,
}

// SAFETY: the functions of libibverbs may be called from any thread (ibv_open_device(3)).
unsafe impl Send for Opened {}
// SAFETY: likewise.
unsafe impl Sync for Opened {}

/// What a function says that returns 0 or an `errno`.
fn checked(call: &'static str, errno: c_int) -> Result<()> {
    match errno {
        0 => Ok(()),
        // Some of them return -1 and set `errno`, in some versions.
        -1 => Err(last_error(call)),
        errno => Err(Error::System { call, errno: errno.abs() }),
    }
}

impl Opened {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The library that drives it.
    pub fn library(&self) -> &'static Library {
        self.library
    }

    /// Whether it has failed for good, as far as it has told. All that it tells is taken: of ports
    /// that go and come it need not be known, because their connections try again.
    pub fn has_failed(&self) -> bool {
        let mut event = AsyncEvent { element: 0, event_type: 0 };
        // SAFETY: the context is open, the event ours; it does not wait.
        while self.tells && unsafe { (self.library.get_async_event)(self.context, &mut event) } == 0
        {
            // SAFETY: an event that was taken, once.
            unsafe { (self.library.ack_async_event)(&mut event) };
            if event.event_type == EVENT_DEVICE_FATAL {
                // Relaxed: it says it all, and stays so.
                self.failed.store(true, Ordering::Relaxed);
            }
        }
        self.failed.load(Ordering::Relaxed)
    }

    /// What it can do.
    pub fn attributes(&self) -> Result<DeviceAttributes> {
        // SAFETY: plain data, for which zero is a value.
        let mut found: DeviceAttributes = unsafe { core::mem::zeroed() };
        // SAFETY: the context is open and `found` ours.
        let answer = unsafe { (self.library.query_device)(self.context, &mut found) };
        checked("ibv_query_device", answer).map(|()| found)
    }

    /// The state of a port, counted from 1. The library fills in what was in the structure when
    /// the function got its version, `flags` being the last; the rest stays zero.
    pub fn port(&self, port: u8) -> Result<PortAttributes> {
        // SAFETY: plain data, for which zero is a value.
        let mut found: PortAttributes = unsafe { core::mem::zeroed() };
        // SAFETY: the context is open and `found` ours, with room behind it.
        let answer = unsafe { (self.library.query_port)(self.context, port, &mut found) };
        checked("ibv_query_port", answer).map(|()| found)
    }

    /// An address of a port, by its index.
    pub fn gid(&self, port: u8, index: u32) -> Result<Gid> {
        let mut gid = Gid::default();
        // SAFETY: the context is open and `gid` ours.
        let answer =
            unsafe { (self.library.query_gid)(self.context, port, index as c_int, &mut gid) };
        checked("ibv_query_gid", answer).map(|()| gid)
    }

    /// The kind of an address (`enum ibv_gid_type`), if library and device tell it.
    pub fn gid_type(&self, port: u8, index: u32) -> Option<u32> {
        let query = self.library.query_gid_ex?;
        let mut entry = GidEntry::default();
        // SAFETY: the context is open and `entry` ours, of the size that is said.
        let answer = unsafe {
            query(self.context, port.into(), index, &mut entry, 0, size_of::<GidEntry>())
        };
        (answer == 0).then_some(entry.gid_type)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: what was made in it has held it alive, so nothing of it is left.
        unsafe { (self.library.close_device)(self.context) };
    }
}

/// A protection domain: keys are valid for queue pairs of the same one.
pub struct Domain {
    device: Opened,
    pd: *mut Pd,
}

// SAFETY: as for `Opened`.
unsafe impl Send for Domain {}
// SAFETY: likewise.
unsafe impl Sync for Domain {}

impl Domain {
    /// A domain of a device.
    pub fn new(device: Opened) -> Result<Arc<Domain>> {
        // SAFETY: the context is open.
        let pd = unsafe { (device.library.alloc_pd)(device.context) };
        match pd.is_null() {
            true => Err(last_error("ibv_alloc_pd")),
            false => Ok(Arc::new(Domain { device, pd })),
        }
    }

    /// Its device.
    pub fn device(&self) -> &Opened {
        &self.device
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: what was made in it has held it alive.
        unsafe { (self.device.library.dealloc_pd)(self.pd) };
    }
}

/// Memory that the device may use, kept in place.
pub struct Region {
    domain: Arc<Domain>,
    mr: *mut Mr,
    base: u64,
    bytes: u64,
    access: c_int,
}

// SAFETY: as for `Opened`.
unsafe impl Send for Region {}
// SAFETY: likewise.
unsafe impl Sync for Region {}

impl Region {
    /// Registers memory. It is kept in place, and stays so even if it is unmapped. What the device
    /// writes there by itself or for others is up to who gives the key away.
    pub fn new(domain: &Arc<Domain>, base: u64, bytes: u64, access: c_int) -> Result<Arc<Region>> {
        let library = domain.device.library;
        let at = core::ptr::without_provenance_mut(base as usize);
        // SAFETY: the domain lives; the kernel checks the memory.
        let mr = unsafe { (library.reg_mr)(domain.pd, at, bytes as usize, access) };
        match mr.is_null() {
            true => Err(last_error("ibv_reg_mr")),
            false => Ok(Arc::new(Region { domain: domain.clone(), mr, base, bytes, access })),
        }
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it was registered with all of these rights.
    pub fn allows(&self, access: c_int) -> bool {
        self.access & access == access
    }

    /// Whether these bytes are inside.
    pub fn holds(&self, at: u64, bytes: u64) -> bool {
        at >= self.base && at.wrapping_sub(self.base).saturating_add(bytes) <= self.bytes
    }

    /// The key for this process.
    pub fn local_key(&self) -> u32 {
        // SAFETY: the region lives.
        unsafe { (*self.mr).lkey }
    }

    /// The key for others.
    pub fn remote_key(&self) -> u32 {
        // SAFETY: the region lives.
        unsafe { (*self.mr).rkey }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: registered once, and nobody has it any more.
        unsafe { (self.domain.device.library.dereg_mr)(self.mr) };
    }
}

/// Where the device says which requests are done.
pub struct Completions {
    domain: Arc<Domain>,
    cq: *mut Cq,
    poll: PollCq,
}

// SAFETY: as for `Opened`.
unsafe impl Send for Completions {}
// SAFETY: likewise.
unsafe impl Sync for Completions {}

impl Completions {
    /// A queue for so many.
    pub fn new(domain: &Arc<Domain>, count: u32) -> Result<Arc<Completions>> {
        let context = domain.device.context;
        // SAFETY: the context is open; no channel, no vector.
        let cq = unsafe {
            let none = core::ptr::null_mut();
            (domain.device.library.create_cq)(context, count as c_int, none, none, 0)
        };
        if cq.is_null() {
            return Err(last_error("ibv_create_cq"));
        }
        // SAFETY: the context is open.
        let poll = unsafe { (*context).ops.poll_cq };
        Ok(Arc::new(Completions { domain: domain.clone(), cq, poll }))
    }

    /// Takes what is there, at most as many as fit; how many.
    pub fn poll(&self, found: &mut [Completion]) -> Result<usize> {
        // SAFETY: the queue lives, and there is room for so many.
        let count = unsafe { (self.poll)(self.cq, found.len() as c_int, found.as_mut_ptr()) };
        usize::try_from(count).map_err(|_| last_error("ibv_poll_cq"))
    }
}

impl Drop for Completions {
    fn drop(&mut self) {
        // SAFETY: queue pairs have held it alive.
        unsafe { (self.domain.device.library.destroy_cq)(self.cq) };
    }
}

/// One end of a reliable connection.
pub struct QueuePair {
    completions: Arc<Completions>,
    qp: *mut Qp,
    post: PostSend,
    capacity: QpCapacity,
}

// SAFETY: as for `Opened`.
unsafe impl Send for QueuePair {}
// SAFETY: likewise.
unsafe impl Sync for QueuePair {}

impl QueuePair {
    /// An end whose completions go there.
    pub fn new(completions: &Arc<Completions>, wanted: QpCapacity) -> Result<QueuePair> {
        let domain = &completions.domain;
        let mut init = QpInit {
            qp_context: core::ptr::null_mut(),
            send_cq: completions.cq,
            recv_cq: completions.cq,
            srq: core::ptr::null_mut(),
            cap: wanted,
            qp_type: QPT_RC,
            sq_sig_all: 0,
        };
        // SAFETY: domain and completion queue live, `init` is ours.
        let qp = unsafe { (domain.device.library.create_qp)(domain.pd, &mut init) };
        if qp.is_null() {
            return Err(last_error("ibv_create_qp"));
        }
        // SAFETY: the context is open.
        let post = unsafe { (*domain.device.context).ops.post_send };
        Ok(QueuePair { completions: completions.clone(), qp, post, capacity: init.cap })
    }

    /// What it was given, at least what was wanted.
    pub fn capacity(&self) -> QpCapacity {
        self.capacity
    }

    /// Its number on its port.
    pub fn number(&self) -> u32 {
        // SAFETY: the queue pair lives.
        unsafe { (*self.qp).qp_num }
    }

    /// Changes the attributes that `mask` names.
    pub fn modify(&self, attributes: &mut QpAttributes, mask: c_int) -> Result<()> {
        let modify = self.completions.domain.device.library.modify_qp;
        // SAFETY: the queue pair lives, `attributes` is ours.
        checked("ibv_modify_qp", unsafe { modify(self.qp, attributes, mask) })
    }

    /// Takes completions of its queue.
    pub fn poll(&self, found: &mut [Completion]) -> Result<usize> {
        self.completions.poll(found)
    }

    /// Whether the device has failed for good, as far as it has told.
    pub fn has_lost_its_device(&self) -> bool {
        self.completions.domain.device.has_failed()
    }

    /// Gives a chain of requests to the device.
    ///
    /// # Safety
    /// The chain and its pieces are valid; the memory that they name is registered and stays so,
    /// and may be read or written as they say, until they are done.
    pub unsafe fn post(&self, first: *mut Request) -> Result<()> {
        let mut refused = core::ptr::null_mut();
        // SAFETY: the queue pair lives; the caller vouches for the chain.
        checked("ibv_post_send", unsafe { (self.post)(self.qp, first, &mut refused) })
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        // SAFETY: made once, and nobody has it any more.
        unsafe { (self.completions.domain.device.library.destroy_qp)(self.qp) };
    }
}
