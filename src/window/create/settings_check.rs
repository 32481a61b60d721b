//! Checks that all ranks of a communicator have the same library and the same settings. The check
//! is their first collective call, because ranks that differ would wait for each other in different
//! calls, or read shared memory in different ways. A rank with FOMPI_DISABLE takes part too. Not
//! for settings that may differ between ranks (`config`).
//!
//! The check is one MPI_Iallreduce of [`WORDS`] words with MPI_MIN on the user's communicator. Its
//! format never changes, so that even very different builds detect the difference:
//!
//! | fact            | its number                                            |
//! |-----------------|-------------------------------------------------------|
//! | 0               | [`MAGIC`] with the number of ranks                    |
//! | 1               | a number of the sources of the library                |
//! | 2               | FOMPI_DISABLE                                         |
//! | 3               | FOMPI_RANKS_PER_NODE, 0 where it is not set           |
//! | 4               | a number of the machine since its start; may differ   |
//! | 5 to 7          | 0; reserved                                           |
//!
//! A number n of rank r is two words, `n << 32 | r` and `(NUMBER_MAX - n) << 32 | r`: their
//! minimums over all ranks are the least and the greatest number, each with a rank that has it. The
//! words of fact 0 have the number itself in place of the rank. Both words of a machine that is not
//! known are of [`NUMBER_MAX`], so that they decide nothing.
//!
//! On a rank without libfompi the MPI's own MPI_Win_create runs. That of MPICH does not interfere
//! with this call, which then waits ([`FirstCallWait`]). That of Open MPI creates a communicator,
//! also by MPI_Iallreduce: its messages, which are shorter, are received here and overwrite at
//! least the beginning of fact 0.

use crate::config::Config;
use crate::error::{Error, Fact, Result};
use crate::mpi::Host;
use crate::mpi::comm::Comm;
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::report::missing_ranks::FirstCallWait;
use crate::sys::process;

const FACTS: usize = 8;
const WORDS: usize = 2 * FACTS;
/// A number by which ranks recognise the words of libfompi. It is combined with the number of
/// ranks, so that data of an earlier call in the buffers of an MPI are not mistaken for a result.
const MAGIC: u32 = 0x666f_6d70;
const NUMBER_MAX: u32 = i32::MAX as u32;
/// The fact that may differ between ranks, and its number if it is not known.
const MACHINE: usize = 4;
const UNKNOWN: u32 = u32::MAX;

/// The number of the sources, as eight hexadecimal digits. Scripts find it in the library's file by
/// the text in front of it.
static BUILD: [u8; 20] = *in_place(concat!("fompi build ", env!("SOURCES_NUMBER")));

const fn in_place(text: &str) -> &[u8; 20] {
    match text.as_bytes().first_chunk() {
        Some(bytes) => bytes,
        None => panic!("eight digits"),
    }
}

/// The numbers of this rank, at most [`NUMBER_MAX`]; [`UNKNOWN`] is one of the machine.
struct Facts([u32; FACTS]);

impl Facts {
    fn own(config: &Config, size: u32) -> Facts {
        // Read from memory, so that it is the text that scripts read in the library's file.
        let build = &core::hint::black_box(&BUILD)[12..];
        let build = str::from_utf8(build).ok().and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let per_node = config.ranks_per_node.unwrap_or(0);
        let machine = process::boot().map(|boot| process::number_of(boot).low_u32());
        let mut facts = [0; FACTS];
        facts[..=MACHINE].copy_from_slice(&[
            (MAGIC ^ size) & NUMBER_MAX,
            build.unwrap_or(0) & NUMBER_MAX,
            u32::from(config.disable),
            per_node.min(NUMBER_MAX),
            machine.map_or(UNKNOWN, |machine| machine & NUMBER_MAX),
        ]);
        Facts(facts)
    }

    /// Returns the words that `rank` contributes.
    fn words(&self, rank: Rank) -> [i64; WORDS] {
        core::array::from_fn(|at| {
            let number = self.0[at / 2];
            let from = if at < 2 { number } else { rank.0 };
            let number = match (number, at % 2) {
                (UNKNOWN, _) => NUMBER_MAX,
                (number, 0) => number,
                (number, _) => NUMBER_MAX - number,
            };
            i64::from(number) << 32 | i64::from(from)
        })
    }

    /// Returns the first fact that differs between ranks and may not, if there is one. `all`: the
    /// minimums of the words of all ranks.
    fn difference(&self, all: &[i64; WORDS]) -> Option<Error> {
        let pairs = all.as_chunks::<2>().0.iter().zip(self.0);
        if all[..2] != self.words(Rank::FIRST)[..2] {
            let (fact, here) = (Fact::Library, self.0[0]);
            return Some(Error::Differs { fact, rank: Rank::FIRST, there: 0, here });
        }
        pairs.enumerate().find_map(|(at, (&[least, greatest], here))| {
            let ((least, first), (rest, last)) = (split(least), split(greatest));
            let greatest = NUMBER_MAX.wrapping_sub(rest);
            let (there, from) = if least == here { (greatest, last) } else { (least, first) };
            let rank = Rank(from);
            let fact = match at {
                1 => Fact::Build,
                2 => Fact::Setting("FOMPI_DISABLE"),
                3 => Fact::Setting("FOMPI_RANKS_PER_NODE"),
                _ => Fact::Library,
            };
            let differs = at != MACHINE && least != greatest;
            differs.then_some(Error::Differs { fact, rank, there, here })
        })
    }
}

/// Returns the two numbers of a word.
fn split(word: i64) -> (u32, u32) {
    ((word >> 32).cast_unsigned().low_u32(), word.cast_unsigned().low_u32())
}

