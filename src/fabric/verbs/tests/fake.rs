//! A simulated device: the functions of libibverbs over the memory of this process, for several
//! [`Nic`](super::Nic)s. It keeps the guarantees of a reliable connection and no others: requests
//! complete in order, but a request behind a READ or an atomic may be executed before it unless it
//! is fenced, and the data of a completed WRITE may reach memory only when a READ or an atomic
//! follows (decision 0005). It refuses what a device refuses.

use core::ffi::{c_char, c_int, c_void};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::wire::{self, Job};
use crate::sync::{AtomicBool, Ordering};
use crate::sys::ibverbs::Library;
use crate::sys::ibverbs::types::*;

/// Properties of the next device that this thread opens.
#[derive(Clone)]
pub struct Profile {
    pub vendor: u32,
    pub ethernet: bool,
    pub states: Vec<c_int>,
    pub gids: Vec<(Gid, u32)>,
    pub atomics: c_int,
    pub send_max: u32,
    pub inline_max: u32,
    pub message_max: u32,
    /// whether it has failed: nothing completes any more, and this is reported once
    pub failed: Arc<AtomicBool>,
    /// queue pairs that are refused before one is made
    pub pairs_refused: u32,
    /// bytes that may be registered
    pub locked_max: usize,
    /// whether it forgets fenced requests until something else is posted
    pub forgets: bool,
}

impl Default for Profile {
    fn default() -> Profile {
        let gid = |text: &str| Gid(text.parse::<std::net::Ipv6Addr>().unwrap().octets());
        Profile {
            vendor: 0,
            ethernet: true,
            states: vec![PORT_ACTIVE],
            gids: vec![(gid("fe80::1"), GID_TYPE_ROCE_V2), (gid("::ffff:10.9.8.7"), 2)],
            atomics: ATOMIC_HCA,
            send_max: 1000,
            inline_max: 512,
            message_max: 1 << 20,
            failed: Arc::default(),
            pairs_refused: 0,
            locked_max: usize::MAX,
            forgets: false,
        }
    }
}

thread_local! {
    /// The profile of this thread.
    pub static PROFILE: RefCell<Profile> = RefCell::default();
}

/// An opened device; libibverbs' structure comes first.
#[repr(C)]
pub struct FakeContext {
    context: Context,
    pub profile: Profile,
    locked: usize,
    lid: u16,
    told: bool,
}

#[repr(C)]
pub struct FakeCq {
    cq: Cq,
    capacity: usize,
    pub told: VecDeque<Completion>,
}

#[repr(C)]
pub struct FakeQp {
    qp: Qp,
    pub capacity: QpCapacity,
    pub attributes: QpAttributes,
    /// posted, and not executed or not reported yet
    pub jobs: VecDeque<Job>,
    /// completed, but not stored into memory yet
    pub landing: VecDeque<(u64, Vec<u8>)>,
    /// places of the send queue in use, by whether each is signaled
    pub places: VecDeque<(u64, bool)>,
    pub broken: bool,
}

/// Registered memory.
pub struct Registered {
    pub domain: usize,
    pub base: u64,
    pub bytes: u64,
    pub access: c_int,
}

/// All objects of the device.
#[derive(Default)]
pub struct State {
    pub pairs: HashMap<u32, usize>,
    pub keys: HashMap<u32, Registered>,
    next: u32,
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);
static WORK: Condvar = Condvar::new();

/// Locks the state, and starts the thread that executes requests.
pub fn state() -> MutexGuard<'static, State> {
    static DEVICE: LazyLock<()> = LazyLock::new(|| {
        std::thread::spawn(|| {
            let mut random = 1;
            let mut state = STATE.lock();
            loop {
                match wire::step(&mut state, &mut random) {
                    // Fair: a thread that posts gets the lock.
                    true => MutexGuard::bump(&mut state),
                    false => WORK.wait(&mut state),
                }
            }
        });
    });
    LazyLock::force(&DEVICE);
    STATE.lock()
}

/// The library of this device.
pub static FAKE: Library = Library {
    get_device_list,
    free_device_list,
    open_device,
    close_device,
    query_device,
    query_port,
    query_gid,
    alloc_pd,
    dealloc_pd,
    reg_mr,
    dereg_mr,
    create_cq,
    destroy_cq,
    create_qp,
    modify_qp,
    destroy_qp,
    wc_status_str,
    get_async_event,
    ack_async_event,
    fork_init,
    query_gid_ex: Some(query_gid_ex),
};

