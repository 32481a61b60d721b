//! What moves of pages cost in this process, and how much time they may take at the creation of
//! windows. The first [`FIRST_MOVES`] moves may take [`FIRST`] together: the windows that a program
//! makes first mostly live long. For the others there is [`START`] plus a twentieth of the time
//! since the first window, less what was spent. So windows that a program makes in a loop become
//! slower by 5 % at most. If windows whose memory has moved are used, and live long, the next ones
//! probably will: that much time is there, too, up to [`PROVEN`] in all. If windows are freed
//! unused, nothing moves at creation any more. Pages that were never touched cost little, because
//! nothing is copied: 64 of them count as one page. Counting the pages with memory takes time, too.
//! For counts that find too many there is [`LOOKS`] and a twentieth of the time. Pure arithmetic:
//! it reads no clock. All times are in nanoseconds.

/// The number of moves at creation that may take long: a sweep over the sizes of messages, as
/// benchmarks make it, has a window for each size.
const FIRST_MOVES: u32 = 32;
/// The time that is there for them.
const FIRST: u64 = 100_000_000;
/// The time that is there at the first window for the moves after them.
const START: u64 = 5_000_000;
/// The time that is there at the first window for counts of pages that find too many of them.
const LOOKS: u64 = 200_000;
/// The share of the time since then, of both.
const SHARE: u64 = 20;
/// The most time that is there because windows with moved memory have lived long and were used.
const PROVEN: u64 = 100_000_000;
/// A move of this many pages at most tells the fixed cost.
const FEW: u64 = 4;
/// A measured time counts as at most this multiple of what was expected: other processes may have
/// run meanwhile.
const OUTLIER: u64 = 4;

/// Pages without memory that cost as much as one page with memory.
const UNTOUCHED: u64 = 64;

/// Returns the number of pages with memory that cost as much as `pages` pages, of which `touched`
/// have memory.
pub fn weight(pages: u64, touched: u64) -> u64 {
    touched + pages.saturating_sub(touched) / UNTOUCHED
}

/// The direction of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// into the heap
    In,
    /// back to private memory
    Back,
}

/// The cost of a move: fixed + per page.
#[derive(Clone, Copy)]
struct Cost {
    fixed: u64,
    page: u64,
}

impl Cost {
    fn of(self, pages: u64) -> u64 {
        self.fixed.saturating_add(self.page.saturating_mul(pages))
    }

    /// Learns from a move that took `time`.
    fn learn(&mut self, pages: u64, time: u64) {
        let time = time.min(OUTLIER * self.of(pages));
        let mean = |old: u64, new: u64| (7 * old + new) / 8;
        if pages <= FEW {
            self.fixed = mean(self.fixed, time.saturating_sub(self.page * pages));
        } else {
            self.page = mean(self.page, time.saturating_sub(self.fixed) / pages).max(1);
        }
    }
}

/// The costs and the budget of a process.
pub struct Budget {
    /// the time of the first window
    since: Option<u64>,
    /// how many of the first moves are over, and what they took
    first: (u32, u64),
    /// what the others took
    spent: u64,
    costs: [Cost; 2],
    /// when the last move at creation was over
    moved_at: u64,
    /// how long windows with moved memory have lived which were used
    lived: u64,
    /// whether windows were freed unused
    closed: bool,
    /// the time of counts that found too many pages
    looked: u64,
}

impl Budget {
    /// Starts with the costs of one machine, which are soon replaced by those of this one.
    pub const UNKNOWN: Budget = Budget {
        since: None,
        first: (0, 0),
        spent: 0,
        costs: [Cost { fixed: 175_000, page: 3_000 }, Cost { fixed: 100_000, page: 1_900 }],
        moved_at: 0,
        lived: 0,
        closed: false,
        looked: 0,
    };

    /// Returns the cost of moving this number of pages in and back.
    pub fn price(&self, pages: u64) -> u64 {
        self.costs[0].of(pages).saturating_add(self.costs[1].of(pages))
    }

    /// Notes the time of a window; the first one counts.
    pub fn begin(&mut self, now: u64) -> u64 {
        *self.since.get_or_insert(now)
    }

    /// Whether this number of pages may move at the creation of a window, at the time `now`.
    pub fn permits(&mut self, pages: u64, now: u64) -> bool {
        let since = self.begin(now);
        let all = START + now.saturating_sub(since) / SHARE + self.lived.min(PROVEN);
        let (price, (moves, time)) = (self.price(pages), self.first);
        let is_one_of_first = moves < FIRST_MOVES && time.saturating_add(price) <= FIRST;
        !self.closed && (is_one_of_first || self.spent.saturating_add(price) <= all)
    }

    /// Notes a move and its time.
    pub fn moved(&mut self, direction: Direction, pages: u64, time: u64) {
        self.costs[direction as usize].learn(pages, time);
    }

    /// Notes that a move at the creation of a window took this time, and was over at the time
    /// `now`. The move back, which will follow, counts from now on.
    pub fn spend(&mut self, pages: u64, time: u64, now: u64) {
        self.moved_at = now;
        let time = time.saturating_add(self.costs[Direction::Back as usize].of(pages));
        let (moves, of_first) = self.first;
        if moves < FIRST_MOVES {
            self.first = (moves + 1, of_first.saturating_add(time));
        } else {
            self.spent = self.spent.saturating_add(time);
        }
    }

