//! The lock that a connection holds: its requests between [`RequestKind::TakeLock`] and an addition
//! to the same word are carried out under it. Invariant: the lock is released once, by that
//! addition or at the end of the connection.
//!
//! | word of the lock | step                                                   | to   |
//! |------------------|--------------------------------------------------------|------|
//! | free             | compare-and-swap of a connection or of a rank          | held |
//! | held             | addition of its holder, or end of its connection       | free |

use super::exposures::ExposedMemory;
use super::frames::{AnswerStatus, RequestKind, TcpRequest};
use super::served_words;
use crate::layout::SINGLES_BEHIND_ACC;
use crate::reduction::Protection;
use crate::sync::{AtomicU64, Ordering};

/// The lock that a connection holds, if it holds one.
#[derive(Default)]
pub struct HeldLock {
    /// the addition that releases it, and whether no rank changes single elements under it
    release: Option<(TcpRequest, bool)>,
}

impl HeldLock {
    /// Takes a lock if it is free. Returns whether it was.
    pub fn take(
        &mut self,
        memory: &ExposedMemory<'_>,
        request: &TcpRequest,
    ) -> Result<bool, AnswerStatus> {
        let singles = (request.key, request.at.wrapping_add(SINGLES_BEHIND_ACC));
        let singles = served_words::word(memory, singles, 8)?.cast::<AtomicU64>();
        let is_free = served_words::swap(memory, request)? == request.first;
        if is_free {
            let first = request.first.wrapping_sub(request.second);
            let release = TcpRequest { kind: RequestKind::Add, first, ..*request };
            // Relaxed: holders of the lock set it.
            // SAFETY: exposed memory, which stays so while the table is locked; aligned.
            let is_alone = unsafe { &*singles }.load(Ordering::Relaxed) == 0;
            self.release = Some((release, is_alone));
        }
        Ok(is_free)
    }

    /// The protection of elements at this target for a request with [`Protection::UnderLock`]. The
    /// connections of a process are served one at a time, so their changes of single elements come
    /// before a request or behind it.
    pub fn protection(&self) -> Protection {
        match self.release {
            Some((_, true)) => Protection::Alone,
            _ => Protection::Locked,
        }
    }

    /// Notes the change of a word, which may be the release.
    #[inline]
    pub fn note_change(&mut self, at: u64) {
        self.release.take_if(|(lock, _)| lock.at == at);
    }

    /// Releases the lock of a connection that has ended: its origin has died within a call.
    pub fn give_back(&mut self, memory: &ExposedMemory<'_>) {
        if let Some((release, _)) = self.release.take() {
            // A window that is freed has no lock any more.
            let _ = served_words::change(memory, &release);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use crate::tcp::connections::Next;
    use crate::tcp::exposures::Exposures;
    use crate::tcp::frames::{ANSWER_BYTES, Answer, AnswerStatus, RequestKind, TcpRequest};
    use crate::tcp::served::BUFFER_BYTES;
    use crate::tcp::served_model::{GUARD, Model, WORD, blank};
    use crate::tcp::served_tests::connection;

    #[test]
    fn others_wait_for_a_lock_that_a_connection_gives_back_at_its_end() {
        let exposures = Exposures::default();
        let memory = Model::new(&exposures, 1);
        let load = |word: usize| {
            let bytes = memory.bytes();
            u64::from_le_bytes(bytes[GUARD + word * WORD..][..WORD].try_into().unwrap())
        };
        let (free, before) = (load(0), load(1));
        let take = blank(RequestKind::TakeLock);
        let key = memory.key;
        let take = TcpRequest { key, at: memory.at(0), first: free, second: !free, ..take };
        let add = blank(RequestKind::Add);
        let add = TcpRequest { key, at: memory.at(WORD), first: 1, answered: true, ..add };
        let [(mut first, mut holder), (mut second, mut waiting)] = [connection(), connection()];
        let mut buffer = vec![0; BUFFER_BYTES];
        holder.write_all(&take.bytes()).unwrap();
        assert_eq!(first.turn(&exposures, &mut buffer), Next::Receive);
        assert_eq!(load(0), !free);
        waiting.write_all(&[take.bytes(), add.bytes()].concat()).unwrap();
        for _ in 0..10 {
            assert_eq!(second.turn(&exposures, &mut buffer), Next::AwaitLock);
        }
        assert_eq!(load(1), before, "it waits");
        // What arrives meanwhile is not forgotten.
        let late = TcpRequest { first: 2, ..add };
        waiting.write_all(&late.bytes()).unwrap();
        drop(holder);
        assert_eq!(first.turn(&exposures, &mut buffer), Next::End);
        assert_eq!(load(0), free);
        assert_eq!(second.turn(&exposures, &mut buffer), Next::Receive);
        assert_eq!((load(0), load(1)), (!free, before.wrapping_add(3)));
        let mut answer = [0; ANSWER_BYTES];
        waiting.read_exact(&mut answer).unwrap();
        assert_eq!(Answer::from(answer), Answer::new(AnswerStatus::Done, 8));
    }

    #[test]
    fn a_lock_that_was_released_is_not_given_back_again() {
        let exposures = Exposures::default();
        let memory = Model::new(&exposures, 2);
        let (free, key, at) = (memory.bytes(), memory.key, memory.at(0));
        let word = u64::from_le_bytes(free[GUARD..][..WORD].try_into().unwrap());
        let take = blank(RequestKind::TakeLock);
        let take = TcpRequest { key, at, first: word, second: word.wrapping_add(1), ..take };
        let release = TcpRequest { key, at, first: u64::MAX, ..blank(RequestKind::Add) };
        let ((mut served, mut here), mut buffer) = (connection(), vec![0; BUFFER_BYTES]);
        here.write_all(&[take.bytes(), release.bytes()].concat()).unwrap();
        assert_eq!(served.turn(&exposures, &mut buffer), Next::Receive);
        drop(here);
        assert_eq!(served.turn(&exposures, &mut buffer), Next::End);
        assert!(memory.bytes() == free);
    }
}