fn fail<T>(errno: c_int) -> *mut T {
    // SAFETY: the address of this thread's `errno`.
    unsafe { *libc::__errno_location() = errno };
    core::ptr::null_mut()
}

unsafe extern "C" fn get_device_list(count: *mut c_int) -> *mut *mut Device {
    // SAFETY: plain data, for which zero is a value; the caller's count.
    let mut device: Device = unsafe { core::mem::zeroed() };
    // SAFETY: the caller's count.
    unsafe { *count = 1 };
    for (to, from) in device.name.iter_mut().zip(b"fake0") {
        *to = *from as c_char;
    }
    Box::into_raw(Box::new([Box::into_raw(Box::new(device)), core::ptr::null_mut()])).cast()
}

unsafe extern "C" fn free_device_list(list: *mut *mut Device) {
    // SAFETY: made above.
    unsafe { drop(Box::from_raw(list.cast::<[*mut Device; 2]>())) };
}

unsafe extern "C" fn open_device(device: *mut Device) -> *mut Context {
    let mut state = state();
    state.next += 1;
    // SAFETY: plain data, but for two functions, which are written before it is used.
    let mut context: Context = unsafe {
        let mut context = core::mem::MaybeUninit::<Context>::zeroed();
        (&raw mut (*context.as_mut_ptr()).ops.poll_cq).write(poll_cq);
        (&raw mut (*context.as_mut_ptr()).ops.post_send).write(post_send);
        context.assume_init()
    };
    context.device = device;
    // SAFETY: a plain system call.
    context.async_fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    let profile = PROFILE.with_borrow(Profile::clone);
    let lid = state.next as u16;
    Box::into_raw(Box::new(FakeContext { context, profile, locked: 0, lid, told: false })).cast()
}

unsafe extern "C" fn close_device(context: *mut Context) -> c_int {
    // SAFETY: made above.
    unsafe {
        libc::close((*context).async_fd);
        drop(Box::from_raw(context.cast::<FakeContext>()));
    }
    0
}

unsafe extern "C" fn get_async_event(context: *mut Context, event: *mut AsyncEvent) -> c_int {
    let _state = state();
    // SAFETY: a context of this device.
    let fake = unsafe { behind(context) };
    if fake.told || !fake.profile.failed.load(Ordering::Relaxed) {
        return -1;
    }
    fake.told = true;
    // SAFETY: the caller's structure.
    unsafe { (*event).event_type = EVENT_DEVICE_FATAL };
    0
}

unsafe extern "C" fn ack_async_event(_: *mut AsyncEvent) {}

/// Returns the device of a context.
///
/// # Safety
/// The caller guarantees that the context is one of this device.
pub unsafe fn behind<'a>(context: *mut Context) -> &'a mut FakeContext {
    // SAFETY: the caller guarantees the context.
    unsafe { &mut *context.cast() }
}

unsafe extern "C" fn query_device(context: *mut Context, out: *mut DeviceAttributes) -> c_int {
    // SAFETY: a context of this device, and the caller's structure.
    let (fake, out) = unsafe { (behind(context), &mut *out) };
    (out.phys_port_cnt, out.vendor_id) = (fake.profile.states.len() as u8, fake.profile.vendor);
    (out.atomic_cap, out.max_qp_wr) = (fake.profile.atomics, fake.profile.send_max as c_int);
    (out.max_qp_rd_atom, out.max_qp_init_rd_atom) = (4, 8);
    0
}

unsafe extern "C" fn query_port(
    context: *mut Context,
    port: u8,
    out: *mut PortAttributes,
) -> c_int {
    // SAFETY: a context of this device, and the caller's structure.
    let (fake, out) = unsafe { (behind(context), &mut *out) };
    let Some(state) = fake.profile.states.get(usize::from(port) - 1) else { return libc::EINVAL };
    out.state = *state;
    out.active_mtu = 3;
    out.gid_tbl_len = fake.profile.gids.len() as c_int;
    out.max_msg_sz = fake.profile.message_max;
    out.link_layer = if fake.profile.ethernet { LINK_LAYER_ETHERNET } else { 1 };
    out.lid = if fake.profile.ethernet { 0 } else { fake.lid };
    0
}

unsafe extern "C" fn query_gid(context: *mut Context, _: u8, index: c_int, out: *mut Gid) -> c_int {
    // SAFETY: a context of this device, and the caller's structure.
    let (fake, out) = unsafe { (behind(context), &mut *out) };
    let Some((gid, _)) = fake.profile.gids.get(index as usize) else { return -1 };
    *out = *gid;
    0
}