    /// Whether it may be counted at the time `now` which pages of a window have memory.
    pub fn may_look(&mut self, now: u64) -> bool {
        let since = self.begin(now);
        self.looked <= LOOKS + now.saturating_sub(since) / SHARE
    }

    /// Notes that it took this time to find out that the creation of a window permits no move.
    pub fn look(&mut self, time: u64) {
        self.spent = self.spent.saturating_add(time);
        self.looked = self.looked.saturating_add(time);
    }

    /// Notes that a window is freed at the time `now`, whether other ranks have accessed its
    /// memory, and whether that has moved at creation. The window that was made last counts as the
    /// one that is freed.
    pub fn freed(&mut self, is_used: bool, has_moved: bool, now: u64) {
        self.closed = !is_used;
        if is_used && has_moved {
            let lived = now.saturating_sub(core::mem::replace(&mut self.moved_at, now));
            self.lived = self.lived.saturating_add(lived);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Makes windows of one page, one after the other, until the budget ends.
    fn windows_until_the_end(budget: &mut Budget, now: u64) -> u64 {
        let mut windows = 0;
        while budget.permits(1, now) {
            budget.moved(Direction::In, 1, 14_000);
            budget.spend(1, 14_000, now);
            budget.moved(Direction::Back, 1, 16_000);
            windows += 1;
        }
        windows
    }

    #[test]
    fn windows_in_a_loop_take_the_start_and_then_a_twentieth() {
        let mut budget = Budget::UNKNOWN;
        let first = windows_until_the_end(&mut budget, 0);
        let after = first - u64::from(FIRST_MOVES);
        assert!((150..=167).contains(&after), "{first}");
        let more = windows_until_the_end(&mut budget, 100 * MS);
        assert!((160..=168).contains(&more), "{more}");
        assert!(budget.spent <= START + 100 * MS / SHARE);
        assert!(!budget.permits(1, 100 * MS));
    }

    #[test]
    fn a_loop_of_windows_that_do_not_fit_looks_for_a_twentieth_of_the_time() {
        const TIME: u64 = 35_000;
        let (mut budget, mut looks, mut now) = (Budget::UNKNOWN, 0, 0);
        for _ in 0..100_000 {
            if budget.may_look(now) {
                budget.look(TIME);
                (looks, now) = (looks + 1, now + TIME);
            }
            now += 1_000;
        }
        assert!(looks * TIME <= LOOKS + now / SHARE + TIME, "{looks} in {now}");
        assert!(looks > 2 * LOOKS / TIME, "it looks again: {looks}");
    }

    #[test]
    fn the_first_moves_may_take_long() {
        let (mut budget, pages, time) = (Budget::UNKNOWN, 8_000, 23 * MS);
        for _ in 0..2 {
            assert!(budget.permits(pages, 0));
            budget.spend(pages, time, 0);
        }
        assert!(!budget.permits(pages, 0), "both took nearly all of it");
        for _ in 2..FIRST_MOVES {
            assert!(budget.permits(1_000, 0));
            budget.spend(1, 0, 0);
        }
        assert!(!budget.permits(1_000, 0), "the number of first moves is over");
        assert!(budget.permits(100, 0) && budget.spent == 0);
    }

    #[test]
    fn a_gigabyte_does_not_fit() {
        let mut budget = Budget::UNKNOWN;
        assert!(budget.permits(256, 0) && !budget.permits(1 << 18, 0));
    }

    #[test]
    fn windows_freed_unused_close_it() {
        let mut budget = Budget::UNKNOWN;
        budget.freed(false, true, 0);
        assert!(!budget.permits(1, 0));
        budget.freed(true, true, 0);
        assert!(budget.permits(1, 0));
    }

    #[test]
    fn long_lives_of_used_windows_pay_for_larger_ones() {
        let mut budget = Budget::UNKNOWN;
        windows_until_the_end(&mut budget, 0);
        for (is_used, has_moved) in [(false, true), (true, false)] {
            budget.freed(is_used, has_moved, 20 * MS);
            assert!(!budget.permits(256, 20 * MS));
        }
        budget.freed(true, true, 20 * MS);
        assert!(budget.permits(2048, 20 * MS) && !budget.permits(5000, 20 * MS));
        budget.freed(true, true, 30 * MS);
        assert_eq!(budget.lived, 30 * MS, "no time counts twice");
        budget.lived = u64::MAX;
        assert!(!budget.permits(40_000, 20 * MS), "there is an end");
    }

    #[test]
    fn costs_follow_what_was_measured() {
        let mut budget = Budget::UNKNOWN;
        for _ in 0..100 {
            for direction in [Direction::In, Direction::Back] {
                budget.moved(direction, 1, 6_000);
                budget.moved(direction, 1000, 1_005_000);
            }
        }
        let near = |pages, expected: u64| budget.price(pages).abs_diff(expected) < expected / 10;
        assert!(near(1, 12_000) && near(1000, 2_010_000), "{}", budget.price(1));
        budget.moved(Direction::In, 1, 1_000 * MS);
        assert!(budget.price(1) < 17_000, "an outlier counts little");
    }
}
