//! Numbers of ranks, of nodes, and of slots, each with a type of its own, because all are integers
//! of 32 bits and could be confused. Not for counts (`size`, `nodes`), which are plain integers.
//! Invariant: a number changes its type only by a function of this file.
//!
//! | type           | its numbers are below       | the same process has                        |
//! |----------------|-----------------------------|---------------------------------------------|
//! | [`Rank`]       | the size of the window      | one of them in each window                  |
//! | [`NodeNumber`] | the nodes of the window     | that of its node                            |
//! | [`RankOnNode`] | the ranks of one node       | one of them; on one node it is its [`Rank`] |

use core::fmt;

/// Defines the types of numbers, which are shown as numbers.
macro_rules! numbers {
    ($($(#[$doc:meta])* $number:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(transparent)]
        pub struct $number(pub u32);

        impl fmt::Display for $number {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

numbers! {
    /// A rank of the communicator of a window, as `target_rank` of MPI_Put.
    Rank;

    /// The number of a node among the nodes of a window. Nodes are numbered in the order of their
    /// lowest ranks.
    NodeNumber;

    /// The number of a process among the processes of its node, in the order of their ranks. It is
    /// the rank in the communicator of the node's arena.
    RankOnNode;

    /// The number of a slot of an arena.
    Slot;
}

impl Rank {
    /// The first rank.
    pub const FIRST: Rank = Rank(0);

    /// Returns all ranks of a communicator of `size` processes.
    pub fn all(size: u32) -> impl Iterator<Item = Rank> {
        (0..size).map(Rank)
    }

    /// Returns the number on its node of a rank of a window whose ranks are all on one node.
    #[inline(always)]
    pub const fn on_only_node(self) -> RankOnNode {
        RankOnNode(self.0)
    }

    /// Undoes [`RankOnNode::in_node_words`].
    #[inline(always)]
    pub const fn of_node_words(self) -> RankOnNode {
        RankOnNode(self.0)
    }

    /// Undoes [`NodeNumber::in_leader_words`].
    #[inline(always)]
    pub const fn of_leader_words(self) -> NodeNumber {
        NodeNumber(self.0)
    }

    /// Undoes [`RankOnNode::in_error_of_transport`].
    pub const fn of_transport_error(self) -> RankOnNode {
        RankOnNode(self.0)
    }
}

impl RankOnNode {
    /// The leader of a node.
    pub const LEADER: RankOnNode = RankOnNode(0);

    /// Returns all processes of a node with `size` processes.
    pub fn all(size: u32) -> impl Iterator<Item = RankOnNode> {
        (0..size).map(RankOnNode)
    }

    /// Returns the rank of a process in a window whose ranks are all on one node.
    #[inline(always)]
    pub const fn on_only_node(self) -> Rank {
        Rank(self.0)
    }

    /// Returns the rank of a process in the control words of its node: their ranks are the
    /// processes of the node alone.
    #[inline(always)]
    pub const fn in_node_words(self) -> Rank {
        Rank(self.0)
    }

    /// Returns the number that a transport within the node puts into an error in place of a rank of
    /// the window, because it does not know the window. `LocalWindow::with_rank` replaces it before
    /// the program sees the error.
    pub const fn in_error_of_transport(self) -> Rank {
        Rank(self.0)
    }
}

impl NodeNumber {
    /// Returns all nodes of a window over `nodes` nodes.
    pub fn all(nodes: u32) -> impl Iterator<Item = NodeNumber> {
        (0..nodes).map(NodeNumber)
    }

    /// Returns the node that is `step` nodes after this one, in a circle of `nodes` nodes.
    pub const fn after(self, step: u32, nodes: u32) -> NodeNumber {
        NodeNumber((self.0 + step) % nodes)
    }

    /// Returns the rank of the leader of this node in the control words of the leaders: their ranks
    /// are the leaders alone, in the order of the nodes.
    #[inline(always)]
    pub const fn in_leader_words(self) -> Rank {
        Rank(self.0)
    }
}

impl Slot {
    /// The slot of the arena itself.
    pub const OF_ARENA: Slot = Slot(0);

    /// Returns the slot after this one.
    pub const fn next(self) -> Slot {
        Slot(self.0 + 1)
    }
}

/// A number that names a process, for what serves several of these types: a map, or a word that
/// other processes read.
pub trait ProcessNumber: Copy + Ord {
    /// Returns the number.
    fn number(self) -> u32;

    /// Returns the process with this number.
    fn of_number(number: u32) -> Self;
}

macro_rules! process_numbers {
    ($($number:ident)*) => {
        $(
            impl ProcessNumber for $number {
                #[inline(always)]
                fn number(self) -> u32 {
                    self.0
                }

                #[inline(always)]
                fn of_number(number: u32) -> Self {
                    $number(number)
                }
            }
        )*
    };
}

process_numbers! { Rank RankOnNode }
