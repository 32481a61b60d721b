//! Coroutines that are threads, with the names and the calls of the crate `corosensei` that the
//! simulator uses, for Miri, which runs no assembly. Not for other runs: they would be slow. The
//! locks are those of the standard library, because Miri does not know the futex calls of others.
//! Invariant: of a coroutine and the thread that resumes it, one runs, and the other waits.

use core::marker::PhantomData;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

/// A stack, which a thread has already.
pub struct DefaultStack;

impl DefaultStack {
    /// Returns a stack.
    pub fn new(_bytes: usize) -> std::io::Result<DefaultStack> {
        Ok(DefaultStack)
    }
}

/// What a coroutine did last.
pub enum CoroutineResult<Y, R> {
    /// it waits to be resumed
    Yield(Y),
    /// it has ended
    Return(R),
}

/// Which of the two threads runs.
enum Turn {
    Coroutine,
    Resumer(Result<CoroutineResult<(), ()>, Box<dyn Any + Send>>),
    /// the coroutine unwinds its stack
    End,
}

struct Shared {
    turn: Mutex<Turn>,
    changed: Condvar,
}

/// The payload of the panic by which the stack of a coroutine is unwound that is not resumed again.
struct Unwinding;

impl Shared {
    fn give(&self, turn: Turn) {
        *self.turn.lock().unwrap() = turn;
        self.changed.notify_all();
    }

    /// Waits until a turn is as asked.
    fn wait(&self, is_it: impl Fn(&Turn) -> bool) -> MutexGuard<'_, Turn> {
        self.changed.wait_while(self.turn.lock().unwrap(), |turn| !is_it(turn)).unwrap()
    }

    /// Waits for the turn of the coroutine. Returns whether it goes on.
    fn goes_on(&self) -> bool {
        matches!(*self.wait(|turn| !matches!(turn, Turn::Resumer(_))), Turn::Coroutine)
    }
}

/// A value that goes to another thread.
struct Moved<T>(T);

// SAFETY: the two threads take turns, and the lock of the turn orders all that they do.
unsafe impl<T> Send for Moved<T> {}

impl<T> Moved<T> {
    fn into_inner(self) -> T {
        self.0
    }
}

/// A coroutine.
pub struct Coroutine<I, Y, R, S> {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    is_done: bool,
    _of: PhantomData<(I, Y, R, S)>,
}

/// By which a coroutine waits.
pub struct Yielder<I, Y>(Arc<Shared>, PhantomData<(I, Y)>);

impl Yielder<(), ()> {
    /// Lets the thread go on that has resumed the coroutine, until it does so again.
    pub fn suspend(&self, (): ()) {
        self.0.give(Turn::Resumer(Ok(CoroutineResult::Yield(()))));
        if !self.0.goes_on() {
            resume_unwind(Box::new(Unwinding));
        }
    }
}

impl Coroutine<(), (), (), DefaultStack> {
    /// Makes a coroutine, which begins when it is resumed.
    pub fn with_stack(
        _stack: DefaultStack,
        body: impl FnOnce(&Yielder<(), ()>, ()) + 'static,
    ) -> Self {
        let nothing = Turn::Resumer(Ok(CoroutineResult::Yield(())));
        let shared = Arc::new(Shared { turn: Mutex::new(nothing), changed: Condvar::new() });
        let (body, of_thread) = (Moved(body), shared.clone());
        let thread = thread::spawn(move || {
            let body = body.into_inner();
            if of_thread.goes_on() {
                let yielder = Yielder(of_thread.clone(), PhantomData);
                let end = catch_unwind(AssertUnwindSafe(|| body(&yielder, ())));
                of_thread.give(Turn::Resumer(end.map(CoroutineResult::Return)));
            }
        });
        Coroutine { shared, thread: Some(thread), is_done: false, _of: PhantomData }
    }

    /// Lets the coroutine run until it waits or ends. Its panic goes on here.
    pub fn resume(&mut self, (): ()) -> CoroutineResult<(), ()> {
        self.shared.give(Turn::Coroutine);
        let mut turn = self.shared.wait(|turn| matches!(turn, Turn::Resumer(_)));
        let again = Turn::Resumer(Ok(CoroutineResult::Yield(())));
        let Turn::Resumer(result) = core::mem::replace(&mut *turn, again) else {
            unreachable!("the loop above waits for it")
        };
        drop(turn);
        self.is_done = !matches!(result, Ok(CoroutineResult::Yield(())));
        result.unwrap_or_else(|payload| resume_unwind(payload))
    }

    /// Whether it has ended.
    pub fn done(&self) -> bool {
        self.is_done
    }

    /// Returns its stack.
    pub fn into_stack(self) -> DefaultStack {
        DefaultStack
    }
}

impl<I, Y, R, S> Drop for Coroutine<I, Y, R, S> {
    fn drop(&mut self) {
        if !self.is_done {
            self.shared.give(Turn::End);
        }
        // The panic of the coroutine was that of `resume`.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
