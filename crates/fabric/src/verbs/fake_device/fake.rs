//! A simulated device: the functions of libibverbs over the memory of this process, which stands
//! for several processes. It keeps the order of its profile and no other: requests complete in
//! order, but a request that may overtake an earlier one is often executed first unless it is
//! fenced, and the data of a completed WRITE may reach memory only when a READ or an atomic follows
//! (decision 0005). It refuses what a device refuses.

use core::ffi::{c_char, c_int, c_void};
use std::collections::{HashMap, VecDeque};
use std::sync::LazyLock;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::jobs::{self, Job};
use super::profile::{PROFILE, Profile};
use crate::sync::Ordering;
use crate::sys::ibverbs::verbs::*;
use crate::sys::ibverbs::{Functions, GidQuery, Library};

/// An opened device; libibverbs' structure comes first.
#[repr(C)]
pub struct FakeContext {
    context: ibv_context,
    pub profile: Profile,
    locked: usize,
    lid: u16,
    told: bool,
}

#[repr(C)]
pub struct FakeCq {
    cq: ibv_cq,
    capacity: usize,
    pub told: VecDeque<ibv_wc>,
}

#[repr(C)]
pub struct FakeQp {
    qp: ibv_qp,
    pub capacity: ibv_qp_cap,
    pub attributes: ibv_qp_attr,
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
    pub access: ibv_access_flags,
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
                match jobs::step(&mut state, &mut random) {
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
    functions: Functions {
        ibv_get_device_list,
        ibv_free_device_list,
        ibv_open_device,
        ibv_close_device,
        ibv_query_device,
        ibv_query_port,
        ibv_query_gid,
        ibv_alloc_pd,
        ibv_dealloc_pd,
        ibv_reg_mr,
        ibv_dereg_mr,
        ibv_create_cq,
        ibv_destroy_cq,
        ibv_create_qp,
        ibv_modify_qp,
        ibv_destroy_qp,
        ibv_wc_status_str,
        ibv_get_async_event,
        ibv_ack_async_event,
        ibv_fork_init,
    },
    gid_query: Some(GidQuery { _ibv_query_gid_ex }),
    kernel_copies_at_forks: false,
};

fn fail<T>(errno: c_int) -> *mut T {
    // SAFETY: the address of this thread's `errno`.
    unsafe { *libc::__errno_location() = errno };
    core::ptr::null_mut()
}

unsafe extern "C" fn ibv_get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
    let mut device = ibv_device::default();
    // SAFETY: the caller's count.
    unsafe { *count = 1 };
    for (to, from) in device.name.iter_mut().zip(b"fake0") {
        *to = *from as c_char;
    }
    Box::into_raw(Box::new([Box::into_raw(Box::new(device)), core::ptr::null_mut()])).cast()
}

unsafe extern "C" fn ibv_free_device_list(list: *mut *mut ibv_device) {
    // SAFETY: made above.
    unsafe { drop(Box::from_raw(list.cast::<[*mut ibv_device; 2]>())) };
}

unsafe extern "C" fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context {
    let mut state = state();
    state.next += 1;
    let mut context = ibv_context { device, ..ibv_context::default() };
    context.ops.poll_cq = Some(poll_cq);
    context.ops.post_send = Some(post_send);
    // SAFETY: a plain system call.
    context.async_fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    let profile = PROFILE.with_borrow(Profile::clone);
    let lid = state.next as u16;
    Box::into_raw(Box::new(FakeContext { context, profile, locked: 0, lid, told: false })).cast()
}

unsafe extern "C" fn ibv_close_device(context: *mut ibv_context) -> c_int {
    // SAFETY: made above.
    unsafe {
        libc::close((*context).async_fd);
        drop(Box::from_raw(context.cast::<FakeContext>()));
    }
    0
}

unsafe extern "C" fn ibv_get_async_event(
    context: *mut ibv_context,
    event: *mut ibv_async_event,
) -> c_int {
    let _state = state();
    // SAFETY: a context of this device.
    let fake = unsafe { behind(context) };
    if fake.told || !fake.profile.failed.load(Ordering::Relaxed) {
        return -1;
    }
    fake.told = true;
    // SAFETY: the caller's structure.
    unsafe { (*event).event_type = IBV_EVENT_DEVICE_FATAL };
    0
}

unsafe extern "C" fn ibv_ack_async_event(_: *mut ibv_async_event) {}

/// Returns the device of a context.
///
/// # Safety
/// The caller guarantees that the context is one of this device.
pub unsafe fn behind<'a>(context: *mut ibv_context) -> &'a mut FakeContext {
    // SAFETY: the caller guarantees the context.
    unsafe { &mut *context.cast() }
}

unsafe extern "C" fn ibv_query_device(
    context: *mut ibv_context,
    out: *mut ibv_device_attr,
) -> c_int {
    // SAFETY: a context of this device, and the caller's structure.
    let (fake, out) = unsafe { (behind(context), &mut *out) };
    (out.phys_port_cnt, out.vendor_id) = (fake.profile.states.len() as u8, fake.profile.vendor);
    out.vendor_part_id = fake.profile.part;
    (out.atomic_cap, out.max_qp_wr) = (fake.profile.atomics, fake.profile.send_max as c_int);
    (out.max_qp_rd_atom, out.max_qp_init_rd_atom) = (4, 8);
    (out.max_sge, out.max_sge_rd) = fake.profile.sges;
    0
}