unsafe extern "C" fn query_gid_ex(
    context: *mut Context,
    _: u32,
    index: u32,
    out: *mut GidEntry,
    _: u32,
    _: usize,
) -> c_int {
    // SAFETY: a context of this device, and the caller's structure.
    let (fake, out) = unsafe { (behind(context), &mut *out) };
    let Some((_, kind)) = fake.profile.gids.get(index as usize) else { return libc::EINVAL };
    out.gid_type = *kind;
    0
}

unsafe extern "C" fn alloc_pd(context: *mut Context) -> *mut Pd {
    Box::into_raw(Box::new(Pd { context }))
}

unsafe extern "C" fn dealloc_pd(pd: *mut Pd) -> c_int {
    // SAFETY: made above.
    unsafe { drop(Box::from_raw(pd)) };
    0
}

unsafe extern "C" fn reg_mr(pd: *mut Pd, at: *mut c_void, bytes: usize, access: c_int) -> *mut Mr {
    let mut state = state();
    // SAFETY: a domain of this device, and so its context.
    let fake = unsafe { behind((*pd).context) };
    if (at as usize) < 4096 {
        return fail(libc::EFAULT);
    }
    if fake.locked + bytes > fake.profile.locked_max {
        return fail(libc::ENOMEM);
    }
    fake.locked += bytes;
    state.next += 1;
    let key = state.next << 8;
    let registered =
        Registered { domain: pd as usize, base: at as u64, bytes: bytes as u64, access };
    state.keys.insert(key, registered);
    // SAFETY: the domain is valid.
    let context = unsafe { (*pd).context };
    let (addr, length, handle) = (at, bytes, key);
    Box::into_raw(Box::new(Mr { context, pd, addr, length, handle, lkey: key, rkey: key }))
}

unsafe extern "C" fn dereg_mr(mr: *mut Mr) -> c_int {
    let mut state = state();
    // SAFETY: made above.
    let mr = unsafe { Box::from_raw(mr) };
    // SAFETY: the context of the domain is valid.
    unsafe { behind(mr.context) }.locked -= mr.length;
    wire::land_all(&mut state);
    state.keys.remove(&mr.lkey);
    0
}

unsafe extern "C" fn create_cq(
    context: *mut Context,
    capacity: c_int,
    _: *mut c_void,
    _: *mut c_void,
    _: c_int,
) -> *mut Cq {
    let capacity = capacity as usize;
    Box::into_raw(Box::new(FakeCq { cq: Cq { context }, capacity, told: VecDeque::new() })).cast()
}

unsafe extern "C" fn destroy_cq(cq: *mut Cq) -> c_int {
    // SAFETY: made above.
    unsafe { drop(Box::from_raw(cq.cast::<FakeCq>())) };
    0
}

unsafe extern "C" fn create_qp(pd: *mut Pd, init: *mut QpInit) -> *mut Qp {
    let mut state = state();
    // SAFETY: the caller's structure, and a domain of this device.
    let (init, profile) = unsafe { (&mut *init, &mut behind((*pd).context).profile) };
    if let Some(left) = profile.pairs_refused.checked_sub(1) {
        profile.pairs_refused = left;
        return fail(libc::ENOMEM);
    }
    if init.cap.max_send_wr > profile.send_max || init.cap.max_inline_data > profile.inline_max {
        return fail(libc::EINVAL);
    }
    state.next += 1;
    let qp = Qp {
        // SAFETY: the domain is valid.
        context: unsafe { (*pd).context },
        qp_context: core::ptr::null_mut(),
        pd,
        send_cq: init.send_cq,
        recv_cq: init.recv_cq,
        srq: core::ptr::null_mut(),
        handle: 0,
        qp_num: state.next,
    };
    let number = qp.qp_num;
    let fake = Box::into_raw(Box::new(FakeQp {
        qp,
        capacity: init.cap,
        attributes: QpAttributes::default(),
        jobs: VecDeque::new(),
        landing: VecDeque::new(),
        places: VecDeque::new(),
        broken: false,
    }));
    state.pairs.insert(number, fake as usize);
    fake.cast()
}

unsafe extern "C" fn destroy_qp(qp: *mut Qp) -> c_int {
    let mut state = state();
    // SAFETY: made above.
    let mut fake = unsafe { Box::from_raw(qp.cast::<FakeQp>()) };
    wire::land(&mut fake);
    state.pairs.remove(&fake.qp.qp_num);
    0
}

