//! The macros that make the entries of one MPI function.

/// What a function returns, an error code if nothing else is said.
macro_rules! answer {
    () => {
        core::ffi::c_int
    };
    ($type:ty) => {
        $type
    };
}

/// At the beginning of `MPI_X`: hands the call to the tool that comes behind, if one has `MPI_X`.
macro_rules! hand_to_tool {
    ($name:ident ($($argument:ident: $type:ty),*) $(-> $answer:ty)?) => {
        if $crate::abi::tool::may_be_behind() {
            static TOOL: $crate::abi::tool::Behind =
                $crate::abi::tool::Behind::new(concat!(stringify!($name), "\0"));
            if let Some(address) = TOOL.find() {
                type Call = unsafe extern "C" fn($($type),*) -> answer!($($answer)?);
                // SAFETY: a function of this name has this type.
                let call: Call = unsafe { core::mem::transmute::<usize, Call>(address) };
                // SAFETY: the caller's arguments.
                return unsafe { call($($argument),*) };
            }
        }
    };
}

/// `MPI_X`, `PMPI_X`, the arguments, and the body: both entries get it, so that neither calls the
/// other (MPI-4.1 §15.2.1). Only `MPI_X` may be a tool's that comes behind.
macro_rules! card {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident ($($argument:ident: $type:ty),* $(,)?) $(-> $answer:ty)?
        $body:block
    )*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> answer!($($answer)?) {
            hand_to_tool!($name ($($argument: $type),*) $(-> $answer)?);
            $body
        }

        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $profiled($($argument: $type),*) -> answer!($($answer)?) $body
    )*};
}

/// The same for calls that must be quick. The first block tries the common case, needs no frame and
/// no error, and says whether that was all; if not, it has done nothing, and the second block does
/// the call from the beginning, out of line. The first block asks for the host with `ENTRY`, so
/// that it does nothing where there may be a tool behind.
macro_rules! quick_card {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident ($($argument:ident: $type:ty),* $(,)?)
        $quick:block $body:block
    )*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> core::ffi::c_int {
            const ENTRY: $crate::mpi::Entry = $crate::mpi::Entry::Mpi;
            #[cold]
            #[inline(never)]
            unsafe extern "C" fn in_full($($argument: $type),*) -> core::ffi::c_int {
                hand_to_tool!($name ($($argument: $type),*));
                $body
            }
            let done: bool = $quick;
            if done {
                return 0;
            }
            // SAFETY: the caller's arguments.
            unsafe { in_full($($argument),*) }
        }

        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $profiled($($argument: $type),*) -> core::ffi::c_int {
            const ENTRY: $crate::mpi::Entry = $crate::mpi::Entry::Pmpi;
            #[cold]
            #[inline(never)]
            unsafe extern "C" fn in_full($($argument: $type),*) -> core::ffi::c_int $body
            let done: bool = $quick;
            if done {
                return 0;
            }
            // SAFETY: the caller's arguments.
            unsafe { in_full($($argument),*) }
        }
    )*};
}
