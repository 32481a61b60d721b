//! Macros that define the two entries of an MPI function, `MPI_X` and `PMPI_X`.

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
