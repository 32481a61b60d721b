//! Fences on the simulator, and proof that these tests notice steps that a fence leaves out.

use crate::fabric::layout;
use crate::fabric::{WordAt, WordId, Words};
use crate::fence::{
    BarrierKind, DIRECT_NODES_MAX, OpeningFence, absent, barrier, fence, fence_over_nodes, mark,
};
use crate::rank_numbers::Rank;
use fompi_simulator::{Fault, Profile, Sim, SimCounts, SimShape, every, is_caught, run};
use std::cell::Cell;

/// The barriers of the ranks of a node: trees of many levels, and of one.
const KINDS: [BarrierKind; 4] = [
    BarrierKind::Rounds,
    BarrierKind::Tree { fan_in: 2 },
    BarrierKind::Tree { fan_in: 3 },
    BarrierKind::Tree { fan_in: 16 },
];

/// Returns the words that a barrier posts to: without these posts it does not work.
fn posted(kind: BarrierKind) -> WordId {
    if kind == BarrierKind::Rounds { layout::fence(0) } else { layout::RELEASED }
}

/// In each epoch every rank puts into every rank, and all see it after the fence.
fn puts_between_fences(kind: BarrierKind, fault: Fault) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let words = sim.weak(fault);
        let ranks = || (0..sim.size()).map(Rank);
        for epoch in 1..=5 {
            // Two sets of cells in turn: a rank that is a fence ahead puts into those that this
            // rank does not load.
            let cell = |origin: Rank| (epoch % 2 * 8) as usize + origin.0 as usize;
            ranks().for_each(|target| sim.put(target, cell(sim.rank()), epoch));
            fence(&words, kind, epoch, true).unwrap();
            assert!(ranks().all(|origin| sim.load(cell(origin)) == epoch), "not there");
        }
    }
}

#[test]
fn a_fence_shows_what_was_put_before_it() {
    for (ranks, kind) in [1, 2, 3, 5, 8].into_iter().flat_map(|ranks| KINDS.map(|k| (ranks, k))) {
        every(ranks, || puts_between_fences(kind, Fault::Nothing), |_| {});
    }
}

#[test]
fn what_a_fence_forgets_is_noticed() {
    for kind in KINDS {
        for fault in [
            Fault::Flush,              // the puts come after the fence
            Fault::Post(posted(kind)), // no rank is notified
            Fault::Wait,               // no rank waits
        ] {
            assert!(is_caught(5, || puts_between_fences(kind, fault)), "{kind:?}, {fault:?}");
        }
    }
}

/// Barriers with nothing in between.
fn barriers(kind: BarrierKind, fault: Fault) -> impl Fn(&Sim) + 'static {
    let come = Cell::new(0);
    move |sim| {
        let words = sim.weak(fault);
        for number in 1..=4 {
            come.set(come.get() + 1);
            barrier(&words, kind, number).unwrap();
            assert!(come.get() >= number as u32 * sim.size(), "left before all had come");
        }
    }
}

#[test]
fn no_rank_leaves_a_barrier_before_all_have_entered() {
    for (ranks, kind) in [1, 2, 3, 4, 7, 9].into_iter().flat_map(|ranks| KINDS.map(|k| (ranks, k)))
    {
        every(ranks, || barriers(kind, Fault::Nothing), |_| {});
    }
}

/// Rank 0 has entered a barrier, and then the other ranks, one after the other.
fn late_ranks(sim: &Sim) {
    let words = sim.near(Fault::Nothing);
    if sim.index() != Rank(0) {
        return;
    }
    assert_eq!(absent(&words, 1), []);
    let mut late: Vec<Rank> = Rank::all(words.size()).skip(1).collect();
    for rank in Rank::all(words.size()) {
        let above = Rank((rank.0 + 1) % words.size());
        words.post(WordAt { rank: above, word: layout::fence(0) }, 1).unwrap();
        late.retain(|other| *other != rank);
        assert_eq!(absent(&words, 1), late);
    }
}

#[test]
fn ranks_that_have_not_entered_a_barrier_are_seen() {
    for ranks in [2, 3, 7] {
        let shape = SimShape { per_node: ranks, ..SimShape::from(ranks) };
        every(shape, || late_ranks, |_| {});
    }
}

/// Ranks enter a tree one after the other; each sees which ones have not.
fn late_ranks_of_a_tree() -> impl Fn(&Sim) + 'static {
    let entered = Cell::new(0);
    move |sim| {
        let (words, me) = (sim.near(Fault::Wait), sim.index());
        while entered.get() != me.0 {
            sim.step();
        }
        barrier(&words, BarrierKind::Tree { fan_in: 2 }, 1).unwrap();
        let late: Vec<Rank> = Rank::all(words.size()).skip(me.0 as usize + 1).collect();
        assert_eq!(absent(&words, 1), late);
        entered.set(me.0 + 1);
    }
}

