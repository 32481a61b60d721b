//! An endpoint of libfabric with exposed memory, and its one-sided operations on the memory of one
//! peer. Invariant: memory that a device may access is atomic numbers, and outlives its objects.

use super::fabric::*;
use super::fabric_library::{FabricLibrary, Provider};
use fompi_base::number::Number;
use fompi_base::sync::{AtomicU64, Ordering};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

/// The numbers that an endpoint exposes, and those that its operations send and receive.
pub const WORDS: usize = 1 << 14;
/// The time after which an operation counts as lost.
const LOST: Duration = Duration::from_secs(5);
/// The access of a peer.
const REMOTE: u32 = FI_REMOTE_READ | FI_REMOTE_WRITE;
/// The result of a function that a provider does not have.
const NO_FUNCTION: c_int = -libc::ENOSYS;

/// The results that mean "not now" and "an error entry is there".
const AGAIN: isize = -(FI_EAGAIN.cast_signed() as isize);
const HAS_ERROR: isize = -(FI_EAVAIL.cast_signed() as isize);

/// Calls a function through the table of an object. `SAFETY`: the object is open, and the arguments
/// are as fabric.h demands.
macro_rules! through {
    ($object:expr, $($table:ident).+ => $function:ident($($argument:expr),* $(,)?)) => {
        (*(*$object).$($table).+).$function.map_or(NO_FUNCTION as _, |function| {
            function($($argument),*)
        })
    };
}

/// An object that closes itself.
struct Object(*mut fid);

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: an open object, which nothing uses any more.
        _ = unsafe { through!(self.0, ops => close(self.0)) };
    }
}

/// A page of numbers.
#[repr(C, align(4096))]
struct WordPage([AtomicU64; 512]);

fn pages() -> Vec<WordPage> {
    let page = || WordPage([const { AtomicU64::new(0) }; 512]);
    (0..WORDS / 512).map(|_| page()).collect()
}

/// Registered memory.
pub struct Registered {
    region: *mut fid_mr,
    _object: Object,
}

/// What another process needs to reach memory of an endpoint.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct FabricReach {
    /// address of the endpoint
    pub name: Vec<u8>,
    /// address of the first number
    pub base: u64,
    /// key of the memory
    pub key: u64,
}

/// An operation on the peer's memory. Numbers of it are at `at`, those of this process at `own`.
#[derive(Clone, Copy)]
pub enum Operation {
    /// a write of as many numbers
    Write(usize),
    /// a write whose completion means that the peer sees it (FI_DELIVERY_COMPLETE)
    Deliver(usize),
    /// a read of as many numbers
    Read(usize),
    /// an addition of the number at `own`
    Add,
    /// an addition that returns the number before it at `own` + 1
    FetchAdd,
    /// stores the number at `own` if the number at `own` + 2 is there; returns the number before it
    /// at `own` + 1
    CompareSwap,
}

/// The objects of an endpoint, in the order in which they close.
struct Objects {
    endpoint: *mut fid_ep,
    _endpoint_object: Object,
    queue: *mut fid_cq,
    _queue_object: Object,
    addresses: *mut fid_av,
    _addresses_object: Object,
    domain: *mut fid_domain,
    _domain_object: Object,
    _fabric_object: Object,
}

impl Objects {
    fn open(provider: &Provider) -> Result<Objects, String> {
        let (library, none, info) = (provider.library, ptr::null_mut(), provider.info);
        let fabric = library.fabric(provider)?;
        let fabric_object = Object(fabric.cast());
        let mut cq = fi_cq_attr { size: 256, format: FI_CQ_FORMAT_CONTEXT, ..Default::default() };
        let mut av = fi_av_attr { type_: provider.domain.av_type, count: 2, ..Default::default() };
        let mut domain: *mut fid_domain = ptr::null_mut();
        let (mut queue, mut addresses) = (ptr::null_mut(), ptr::null_mut());
        let mut endpoint: *mut fid_ep = ptr::null_mut();
        // SAFETY: objects that are open, attributes of the provider, and local out parameters. Each
        // object has its `fid` first.
        unsafe {
            let code = through!(fabric, ops => domain(fabric, info, &mut domain, none));
            library.checked("fi_domain", code)?;
            let domain_object = Object(domain.cast());
            let code = through!(domain, ops => av_open(domain, &mut av, &mut addresses, none));
            library.checked("fi_av_open", code)?;
            let addresses_object = Object(addresses.cast());
            let code = through!(domain, ops => cq_open(domain, &mut cq, &mut queue, none));
            library.checked("fi_cq_open", code)?;
            let queue_object = Object(queue.cast());
            let code = through!(domain, ops => endpoint(domain, info, &mut endpoint, none));
            library.checked("fi_endpoint", code)?;
            Ok(Objects {
                endpoint,
                _endpoint_object: Object(endpoint.cast()),
                queue,
                _queue_object: queue_object,
                addresses,
                _addresses_object: addresses_object,
                domain,
                _domain_object: domain_object,
                _fabric_object: fabric_object,
            })
        }
    }

