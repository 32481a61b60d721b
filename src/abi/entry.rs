//! Macros that define the two entries of an MPI function, `MPI_X` and `PMPI_X`. Those of the rows
//! of `transfer`, one for each list of arguments, come last.

use super::answer::on_any_window;
use crate::fabric::remote::{Bytes, Remote};
use crate::mpi::Host;
use crate::number::Number;
use crate::sync::computed;
use crate::window::quick_window::DistantTarget;
use core::ffi::c_int;
use core::ptr;

/// The return type of a function: an error code unless another type is given.
macro_rules! answer {
    () => {
        core::ffi::c_int
    };
    ($type:ty) => {
        $type
    };
}

/// The name of a function, as the loader needs it.
macro_rules! symbol {
    ($name:ident) => {
        const {
            match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes())
            {
                Ok(name) => name,
                Err(_) => panic!(),
            }
        }
    };
}

/// Prologue of an entry that no tool can intercept: passes the call on in pass-through mode.
macro_rules! pass_through {
    ($name:ident ($($argument:ident: $type:ty),*) $(-> $answer:ty)?) => {
        if $crate::abi::pass_through::may_apply() {
            static NEXT: $crate::abi::pass_through::NextFunction =
                $crate::abi::pass_through::NextFunction::new(symbol!($name));
            if let Some(address) = NEXT.find() {
                type Call = unsafe extern "C-unwind" fn($($type),*) $(-> $answer)?;
                // SAFETY: a function of this name has this type, with handles in registers.
                let call: Call = unsafe { core::mem::transmute::<usize, Call>(address) };
                // SAFETY: the caller's arguments.
                return unsafe { call($($argument),*) };
            }
        }
    };
}

/// Returns the argument of a call that is its window: pairs of a name and the argument.
macro_rules! window_among {
    (win $window:ident $($rest:ident)*) => { $window };
    ($name:ident $argument:ident $($rest:ident)*) => { window_among!($($rest)*) };
}

/// Prologue of a function with a name of libfompi's own: raises an error on its window in
/// pass-through mode.
macro_rules! refuse_unserved {
    ($name:ident ($($argument:ident),*)) => {
        if $crate::abi::pass_through::may_apply() {
            let window = window_among!($($argument $argument)*);
            let refused = $crate::abi::pass_through::refuse_own(stringify!($name), |_| window);
            if let Some(code) = refused {
                return code;
            }
        }
    };
}

/// Prologue of `MPI_X`: calls the function of a tool that follows in the link order, if it has
/// `MPI_X`.
macro_rules! call_tool {
    ($name:ident ($($argument:ident: $type:ty),*) $(-> $answer:ty)?) => {
        if $crate::abi::tool::may_be_behind() {
            static TOOL: $crate::abi::tool::ToolFunction =
                $crate::abi::tool::ToolFunction::new(symbol!($name));
            if let Some(address) = TOOL.find() {
                type Call = unsafe extern "C-unwind" fn($($type),*) -> answer!($($answer)?);
                // SAFETY: a function of this name has this type.
                let call: Call = unsafe { core::mem::transmute::<usize, Call>(address) };
                // SAFETY: the caller's arguments.
                return unsafe { call($($argument),*) };
            }
        }
    };
}

/// Calls a function of the host MPI on a delegated window, whose handle there is `$native`, with
/// the other arguments as the caller passed them.
macro_rules! theirs {
    ($host:ident.$name:ident |$native:ident| ($($argument:expr),*)) => {
        |$native| {
            // SAFETY: the caller's arguments, and the host MPI's own handle of the window.
            crate::mpi::comm::check(unsafe { ($host.call.$name)($($argument),*) })
        }
    };
}

/// Executes a call on a window by `$on`, a function of `answer`: by `$ours` on a window of
/// libfompi, otherwise by [`theirs`].
macro_rules! serve {
    ($host:ident, $on:ident, $call:literal, $win:ident, $ours:expr, $($theirs:tt)*) => {{
        let $host = Host::get();
        $on($call, $host, $win, $ours, theirs!($host.$($theirs)*))
    }};
}