#[test]
fn ranks_that_have_not_entered_a_tree_are_seen() {
    for ranks in [2, 3, 7] {
        let shape = SimShape { per_node: ranks, ..SimShape::from(ranks) };
        every(shape, late_ranks_of_a_tree, |_| {});
    }
}

#[test]
fn what_a_barrier_forgets_is_noticed() {
    for kind in KINDS {
        for fault in [
            Fault::Post(posted(kind)), // no rank is notified
            Fault::EveryOtherPost(posted(kind)),
            Fault::Wait, // no rank waits
        ] {
            assert!(is_caught(2, || barriers(kind, fault)), "{kind:?}, {fault:?}");
        }
    }
}

/// The fence `number` of a rank of a node, over processes that serve one node each: puts to leaders
/// of other nodes are not flushed if there are few nodes.
fn fence_of_node(
    sim: &Sim,
    (kind, fault): (BarrierKind, Fault),
    opening: &OpeningFence,
    number: u64,
    precede: bool,
) {
    let (near, far, leads) = (sim.near(fault), sim.far(fault), sim.leads(fault));
    let SimShape { ranks, per_node, .. } = sim.shape();
    let mut marked = 0;
    for rank in Rank::all(ranks).filter(|_| precede) {
        let (node, is_leader) = (rank.0 / per_node, rank.0.is_multiple_of(per_node));
        if leads.size() <= DIRECT_NODES_MAX && is_leader && node != sim.node() {
            marked |= u64::from(mark((&near, &leads), Rank(node), number).unwrap()) << node;
        } else {
            far.flush(rank).unwrap();
        }
    }
    fence_over_nodes((&near, &leads), opening, (kind, number), marked).unwrap();
}

/// Ranks of nodes that put into all others, nodes too, between fences; not before each of them.
fn puts_between_fences_over_nodes(kind: BarrierKind, fault: Fault) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let ranks = || (0..sim.shape().ranks).map(Rank);
        let puts = |origin: Rank, epoch: u64| !(epoch + u64::from(origin.0)).is_multiple_of(3);
        for epoch in 1..=6 {
            let cell = |origin: Rank| (epoch % 2 * 16) as usize + origin.0 as usize;
            let mine = puts(sim.index(), epoch);
            ranks().filter(|_| mine).for_each(|to| sim.put(to, cell(sim.index()), epoch));
            fence_of_node(sim, (kind, fault), &OpeningFence::default(), epoch, mine);
            let mut others = ranks().filter(|origin| puts(*origin, epoch));
            assert!(others.all(|origin| sim.load(cell(origin)) == epoch), "not there");
        }
    }
}

#[test]
fn a_fence_over_nodes_shows_what_was_put_before_it() {
    // Up to 8 nodes; then more.
    let shapes =
        [(1, 1), (2, 2), (2, 1), (3, 1), (4, 2), (7, 3), (8, 2), (8, 4), (8, 5), (8, 1), (9, 1)];
    for (ranks, per_node) in shapes {
        let shape = SimShape { per_node, ..SimShape::from(ranks) };
        for kind in [KINDS[0], KINDS[1]] {
            every(shape, || puts_between_fences_over_nodes(kind, Fault::Nothing), |_| {});
        }
    }
}

#[test]
fn what_a_fence_over_nodes_forgets_is_noticed() {
    let shape = SimShape { per_node: 2, ..SimShape::from(6) };
    for kind in KINDS {
        for fault in [
            Fault::Flush,                     // the puts come after the fence
            Fault::Order,                     // a mark overtakes them
            Fault::Post(layout::marks(1)),    // no node waits for them
            Fault::Post(layout::arrivals(0)), // no leader is told
            Fault::Post(posted(kind)),        // no rank is notified
            Fault::Wait,                      // no rank waits
        ] {
            let caught = is_caught(shape, || puts_between_fences_over_nodes(kind, fault));
            assert!(caught, "{kind:?}, {fault:?}");
        }
    }
}

