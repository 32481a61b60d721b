//! The macros that make the entries of one MPI function.

/// `MPI_X`, `PMPI_X`, the arguments, and the body: both entries get it, so that neither calls the
/// other (MPI-4.1 §15.2.1).
macro_rules! card {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident ($($argument:ident: $type:ty),* $(,)?) $body:block
    )*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> core::ffi::c_int $body

        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $profiled($($argument: $type),*) -> core::ffi::c_int $body
    )*};
}

/// The same for calls that must be quick. The first block tries the common case, needs no frame and
/// no error, and says whether that was all; if not, it has done nothing, and the second block does
/// the call from the beginning, out of line.
macro_rules! quick_card {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident ($($argument:ident: $type:ty),* $(,)?)
        $quick:block $body:block
    )*) => {$(
        card! {
            $(#[$doc])*
            $name $profiled ($($argument: $type),*) {
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
        }
    )*};
}
