//! Work that the target carries out, where the device has such requests: puts and gets of many
//! blocks, accumulates, whose requests have an operation, a type and operands, and work under
//! locks. A call posts all of its requests one after the other while it has the connection for
//! itself, because a guarded request depends on the compare-and-swap before it.
//! Invariant: as for puts, memory that is used after a call has returned is held by its request.

use core::ptr;

use parking_lot::Mutex;

use super::chain::Chain;
use super::fault::Fault;
use super::peer::Peer;
use super::pool::{Kept, Word};
use super::queue::Queue;
use super::row_messages::{BlockWork, RowMessages, Zeros};
use crate::Way;
use crate::error::Result;
use crate::number::Number;
use crate::reduction::{Protection, Reduction};
use crate::remote::{
    AccumulateAt, AtTarget, ElementRuns, Elements, LOCKS_MAX, LockAnswers, LockAt,
    OPERANDS_COPIED_MAX, Portions, PutAt, Remote,
};
use crate::request::{Leaves, Local, Order, Work};
use crate::sync::Ordering;

/// Adds the requests of an accumulate to a chain.
///
/// # Safety
/// As for [`AtTarget::accumulate`].
unsafe fn push_all(
    chain: &mut Chain<'_>,
    call: &AccumulateAt<'_>,
) -> core::result::Result<(), Fault> {
    let AccumulateAt { what, protection, within, runs } = *call;
    let work = BlockWork::Accumulate { what, protection };
    let given = |operands: *const u8| what.has_operands().then_some(operands);
    // SAFETY: the caller guarantees the memory.
    unsafe {
        match runs {
            ElementRuns::Listed([run]) => push_run(chain, call, run),
            ElementRuns::Listed(runs) => {
                let zeros = Zeros { there: within, source: given(ptr::null()), sink: None };
                let mut messages = RowMessages::new(chain, work, zeros);
                runs.iter().try_for_each(|run| messages.push_elements(run))?;
                messages.finish()
            }
            ElementRuns::Portions { operands, result: sink } => {
                let zeros = Zeros { there: operands.there, source: given(operands.here), sink };
                RowMessages::new(chain, work, zeros).send_all(&operands)
            }
        }
    }
}

/// Adds the requests of an accumulate on one run to a chain.
///
/// # Safety
/// As for [`AtTarget::accumulate`].
unsafe fn push_run(
    chain: &mut Chain<'_>,
    call: &AccumulateAt<'_>,
    run: &Elements,
) -> core::result::Result<(), Fault> {
    debug_assert!(run.bytes > 0 && call.what.fits(call.protection, run.there));
    chain.queue.kinds.accumulates += 1;
    let most = call.what.whole(chain.peer.core.message_bytes_max());
    let lends = !is_copied(call, run) || run.result.is_some();
    let mut offset = 0;
    while offset < run.bytes {
        let length = most.min(run.bytes - offset);
        let order = request_for(call, run, (offset, length));
        let held = if lends { Kept::of_user() } else { Kept::Nothing };
        // SAFETY: the caller guarantees the memory.
        unsafe { chain.push(order, held) }?;
        offset += length;
    }
    Ok(())
}

/// Whether the operands of a run are copied when its request is posted.
fn is_copied(call: &AccumulateAt<'_>, run: &Elements) -> bool {
    run.bytes <= OPERANDS_COPIED_MAX || !call.what.has_operands()
}

/// Returns the request for `length` bytes of a run, from `offset` on.
fn request_for(call: &AccumulateAt<'_>, run: &Elements, (offset, length): (u64, u64)) -> Order {
    let AccumulateAt { what, protection, within, .. } = *call;
    let at = if what.has_operands() { run.operands as u64 + offset } else { 0 };
    let from = Local { at, bytes: length.low_u32(), key: 0 };
    let (inline, result) = (is_copied(call, run), run.result.map_or(0, |at| at as u64 + offset));
    let work = Work::Accumulate { what, protection, result, inline };
    let to = Remote { at: run.there + offset, ..within };
    // A short one leaves with later requests, whether or not its answer goes to the user's memory.
    let is_short = inline && length <= OPERANDS_COPIED_MAX;
    let leaves = if is_short { Leaves::WithLater } else { Leaves::AtOnce };
    Order { leaves, ..Order::new(work, to, from, !is_short || result != 0) }
}

