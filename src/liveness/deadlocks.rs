//! Detection of deadlocks of locks among the processes of a node. Lock words count the holders of a
//! lock and do not name them, and a report may not make taking a lock slower. So a process that has
//! waited long for a lock shows the other processes of its node which lock it waits for and which
//! locks it holds ([`Claims`]). A process that prints a line reads the claims of the others and
//! searches for a cycle.

#[cfg(any(test, fuzzing))]
mod claims_fuzz;
#[cfg(fuzzing)]
pub use claims_fuzz::lock_claims;

use crate::rank_numbers::{Rank, Slot};
use crate::report::printable;
use crate::sys::proc_notes::{self, Note};

/// How a lock is held or wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// MPI_Win_lock, shared
    Shared,
    /// MPI_Win_lock, exclusive
    Exclusive,
    /// MPI_Win_lock_all
    All,
}

/// A lock of one window that a process holds or waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// how
    pub kind: LockKind,
    /// the rank in the window; 0 for MPI_Win_lock_all
    pub target: Rank,
}

impl Claim {
    /// MPI_Win_lock_all.
    pub const ALL: Claim = Claim { kind: LockKind::All, target: Rank::FIRST };

    /// Returns whether a process that holds `other` keeps this lock of the same window from another
    /// process (MPI-4.1 §12.5.3).
    fn excludes(self, other: Claim) -> bool {
        match (self.kind, other.kind) {
            (LockKind::All, kind) | (kind, LockKind::All) => kind == LockKind::Exclusive,
            (LockKind::Shared, LockKind::Shared) => false,
            _ => self.target == other.target,
        }
    }

    fn text(self) -> String {
        match self.kind {
            LockKind::Shared => format!("the shared lock of rank {}", self.target),
            LockKind::Exclusive => format!("the exclusive lock of rank {}", self.target),
            LockKind::All => String::from("MPI_Win_lock_all"),
        }
    }
}

/// The identity of a window among all windows of this node: its arena and its slot there.
pub type Id = (u64, Slot);

/// The locks that a process shows while one of its threads waits for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// the process
    pub pid: i32,
    /// in MPI_COMM_WORLD
    pub world_rank: Option<u32>,
    /// whether another of its threads may give back a lock that it holds
    pub threads: bool,
    /// the lock that it waits for
    pub wants: (Id, Claim),
    /// its name for the window of that lock
    pub label: String,
    /// the locks that it holds
    pub holds: Vec<(Id, Claim)>,
}

/// The waiting processes from the holder of a lock on. Each holds a lock that the one before it
/// waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockChain {
    /// the text about them in a line
    pub links: String,
    /// if the last one waits for a lock of the first waiting process: what may end the deadlock
    pub deadlock: Option<&'static str>,
}

impl Claims {
    /// Shows them to the other processes of the node.
    pub fn show(&self) -> Option<Note> {
        Note::show(&self.to_text()).ok()
    }

    /// Returns the waiting processes that hold the lock that this process waits for. `None` if no
    /// waiting process of the node holds it.
    pub fn chain(&self) -> Option<LockChain> {
        chain(self, &shown())
    }

    /// Returns whether this process is part of a deadlock of locks that no thread can end.
    pub fn are_deadlock(&self) -> bool {
        is_proved(self, &shown())
    }

    fn waits_for(&self, other: &Claims) -> bool {
        let (window, wants) = self.wants;
        other.pid != self.pid
            && other.holds.iter().any(|(id, claim)| *id == window && wants.excludes(*claim))
    }

    fn to_text(&self) -> String {
        let rank = self.world_rank.map_or(String::from("-"), |rank| rank.to_string());
        let line = |what: &str, ((arena, slot), claim): &(Id, Claim)| {
            let kind = match claim.kind {
                LockKind::Shared => "shared",
                LockKind::Exclusive => "exclusive",
                LockKind::All => "all",
            };
            format!("{what} {arena} {slot} {kind} {}\n", claim.target)
        };
        let holds: String = self.holds.iter().map(|held| line("holds", held)).collect();
        let wants = line("wants", &self.wants);
        format!("{} {rank} {}\n{}\n{wants}{holds}", self.pid, self.threads, self.label)
    }