    /// Binds the endpoint to its queue and its addresses, and enables it.
    fn enable(&self, library: &FabricLibrary) -> Result<(), String> {
        let (own, both) = (self.endpoint.cast::<fid>(), u64::from(FI_TRANSMIT | FI_RECV));
        for (other, flags) in [(self.addresses.cast::<fid>(), 0), (self.queue.cast(), both)] {
            // SAFETY: open objects of one domain.
            let code = unsafe { through!(own, ops => bind(own, other, flags)) };
            library.checked("fi_ep_bind", code)?;
        }
        let enable = FI_ENABLE.cast_signed();
        // SAFETY: an open endpoint; this command has no argument.
        let code = unsafe { through!(own, ops => control(own, enable, ptr::null_mut())) };
        library.checked("fi_enable", code)
    }
}

/// An endpoint. The order of the members is that in which they close.
pub struct Endpoint<'a> {
    exposed: Registered,
    sent: Option<Registered>,
    objects: Objects,
    memory: Vec<WordPage>,
    own: Vec<WordPage>,
    peer: Cell<(fi_addr_t, u64, u64)>,
    in_flight: Cell<usize>,
    provider: &'a Provider<'a>,
}

impl<'a> Endpoint<'a> {
    /// Opens an endpoint.
    pub fn open(provider: &'a Provider<'a>) -> Result<Endpoint<'a>, String> {
        let (memory, own) = (pages(), pages());
        let objects = Objects::open(provider)?;
        objects.enable(provider.library)?;
        let exposed = registered(provider, &objects, &memory, REMOTE, 0)?;
        let sent = match provider.registers(FI_MR_LOCAL) {
            true => Some(registered(provider, &objects, &own, FI_READ | FI_WRITE, 1)?),
            false => None,
        };
        let (peer, in_flight) = (Cell::default(), Cell::new(0));
        Ok(Endpoint { exposed, sent, objects, memory, own, peer, in_flight, provider })
    }

    fn library(&self) -> &FabricLibrary {
        self.provider.library
    }

    /// Registers the exposed memory once more. The key is this one, unless the provider chooses.
    pub fn register(&self, key: u64) -> Result<Registered, String> {
        registered(self.provider, &self.objects, &self.memory, REMOTE, key)
    }

    /// How a peer reaches the exposed memory.
    pub fn reach(&self) -> Result<FabricReach, String> {
        let (mut name, mut length, endpoint) = (vec![0_u8; 256], 256, self.objects.endpoint);
        let at = name.as_mut_ptr().cast();
        // SAFETY: an open endpoint, and a buffer of that length.
        let code = unsafe { through!(endpoint, cm => getname(endpoint.cast(), at, &mut length)) };
        self.library().checked("fi_getname", code)?;
        name.truncate(length);
        let is_virtual = self.provider.registers(FI_MR_VIRT_ADDR);
        let base = if is_virtual { self.memory.as_ptr().addr() as u64 } else { 0 };
        Ok(FabricReach { name, base, key: self.exposed.key() })
    }

    /// Makes another endpoint the peer.
    pub fn connect(&self, reach: &FabricReach) -> Result<(), String> {
        let (mut peer, name, none) = (0, reach.name.as_ptr().cast(), ptr::null_mut());
        // SAFETY: an open table of addresses, and the name of an endpoint of the same provider.
        let added = unsafe {
            through!(self.objects.addresses, ops =>
                insert(self.objects.addresses, name, 1, &mut peer, 0, none))
        };
        self.peer.set((peer, reach.base, reach.key));
        if added == 1 { Ok(()) } else { Err("fi_av_insert refuses the name of the peer".into()) }
    }

    /// A number of the exposed memory.
    pub fn exposed(&self, at: usize) -> &AtomicU64 {
        &self.memory[at / 512].0[at % 512]
    }

    /// A number of the memory that operations send and receive.
    pub fn own(&self, at: usize) -> &AtomicU64 {
        &self.own[at / 512].0[at % 512]
    }

    /// Sets a number that an operation sends.
    pub fn set_own(&self, at: usize, value: u64) {
        self.own(at).store(value, Ordering::Release); // the device reads it behind the call
    }

    /// The number of operations that are not complete.
    pub fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// Begins an operation with the peer's key.
    pub fn start(&self, operation: Operation, own: usize, at: usize) -> Result<(), String> {
        self.start_with_key(self.peer.get().2, operation, own, at)
    }

    /// Begins an operation with a key.
    pub fn start_with_key(
        &self,
        key: u64,
        operation: Operation,
        own: usize,
        at: usize,
    ) -> Result<(), String> {
        let start = Instant::now();
        loop {
            match self.post(key, operation, own, at) {
                0 => break,
                AGAIN if start.elapsed() < LOST => self.progress()?,
                code => return Err(self.library().text_of(code as i64)),
            }
        }
        self.in_flight.set(self.in_flight.get() + 1);
        Ok(())
    }

    fn post(&self, key: u64, operation: Operation, own: usize, at: usize) -> isize {
        let (peer, base, _) = self.peer.get();
        let (endpoint, at) = (self.objects.endpoint, base + 8 * at.to_u64());
        let address = |slot: usize| ptr::from_ref(self.own(slot)).cast_mut().cast::<c_void>();
        let (buffer, none) = (address(own), ptr::null_mut());
        let mut desc = self.sent.as_ref().map_or(none, Registered::desc);
        // SAFETY: an open endpoint, and memory of this process that lives as long as it. The
        // message is read before the call returns.
        unsafe {
            match operation {
                Operation::Write(words) => through!(endpoint, rma =>
                    write(endpoint, buffer, 8 * words, desc, peer, at, key, none)),
                Operation::Deliver(words) => {
                    let iov = libc::iovec { iov_base: buffer, iov_len: 8 * words };
                    let target = fi_rma_iov { addr: at, len: 8 * words, key };
                    let message = fi_msg_rma {
                        msg_iov: &raw const iov,
                        desc: &mut desc,
                        iov_count: 1,
                        addr: peer,
                        rma_iov: &raw const target,
                        rma_iov_count: 1,
                        context: none,
                        data: 0,
                    };
                    let flags = u64::from(FI_DELIVERY_COMPLETE | FI_COMPLETION);
                    through!(endpoint, rma => writemsg(endpoint, &raw const message, flags))
                }
                Operation::Read(words) => through!(endpoint, rma =>
                    read(endpoint, buffer, 8 * words, desc, peer, at, key, none)),
                Operation::Add => through!(endpoint, atomic =>
                    write(endpoint, buffer, 1, desc, peer, at, key, FI_UINT64, FI_SUM, none)),
                Operation::FetchAdd => through!(endpoint, atomic =>
                    readwrite(endpoint, buffer, 1, desc, address(own + 1), desc, peer, at, key,
                        FI_UINT64, FI_SUM, none)),
                Operation::CompareSwap => through!(endpoint, atomic =>
                    compwrite(endpoint, buffer, 1, desc, address(own + 2), desc, address(own + 1),
                        desc, peer, at, key, FI_UINT64, FI_CSWAP, none)),
            }
        }
    }

    /// Reads the completions that have arrived. An error: an operation has failed.
    pub fn progress(&self) -> Result<(), String> {
        let mut entries = [fi_cq_entry::default(); 16];
        let at = entries.as_mut_ptr().cast();
        // SAFETY: an open queue, and room for as many entries.
        let count = unsafe {
            through!(self.objects.queue, ops => read(self.objects.queue, at, entries.len()))
        };
        if let Ok(count) = usize::try_from(count) {
            self.in_flight.set(self.in_flight.get().saturating_sub(count));
            return Ok(());
        }
        if count == AGAIN {
            return Ok(());
        }
        let mut failed = fi_cq_err_entry::default();
        // SAFETY: an open queue, and a local out parameter.
        let read = unsafe {
            through!(self.objects.queue, ops => readerr(self.objects.queue, &mut failed, 0))
        };
        if count != HAS_ERROR || read != 1 {
            return Err(format!("fi_cq_read: {}", self.library().text_of(count as i64)));
        }
        self.in_flight.set(self.in_flight.get().saturating_sub(1));
        Err(self.library().text_of(failed.err.into()))
    }

    /// Waits until at most this number of operations is not complete.
    pub fn wait(&self, most: usize) -> Result<(), String> {
        let start = Instant::now();
        while self.in_flight() > most {
            self.progress()?;
            if start.elapsed() > LOST {
                return Err(format!("no completion in {} s", LOST.as_secs()));
            }
            thread::yield_now();
        }
        Ok(())
    }

    /// Begins an operation and waits for it and for all before.
    pub fn finish(&self, operation: Operation, own: usize, at: usize) -> Result<(), String> {
        self.start(operation, own, at)?;
        self.wait(0)
    }
}