/// A request with an answer of eight bytes, for which the caller waits.
fn asks(work: Work, to: Remote, word: Word) -> Order {
    Order { leaves: Leaves::WithLater, ..Order::new(work, to, word.local(), true) }
}

impl AtTarget for Peer {
    unsafe fn transfer(&self, way: Way, portions: &Portions<'_>) -> Result<()> {
        let (source, sink) = match way {
            Way::Put => (Some(portions.here.cast_const()), None),
            Way::Get => (None, Some(portions.here)),
        };
        let zeros = Zeros { there: portions.there, source, sink };
        // SAFETY: guaranteed by the caller.
        let send = |chain: &mut Chain<'_>| unsafe {
            RowMessages::new(chain, BlockWork::Transfer(way), zeros).send_all(portions)
        };
        self.in_chain(send).map(drop)
    }

    unsafe fn accumulate(&self, call: &AccumulateAt<'_>) -> Result<()> {
        if let ElementRuns::Listed([run]) = call.runs
            && is_copied(call, run)
            && run.bytes <= OPERANDS_COPIED_MAX
        {
            let order = request_for(call, run, (0, run.bytes));
            return self.with(|queue| match run.result {
                // SAFETY: guaranteed by the caller.
                None => unsafe { self.post_copied(queue, order) },
                Some(_) => {
                    queue.kinds.accumulates += 1;
                    // SAFETY: guaranteed by the caller.
                    unsafe { self.post_fetching(queue, order) }
                }
            });
        }
        self.check_buffers(call)?;
        // SAFETY: guaranteed by the caller.
        self.in_chain(|chain| unsafe { push_all(chain, call) }).map(drop)
    }

    unsafe fn accumulate_one(&self, what: Reduction, at: Remote, operand: *const u8) -> Result<()> {
        self.with(|queue| {
            let protection = Protection::Atomic;
            let from = Local { at: operand as u64, bytes: what.extent().low_u32(), key: 0 };
            let work = Work::Accumulate { what, protection, result: 0, inline: true };
            let order = Order { leaves: Leaves::WithLater, ..Order::new(work, at, from, false) };
            // SAFETY: guaranteed by the caller.
            unsafe { self.post_copied(queue, order) }
        })
    }

    fn locking(&self) -> &Mutex<()> {
        &self.locking
    }

    fn take_lock(&self, lock: LockAt) -> Result<()> {
        let (expect, new) = lock.take;
        let take = Work::TakeLock { expect, new };
        self.post_leaving(Order::new(take, lock.at, Local::default(), false), Leaves::WithLater)
    }

    fn release_lock(&self, lock: LockAt) -> Result<()> {
        self.post_leaving(self.addition(lock.at, lock.release), Leaves::WithLock)
    }

    unsafe fn put_under(
        &self,
        puts: &[PutAt],
        locks: &[LockAt],
        release: bool,
    ) -> Result<LockAnswers> {
        assert!((1..=LOCKS_MAX).contains(&locks.len()));
        let [a, b, c, d] = self.in_chain_with(|chain, [a, b, c, d]| {
            let released = if release { locks.len() } else { 0 };
            let counts = &mut chain.queue.kinds;
            counts.fetches += (locks.len() + released).to_u64();
            counts.inline += puts.len().to_u64();
            let mut left = locks.len() + puts.len() + released;
            // The last request sends all of them, and its answer comes last.
            let mut push = |order: Order| {
                left -= 1;
                let leaves = if left == 0 { Leaves::AtOnce } else { Leaves::WithLater };
                let signaled = order.signaled || left == 0;
                // SAFETY: the caller's bytes are inline; the words of the answers live as long as
                // the queue.
                unsafe { chain.push(Order { leaves, signaled, ..order }, Kept::Nothing) }
            };
            for (index, (lock, before)) in locks.iter().zip([a, b]).enumerate() {
                let (expect, new) = lock.take;
                let take = asks(Work::CompareSwap { expect, new }, lock.at, before);
                push(Order { guarded: index > 0, ..take })?;
            }
            for put in puts {
                debug_assert!((1..=OPERANDS_COPIED_MAX).contains(&put.bytes));
                let from = Local { at: put.from as u64, bytes: put.bytes.low_u32(), key: 0 };
                let order = Order::new(Work::WriteInline, put.to, from, false);
                push(Order { guarded: true, ..order })?;
            }
            for (lock, before) in locks.iter().zip([c, d]).take(released).rev() {
                let give = asks(Work::Add(lock.release), lock.at, before);
                push(Order { guarded: true, ..give })?;
            }
            Ok(())
        })?;
        Ok(LockAnswers { taken: [a, b], released: [c, d] })
    }

    unsafe fn compare_and_swap(
        &self,
        (at, width): (Remote, u8),
        (expect, new): (u64, u64),
        result: *mut u8,
    ) -> Result<()> {
        let work = match width {
            8 => Work::CompareSwap { expect, new },
            width => Work::CompareSwapNarrow { width, expect, new },
        };
        let from = Local { at: result as u64, bytes: width.into(), key: 0 };
        let order = Order { leaves: Leaves::WithLater, ..Order::new(work, at, from, true) };
        self.with(|queue| {
            queue.kinds.fetches += 1;
            // SAFETY: guaranteed by the caller.
            unsafe { self.post_fetching(queue, order) }
        })
    }
}

