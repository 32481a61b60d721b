//! Dynamic windows: the table of the regions that a rank has attached, which others read and keep
//! a copy of (foMPI paper, section 2.2; MPI-4.1 §12.2.4). Not for what is in a region, nor for the
//! table itself, which lies in its owner's private memory and is a matter of the window.
//!
//! | word         | kind      | meaning                                                         |
//! |--------------|-----------|-----------------------------------------------------------------|
//! | `REGIONS`    | contended | a group lock: n accesses under way, or one change of the table  |
//! | `REGIONS_ID` | owned     | how often the table was changed, ever; 0: never, it is empty    |
//! | `CUT`        | owned     | the `REGIONS_ID` of the last change that did more than add slots |
//! | `TABLE`      | owned     | address of the table at its owner                               |
//! | `SLOTS`      | owned     | how many slots it has                                           |
//! | `TABLE_KEY`  | owned     | what the device of other nodes must know to read it             |
//!
//! An origin *holds* the table of its target, shared, from before it looks until its access is
//! done: one fetch, one read of `REGIONS_ID`, the access, one fetch. While that word is what its
//! copy was made at, the copy is the table; else it reads the four words behind it and as much of
//! the table as it does not know. The owner changes its table alone, under the exclusive lock. The
//! four words are its own: it stores into them while it holds its lock exclusively, and nobody
//! waits for them.
//!
//! # A detach that has returned excludes every access that saw the region
//!
//! Take an access and a detach of its region. By the group lock one of them held first.
//! *The access:* it gave its hold back before the change began. [`release`] orders first, so its
//! puts are done, and its gets have read, when the owner has the lock: what the owner does with the
//! memory after the detach comes behind. *The detach:* its release comes before the access's
//! acquire, so the access reads the `REGIONS_ID` of this detach or a later one. No copy made before
//! has that number, so the table is read again, and the region is not in it.
//!
//! So a program that lets an access race with a detach gets the access done in time, or
//! MPI_ERR_RMA_RANGE; memory that is no longer attached is not touched.
//!
//! *A partial copy is a whole one.* A change that is no cut leaves the slots that there were as
//! they were. If `CUT` is not above the number of a copy of n slots, all changes since then were of
//! that kind, so the first n slots are those of the copy, wherever the table is by now.
//!
//! # It cannot deadlock
//!
//! A thread holds at most one table at a time, for the length of one access, and waits in it for
//! nothing but ACC of that target. Who has ACC waits for nothing. Who changes its own table waits
//! for nothing. So holders always come to their end, those in the queue, which is fair, get their
//! turn, and it does not matter what they hold themselves: a window lock, an exposure epoch,
//! another thread's lock. No request here is *nested* in the sense of [`super::lock`]: that is for
//! those who wait, holding, for a lock that the holders of this one may wait for. Therefore also no
//! call of the user's is answered inside of a hold, and no second table is looked at.
//!
//! A hold over a whole epoch would save its price, and be wrong: MPI_Win_attach and MPI_Win_detach
//! are local (MPI-4.1 §12.2.4), and an epoch may end only after a message that the owner sends
//! behind its detach.
//!
//! # A death
//!
//! A process that dies within an access leaves its hold behind: accesses go on, but the next change
//! of that table waits, notices the death and fails, and so do all who queue behind it. A process
//! that dies in a change of its own table leaves it locked: who wants to access it waits, notices
//! and fails. A process that dies elsewhere has left nothing here. In no case is a table seen that
//! is half changed.

use super::lock::{Mode, Nodes, acquire, release as give_back};
use crate::error::Result;
use crate::fabric::layout::{CUT, REGIONS, REGIONS_ID, SLOTS, TABLE, TABLE_KEY};
use crate::fabric::{Rank, WordAt, WordId, Words};

/// What a change does to the slots that there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// it leaves them as they are, and may add others behind them
    Added,
    /// anything
    Cut,
}

/// Where the table is, as its owner tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// its address at the owner
    pub address: u64,
    /// how many slots it has
    pub slots: u64,
    /// what the device of ranks of other nodes must know to read it
    pub key: u64,
}

fn at(target: Rank, word: WordId) -> WordAt {
    WordAt { rank: target, word }
}

/// Holds the table of `target` and all regions in it, until [`release`]. A holder waits for ACC of
/// `target` and for nothing else.
#[inline]
pub fn hold(words: &impl Words, target: Rank, nodes: impl Nodes) -> Result<()> {
    acquire(words, at(target, REGIONS), Mode::Shared, false, nodes)
}

/// Ends a hold. What was sent to the target is done there.
#[inline]
pub fn release(words: &impl Words, target: Rank) -> Result<()> {
    give_back(words, at(target, REGIONS), Mode::Shared)
}

/// Runs `work` within a hold, which ends whether or not it fails.
#[inline]
pub fn while_held<R>(
    words: &impl Words,
    target: Rank,
    nodes: impl Nodes,
    work: impl FnOnce() -> Result<R>,
) -> Result<R> {
    hold(words, target, nodes)?;
    let done = work();
    release(words, target)?;
    done
}

/// Which table `target` has now: its number, 0 for none yet. For holders; it lasts as long as the
/// hold.
#[inline]
pub fn seen(words: &impl Words, target: Rank) -> Result<u64> {
    words.read(at(target, REGIONS_ID))
}

/// Where the table of `target` is, and whether its first slots are those of the table number
/// `known`. For holders.
pub fn table(words: &impl Words, target: Rank, known: u64) -> Result<(Table, bool)> {
    let cut = words.read(at(target, CUT))?;
    let address = words.read(at(target, TABLE))?;
    let slots = words.read(at(target, SLOTS))?;
    let key = words.read(at(target, TABLE_KEY))?;
    Ok((Table { address, slots, key }, cut <= known))
}

/// Lets `work` change the table of this rank, while no other rank looks at it nor accesses a region
/// in it, and publishes what `work` returns. If `work` fails it has changed nothing.
pub fn change(
    words: &impl Words,
    nodes: impl Nodes,
    work: impl FnOnce() -> Result<(Table, Change)>,
) -> Result<()> {
    let mine = at(words.rank(), REGIONS);
    acquire(words, mine, Mode::Exclusive, false, nodes)?;
    let done = work().map(|(table, change)| publish(words, table, change));
    let released = give_back(words, mine, Mode::Exclusive);
    done.and(released)
}

fn publish(words: &impl Words, table: Table, change: Change) {
    let id = words.own(REGIONS_ID) + 1;
    words.set_own(REGIONS_ID, id);
    if change == Change::Cut {
        words.set_own(CUT, id);
    }
    words.set_own(TABLE, table.address);
    words.set_own(SLOTS, table.slots);
    words.set_own(TABLE_KEY, table.key);
}