unsafe extern "C" fn ibv_query_port(
    context: *mut ibv_context,
    port: u8,
    out: *mut _compat_ibv_port_attr,
) -> c_int {
    // SAFETY: a context of this device, and the caller's structure.
    let (fake, out) = unsafe { (behind(context), &mut *out.cast::<ibv_port_attr>()) };
    let Some(state) = fake.profile.states.get(usize::from(port) - 1) else { return libc::EINVAL };
    out.state = *state;
    out.active_mtu = 3;
    out.gid_tbl_len = fake.profile.gids.len() as c_int;
    out.max_msg_sz = fake.profile.message_max;
    let layers = [IBV_LINK_LAYER_INFINIBAND, IBV_LINK_LAYER_ETHERNET];
    out.link_layer = layers[usize::from(fake.profile.ethernet)] as u8;
    out.lid = if fake.profile.ethernet { 0 } else { fake.lid };
    0
}

unsafe extern "C" fn ibv_query_gid(
    context: *mut ibv_context,
    _: u8,
    index: c_int,
    out: *mut ibv_gid,
) -> c_int {
    // SAFETY: a context of this device, and the caller's structure.
    let (fake, out) = unsafe { (behind(context), &mut *out) };
    let Some((gid, _)) = fake.profile.gids.get(index as usize) else { return -1 };
    *out = (*gid).into();
    0
}

unsafe extern "C" fn _ibv_query_gid_ex(
    context: *mut ibv_context,
    _: u32,
    index: u32,
    out: *mut ibv_gid_entry,
    _: u32,
    _: usize,
) -> c_int {
    // SAFETY: a context of this device, and the caller's structure.
    let (fake, out) = unsafe { (behind(context), &mut *out) };
    let Some((_, kind)) = fake.profile.gids.get(index as usize) else { return libc::EINVAL };
    out.gid_type = *kind;
    0
}

unsafe extern "C" fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    Box::into_raw(Box::new(ibv_pd { context, handle: 0 }))
}

unsafe extern "C" fn ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int {
    // SAFETY: made above.
    unsafe { drop(Box::from_raw(pd)) };
    0
}

unsafe extern "C" fn ibv_reg_mr(
    pd: *mut ibv_pd,
    at: *mut c_void,
    bytes: usize,
    access: c_int,
) -> *mut ibv_mr {
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
    let registered = Registered {
        domain: pd as usize,
        base: at as u64,
        bytes: bytes as u64,
        access: access as u32,
    };
    state.keys.insert(key, registered);
    // SAFETY: the domain is valid.
    let context = unsafe { (*pd).context };
    let (addr, length, handle) = (at, bytes, key);
    Box::into_raw(Box::new(ibv_mr { context, pd, addr, length, handle, lkey: key, rkey: key }))
}

unsafe extern "C" fn ibv_dereg_mr(mr: *mut ibv_mr) -> c_int {
    let mut state = state();
    // SAFETY: made above.
    let mr = unsafe { Box::from_raw(mr) };
    // SAFETY: the context of the domain is valid.
    unsafe { behind(mr.context) }.locked -= mr.length;
    jobs::land_all(&mut state);
    state.keys.remove(&mr.lkey);
    0
}

unsafe extern "C" fn ibv_create_cq(
    context: *mut ibv_context,
    capacity: c_int,
    _: *mut c_void,
    _: *mut ibv_comp_channel,
    _: c_int,
) -> *mut ibv_cq {
    let capacity = capacity as usize;
    let cq = ibv_cq { context, ..ibv_cq::default() };
    Box::into_raw(Box::new(FakeCq { cq, capacity, told: VecDeque::new() })).cast()
}

unsafe extern "C" fn ibv_destroy_cq(cq: *mut ibv_cq) -> c_int {
    // SAFETY: made above.
    unsafe { drop(Box::from_raw(cq.cast::<FakeCq>())) };
    0
}