impl Peer {
    /// Fails if memory of the user cannot be used. Called before anything is sent, since a lock
    /// that is taken must be released.
    fn check_buffers(&self, call: &AccumulateAt<'_>) -> Result<()> {
        // Operands and results of several runs are copied.
        let (device, ElementRuns::Listed([run])) = (&self.core.device, call.runs) else {
            return Ok(());
        };
        if !is_copied(call, run) {
            device.buffer(run.operands as u64, run.bytes, false)?;
        }
        match run.result {
            Some(result) => device.buffer(result as u64, run.bytes, true).map(drop),
            None => Ok(()),
        }
    }

    /// Does `work` with a chain, posts it, and returns the number of its last request.
    fn in_chain(
        &self,
        work: impl FnOnce(&mut Chain<'_>) -> core::result::Result<(), Fault>,
    ) -> Result<u64> {
        self.with(|queue| {
            let mut chain = Chain::new(self, queue);
            work(&mut chain)?;
            // SAFETY: the callers of `push` guarantee the memory.
            unsafe { chain.post() }
        })
    }

    /// Calls [`Peer::in_chain`] with a word for the answer of each of `N` requests. Waits for all
    /// requests, and returns the answers.
    fn in_chain_with<const N: usize>(
        &self,
        work: impl FnOnce(&mut Chain<'_>, [Word; N]) -> core::result::Result<(), Fault>,
    ) -> Result<[u64; N]> {
        let mut words = [self.core.answers.scratch(); N];
        self.core.answers.take_all(&self.core.device, &mut words)?;
        let sent = self.in_chain(|chain| work(chain, words));
        // If sending failed the connection is gone, or nothing has been sent that uses the words.
        let done = sent.and_then(|number| self.wait_for(|_| number));
        // SAFETY: words of the pool, which live as long as the core; aligned.
        // Acquire: pairs with the device's store, which came before its completion.
        let answers = words.map(|word| unsafe { (*word.at).load(Ordering::Acquire) });
        self.core.answers.give_all_back(&words);
        self.core.device.sweep();
        done.map(|()| answers)
    }

    /// Posts a request that takes or releases a lock.
    fn post_leaving(&self, order: Order, leaves: Leaves) -> Result<()> {
        self.with(|queue| {
            self.room(queue, 1)?;
            queue.kinds.posts += 1;
            // SAFETY: the answer goes to the scratch word, which lives as long as the queue.
            unsafe { queue.post_small(Order { leaves, ..order }) }?;
            Ok(())
        })
    }

    /// Posts an accumulate on one run without a result, whose operands are copied now.
    ///
    /// # Safety
    /// The operands may be read now, and the elements are inside of the target's window.
    #[inline(always)]
    unsafe fn post_copied(
        &self,
        queue: &mut Queue,
        order: Order,
    ) -> core::result::Result<(), Fault> {
        self.room(queue, 1)?;
        queue.kinds.accumulates += 1;
        // SAFETY: guaranteed by the caller.
        unsafe { queue.post_small(order) }?;
        Ok(())
    }

    /// Posts a short request whose answer goes to memory of the user, which the request holds.
    ///
    /// # Safety
    /// That memory may be written until the request is done.
    unsafe fn post_fetching(
        &self,
        queue: &mut Queue,
        order: Order,
    ) -> core::result::Result<(), Fault> {
        self.room(queue, 1)?;
        // SAFETY: guaranteed by the caller.
        unsafe { queue.post(order, Kept::of_user()) }?;
        Ok(())
    }
}
