//! The line that a rank prints after a long wait: in which call, on which window, and for which
//! ranks it waits. The text is built from control words that other ranks change meanwhile, so it
//! may be out of date when it is printed.

use super::claims;
use crate::arena::Arena;
use crate::arena::barrier::collective_words;
use crate::arena::control_blocks::ControlBlocks;
use crate::arena::wait_progress::{CollectiveWait, NodeIdle};
use crate::epoch::lock::used_nodes::Wanted;
use crate::epoch::lock::{self, Mode, standing};
use crate::epoch::state::Hold;
use crate::epoch::{fence, pscw};
use crate::fabric::layout::{self, LOCK};
use crate::fabric::shm::words::CpuWords;
use crate::fabric::{WordAt, WordId, Words};
use crate::liveness::deadlocks::LockChain;
use crate::messages::{self, Line, filled};
use crate::rank_numbers::{Rank, RankOnNode, Slot};
use crate::report::named;
use crate::sync::Ordering;
use crate::sys::process;
use crate::window::label::label;
use crate::window::notifications::AwaitedCounters;
use crate::window::protocols::on_words;
use crate::window::{LocalWindow, Window, registry};
use std::sync::Arc;
use std::time::Duration;

/// The kind of call in which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// MPI_Win_fence, or MPI_Win_free
    Fence,
    /// MPI_Win_start
    Start,
    /// MPI_Win_wait
    Wait,
    /// a call that waits for a lock, with a queue node
    Queue(Wanted),
    /// a call that waits for notifications
    Notifications(AwaitedCounters),
}

impl Call {
    /// Returns the call in which a thread of this process waits for `word`.
    pub fn of(node: &LocalWindow, word: WordId) -> Call {
        match layout::purpose(word) {
            layout::Purpose::Complete => Call::Wait,
            layout::Purpose::Posts => Call::Start,
            layout::Purpose::Queue(number) => Call::Queue(node.nodes.wanted(number)),
            layout::Purpose::Barrier => Call::Fence,
            layout::Purpose::Notifications => {
                Call::Notifications(AwaitedCounters::of_this_thread())
            }
        }
    }

    /// Returns whether the calling thread is certain to wait for ever, for locks that wait for each
    /// other.
    pub fn is_deadlock(self, window: &Window, node: &LocalWindow) -> bool {
        let Call::Queue(wanted) = self else { return false };
        claims::own(window, node, wanted).is_some_and(|own| own.are_deadlock())
    }

    fn name(self, node: &LocalWindow) -> &'static str {
        match self {
            Call::Fence if node.is_ending() => "MPI_Win_free",
            Call::Fence => "MPI_Win_fence",
            Call::Start => "MPI_Win_start",
            Call::Wait => "MPI_Win_wait",
            Call::Notifications(awaited) => awaited.call,
            Call::Queue(Wanted::Lock(_)) => "MPI_Win_lock",
            Call::Queue(Wanted::LockAll) => "MPI_Win_lock_all",
            Call::Queue(Wanted::Accumulate(_)) => "a call that accumulates",
            Call::Queue(Wanted::Regions(_)) => "a call on attached memory",
        }
    }
}

/// Returns the line of a thread that has waited for `waited` in `call`. `None`: another rank of the
/// node prints it.
pub fn line(window: &Window, node: &LocalWindow, call: Call, waited: Duration) -> Option<Line> {
    let (whom, deadlock) = match call {
        Call::Fence => (absent(node)?, None),
        Call::Start => (not_posted(window, node), None),
        Call::Wait => (not_complete(node), None),
        Call::Queue(wanted) => queue(window, node, wanted),
        Call::Notifications(awaited) => (awaited.text(window), None),
    };
    let (rank, pid, seconds) = (node.rank, process::id(), waited.as_secs());
    let (call, window) = (call.name(node), label(window));
    Some(match deadlock {
        Some(unless) => {
            filled!(messages::DEADLOCK; rank, pid, seconds, call, window, whom, unless).line()
        }
        None => filled!(messages::WAITS; rank, pid, seconds, call, window, whom).line(),
    })
}

