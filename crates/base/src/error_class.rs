//! The MPI error classes (MPI-4.1 §9.4).

macro_rules! classes {
    ($($name:ident $doc:literal,)*) => {
        /// MPI error classes that this library raises (MPI-4.1 §9.4); `mpi` knows their number in
        /// each ABI.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Class {
            $(#[doc = $doc] $name,)*
        }

        impl Class {
            /// All of them, in the order of their numbers here.
            pub const ALL: &[Class] = &[$(Class::$name),*];

            /// Its name in the standard.
            pub fn name(self) -> &'static str {
                match self {
                    $(Class::$name => $doc,)*
                }
            }

            /// Returns the class with a number of ours, which another rank has sent.
            pub fn from_number(number: u8) -> Class {
                Class::ALL.get(number as usize).copied().unwrap_or(Class::Other)
            }
        }
    };
}

classes! {
    Buffer "MPI_ERR_BUFFER",
    Count "MPI_ERR_COUNT",
    Type "MPI_ERR_TYPE",
    Comm "MPI_ERR_COMM",
    Rank "MPI_ERR_RANK",
    Request "MPI_ERR_REQUEST",
    Group "MPI_ERR_GROUP",
    Op "MPI_ERR_OP",
    Arg "MPI_ERR_ARG",
    Truncate "MPI_ERR_TRUNCATE",
    Other "MPI_ERR_OTHER",
    Intern "MPI_ERR_INTERN",
    Keyval "MPI_ERR_KEYVAL",
    NoMem "MPI_ERR_NO_MEM",
    Info "MPI_ERR_INFO",
    Size "MPI_ERR_SIZE",
    Disp "MPI_ERR_DISP",
    LockType "MPI_ERR_LOCKTYPE",
    Assert "MPI_ERR_ASSERT",
    Win "MPI_ERR_WIN",
    RmaConflict "MPI_ERR_RMA_CONFLICT",
    RmaSync "MPI_ERR_RMA_SYNC",
    RmaRange "MPI_ERR_RMA_RANGE",
    RmaAttach "MPI_ERR_RMA_ATTACH",
    RmaShared "MPI_ERR_RMA_SHARED",
    RmaFlavor "MPI_ERR_RMA_FLAVOR",
    Unsupported "MPI_ERR_UNSUPPORTED_OPERATION",
    Base "MPI_ERR_BASE",
}