unsafe extern "C" fn ibv_create_qp(pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> *mut ibv_qp {
    let mut state = state();
    // SAFETY: the caller's structure, and a domain of this device.
    let (init, profile) = unsafe { (&mut *init, &mut behind((*pd).context).profile) };
    if let Some(left) = profile.pairs_refused.checked_sub(1) {
        profile.pairs_refused = left;
        return fail(libc::ENOMEM);
    }
    let pieces = init.cap.max_send_sge as c_int;
    if init.cap.max_send_wr > profile.send_max
        || init.cap.max_inline_data > profile.inline_max
        || pieces > profile.sges.0
    {
        return fail(libc::EINVAL);
    }
    state.next += 1;
    let qp = ibv_qp {
        // SAFETY: the domain is valid.
        context: unsafe { (*pd).context },
        pd,
        send_cq: init.send_cq,
        recv_cq: init.recv_cq,
        qp_num: state.next,
        ..ibv_qp::default()
    };
    let number = qp.qp_num;
    let fake = Box::into_raw(Box::new(FakeQp {
        qp,
        capacity: init.cap,
        attributes: ibv_qp_attr::default(),
        jobs: VecDeque::new(),
        landing: VecDeque::new(),
        places: VecDeque::new(),
        broken: false,
    }));
    state.pairs.insert(number, fake as usize);
    fake.cast()
}

unsafe extern "C" fn ibv_destroy_qp(qp: *mut ibv_qp) -> c_int {
    let mut state = state();
    // SAFETY: made above.
    let mut fake = unsafe { Box::from_raw(qp.cast::<FakeQp>()) };
    jobs::land(&mut fake);
    state.pairs.remove(&fake.qp.qp_num);
    0
}

unsafe extern "C" fn ibv_modify_qp(
    qp: *mut ibv_qp,
    wanted: *mut ibv_qp_attr,
    mask: c_int,
) -> c_int {
    let state = state();
    // SAFETY: a queue pair of this device, and the caller's structure.
    let (fake, wanted) = unsafe { (&mut *qp.cast::<FakeQp>(), &*wanted) };
    // SAFETY: its context belongs to this device.
    let ethernet = unsafe { behind((*qp).context) }.profile.ethernet;
    if mask as u32 & IBV_QP_STATE == 0 || wanted.qp_state != fake.attributes.qp_state + 1 {
        return libc::EINVAL;
    }
    match wanted.qp_state {
        IBV_QPS_INIT => fake.attributes.qp_access_flags = wanted.qp_access_flags,
        IBV_QPS_RTR => {
            let way = &wanted.ah_attr;
            let Some(other) = jobs::pair(&state, wanted.dest_qp_num) else { return libc::EINVAL };
            // SAFETY: its context belongs to this device.
            let there = unsafe { behind(other.head().context) };
            let known = there.profile.gids.iter().any(|(gid, _)| *gid == way.grh.dgid.into());
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
            let Some(other) = jobs::pair(&state, dest) else { return libc::EINVAL };
            let there = &other.attributes;
            if there.qp_state >= IBV_QPS_RTR && wanted.max_rd_atomic > there.max_dest_rd_atomic {
                return libc::EINVAL;
            }
        }
    }
    fake.attributes.qp_state = wanted.qp_state;
    0
}

unsafe extern "C" fn ibv_wc_status_str(status: ibv_wc_status) -> *const c_char {
    match status {
        IBV_WC_REM_ACCESS_ERR => c"remote access error".as_ptr(),
        IBV_WC_RETRY_EXC_ERR => c"transport retry counter exceeded".as_ptr(),
        _ => c"another error".as_ptr(),
    }
}

unsafe extern "C" fn ibv_fork_init() -> c_int {
    0
}

impl FakeQp {
    /// The structure that libibverbs shows.
    pub fn head(&self) -> &ibv_qp {
        &self.qp
    }

    /// Whether no completion waits for a poll.
    pub fn is_polled(&self) -> bool {
        // SAFETY: the completion queue lives as long as this queue pair.
        unsafe { &*self.qp.send_cq.cast::<FakeCq>() }.told.is_empty()
    }

    /// Adds a completion to the completion queue.
    pub fn tell(&mut self, completion: ibv_wc) {
        // SAFETY: the completion queue lives as long as this queue pair.
        let cq = unsafe { &mut *self.qp.send_cq.cast::<FakeCq>() };
        assert!(cq.told.len() < cq.capacity, "a completion queue overflows");
        cq.told.push_back(completion);
    }
}

unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, count: c_int, out: *mut ibv_wc) -> c_int {
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
        if let Some(pair) = jobs::pair(&state, told.qp_num) {
            while pair.places.pop_front().is_some_and(|(id, _)| id != told.wr_id) {}
        }
        // SAFETY: the caller has room for `count` completions.
        unsafe { out.add(found).write(told) };
        found += 1;
    }
    found as c_int
}

unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    mut request: *mut ibv_send_wr,
    refused: *mut *mut ibv_send_wr,
) -> c_int {
    let _state = state();
    // SAFETY: made above.
    let fake = unsafe { &mut *qp.cast::<FakeQp>() };
    while !request.is_null() {
        // SAFETY: the caller's chain.
        let (wr, job) = unsafe { (&*request, Job::new(&*request)) };
        let full = fake.places.len() >= fake.capacity.max_send_wr as usize;
        let inline_max = fake.capacity.max_inline_data as usize;
        let long = job.inline.as_ref().is_some_and(|bytes| bytes.len() > inline_max)
            || job.pieces.len() > fake.capacity.max_send_sge as usize;
        if fake.attributes.qp_state != IBV_QPS_RTS || full || long {
            // SAFETY: the caller's pointer.
            unsafe { *refused = request };
            return if full { libc::ENOMEM } else { libc::EINVAL };
        }
        fake.places.push_back((wr.wr_id, wr.send_flags & IBV_SEND_SIGNALED != 0));
        fake.jobs.push_back(job);
        request = wr.next;
    }
    WORK.notify_one();
    0
}
