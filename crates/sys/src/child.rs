//! A second process for tests of transfers between address spaces: a fork of this one, with the
//! same addresses and a copy of its memory. Other threads of this process may have held any lock
//! when it was forked, so the child may only compute and make system calls. Invariant: it does not
//! outlive the thread that made it.

use super::life::{self, Life, Mark};
use super::process;
use std::sync::Arc;

/// Runs a test, which calls this with its own path, in a process of its own: there `body` runs.
pub fn alone(test: &str, body: impl FnOnce()) {
    if is_alone() {
        return body();
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).env(INSIDE, "1");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

const INSIDE: &str = "FOMPI_TEST_ALONE";

/// Whether this process runs one test alone.
pub fn is_alone() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// A child process, until it is dropped.
pub struct Child {
    pid: i32,
    life: Arc<Life>,
    /// whether it has not been waited for to its end
    is_there: bool,
}

/// Ends the child, also when it panics: its copy of the test harness must not go on.
struct Exit(i32);

impl Drop for Exit {
    fn drop(&mut self) {
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(self.0) };
    }
}

impl Child {
    /// Makes a child that does `work`; [`Child::said_yes`] returns the result.
    pub fn working(work: impl FnOnce() -> bool) -> Child {
        let parent = process::id();
        // SAFETY: the child calls `work` and system calls only.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "no second process");
        if pid == 0 {
            let mut exit = Exit(101);
            // The threads of a test block signals, as those of the library do.
            // SAFETY: plain data, filled in below.
            let mut none: libc::sigset_t = unsafe { core::mem::zeroed() };
            // SAFETY: plain system calls, and a local variable.
            let orphan = unsafe {
                libc::sigemptyset(&mut none);
                libc::pthread_sigmask(libc::SIG_SETMASK, &none, core::ptr::null_mut());
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::getppid() != parent
            };
            exit.0 = i32::from(orphan || !work());
            drop(exit);
        }
        Child { pid, life: life::of(Mark::of(pid)), is_there: true }
    }

    /// Makes a child that does `prepare` and then stops. Returns when it has stopped.
    pub fn stopped(prepare: impl FnOnce()) -> Child {
        let child = Child::working(|| {
            prepare();
            // SAFETY: stops this process.
            unsafe { libc::raise(libc::SIGSTOP) == 0 }
        });
        assert!(libc::WIFSTOPPED(child.status(libc::WUNTRACED)));
        child
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Its life, for code that checks by process id whether it runs.
    pub fn life(&self) -> &Arc<Life> {
        &self.life
    }

    /// Waits for the end of its work, and returns whether that was true.
    pub fn said_yes(mut self) -> bool {
        let status = self.status(0);
        self.is_there = false;
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
    }

    /// Kills it; a zombie remains until it is dropped.
    pub fn kill(&self) {
        // SAFETY: the process is ours, and its number is not given away before it is waited for.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        while !self.life.has_ended() {
            std::thread::yield_now();
        }
    }

    fn status(&self, options: i32) -> i32 {
        let mut status = 0;
        // SAFETY: `status` is ours; the child has not been waited for to its end.
        while unsafe { libc::waitpid(self.pid, &mut status, options) } != self.pid {}
        status
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.is_there {
            self.kill();
            self.status(0);
        }
    }
}
