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

/// The name of a function, as the loader wants it.
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

/// At the beginning of an entry that no tool can have: hands the call on if this library stands
/// aside.
macro_rules! pass_aside {
    ($name:ident ($($argument:ident: $type:ty),*) $(-> $answer:ty)?) => {
        if $crate::abi::aside::may_be() {
            static BEYOND: $crate::abi::aside::Beyond =
                $crate::abi::aside::Beyond::new(symbol!($name));
            if let Some(address) = BEYOND.find() {
                type Call = unsafe extern "C-unwind" fn($($type),*) $(-> $answer)?;
                // SAFETY: a function of this name has this type, with handles in registers.
                let call: Call = unsafe { core::mem::transmute::<usize, Call>(address) };
                // SAFETY: the caller's arguments.
                return unsafe { call($($argument),*) };
            }
        }
    };
}

/// At the beginning of `MPI_X`: hands the call to the tool that comes behind, if one has `MPI_X`.
macro_rules! hand_to_tool {
    ($name:ident ($($argument:ident: $type:ty),*) $(-> $answer:ty)?) => {
        if $crate::abi::tool::may_be_behind() {
            static TOOL: $crate::abi::tool::Behind =
                $crate::abi::tool::Behind::new(symbol!($name));
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

/// `MPI_X`, `PMPI_X`, the arguments, and the body: both entries get it, so that neither calls the
/// other (MPI-4.1 §15.2.1). Only `MPI_X` may be a tool's that comes behind. Where this library
/// stands aside, both pass the call on.
macro_rules! card {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident ($($argument:ident: $type:ty),* $(,)?) $(-> $answer:ty)?
        $body:block
    )*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> answer!($($answer)?) {
            hand_to_tool!($name ($($argument: $type),*) $(-> $answer)?);
            $body
        }

        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $profiled($($argument: $type),*) -> answer!($($answer)?) {
            pass_aside!($profiled ($($argument: $type),*) -> answer!($($answer)?));
            $body
        }
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
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> core::ffi::c_int {
            const ENTRY: $crate::mpi::Entry = $crate::mpi::Entry::Mpi;
            #[cold]
            #[inline(never)]
            unsafe extern "C-unwind" fn in_full($($argument: $type),*) -> core::ffi::c_int {
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
        pub unsafe extern "C-unwind" fn $profiled($($argument: $type),*) -> core::ffi::c_int {
            const ENTRY: $crate::mpi::Entry = $crate::mpi::Entry::Pmpi;
            #[cold]
            #[inline(never)]
            unsafe extern "C-unwind" fn in_full($($argument: $type),*) -> core::ffi::c_int {
                pass_aside!($profiled ($($argument: $type),*) -> core::ffi::c_int);
                $body
            }
            let done: bool = $quick;
            if done {
                return 0;
            }
            // SAFETY: the caller's arguments.
            unsafe { in_full($($argument),*) }
        }
    )*};
}
