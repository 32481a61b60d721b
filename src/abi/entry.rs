//! The macros that make the two entries of one MPI function, `MPI_X` and `PMPI_X`.

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

/// The begin of an entry that no tool can have: passes the call on if this library stands aside.
macro_rules! pass_aside {
    ($name:ident ($($argument:ident: $type:ty),*) $(-> $answer:ty)?) => {
        if $crate::abi::aside::may_be() {
            static PASS_ON: $crate::abi::aside::PassOn =
                $crate::abi::aside::PassOn::new(symbol!($name));
            if let Some(address) = PASS_ON.find() {
                type Call = unsafe extern "C-unwind" fn($($type),*) $(-> $answer)?;
                // SAFETY: a function of this name has this type, with handles in registers.
                let call: Call = unsafe { core::mem::transmute::<usize, Call>(address) };
                // SAFETY: the caller's arguments.
                return unsafe { call($($argument),*) };
            }
        }
    };
}

/// The begin of `MPI_X`: passes the call to the tool that comes behind, if one has `MPI_X`.
macro_rules! hand_to_tool {
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

/// Makes `MPI_X` and `PMPI_X` from a name, arguments and a body. Both get the body, so that neither
/// calls the other (MPI-4.1 §15.2.1). Only `MPI_X` may belong to a tool that comes behind. If this
/// library stands aside, both pass the call on.
macro_rules! entry {
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

/// Makes the entries of calls that must be quick. The first block tries the common case; it needs
/// no frame and raises no error, and returns whether it carried out the call. If not, it has done
/// nothing. It finds the window by the name `ENTRY`, so that it finds none where a tool may come
/// behind. The last block carries out the call from the beginning.
macro_rules! quick_entry {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident ($($argument:ident: $type:ty),* $(,)?) $quick:block $body:block
    )*) => {$(
        quick_function! {
            $(#[$doc])*
            $name Mpi [hand_to_tool!($name ($($argument: $type),*))] ($($argument: $type),*)
            $quick $body
        }

        quick_function! {
            $(#[$doc])*
            $profiled Pmpi
            [pass_aside!($profiled ($($argument: $type),*) -> core::ffi::c_int)]
            ($($argument: $type),*) $quick $body
        }
    )*};
}

/// One of the two entries of [`quick_entry`]. `[$begin]`: what comes ahead of the last block.
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