impl Registered {
    /// The key for peers.
    pub fn key(&self) -> u64 {
        // SAFETY: an open region.
        unsafe { (*self.region).key }
    }

    fn desc(&self) -> *mut c_void {
        // SAFETY: an open region.
        unsafe { (*self.region).mem_desc }
    }
}

fn registered(
    provider: &Provider,
    objects: &Objects,
    words: &[WordPage],
    access: u32,
    key: u64,
) -> Result<Registered, String> {
    let (library, none, access) = (provider.library, ptr::null_mut(), u64::from(access));
    let (domain, endpoint, at) = (objects.domain, objects.endpoint, words.as_ptr().cast());
    let mut region: *mut fid_mr = ptr::null_mut();
    // SAFETY: open objects, and memory that outlives the region.
    unsafe {
        let code = through!(domain, mr =>
            reg(domain.cast(), at, size_of_val(words), access, 0, key, 0, &mut region, none));
        library.checked("fi_mr_reg", code)?;
        let (object, own_fid) = (Object(region.cast()), region.cast::<fid>());
        if provider.registers(FI_MR_ENDPOINT) {
            let code = through!(own_fid, ops => bind(own_fid, endpoint.cast(), 0));
            library.checked("fi_mr_bind", code)?;
            let enable = FI_ENABLE.cast_signed();
            let code = through!(own_fid, ops => control(own_fid, enable, none));
            library.checked("fi_mr_enable", code)?;
        }
        Ok(Registered { region, _object: object })
    }
}