unsafe extern "C" fn modify_qp(qp: *mut Qp, wanted: *mut QpAttributes, mask: c_int) -> c_int {
    let state = state();
    // SAFETY: a queue pair of this device, and the caller's structure.
    let (fake, wanted) = unsafe { (&mut *qp.cast::<FakeQp>(), &*wanted) };
    // SAFETY: its context belongs to this device.
    let ethernet = unsafe { behind((*qp).context) }.profile.ethernet;
    if mask & QP_STATE == 0 || wanted.qp_state != fake.attributes.qp_state + 1 {
        return libc::EINVAL;
    }
    match wanted.qp_state {
        QPS_INIT => fake.attributes.qp_access_flags = wanted.qp_access_flags,
        QPS_RTR => {
            let way = &wanted.ah_attr;
            let Some(other) = wire::pair(&state, wanted.dest_qp_num) else { return libc::EINVAL };
            // SAFETY: its context belongs to this device.
            let there = unsafe { behind(other.head().context) };
            let known = there.profile.gids.iter().any(|(gid, _)| *gid == way.grh.dgid);
            let right = match ethernet {
                true => way.is_global == 1 && known,
                false => way.dlid == there.lid && way.is_global == 0,
            };
            if !right || wanted.path_mtu != 3 {
                return libc::EINVAL;
            }
            fake.attributes.dest_qp_num = wanted.dest_qp_num;
            fake.attributes.max_dest_rd_atomic = wanted.max_dest_rd_atomic;
        }
        _ => {
            let dest = fake.attributes.dest_qp_num;
            let Some(other) = wire::pair(&state, dest) else { return libc::EINVAL };
            let there = &other.attributes;
            if there.qp_state >= QPS_RTR && wanted.max_rd_atomic > there.max_dest_rd_atomic {
                return libc::EINVAL;
            }
        }
    }
    fake.attributes.qp_state = wanted.qp_state;
    0
}

unsafe extern "C" fn wc_status_str(status: c_int) -> *const c_char {
    match status {
        WC_REM_ACCESS_ERR => c"remote access error".as_ptr(),
        WC_RETRY_EXC_ERR => c"transport retry counter exceeded".as_ptr(),
        _ => c"another error".as_ptr(),
    }
}

unsafe extern "C" fn fork_init() -> c_int {
    0
}

impl FakeQp {
    /// The structure that libibverbs shows.
    pub fn head(&self) -> &Qp {
        &self.qp
    }

    /// Adds a completion to the completion queue.
    pub fn tell(&mut self, completion: Completion) {
        // SAFETY: the completion queue lives as long as this queue pair.
        let cq = unsafe { &mut *self.qp.send_cq.cast::<FakeCq>() };
        assert!(cq.told.len() < cq.capacity, "a completion queue overflows");
        cq.told.push_back(completion);
    }
}

unsafe extern "C" fn poll_cq(cq: *mut Cq, count: c_int, out: *mut Completion) -> c_int {
    let state = state();
    // SAFETY: made above.
    let cq = unsafe { &mut *cq.cast::<FakeCq>() };
    // SAFETY: its context belongs to this device.
    if unsafe { behind(cq.cq.context) }.profile.failed.load(Ordering::Relaxed) {
        return 0;
    }
    let mut found = 0;
    while found < count as usize {
        let Some(told) = cq.told.pop_front() else { break };
        if let Some(pair) = wire::pair(&state, told.qp_num) {
            while pair.places.pop_front().is_some_and(|(id, _)| id != told.wr_id) {}
        }
        // SAFETY: the caller has room for `count` completions.
        unsafe { out.add(found).write(told) };
        found += 1;
    }
    found as c_int
}

unsafe extern "C" fn post_send(
    qp: *mut Qp,
    mut request: *mut Request,
    refused: *mut *mut Request,
) -> c_int {
    let _state = state();
    // SAFETY: made above.
    let fake = unsafe { &mut *qp.cast::<FakeQp>() };
    while !request.is_null() {
        // SAFETY: the caller's chain.
        let (wr, job) = unsafe { (&*request, Job::new(&*request)) };
        let full = fake.places.len() >= fake.capacity.max_send_wr as usize;
        let inline_max = fake.capacity.max_inline_data as usize;
        let long = job.inline.as_ref().is_some_and(|bytes| bytes.len() > inline_max);
        if fake.attributes.qp_state != QPS_RTS || full || long {
            // SAFETY: the caller's pointer.
            unsafe { *refused = request };
            return if full { libc::ENOMEM } else { libc::EINVAL };
        }
        fake.places.push_back((wr.wr_id, wr.send_flags & SEND_SIGNALED != 0));
        fake.jobs.push_back(job);
        request = wr.next;
    }
    WORK.notify_one();
    0
}
