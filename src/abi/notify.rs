//! Notified access of Intel MPI and of Bull's Open MPI: functions of the same names with different
//! arguments. libfompi knows Intel's arguments only, and serves these calls on its windows as those
//! of `notified_calls` and `counters`. If another host MPI has a function of such a name, a call
//! jumps to it with registers and stack unchanged, so that neither the types nor the number of its
//! arguments matter.

use super::answer::on_window;
use super::transfer::{Call, buffer, target, transfer};
use super::{MPI_Aint, MPI_Count, MPI_Datatype, MPI_Request, MPI_Win};
use super::{counters, pass_through};
use crate::error::Error;
use crate::fabric::Way;
use crate::messages;
use crate::mpi::Host;
use crate::mpi::comm::check;
use crate::sync::{AtomicUsize, Ordering};
use crate::sys::dl;
use crate::window::notifications::Notified;
use crate::window::{LocalWindow, Window};
use core::arch::naked_asm;
use core::ffi::{CStr, c_int, c_void};

/// One name, and the target of its calls.
#[repr(C)]
struct Dispatch {
    /// the address; 0: not resolved yet. First field, because the entry jumps through it
    target: AtomicUsize,
    /// the function with Intel's arguments
    typed: *const c_void,
    name: &'static CStr,
}

// SAFETY: `typed` is the address of a function.
unsafe impl Sync for Dispatch {}

impl Dispatch {
    const fn new(name: &'static CStr, typed: *const c_void) -> Dispatch {
        Dispatch { target: AtomicUsize::new(0), typed, name }
    }

    /// Returns the target of calls: the function with Intel's arguments on Intel MPI, or if no MPI
    /// has such a function; otherwise the function that the program would have reached without
    /// libfompi. On Intel MPI that may also be a tool's, which then calls the other name.
    fn find(&self) -> usize {
        if let Some(unserved) = pass_through::unserved_host() {
            return pass_through::function(unserved, self.name);
        }
        let (host, next) = (Host::get(), dl::next_symbol(self.name));
        let of_mpi = host.library.symbol(self.name);
        let own = if next != 0 { next } else { of_mpi };
        let is_intels = host.is_intel && own == of_mpi;
        if own == 0 || is_intels { self.typed.addr() } else { own }
    }
}

/// Returns the target of the calls of one name, and stores it.
extern "C" fn find(dispatch: &Dispatch) -> usize {
    let target = dispatch.find();
    // Relaxed: every thread finds the same code address.
    dispatch.target.store(target, Ordering::Relaxed);
    target
}

/// The first call of a name: `r11` points to its [`Dispatch`]. All registers that may hold
/// arguments are preserved (System V ABI for x86-64, section 3.2.3).
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn first_call() {
    naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push rax",
        "sub rsp, 128",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "mov rdi, r11",
        "call {find}",
        "mov r11, rax",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]",
        "movups xmm5, [rsp + 80]",
        "movups xmm6, [rsp + 96]",
        "movups xmm7, [rsp + 112]",
        "add rsp, 128",
        "pop rax",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp r11",
        find = sym find,
    )
}

/// The first call of a name: `x16` points to its [`Dispatch`]. All registers that may hold
/// arguments are preserved, and that of the result's address (AAPCS64, sections 6.1.1 and 6.1.2).
/// `x16` and `x17` are the intra-procedure-call registers.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
extern "C" fn first_call() {
    naked_asm!(
        "stp x29, x30, [sp, #-224]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "str x8, [sp, #80]",
        "stp q0, q1, [sp, #96]",
        "stp q2, q3, [sp, #128]",
        "stp q4, q5, [sp, #160]",
        "stp q6, q7, [sp, #192]",
        "mov x0, x16",
        "bl {find}",
        "mov x17, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldp x6, x7, [sp, #64]",
        "ldr x8, [sp, #80]",
        "ldp q0, q1, [sp, #96]",
        "ldp q2, q3, [sp, #128]",
        "ldp q4, q5, [sp, #160]",
        "ldp q6, q7, [sp, #192]",
        "ldp x29, x30, [sp], #224",
        "br x17",
        find = sym find,
    )
}

/// The instructions of an entry: a jump to the target of the calls of its name, if it is known.
#[cfg(target_arch = "x86_64")]
macro_rules! jump_to_target {
    ($dispatch:ident) => {
        naked_asm!(
            "lea r11, [rip + {dispatch}]",
            "cmp qword ptr [r11], 0",
            "je {first_call}",
            "jmp qword ptr [r11]",
            dispatch = sym $dispatch,
            first_call = sym first_call,
        )
    };
}

/// The instructions of an entry on AArch64.
#[cfg(target_arch = "aarch64")]
macro_rules! jump_to_target {
    ($dispatch:ident) => {
        naked_asm!(
            "adrp x16, {dispatch}",
            "add x16, x16, :lo12:{dispatch}",
            "ldr x17, [x16]",
            "cbz x17, 2f",
            "br x17",
            "2:",
            "b {first_call}",
            dispatch = sym $dispatch,
            first_call = sym first_call,
        )
    };
}

/// One entry: jumps to the target of the calls of its name.
macro_rules! jump {
    ($name:ident $typed:ident) => {
        /// Notified access (Intel MPI, Bull's Open MPI). Serves the windows of libfompi, unless
        /// another MPI has a function of that name. Otherwise jumps to the function of the same
        /// name in the host MPI or in a tool, with all arguments unchanged.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() {
            static DISPATCH: Dispatch = Dispatch::new(symbol!($name), $typed as *const c_void);
            jump_to_target!(DISPATCH)
        }
    };
}