    /// Reads the text of another process; `None` if it has another form.
    fn of_text(text: &str) -> Option<Claims> {
        let mut lines = text.lines();
        let mut first = lines.next()?.split(' ');
        let pid = first.next()?.parse().ok()?;
        let rank = first.next()?;
        let world_rank = if rank == "-" { None } else { Some(rank.parse().ok()?) };
        let threads = first.next()?.parse().ok()?;
        let label = printable(lines.next()?.as_bytes());
        let claim = |what: &str, line: &str| -> Option<(Id, Claim)> {
            let mut words = line.strip_prefix(what)?.split(' ').skip(1);
            let id = (words.next()?.parse().ok()?, Slot(words.next()?.parse().ok()?));
            let kind = match words.next()? {
                "shared" => LockKind::Shared,
                "exclusive" => LockKind::Exclusive,
                "all" => LockKind::All,
                _ => return None,
            };
            Some((id, Claim { kind, target: Rank(words.next()?.parse().ok()?) }))
        };
        let wants = claim("wants", lines.next()?)?;
        let holds = lines.map(|line| claim("holds", line)).collect::<Option<_>>()?;
        Some(Claims { pid, world_rank, threads, wants, label, holds })
    }

    fn name(&self) -> String {
        match self.world_rank {
            Some(rank) => format!("rank {rank} of MPI_COMM_WORLD (process {})", self.pid),
            None => format!("process {}", self.pid),
        }
    }
}

/// Returns the claims of the other processes of this node.
fn shown() -> Vec<Claims> {
    proc_notes::of_others().iter().filter_map(|text| Claims::of_text(text)).collect()
}

fn is_proved(own: &Claims, others: &[Claims]) -> bool {
    cycle(own, others).is_some_and(|cycle| !have_threads(own, &cycle))
}

/// Returns whether another thread of a process of a cycle may give a lock back.
fn have_threads(own: &Claims, cycle: &[&Claims]) -> bool {
    own.threads || cycle.iter().any(|other| other.threads)
}

fn chain(own: &Claims, others: &[Claims]) -> Option<LockChain> {
    let link = |holder: &Claims| link(own, holder);
    if let Some(cycle) = cycle(own, others) {
        let links = cycle.iter().map(|other| link(other)).collect();
        let unless = match have_threads(own, &cycle) {
            true => ", unless another thread of one of them gives a lock back",
            false => "",
        };
        return Some(LockChain { links, deadlock: Some(unless) });
    }
    let holder = others.iter().find(|other| own.waits_for(other));
    holder.map(|holder| LockChain { links: link(holder), deadlock: None })
}

fn link(own: &Claims, holder: &Claims) -> String {
    let (name, wants) = (holder.name(), holder.wants.1.text());
    let window = match holder.wants.0 == own.wants.0 {
        true => String::new(),
        false => format!(" of {}", holder.label),
    };
    format!(", held by {name}, which waits for {wants}{window}")
}