/// Whether all ranks that know their machine are on one. `all`: the minimums of their words.
fn one_machine(all: &[i64; WORDS]) -> bool {
    let [least, rest] = [0, 1].map(|word| split(all[2 * MACHINE + word]).0);
    least >= NUMBER_MAX.wrapping_sub(rest)
}

/// Fails on all ranks if they differ. Returns whether all of them may be on one machine: if not,
/// they are not. Collective. `call`: the user's call that waits meanwhile.
pub fn check(host: &Host, comm: Comm, call: &'static str) -> Result<bool> {
    let facts = Facts::own(Config::get(), comm.size(host)?);
    let mut wait = FirstCallWait::new(host, comm, call);
    let all = comm.least_of_each(host, facts.words(Rank(comm.rank(host)?)), || wait.pause());
    let result = all.and_then(|all| facts.difference(&all).map_or(Ok(one_machine(&all)), Err));
    if let Err(Error::Host(_) | Error::Differs { fact: Fact::Library, .. }) = result {
        wait.name_ranks_without_library();
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the minimums of the words of ranks that have these numbers.
    fn least(all: &[[u32; FACTS]]) -> [i64; WORDS] {
        let mut least = [i64::MAX; WORDS];
        for (rank, facts) in (0..).map(Rank).zip(all) {
            for (least, word) in least.iter_mut().zip(Facts(*facts).words(rank)) {
                *least = word.min(*least);
            }
        }
        least
    }

    /// Returns the error text of each rank where the ranks have these numbers.
    fn found(all: &[[u32; FACTS]]) -> Vec<Option<String>> {
        let least = least(all);
        let text = |facts: &[u32; FACTS]| Some(Facts(*facts).difference(&least)?.to_string());
        all.iter().map(text).collect()
    }

    fn facts(build: u32, disable: u32, per_node: u32) -> [u32; FACTS] {
        [MAGIC, build, disable, per_node, 0, 0, 0, 0]
    }

    #[test]
    fn ranks_with_equal_settings_find_nothing() {
        assert_eq!(found(&[facts(7, 0, 3); 5]), [const { None }; 5]);
        assert_eq!(found(&[facts(NUMBER_MAX, 1, NUMBER_MAX)]), [None]);
    }

    #[test]
    fn each_rank_reports_another_rank_and_both_values() {
        let mut all = [facts(7, 0, 4); 5];
        all[3] = facts(7, 0, 2);
        let found = found(&all);
        for rank in [0, 1, 2, 4] {
            let text = found[rank].as_deref().unwrap_or_default();
            assert!(text.starts_with("FOMPI_RANKS_PER_NODE is 2 on rank 3, 4 here"), "{text}");
        }
        let text = found[3].as_deref().unwrap_or_default();
        assert!(text.starts_with("FOMPI_RANKS_PER_NODE is 4 on rank 0, 2 here"), "{text}");
    }

    #[test]
    fn a_setting_that_is_not_set_is_reported_so() {
        let found = found(&[facts(7, 1, 0), facts(7, 0, 0)]);
        let starts = |at: usize, with| found[at].as_deref().unwrap_or_default().starts_with(with);
        assert!(starts(0, "FOMPI_DISABLE is not set on rank 1, 1 here"), "{found:?}");
        assert!(starts(1, "FOMPI_DISABLE is 1 on rank 0, not set here"), "{found:?}");
    }

    #[test]
    fn another_build_is_reported_before_its_settings() {
        let found = found(&[facts(7, 0, 0), facts(9, 1, 2)]);
        assert!(found.iter().all(|text| text.as_ref().is_some_and(|t| t.contains("build"))));
    }

    #[test]
    fn ranks_of_several_machines_do_not_differ() {
        let on = |machine| [MAGIC, 7, 0, 0, machine, 0, 0, 0];
        assert_eq!(found(&[on(4), on(5), on(4)]), [const { None }; 3]);
        for (machines, one) in [
            (vec![4, 4, 4], true),
            (vec![4, 5, 4], false),
            (vec![5, 4], false),
            (vec![4, UNKNOWN, 4], true),
            (vec![UNKNOWN, 4, 5], false),
            (vec![UNKNOWN, UNKNOWN], true),
        ] {
            let all: Vec<_> = machines.iter().map(|machine| on(*machine)).collect();
            assert_eq!(one_machine(&least(&all)), one, "{machines:?}");
        }
    }

    #[test]
    fn a_message_of_something_else_is_no_answer() {
        let own = Facts(facts(7, 0, 0));
        for first in [0, 1, 5, u32::MAX] {
            let mut all = own.words(Rank::FIRST);
            all[0] = all[0] >> 32 << 32 | i64::from(first);
            assert!(own.difference(&all).is_some());
        }
        assert!(own.difference(&[0; WORDS]).is_some());
        let later = [MAGIC, 7, 0, 0, 0, 1, 0, 0];
        assert!(found(&[own.0, later]).iter().all(Option::is_some));
    }

    #[test]
    fn the_own_numbers_are_those_of_this_build() {
        let mut config = Config::get().clone();
        (config.ranks_per_node, config.disable) = (Some(u32::MAX), true);
        let Facts(facts) = Facts::own(&config, 3);
        assert_eq!((facts[0], facts[2], facts[3]), (MAGIC ^ 3, 1, NUMBER_MAX));
        let build = u32::from_str_radix(env!("SOURCES_NUMBER"), 16);
        assert_eq!(Ok(facts[1]), build.map(|number| number & NUMBER_MAX));
    }
}
