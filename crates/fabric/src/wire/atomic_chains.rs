//! Atomics on many words, posted in chains with one wait for all. The order in which they take
//! effect is undefined. Protocols do not use this: they change their words one by one.

use super::counts::Kinds;
use super::peer::Peer;
use super::pool::Word;
use super::queue::Kept;
use crate::Fetch;
use crate::error::Result;
use crate::number::Number;
use crate::remote::Network;
use crate::remote::Remote;
use crate::request::{CHAIN_MAX, Order, Work};
use crate::sync::Ordering;

/// Largest number of words that are changed with an answer at once.
pub const WORDS_MAX: usize = 128;

impl Peer {
    /// Changes `before.len()` words atomically, at most [`WORDS_MAX`], whose addresses are
    /// multiples of 8. `which` returns the address and the operation of the n-th. Waits for the old
    /// values.
    pub(super) fn fetch_all(
        &self,
        which: impl Fn(usize) -> (Remote, Fetch),
        before: &mut [u64],
    ) -> Result<()> {
        if let [before] = before {
            let (at, op) = which(0);
            *before = self.fetch(at, op)?;
            return Ok(());
        }
        assert!(before.len() <= WORDS_MAX);
        let mut words = [self.core.answers.scratch(); WORDS_MAX];
        let words = &mut words[..before.len()];
        self.core.answers.take_all(&self.core.device, words)?;
        let order = |index: usize| {
            let (to, op) = which(index);
            (to, op.into(), words[index])
        };
        let sent = self.ask_all((words.len(), false), order, |kinds| &mut kinds.fetches);
        // If sending failed the connection is gone, and no answer arrives any more.
        let done = sent.and_then(|number| self.wait_for(|_| number));
        for (before, word) in before.iter_mut().zip(&*words) {
            // SAFETY: a word of the pool, which lives as long as the core; aligned.
            // Acquire: pairs with the device's store, which came before its completion.
            *before = unsafe { (*word.at).load(Ordering::Acquire) };
        }
        self.core.answers.give_all_back(words);
        self.core.device.sweep();
        done
    }

    /// Adds to `count` words, whose addresses are multiples of 8, without an answer. `which`
    /// returns the address of the n-th and the number to add.
    pub(super) fn post_all(
        &self,
        count: usize,
        which: impl Fn(usize) -> (Remote, u64),
    ) -> Result<()> {
        let scratch = self.core.answers.scratch();
        let order = |index| {
            let (to, add) = which(index);
            (to, Work::Add(add), scratch)
        };
        self.ask_all((count, true), order, |kinds| &mut kinds.posts).map(|_| ())
    }

    /// Sends requests whose answers of 8 bytes are stored into words. `gathered`: nothing reads the
    /// answers, and the requests may leave with later ones. Returns the number of the last one.
    fn ask_all(
        &self,
        (count, gathered): (usize, bool),
        order: impl Fn(usize) -> (Remote, Work, Word),
        counted: fn(&mut Kinds) -> &mut u64,
    ) -> Result<u64> {
        let (mut sent, mut number) = (0, 0);
        while sent < count {
            number = self.with(|queue| {
                let chain = (count - sent).min(queue.chain_max());
                let mut orders = [Order::ping(); CHAIN_MAX];
                for (index, place) in orders[..chain].iter_mut().enumerate() {
                    let (to, work, word) = order(sent + index);
                    debug_assert!(to.at.is_multiple_of(8));
                    let signaled = index + 1 == chain;
                    *place = Order { gathered, ..Order::new(work, to, word.local(), signaled) };
                }
                self.room(queue, chain)?;
                *counted(queue.count()) += chain.to_u64();
                sent += chain;
                // SAFETY: the words are registered and live as long as the queue.
                Ok(unsafe { queue.post_chain(&mut orders[..chain], Kept::Nothing) }?)
            })?;
        }
        Ok(number)
    }
}
