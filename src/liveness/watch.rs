//! Policy for when a waiting rank checks the processes of other nodes. Once in [`INTERVAL`] it
//! checks whether the processes that it is connected to still answer, and probes one other node.
//! Each probe goes to another node than the one before, since the waiting rank may depend on a rank
//! that it has no connection to. One probe at a time is under way. How processes are contacted and
//! what a notice means is decided elsewhere.

use crate::error::Result;
use crate::rank_numbers::NodeNumber;
use std::time::{Duration, Instant};

/// The interval between checks of other processes.
const INTERVAL: Duration = Duration::from_secs(1);
/// A probe is given up and repeated if this process has not called [`Watch::check`] for this long.
const STALE: Duration = Duration::from_secs(20);

/// The ways in which a process checks the processes of other nodes. None of them waits.
pub trait Checks {
    /// A probe that is under way.
    type Probe;

    /// Checks the processes that this one is connected to. Fails if one of them is lost.
    fn ping(&self) -> Result<()>;

    /// Begins a probe, of one other node after the other as `turn` grows. Returns the number of the
    /// node, too.
    fn begin(&self, turn: u32) -> (NodeNumber, Self::Probe);

    /// Continues a probe. Returns the failure notice of the node ([`losses`](super::losses)) if it
    /// has arrived. Fails if the process that is probed is lost.
    fn step(&self, probe: &mut Self::Probe) -> Result<Option<[u64; 2]>>;
}

/// The state of the failure checks of waiting ranks.
pub struct Watch<P> {
    /// time of the last call of [`Watch::check`]
    last: Option<Instant>,
    /// time of the last check of other processes, or of the beginning of the first wait
    asked: Option<Instant>,
    /// the number of probes begun so far
    turn: u32,
    /// the probe that is under way, and the node that it goes to
    probe: Option<(NodeNumber, P)>,
}

impl<P> Watch<P> {
    /// Creates the state of a process that has not waited. Its first probe is number `turn`.
    pub fn new(turn: u32) -> Watch<P> {
        Watch { last: None, asked: None, turn, probe: None }
    }

    /// Makes the checks that are due at the time `now`. Returns the failure notice of a node and
    /// the number of the node, if a notice has arrived. Fails if a process is lost.
    pub fn check(
        &mut self,
        now: Instant,
        by: &impl Checks<Probe = P>,
    ) -> Result<Option<(NodeNumber, [u64; 2])>> {
        if self.last.replace(now).is_some_and(|last| now - last > STALE) {
            self.probe = None;
        }
        if now - *self.asked.get_or_insert(now) >= INTERVAL {
            self.asked = Some(now);
            by.ping()?;
            if self.probe.is_none() {
                self.probe = Some(by.begin(self.turn));
                self.turn = self.turn.wrapping_add(1);
            }
        }
        let Some((node, probe)) = &mut self.probe else { return Ok(None) };
        let (node, notice) = (*node, by.step(probe));
        if !matches!(notice, Ok(None)) {
            self.probe = None;
        }
        Ok(notice?.map(|notice| (node, notice)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::rank_numbers::Rank;
    use std::cell::{Cell, RefCell};

    /// Three other nodes. A probe is answered at its `steps`-th step.
    struct Nodes {
        steps: u32,
        answer: Result<[u64; 2]>,
        begun: RefCell<Vec<u32>>,
        pings: Cell<u32>,
    }

    impl Nodes {
        fn new(steps: u32, answer: Result<[u64; 2]>) -> Nodes {
            Nodes { steps, answer, begun: RefCell::default(), pings: Cell::new(0) }
        }
    }

    impl Checks for Nodes {
        type Probe = u32;

        fn ping(&self) -> Result<()> {
            self.pings.set(self.pings.get() + 1);
            Ok(())
        }

        fn begin(&self, turn: u32) -> (NodeNumber, u32) {
            self.begun.borrow_mut().push(turn % 3);
            (NodeNumber(turn % 3), 0)
        }

        fn step(&self, probe: &mut u32) -> Result<Option<[u64; 2]>> {
            *probe += 1;
            if *probe < self.steps { Ok(None) } else { self.answer.clone().map(Some) }
        }
    }

    /// Checks each 100 ms, for `rounds` rounds, and returns what was found.
    fn run(watch: &mut Watch<u32>, nodes: &Nodes, from: Instant, rounds: u32) -> Vec<u32> {
        let check = |round| watch.check(from + INTERVAL / 10 * round, nodes).unwrap();
        (0..rounds).filter_map(check).map(|(node, _)| node.0).collect()
    }

    #[test]
    fn a_node_after_the_other_is_probed_at_intervals() {
        let (nodes, mut watch) = (Nodes::new(1, Ok([0; 2])), Watch::new(2));
        let found = run(&mut watch, &nodes, Instant::now(), 41);
        assert_eq!(found, [2, 0, 1, 2]);
        assert_eq!((nodes.begun.take(), nodes.pings.get()), (found, 4));
    }

    #[test]
    fn a_short_wait_probes_nobody() {
        let (nodes, mut watch) = (Nodes::new(1, Ok([0; 2])), Watch::new(0));
        assert_eq!(run(&mut watch, &nodes, Instant::now(), 10), []);
        assert_eq!(nodes.pings.get(), 0);
    }

    #[test]
    fn one_probe_at_a_time_is_under_way() {
        let (nodes, mut watch) = (Nodes::new(25, Ok([0; 2])), Watch::new(0));
        assert_eq!(run(&mut watch, &nodes, Instant::now(), 35), [0]);
        assert_eq!(*nodes.begun.borrow(), [0]);
        assert_eq!(nodes.pings.get(), 3);
    }

    #[test]
    fn a_probe_that_was_forgotten_begins_anew() {
        let (nodes, mut watch) = (Nodes::new(u32::MAX, Ok([0; 2])), Watch::new(0));
        let began = Instant::now();
        run(&mut watch, &nodes, began, 12);
        run(&mut watch, &nodes, began + STALE, 12);
        assert_eq!(*nodes.begun.borrow(), [0], "the last check was not long ago");
        run(&mut watch, &nodes, began + 3 * STALE, 12);
        assert_eq!(*nodes.begun.borrow(), [0, 1]);
    }

    #[test]
    fn a_lost_process_fails_one_check_and_the_next_probe_goes_on() {
        let lost = Error::Died { rank: Rank(1), pid: 7 };
        let (nodes, mut watch) = (Nodes::new(1, Err(lost.clone())), Watch::new(0));
        let began = Instant::now();
        assert_eq!(watch.check(began, &nodes), Ok(None));
        assert_eq!(watch.check(began + INTERVAL, &nodes), Err(lost));
        assert_eq!(watch.check(began + INTERVAL * 3 / 2, &nodes), Ok(None));
        assert!(watch.check(began + 2 * INTERVAL, &nodes).is_err());
        assert_eq!(*nodes.begun.borrow(), [0, 1]);
    }
}