/// Defines `MPI_X` and `PMPI_X` from a name, arguments and a body. Both contain the body, so that
/// neither calls the other (MPI-4.1 §15.2.1). Only `MPI_X` may belong to a tool that follows in the
/// link order. In pass-through mode both pass the call on.
macro_rules! entry {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident ($($argument:ident: $type:ty),* $(,)?) $(-> $answer:ty)?
        $body:block
    )*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> answer!($($answer)?) {
            call_tool!($name ($($argument: $type),*) $(-> $answer)?);
            $body
        }

        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $profiled($($argument: $type),*) -> answer!($($answer)?) {
            pass_through!($profiled ($($argument: $type),*) -> answer!($($answer)?));
            $body
        }
    )*};
}

/// Defines the entries of calls that have a fast path. The first block is the fast path: it needs
/// no stack frame, raises no error, and returns whether it executed the call. If not, it has had no
/// effect. It looks up the window with the constant `ENTRY`, so that the lookup fails if a tool may
/// follow in the link order. The last block executes the call from the beginning.
macro_rules! quick_entry {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident ($($argument:ident: $type:ty),* $(,)?) $quick:block $body:block
    )*) => {$(
        quick_function! {
            $(#[$doc])*
            $name Mpi [call_tool!($name ($($argument: $type),*))] ($($argument: $type),*)
            $quick $body
        }

        quick_function! {
            $(#[$doc])*
            $profiled Pmpi
            [pass_through!($profiled ($($argument: $type),*) -> core::ffi::c_int)]
            ($($argument: $type),*) $quick $body
        }
    )*};
}

/// One of the two entries of [`quick_entry`]. `[$begin]`: the prologue of the last block.
macro_rules! quick_function {
    (
        $(#[$doc:meta])*
        $name:ident $entry:ident [$begin:expr] ($($argument:ident: $type:ty),*)
        $quick:block $body:block
    ) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> core::ffi::c_int {
            const ENTRY: $crate::mpi::EntryName = $crate::mpi::EntryName::$entry;
            #[cold]
            #[inline(never)]
            unsafe extern "C-unwind" fn in_full($($argument: $type),*) -> core::ffi::c_int {
                $begin;
                $body
            }
            let done: bool = $quick;
            if done {
                return 0;
            }
            // SAFETY: the caller's arguments.
            unsafe { in_full($($argument),*) }
        }
    };
}

/// An entry with a fast path, of a function with a name of libfompi's own.
macro_rules! own_entry {
    ($(#[$doc:meta])* $name:ident ($($argument:ident: $type:ty,)*) $quick:block $body:block) => {
        quick_function! {
            $(#[$doc])*
            $name Pmpi
            [refuse_unserved!($name ($($argument),*))]
            ($($argument: $type),*) $quick $body
        }
    };
}

/// Entries of functions with names of libfompi's own.
macro_rules! own_entries {
    ($(
        $(#[$doc:meta])*
        $name:ident ($($argument:ident: $type:ty),* $(,)?) $body:block
    )*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> core::ffi::c_int {
            refuse_unserved!($name ($($argument),*));
            $body
        }
    )*};
}

/// `Some` of the argument, or `None` if there is none.
macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

/// Calls a function of the host MPI. Narrows the counts if that MPI has no function with large
/// counts.
macro_rules! native {
    ($host:ident.$small:ident [$($count:ident)*] $arguments:tt) => {
        // SAFETY: the caller's arguments, passed on unchanged.
        check(unsafe { ($host.call.$small) $arguments })
    };
    ($host:ident.$large:ident else $small:ident [$($count:ident)*] $arguments:tt) => {
        match $host.call.$large {
            // SAFETY: the caller's arguments, passed on unchanged.
            Some(call) => check(unsafe { call $arguments }),
            None => {
                let ($(Some($count),)*) = ($(narrow($count),)*) else {
                    return Err(Error::Host($host.constants.class(Class::Count)));
                };
                // SAFETY: the caller's arguments, passed on unchanged.
                check(unsafe { ($host.call.$small) $arguments })
            }
        }
    };
}

/// Runs the fast path of a call: by the function `with` if the call has a request, which that
/// function stores.
macro_rules! run {
    ($with:ident, $to:ident [] $quick:expr) => {
        $quick
    };
    ($with:ident, $to:ident [$request:ident] $quick:expr) => {
        $with(&$to, $request, || $quick)
    };
}

/// Puts or gets `last + 1` bytes inside of a target of another node, the end of the fast path.
/// Returns the code of the call.
///
/// # Safety
/// The bytes from `at` are inside of the target; those at `here` may be read or, for a get,
/// written, until a call completes them.
#[inline(never)]
pub(super) unsafe fn transfer_block<const IS_PUT: bool>(
    here: *mut u8,
    target: &'static DistantTarget,
    at: *mut u8,
    last: u64,
) -> c_int {
    // SAFETY: from a reference; hidden, so that the target stays one argument.
    let target = unsafe { &*computed!(ptr::from_ref(target)) };
    let (peer, at) = (&target.peer, Remote { at: at.addr().to_u64(), key: target.key });
    // SAFETY: guaranteed by the caller.
    let (call, done) = unsafe {
        match IS_PUT {
            true => ("MPI_Put", peer.put(at, here, last + 1)),
            false => ("MPI_Get", peer.get(here, at, last + 1)),
        }
    };
    let Err(error) = done else { return 0 };
    let win = target.window.to_usize();
    on_any_window(call, Host::get(), win, |_| Err(error), |_| unreachable!("it is libfompi's"))
}

/// Runs the fast path of a put or get, which reaches other nodes if the call has no request.
macro_rules! run_transfer {
    ($way:ident, $window:ident, $rank:ident, $from:ident, $disp:expr, []) => {{
        const IS_PUT: bool = matches!(Way::$way, Way::Put);
        // SAFETY: the caller's buffer.
        let done = $window.extent($rank).and_then(|extent| unsafe {
            $window.transfer(Way::$way, extent, $from, $disp, |here, target, at, last| {
                Some(transfer_block::<IS_PUT>(here, target, at, last))
            })
        });
        match done {
            Some(code) => return code,
            None => false,
        }
    }};
    ($way:ident, $window:ident, $rank:ident, $from:ident, $disp:expr, [$request:ident]) => {
        $window
            .open($rank)
            .and_then(|to| {
                // SAFETY: the caller's buffer.
                with_request(&to, $request, || unsafe { to.transfer_here(Way::$way, $from, $disp) })
            })
            .is_some()
    };
}

/// An entry, with a fast path if the row has one.
macro_rules! row {
    ($(#[$doc:meta])* $name:ident $profiled:ident $parameters:tt [] $body:block) => {
        entry! { $(#[$doc])* $name $profiled $parameters $body }
    };
    ($(#[$doc:meta])* $name:ident $profiled:ident $parameters:tt
        [$quick:block] $body:block) => {
        quick_entry! { $(#[$doc])* $name $profiled $parameters $quick $body }
    };
}

/// Rows of functions with the arguments of MPI_Put.
macro_rules! puts_and_gets {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident *$mut:tt $count:ident [$($request:ident)?]
            = $way:ident($($native:ident)+) $(quick[$($q:ident)?])?;
    )*) => {$( row! {
        $(#[$doc])*
        $name $profiled (
            origin: *$mut c_void, origin_count: $count, origin_type: MPI_Datatype, rank: c_int,
            disp: MPI_Aint, target_count: $count, target_type: MPI_Datatype, win: MPI_Win,
            $($request: *mut MPI_Request,)?
        ) [$({
            // Handles as the caller passed them: if those of one type differ in the unused upper
            // bits, the full call handles them.
            let same_type = (origin_count, origin_type) == (target_count, target_type)
                && !origin.is_null();
            let from = passed(origin, origin_count.into(), origin_type);
            match if same_type { TRANSFERS.find(win, ENTRY) } else { None } {
                Some(window) => run_transfer!(
                    $way, window, rank, from, disp as i64, [$($q)?]
                ),
                None => false,
            }
        })?] {
            let request = optional!($($request)?);
            let call = Call { request, ..Call::plain(stringify!($name), rank, win) };
            let host = call.host;
            let buffer = buffer(host, origin, origin_count.into(), origin_type);
            let target = target(host, rank, disp, target_count.into(), target_type);
            let theirs = |native| native!(host.$($native)+ [origin_count target_count] (
                origin, origin_count, host.handle(origin_type), rank, disp, target_count,
                host.handle(target_type), native $(, $request)?
            ));
            // SAFETY: the caller's buffer.
            let ours = |place| unsafe { transfer(place, Way::$way, buffer, target) };
            call.carry_out(ours, theirs)
        }
    } )*};
}

/// Rows of functions with the arguments of MPI_Accumulate.
macro_rules! accumulates {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident $count:ident [$($request:ident)?]
            = ($($native:ident)+) $(quick[$($q:ident)?] $quick:path)?;
    )*) => {$( row! {
        $(#[$doc])*
        $name $profiled (
            origin: *const c_void, origin_count: $count, origin_type: MPI_Datatype, rank: c_int,
            disp: MPI_Aint, target_count: $count, target_type: MPI_Datatype, op: MPI_Op,
            win: MPI_Win, $($request: *mut MPI_Request,)?
        ) [$({
            let is_one = origin_count == 1 && target_count == 1 && origin_type == target_type;
            let given = is_one && !origin.is_null(); // as above
            let to = if given { Quick::open(win, rank, ENTRY) } else { None };
            let (from, what) = (origin.cast(), (disp as i64, origin_type, op));
            to.and_then(|to| {
                // SAFETY: the caller's buffer.
                run!(with_request, to [$($q)?] unsafe { $quick(&to, from, what) })
            }).is_some()
        })?] {
            let request = optional!($($request)?);
            let call = Call { request, ..Call::plain(stringify!($name), rank, win) };
            let host = call.host;
            let from = buffer(host, origin, origin_count.into(), origin_type);
            let target = target(host, rank, disp, target_count.into(), target_type);
            let theirs = |native| native!(host.$($native)+ [origin_count target_count] (
                origin, origin_count, host.handle(origin_type), rank, disp, target_count,
                host.handle(target_type), host.handle(op), native $(, $request)?
            ));
            // SAFETY: the caller's buffer.
            unsafe { accumulate(call, (from, None), target, op, theirs) }
        }
    } )*};
}

/// Rows of functions with the arguments of MPI_Get_accumulate.
macro_rules! get_accumulates {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident $count:ident [$($request:ident)?]
            = ($($native:ident)+) $(quick[$($q:ident)?] $quick:path)?;
    )*) => {$( row! {
        $(#[$doc])*
        $name $profiled (
            origin: *const c_void, origin_count: $count, origin_type: MPI_Datatype,
            result: *mut c_void, result_count: $count, result_type: MPI_Datatype, rank: c_int,
            disp: MPI_Aint, target_count: $count, target_type: MPI_Datatype, op: MPI_Op,
            win: MPI_Win, $($request: *mut MPI_Request,)?
        ) [$({
            // As above.
            let is_one = origin_count == 1 && result_count == 1 && target_count == 1;
            let same_type = origin_type == target_type && result_type == target_type;
            let given = is_one && same_type && !origin.is_null() && !result.is_null();
            let to = if given { Quick::open(win, rank, ENTRY) } else { None };
            let what = (disp as i64, target_type, op);
            to.and_then(|to| {
                // SAFETY: the caller's buffers.
                let one = || unsafe { $quick(&to, origin.cast(), result.cast(), what) };
                run!(with_request, to [$($q)?] one())
            }).is_some()
        })?] {
            let request = optional!($($request)?);
            let call = Call { request, ..Call::plain(stringify!($name), rank, win) };
            let host = call.host;
            let from = buffer(host, origin, origin_count.into(), origin_type);
            let into = buffer(host, result, result_count.into(), result_type);
            let target = target(host, rank, disp, target_count.into(), target_type);
            let theirs = |native| native!(
                host.$($native)+ [origin_count result_count target_count] (
                    origin, origin_count, host.handle(origin_type), result, result_count,
                    host.handle(result_type), rank, disp, target_count, host.handle(target_type),
                    host.handle(op), native $(, $request)?
                )
            );
            // SAFETY: the caller's buffers.
            unsafe { accumulate(call, (from, Some(into)), target, op, theirs) }
        }
    } )*};
}