/// Ranks that put into all others between opening and closing fences, but not in each epoch.
fn puts_behind_opening_fences(kind: BarrierKind, fault: Fault) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let ranks = || (0..sim.shape().ranks).map(Rank);
        let puts = |origin: Rank, epoch: u64| !(epoch + u64::from(origin.0)).is_multiple_of(2);
        let last = |origin, epoch| (1..=epoch).rfind(|epoch| puts(origin, *epoch)).unwrap_or(0);
        let shows =
            |epoch| ranks().all(|origin| sim.load(origin.0 as usize) == last(origin, epoch));
        let (near, leads) = (sim.near(fault), sim.leads(fault));
        let opening = OpeningFence::default();
        for epoch in 1..=4 {
            assert!(shows(epoch - 1), "a put came before the target opened its epoch");
            let number = 2 * epoch - 1;
            if !opening.begin((&near, &leads), kind, number).unwrap() {
                fence_over_nodes((&near, &leads), &opening, (kind, number), 0).unwrap();
            }
            let mine = puts(sim.index(), epoch);
            if mine {
                opening.end(&leads).unwrap();
                ranks().for_each(|to| sim.put(to, sim.index().0 as usize, epoch));
            }
            fence_of_node(sim, (kind, fault), &opening, number + 1, mine);
            assert!(shows(epoch), "not there");
        }
    }
}

#[test]
fn no_put_comes_before_the_opening_fence_of_its_target() {
    for (ranks, per_node) in [(1, 1), (2, 1), (3, 1), (4, 2), (8, 1), (9, 1)] {
        let shape = SimShape { per_node, ..SimShape::from(ranks) };
        for kind in [KINDS[0], KINDS[1]] {
            every(shape, || puts_behind_opening_fences(kind, Fault::Nothing), |_| {});
        }
    }
}

#[test]
fn what_an_opening_fence_forgets_is_noticed() {
    let shape = SimShape { per_node: 1, ..SimShape::from(3) };
    for fault in [
        Fault::Post(layout::arrivals(1)), // no rank is told
        Fault::Wait,                      // no rank waits
    ] {
        let caught = is_caught(shape, || puts_behind_opening_fences(KINDS[0], fault));
        assert!(caught, "{fault:?}");
    }
}

/// An opening fence of a rank alone on its node costs a post to each other node, and no wait.
fn costs_of_opening(sim: &Sim) {
    let (near, leads) = (sim.near(Fault::Nothing), sim.leads(Fault::Nothing));
    let begun = OpeningFence::default().begin((&near, &leads), KINDS[0], 1).unwrap();
    assert_eq!(begun, near.size() == 1 && leads.size() <= DIRECT_NODES_MAX);
    let post = if begun { leads.size() - 1 } else { 0 };
    assert_eq!(leads.counts(), SimCounts { post, ..SimCounts::default() });
}

#[test]
fn an_opening_fence_of_few_nodes_costs_a_post_to_each() {
    for (nodes, per_node) in [(1, 1), (2, 1), (2, 2), (8, 1), (9, 1)] {
        let shape = SimShape { per_node, ..SimShape::from(nodes * per_node) };
        assert_eq!(run(shape, Profile::Reordered, 1, costs_of_opening).err(), None);
    }
}

fn rounds(size: u32) -> u32 {
    size.next_power_of_two().ilog2()
}

/// Each fence costs each rank two barriers of its node, and a leader one of the leaders.
fn costs_over_nodes(sim: &Sim) {
    let (near, leads) = (sim.near(Fault::Nothing), sim.leads(Fault::Nothing));
    for number in 1..=3 {
        let opening = OpeningFence::default();
        fence_over_nodes((&near, &leads), &opening, (KINDS[0], number), 0).unwrap();
    }
    let SimCounts { post, flush, flush_all, .. } = near.counts();
    assert_eq!((post, flush, flush_all), (3 * 2 * rounds(near.size()), 0, 0));
    let nodes = leads.size();
    let each = if nodes <= DIRECT_NODES_MAX { nodes - 1 } else { rounds(nodes) };
    let posts = if near.rank() == Rank(0) { 3 * each } else { 0 };
    assert_eq!(leads.counts(), SimCounts { post: posts, ..SimCounts::default() });
}

#[test]
fn a_fence_over_nodes_costs_a_post_per_leader_or_round_of_the_leaders() {
    let nodes = [1, 2, 3, 4, 5, 8, 9, 16, 31, 32, 64, 100, 128, 256, 512, 1000, 1024];
    for (nodes, per_node) in nodes.into_iter().flat_map(|n| [(n, 1), (n, 3), (n, 8)]) {
        let shape = SimShape { per_node, ..SimShape::from(nodes * per_node) };
        if shape.ranks <= 1024 {
            assert_eq!(run(shape, Profile::Reordered, 1, costs_over_nodes).err(), None);
        }
    }
}