/// Returns a cycle: `own` waits for the first process, each process for the next one, and the last
/// for `own`.
fn cycle<'a>(own: &Claims, others: &'a [Claims]) -> Option<Vec<&'a Claims>> {
    // Paths from `own`, the shortest first; each process is reached once.
    let mut paths: Vec<Vec<usize>> = vec![Vec::new()];
    let mut reached = vec![false; others.len()];
    let mut next = 0;
    while let Some(path) = paths.get(next).cloned() {
        let last = path.last().map_or(own, |index| &others[*index]);
        if !path.is_empty() && last.waits_for(own) {
            return Some(path.into_iter().map(|index| &others[index]).collect());
        }
        for index in 0..others.len() {
            if !reached[index] && last.waits_for(&others[index]) {
                reached[index] = true;
                paths.push(path.iter().copied().chain([index]).collect());
            }
        }
        next += 1;
    }
    None
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const A: Id = (1, Slot(0));
    const B: Id = (1, Slot(1));

    fn lock(kind: LockKind, target: Rank) -> Claim {
        Claim { kind, target }
    }

    fn process(pid: i32, wants: (Id, Claim), holds: &[(Id, Claim)]) -> Claims {
        let label = String::from("window \"a b\"");
        let world_rank = Some(pid as u32 - 10);
        Claims { pid, world_rank, threads: false, wants, label, holds: holds.to_vec() }
    }

    fn pids(own: &Claims, others: &[Claims]) -> Option<Vec<i32>> {
        cycle(own, others).map(|cycle| cycle.iter().map(|claims| claims.pid).collect())
    }

    #[test]
    fn locks_exclude_each_other_as_the_standard_says() {
        use LockKind::{Exclusive, Shared};
        assert!(lock(Exclusive, Rank(1)).excludes(lock(Shared, Rank(1))));
        assert!(lock(Shared, Rank(1)).excludes(lock(Exclusive, Rank(1))));
        assert!(!lock(Shared, Rank(1)).excludes(lock(Shared, Rank(1))));
        assert!(!lock(Exclusive, Rank(1)).excludes(lock(Exclusive, Rank(2))));
        assert!(
            Claim::ALL.excludes(lock(Exclusive, Rank(2)))
                && lock(Exclusive, Rank(2)).excludes(Claim::ALL)
        );
        assert!(!Claim::ALL.excludes(lock(Shared, Rank(2))) && !Claim::ALL.excludes(Claim::ALL));
    }

    #[test]
    fn two_that_wait_for_each_other_are_a_circle() {
        let own = process(
            10,
            (A, lock(LockKind::Exclusive, Rank(1))),
            &[(A, lock(LockKind::Exclusive, Rank(0)))],
        );
        let other = process(
            11,
            (A, lock(LockKind::Exclusive, Rank(0))),
            &[(A, lock(LockKind::Exclusive, Rank(1)))],
        );
        assert_eq!(pids(&own, std::slice::from_ref(&other)), Some(vec![11]));
        assert!(is_proved(&own, std::slice::from_ref(&other)));
        let threads = Claims { threads: true, ..other.clone() };
        assert!(!is_proved(&own, std::slice::from_ref(&threads)), "another thread may end it");
        let unless = chain(&own, &[threads]).unwrap().deadlock;
        assert!(unless.is_some_and(|unless| unless.starts_with(", unless another thread")));
        let links = ", held by rank 1 of MPI_COMM_WORLD (process 11), which waits for the \
                     exclusive lock of rank 0";
        let expected = LockChain { links: links.into(), deadlock: Some("") };
        assert_eq!(chain(&own, &[other]), Some(expected));
    }

    #[test]
    fn a_circle_goes_over_windows_and_processes_that_only_wait_are_not_in_it() {
        let own = process(10, (A, lock(LockKind::Exclusive, Rank(5))), &[(B, Claim::ALL)]);
        let second = process(11, (A, Claim::ALL), &[(A, lock(LockKind::Shared, Rank(5)))]);
        let third = process(
            12,
            (B, lock(LockKind::Exclusive, Rank(1))),
            &[(A, lock(LockKind::Exclusive, Rank(7)))],
        );
        let idle = process(13, (A, lock(LockKind::Exclusive, Rank(7))), &[]);
        let others = [idle, third, second];
        assert_eq!(pids(&own, &others), Some(vec![11, 12]));
        assert_eq!(pids(&own, &others[..2]), None);
        // The locks of the same words in other windows.
        let elsewhere = process(10, (B, lock(LockKind::Exclusive, Rank(5))), &[(A, Claim::ALL)]);
        assert_eq!(pids(&elsewhere, &others), None);
    }

    #[test]
    fn a_holder_that_waits_for_somebody_else_is_named() {
        let own = process(10, (A, lock(LockKind::Shared, Rank(1))), &[]);
        let holder = process(11, (B, Claim::ALL), &[(A, lock(LockKind::Exclusive, Rank(1)))]);
        let LockChain { links, deadlock } = chain(&own, &[holder]).unwrap();
        assert!(links.ends_with(", which waits for MPI_Win_lock_all of window \"a b\""));
        assert_eq!(deadlock, None);
        assert_eq!(chain(&own, &[process(12, (A, Claim::ALL), &[])]), None);
    }

    #[test]
    fn what_is_shown_is_read_again_and_nonsense_is_not() {
        let holds = [(A, lock(LockKind::Shared, Rank(3))), (B, Claim::ALL)];
        let mut claims = process(10, (A, lock(LockKind::Exclusive, Rank(1))), &holds);
        assert_eq!(Claims::of_text(&claims.to_text()), Some(claims.clone()));
        (claims.world_rank, claims.threads, claims.holds) = (None, true, Vec::new());
        let text = claims.to_text();
        assert_eq!(Claims::of_text(&text), Some(claims));
        for end in 0..text.len() - 1 {
            // A part of a number is a number.
            let _ = Claims::of_text(&text[..end]);
        }
        for wrong in ["", "10 - true", "x - true\nw\n", "10 - true\nw\nwants 1 2 shared x\n"] {
            assert_eq!(Claims::of_text(wrong), None);
        }
        assert_eq!(Claims::of_text(&(text + "holds\n")), None);
    }
}
