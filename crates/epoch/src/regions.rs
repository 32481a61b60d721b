//! Dynamic windows: the table of the regions that a rank has attached, which other ranks read and
//! keep a copy of (foMPI paper, section 2.2; MPI-4.1 §12.2.4). Not for the content of a region, nor
//! for the table itself, which lies in its owner's private memory and belongs to the window.
//!
//! | word         | kind      | meaning                                                         |
//! |--------------|-----------|-----------------------------------------------------------------|
//! | `REGIONS`    | contended | a group lock: n accesses under way, or one change of the table  |
//! | `REGIONS_ID` | owned     | the number of changes of the table, ever; 0: it is empty        |
//! | `CUT`        | owned     | the `REGIONS_ID` of the last change that did more than add slots |
//! | `TABLE`      | owned     | address of the table at its owner                               |
//! | `SLOTS`      | owned     | the number of its slots                                         |
//! | `TABLE_KEY`  | owned     | the remote key with which other nodes read it                   |
//!
//! An origin *holds* the table of its target, shared, from before it reads the words until its
//! access is done: one fetch, one read of `REGIONS_ID`, the access, one fetch. While `REGIONS_ID`
//! is the number of its copy, the copy equals the table. Otherwise the origin reads the four words
//! behind it and the part of the table that it does not know. The owner changes its table alone,
//! under the exclusive lock. The four words are the owner's: it stores into them while it holds its
//! lock exclusively, and no rank waits for them.
//!
//! # A detach that has returned excludes every access that saw the region
//!
//! Take an access and a detach of its region. By the group lock one of them held first. *The access
//! first:* it released its hold before the change began. [`release`] orders first, so its puts are
//! done, and its gets have read, when the owner has the lock: what the owner does with the memory
//! after the detach comes behind. *The detach first:* its release comes before the access's
//! acquire, so the access reads the `REGIONS_ID` of this detach or a later one. No copy made before
//! has that number, so the table is read again, and the region is not in it.
//!
//! So a program that lets an access race with a detach gets the access done in time, or
//! MPI_ERR_RMA_RANGE; memory that is no longer attached is not touched.
//!
//! *A partial copy is as good as a whole one.* A change that is no cut leaves the existing slots as
//! they were. If `CUT` is not above the number of a copy of n slots, all changes since then were of
//! that kind, so the first n slots are those of the copy, wherever the table is by now.
//!
//! # It cannot deadlock
//!
//! A thread holds at most one table at a time, for the length of one access, and waits during this
//! hold for nothing but ACC of that target. A thread that holds ACC waits for nothing. A thread
//! that changes its own table waits for nothing. So all holds end, and all requests in the queue,
//! which is fair, get their turn. It does not matter what else these threads hold: a window lock,
//! an exposure epoch, a lock of another thread. No request here is *nested* in the sense of
//! [`super::lock`]: that is for threads that hold a lock and wait for another one, whose holders
//! may wait for the first. Therefore no callback of the user runs during a hold, and no second
//! table is read.
//!
//! A hold over a whole epoch would save the cost of holds per access, but would be wrong:
//! MPI_Win_attach and MPI_Win_detach are local (MPI-4.1 §12.2.4), and an epoch may end only after a
//! message that the owner sends behind its detach.
//!
//! # A process dies
//!
//! A process that dies within an access leaves its hold behind: accesses go on, but the next change
//! of that table waits, notices the death and fails, and so do all requests that queue behind it. A
//! process that dies while it changes its own table leaves it locked: a rank that wants to access
//! it waits, notices and fails. A process that dies elsewhere leaves nothing behind here. In no
//! case does a rank see a table that is half changed.

#[cfg(not(loom))]
mod region;
#[cfg(not(loom))]
mod registered;
#[cfg(not(loom))]
pub mod tables;

#[cfg(fuzzing)]
pub use tables::region_tables;

use super::lock::{Mode, Nodes, acquire, release as give_back};
use crate::error::Result;
use crate::fabric::layout::{CUT, REGIONS, REGIONS_ID, SLOTS, TABLE, TABLE_KEY};
use crate::fabric::{WordAt, WordId, Words};
use crate::rank_numbers::Rank;

/// The effect of a change on the slots that there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// it leaves them as they are, and may add others behind them
    Added,
    /// anything
    Cut,
}

/// The location of a table, as its owner publishes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// its address at the owner
    pub address: u64,
    /// the number of its slots
    pub slots: u64,
    /// the remote key with which ranks of other nodes read it
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

/// Ends a hold. Operations that were sent to the target are done there.
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

/// Returns the number of the table that `target` has now, 0 if it has none yet. For holders: the
/// number stays the same as long as the hold.
#[inline]
pub fn seen(words: &impl Words, target: Rank) -> Result<u64> {
    words.read(at(target, REGIONS_ID))
}

/// Returns the location of the table of `target`, and whether its first slots are those of the
/// table number `known`. For holders.
pub fn table(words: &impl Words, target: Rank, known: u64) -> Result<(Table, bool)> {
    let cut = words.read(at(target, CUT))?;
    let address = words.read(at(target, TABLE))?;
    let slots = words.read(at(target, SLOTS))?;
    let key = words.read(at(target, TABLE_KEY))?;
    Ok((Table { address, slots, key }, cut <= known))
}

/// Lets `work` change the table of this rank, while no other rank reads it or accesses a region in
/// it, and publishes the table that `work` returns. If `work` fails it has changed nothing.
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
