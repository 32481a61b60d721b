//! The reasons why memory is not adopted. Their texts are for FOMPI_VERBOSE.

use core::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident $may_pass:literal $text:literal,)*) => {
        /// The reason why memory of a window is not adopted. `Display` gives the text.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum NotAdopted {
            $(#[doc = $text] $(#[$doc])* $name,)*
        }

        impl NotAdopted {
            /// Whether the reason may pass while the window lives, so that [`super::take`] with
            /// [`super::When::MidLife`] may succeed later.
            pub fn may_pass(self) -> bool {
                match self {
                    $(NotAdopted::$name => $may_pass,)*
                }
            }

            /// Returns the text, which goes on after "not adopted: ".
            pub fn text(self) -> &'static str {
                match self {
                    $(NotAdopted::$name => $text,)*
                }
            }
        }
    };
}

reasons! {
    Setting false "FOMPI_ADOPT or the window's info forbids it",
    Empty false "the window has no memory here",
    InHeap false "the memory is shared already",
    Gpu false "the run-time library of a GPU is loaded",
    NoUserfaultfd false "the kernel or a filter refuses userfaultfd with write-protection",
    /// (RLIMIT_AS, RLIMIT_FSIZE): a peer that cannot map the memory must not be left over.
    Limited false "a resource limit of the process bounds its memory or its files",
    /// (vm.overcommit_memory=2)
    Strict false "the system gives out no more memory than it has",
    ManyMappings false "the process has made many mappings already",
    NotMapped false "a part of the memory is not mapped",
    Stack false "the memory is on a stack",
    File false "the memory is mapped from a file, such as initialised static data",
    Shared false "the memory is shared with other processes already",
    Rights false "the memory is not readable and writable, or is executable",
    HugePages false "the memory has reserved huge pages",
    Special false "the memory belongs to a device or to the kernel",
    Locked false "the memory is locked (mlock)",
    Pinned true "the memory is, or may be, registered with a device or with io_uring",
    DirectIo true "the process has an io_uring or AIO context",
    Watched false "another userfaultfd watches the memory",
    OnlyEdges false "its pages hold other objects, and the kernel may write to them",
    Threads true "another thread runs, or sleeps in a call that may use the memory",
    OtherWindow false "another window is over some of its pages already",
    Budget true "moving the memory at creation does not fit the budget",
    Again true "windows over this very memory were freed, and the last two were not both used",
    NoMemory true "the system has no memory or no mapping for it now",
    Failed true "the system refused a step of the move",
}

impl fmt::Display for NotAdopted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
