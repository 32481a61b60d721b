//! The reasons why memory is not adopted. Their texts are for FOMPI_VERBOSE.

use core::fmt;

/// The result of a part of adoption.
pub type Adoption<T> = core::result::Result<T, NotAdopted>;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident $text:literal,)*) => {
        /// The reason why memory of a window is not adopted, or is not given back. `Display` gives
        /// the text.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum NotAdopted {
            $(#[doc = $text] $(#[$doc])* $name,)*
        }

        /// The text goes on after "not adopted: ".
        impl fmt::Display for NotAdopted {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(NotAdopted::$name => $text,)*
                })
            }
        }
    };
}

reasons! {
    Setting "FOMPI_ADOPT or the window's info forbids it",
    Empty "the window has no memory here",
    InHeap "the memory is shared already",
    Alone "no other process of this node is in the window",
    Gpu "the run-time library of a GPU is loaded",
    NoKernel "the kernel does not report references to pages (MADV_COLLAPSE, Linux 6.1)",
    OldKernel "io_uring refuses buffers that are adopted in part (before Linux 6.5)",
    Valgrind "valgrind runs the program",
    /// (RLIMIT_AS, RLIMIT_FSIZE): a peer that cannot map the memory must not be left over.
    Limited "a resource limit of the process bounds its memory or its files",
    /// (vm.overcommit_memory=2)
    Strict "the system does not overcommit memory",
    ManyMappings "the process has many windows over adopted memory already",
    NotMapped "a part of the memory is not mapped",
    Stack "the memory is on a stack",
    File "the memory is mapped from a file, such as initialised static data",
    Shared "the memory is shared with other processes already",
    Rights "the memory is not readable and writable, or is executable",
    HugePages "the memory has reserved huge pages",
    Special "the memory belongs to a device or to the kernel",
    /// mlock, mprotect, madvise, a userfaultfd, ...
    Advised "the program has locked, named, or advised the system about the memory",
    Device "a device or io_uring may use memory of the process",
    Held "a device, a transfer or a pipe holds a page of the memory",
    OnlyEdges "its pages hold other objects, which another thread may use",
    Threads "the process has threads of its own, or the MPI's may run its signal handlers",
    NotQuiet "another rank has threads of its own, or ranks of the job are not in the window",
    OtherRanks "other ranks of the job may use the memory: they are not in the window",
    OtherProcesses "the process has a child or is traced: these may use its memory",
    OtherWindow "another window is over some of its pages already",
    /// (40 MiB for each second, and 64 MiB of other memory than that of the last four windows)
    Allowance "the process has moved as much memory as it may by now",
    NoMemory "the system has no memory or no mapping for it now",
    Failed "the system refused a step of the move",
}