/// Returns ranks of the window as text, with the process ids of those on this node; empty if there
/// are none.
fn ranks(node: &LocalWindow, ranks: impl IntoIterator<Item = Rank>) -> String {
    let pid = |rank: Rank| Some(node.arena().memory_of(node.near_index(rank)?).life.mark().pid);
    named(ranks.into_iter().map(|rank| (rank, pid(rank))).collect()).unwrap_or_default()
}

/// Returns the ranks that a barrier waits for. The lowest waiting rank of the node prints the line.
fn absent(node: &LocalWindow) -> Option<String> {
    // Over several nodes a fence is two barriers of the ranks of each.
    let (arena, per_call) = (node.arena(), if node.spans_nodes() { 2 } else { 1 });
    let absent = absent_on_node(&node.words, per_call)?;
    if !absent.is_empty() {
        let names = ranks(node, absent.iter().map(|index| arena.name_of(*index)));
        return Some(format!(": not called yet by {names}"));
    }
    let Some(many) = node.many_nodes().filter(|_| arena.rank == RankOnNode::LEADER) else {
        return Some(String::from(": called by all ranks of this node"));
    };
    let nodes = fence::absent(&many.part.leads(node), 1).into_iter().map(Rank::of_leader_words);
    let leaders = ranks(node, nodes.map(|number| many.part.wide.first_rank_of(number)));
    Some(match leaders.is_empty() {
        true => String::from(": called by all ranks by now"),
        false => format!(": not called yet by every rank on the nodes of {leaders}"),
    })
}

/// Returns the ranks of the node that a barrier waits for. `None`: a lower rank of the node waits,
/// and prints the line.
fn absent_on_node(
    words: &CpuWords<ControlBlocks, NodeIdle>,
    per_call: u64,
) -> Option<Vec<RankOnNode>> {
    let arena = words.idle().arena();
    let absent: Vec<RankOnNode> =
        fence::absent(words, per_call).into_iter().map(Rank::of_node_words).collect();
    let is_here = |index: &RankOnNode| !absent.contains(index);
    (RankOnNode::all(arena.size).find(is_here) == Some(arena.rank)).then_some(absent)
}

/// Returns the line of a thread that has waited for `waited` in a call that makes or frees a
/// window. `None`: another rank of the node prints it, or all have arrived.
pub fn collective_line(arena: &Arc<Arena>, wait: CollectiveWait, waited: Duration) -> Option<Line> {
    let absent = absent_on_node(&collective_words(arena, wait), 1)?;
    let process =
        |rank: &RankOnNode| (arena.name_of(*rank), Some(arena.memory_of(*rank).life.mark().pid));
    let whom = named(absent.iter().map(process).collect())?;
    let window = label_at(arena, wait.slot).map(|label| format!(", {label},")).unwrap_or_default();
    let (rank, seconds, call) = (arena.name_of(arena.rank), waited.as_secs(), wait.call);
    Some(filled!(messages::WAITS_COLLECTIVELY; rank, seconds, call, window, whom).line())
}

/// Returns how a line names the window whose control words are in a slot, if a window of this
/// process has it: one that is made has none yet.
fn label_at(arena: &Arc<Arena>, slot: Slot) -> Option<String> {
    let mut found = None;
    registry::for_each(|window| {
        let is_same = |node: &LocalWindow| {
            Arc::ptr_eq(node.arena(), arena) && node.slot == slot && window.as_duplicate().is_none()
        };
        if window.local().is_some_and(is_same) {
            found = Some(label(window));
        }
    });
    found
}

/// Returns the targets whose MPI_Win_post this rank waits for.
fn not_posted(window: &Window, node: &LocalWindow) -> String {
    let targets = window.epochs.started();
    // Over several nodes MPI_Win_start reads the posts only when it uses them.
    let is_missing = |rank: &Rank| node.spans_nodes() || !pscw::has_posted(&node.words, *rank);
    let missing: Vec<Rank> = targets.into_iter().filter(is_missing).collect();
    let one_of = if node.spans_nodes() && missing.len() > 1 { "one of " } else { "" };
    format!(": MPI_Win_post for this rank not called yet by {one_of}{}", ranks(node, missing))
}