/// Calls Intel's function on a window of the host MPI.
macro_rules! intels {
    ($host:ident, $profiled:ident ($($argument:expr),*): $($type:ty),*) => {{
        type Inner = unsafe extern "C-unwind" fn($($type),*) -> c_int;
        // SAFETY: Intel's function of that name has this type; another MPI has none.
        let inner: Option<Inner> = unsafe { $host.extra(symbol!($profiled)) };
        // SAFETY: the caller's arguments, passed on unchanged.
        inner.map_or(Err(Error::Wrong(&messages::NO_FUNCTION)), |inner| check(unsafe {
            inner($($argument),*)
        }))
    }};
}

/// Functions with Intel's arguments that read or change the counters of a window.
macro_rules! of_counters {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident $typed:ident ($($argument:ident: $type:ty),*)
        |$host:ident, $window:ident, $node:ident| $work:block
    )*) => {$(
        $(#[$doc])*
        unsafe extern "C-unwind" fn $typed(win: MPI_Win $(, $argument: $type)*) -> c_int {
            let $host = Host::get();
            let ours = |$window: &'static Window, $node: &'static LocalWindow| $work;
            on_window(stringify!($name), $host, win, ours, |native| {
                intels!($host, $profiled(native $(, $argument)*): usize $(, $type)*)
            })
        }
        jump! { $name $typed }
        jump! { $profiled $typed }
    )*};
}

of_counters! {
    /// Gives this process counters for notified operations. Collective.
    MPIX_Win_create_notify PMPIX_Win_create_notify win_create_notify (count: c_int)
    |host, window, node| {
        window.set_counters(host, node, counters::number(window, count))
    }

    /// Gives the counters back. Collective.
    MPIX_Win_free_notify PMPIX_Win_free_notify win_free_notify ()
    |host, window, node| { window.set_counters(host, node, Ok(0)) }

    /// Returns the value of a counter of this process.
    MPIX_Win_get_notify PMPIX_Win_get_notify win_get_notify (index: c_int, value: *mut MPI_Count)
    |host, window, node| {
        // SAFETY: the caller's pointer.
        unsafe { counters::store_value((window, node), index, value) }
    }

    /// Sets the value of a counter of this process.
    MPIX_Win_set_notify PMPIX_Win_set_notify win_set_notify (index: c_int, value: MPI_Count)
    |host, window, node| { window.set_notify_value(node, index.into(), value).map(drop) }

    /// Returns a request that is complete once a counter has reached a value.
    MPIX_Win_get_notify_request PMPIX_Win_get_notify_request win_get_notify_request
        (index: c_int, value: MPI_Count, request: *mut MPI_Request)
    |host, window, node| {
        // SAFETY: the caller's pointer to a request.
        unsafe {
            counters::store_request(
                "MPIX_Win_get_notify_request",
                (host, window, node),
                (index, value),
                request,
            )
        }
    }
}

/// Notified puts and gets with Intel's arguments.
macro_rules! transfers {
    ($(
        $name:ident $profiled:ident $typed:ident ($pointer:ty, $count:ty) = $kind:ident;
    )*) => {$(
        /// A notified transfer: as that of `notified_calls`, on windows of libfompi.
        unsafe extern "C-unwind" fn $typed(
            origin: $pointer, origin_count: $count, origin_type: MPI_Datatype, rank: c_int,
            disp: MPI_Aint, target_count: $count, target_type: MPI_Datatype, index: c_int,
            win: MPI_Win,
        ) -> c_int {
            let notified = Some((Notified::$kind, index));
            let call = Call { notified, ..Call::plain(stringify!($name), rank, win) };
            let host = call.host;
            let buffer = buffer(host, origin, origin_count.into(), origin_type);
            let target = target(host, rank, disp, target_count.into(), target_type);
            let theirs = |native| intels!(host, $profiled(
                origin, origin_count, origin_type, rank, disp, target_count, target_type, index,
                native
            ): $pointer, $count, MPI_Datatype, c_int, MPI_Aint, $count, MPI_Datatype, c_int,
                usize);
            // SAFETY: the caller's buffer.
            let ours = |place| unsafe { transfer(place, Way::$kind, buffer, target) };
            call.carry_out(ours, theirs)
        }
        jump! { $name $typed }
        jump! { $profiled $typed }
    )*};
}

transfers! {
    MPIX_Put_notify PMPIX_Put_notify put_notify (*const c_void, c_int) = Put;
    MPIX_Put_notify_c PMPIX_Put_notify_c put_notify_c (*const c_void, MPI_Count) = Put;
    MPIX_Get_notify PMPIX_Get_notify get_notify (*mut c_void, c_int) = Get;
    MPIX_Get_notify_c PMPIX_Get_notify_c get_notify_c (*mut c_void, MPI_Count) = Get;
}