/// Returns the origins whose MPI_Win_complete this rank waits for, as far as they are known.
fn not_complete(node: &LocalWindow) -> String {
    // Relaxed: only this process uses the count.
    let expected = node.completes.load(Ordering::Relaxed);
    let missing = on_words!(node, |words| expected.saturating_sub(words.own(layout::COMPLETE)));
    let mut text = match missing {
        1 => String::from(": MPI_Win_complete not called yet by an origin"),
        missing => format!(": MPI_Win_complete not called yet by {missing} origins"),
    };
    if !node.spans_nodes() {
        let has_started = |rank: &Rank| pscw::has_started(&node.words, *rank);
        let idle = ranks(node, Rank::all(node.size).filter(|rank| !has_started(rank)));
        if !idle.is_empty() {
            text += &format!(", MPI_Win_start not by {idle}");
        }
    }
    text
}

/// Returns what a thread with a queue node waits for; and if that is a deadlock, what may end it.
fn queue(window: &Window, node: &LocalWindow, wanted: Wanted) -> (String, Option<&'static str>) {
    let chain = || claims::own(window, node, wanted).and_then(|own| own.chain());
    let holders = |known: Option<LockChain>, unknown: &dyn Fn() -> String| match known {
        Some(LockChain { links, deadlock }) => (links, deadlock),
        None => (unknown(), None),
    };
    match wanted {
        Wanted::Lock(target) => {
            let is_alone = claims::locks(window).any(|lock| lock == (target, Hold::Exclusive));
            let kind = if is_alone { "exclusive" } else { "shared" };
            let of = ranks(node, [target]);
            let unknown = || format!(", {}", lock_holders(node, target, is_alone));
            let (holders, deadlock) = holders(chain(), &unknown);
            (format!(", for the {kind} lock of {of}{holders}"), deadlock)
        }
        Wanted::LockAll => holders(chain(), &|| String::from(all_holders(node))),
        Wanted::Accumulate(rank) => {
            (format!(", for the end of another accumulate on {}", ranks(node, [rank])), None)
        }
        Wanted::Regions(rank) => {
            let of = ranks(node, [rank]);
            (format!(", for the end of another call on what {of} has attached"), None)
        }
    }
}

/// Returns which holders keep lock_all from this process, as far as the lock words show them. The
/// standing intent is none: while it ends, the locks of targets are what lock_all waits for.
fn all_holders(node: &LocalWindow) -> &'static str {
    let is_alone = |rank: &Rank| {
        let word = read(node, WordAt { rank: *rank, word: LOCK });
        matches!(lock::holders(word), Some((Mode::Exclusive, _)))
    };
    let holders = match lock::holders(read(node, layout::global())) {
        Some((Mode::Exclusive, _)) if standing::is_standing(read(node, layout::standing())) => {
            Rank::all(node.size).filter(is_alone).count() as u64
        }
        Some((Mode::Exclusive, intents)) => intents,
        _ => 0,
    };
    match holders {
        0 => ": it is passed on",
        1 => ": a rank holds an exclusive lock",
        _ => ": ranks hold exclusive locks",
    }
}

/// Returns which holders keep a lock of `target` from this process, as far as the lock words show
/// them: they count holders and do not name them.
fn lock_holders(node: &LocalWindow, target: Rank, is_alone: bool) -> String {
    let many = |count: u64, how: &str| match count {
        1 => format!("which another rank holds{how}"),
        count => format!("which {count} ranks hold{how}"),
    };
    match lock::holders(read(node, WordAt { rank: target, word: LOCK })) {
        Some((Mode::Shared, count)) => many(count, " shared"),
        Some((_, count)) => many(count, " exclusively"),
        None if is_alone => match lock::holders(read(node, layout::global())) {
            Some((Mode::Shared, count)) => many(count, " by MPI_Win_lock_all"),
            _ => String::from("which is passed on"),
        },
        None => String::from("which is passed on"),
    }
}

/// Returns the present value of a lock word; 0, a free lock, if it cannot be read.
fn read(node: &LocalWindow, at: WordAt) -> u64 {
    on_words!(node, |words| words.read(at)).unwrap_or(0)
}
