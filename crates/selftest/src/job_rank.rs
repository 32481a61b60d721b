//! A rank of the job: its communicators, and the failures of the check that runs. Invariant: all
//! ranks call the same collective functions, whatever a check found.

use crate::hang_watch;
use crate::job_report::{CallFailure, CheckOutcome, CheckPlace, CheckReport, name_of};
use crate::opened_mpi::OpenedMpi;
use fompi_base::config::Config;
use fompi_base::number::Number;
use fompi_datatype::reduce::Op;
use fompi_host::handle::{Handle, Status};
use fompi_sys::process;
use std::cell::{Cell, RefCell};
use std::ffi::c_int;

/// A communicator, and this rank in it.
#[derive(Clone, Copy)]
pub struct RankIn {
    /// the communicator
    pub comm: Handle,
    /// this rank
    pub me: c_int,
    /// number of ranks
    pub ranks: c_int,
}

/// A rank of the job.
pub struct JobRank {
    /// the MPI
    pub mpi: OpenedMpi,
    /// MPI_COMM_WORLD
    pub world: RankIn,
    /// the ranks of its node
    pub node: RankIn,
    /// number of nodes
    pub nodes: c_int,
    /// the first rank that is not on the node of rank 0
    pub elsewhere: Option<c_int>,
    /// MPI_INT64_T
    pub word: Handle,
    place: RefCell<CheckPlace>,
    failures: RefCell<Vec<CallFailure>>,
    failed: Cell<bool>,
}

/// Calls a function of an MPI and records a failure of it. `SAFETY`: pointers among the arguments
/// are to memory as large as the counts say, which lives until the operation is complete.
macro_rules! call {
    ($rank:expr, more.$function:ident($($argument:expr),* $(,)?)) => {{
        let rank = &$rank;
        rank.begin(stringify!($function));
        // SAFETY: as the macro demands.
        let code = unsafe { (rank.mpi.more.$function)($($argument),*) };
        rank.end(stringify!($function), code)
    }};
    ($rank:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let rank = &$rank;
        rank.begin(stringify!($function));
        // SAFETY: as the macro demands.
        let code = unsafe { (rank.mpi.call.$function)($($argument),*) };
        rank.end(stringify!($function), code)
    }};
}
pub(crate) use call;

impl JobRank {
    /// Initialises MPI, and finds the ranks of the node.
    pub fn start(mpi: OpenedMpi) -> Result<JobRank, String> {
        mpi.initialise()?;
        let comm = mpi.constants.comm_world;
        let alone = RankIn { comm, me: 0, ranks: 1 };
        let word = mpi.datatype("MPI_INT64_T");
        let mut rank = JobRank {
            mpi,
            world: alone,
            node: alone,
            nodes: 1,
            elsewhere: None,
            word,
            place: RefCell::default(),
            failures: RefCell::default(),
            failed: Cell::new(false),
        };
        call!(rank, comm_set_errhandler(comm, rank.mpi.constants.errors_return));
        rank.world = rank.rank_in(comm);
        (rank.node, rank.nodes, rank.elsewhere) = rank.own_node();
        Ok(rank)
    }

    /// This rank in a communicator.
    pub fn rank_in(&self, comm: Handle) -> RankIn {
        let (mut me, mut ranks) = (0, 1);
        call!(self, comm_rank(comm, &mut me));
        call!(self, comm_size(comm, &mut ranks));
        RankIn { comm, me, ranks }
    }

    /// Returns the ranks of this node, the number of nodes, and the first rank elsewhere.
    fn own_node(&self) -> (RankIn, c_int, Option<c_int>) {
        let RankIn { me, ranks, comm } = self.world;
        let (own, word) = (node_of(me.cast_unsigned().to_usize()), self.word);
        let mut all = vec![[0_u64; 2]; ranks.cast_unsigned().to_usize()];
        let to = all.as_mut_ptr().cast();
        call!(self, allgather(own.as_ptr().cast(), 2, word, to, 2, word, comm));
        let first = |node: &[u64; 2]| all.iter().position(|other| other == node).unwrap_or(0);
        let nodes = (0..all.len()).filter(|at| first(&all[*at]) == *at).count();
        let mut comm = 0;
        call!(self, comm_split(self.world.comm, number(first(&own)), me, &mut comm));
        let elsewhere = all.iter().position(|other| *other != all[0]).map(number);
        (self.rank_in(comm), number(nodes), elsewhere)
    }

    /// Notes a call that begins.
    pub fn begin(&self, function: &'static str) {
        hang_watch::calls(Some(function));
    }

    /// Notes the end of a call. Records an error code as a failure; returns whether there is none.
    pub fn end(&self, function: &str, code: c_int) -> bool {
        if code != 0 {
            self.fail(function, "success", self.mpi.text_of(code));
        }
        code == 0
    }

    /// Records a failure.
    pub fn fail(&self, function: &str, expected: impl ToString, got: impl ToString) {
        let (place, call) = (self.place.borrow().clone(), name_of(function));
        let (expected, got) = (expected.to_string(), got.to_string());
        let rank = self.world.me;
        self.failures.borrow_mut().push(CallFailure {
            rank,
            place,
            call,
            expected,
            got,
            hangs: false,
        });
    }

    /// Records a failure unless two values are equal.
    pub fn expect<T: PartialEq + std::fmt::Debug>(&self, function: &str, expected: T, got: T) {
        if expected != got {
            self.fail(function, format!("{expected:?}"), format!("{got:?}"));
        }
    }

    /// Waits for all ranks. If one does not come, its call is the one to name.
    pub fn barrier(&self, ranks: RankIn) {
        hang_watch::calls(None);
        // SAFETY: no pointers.
        let code = unsafe { (self.mpi.more.barrier)(ranks.comm) };
        self.end("barrier", code);
    }

    /// The sum of a number over all ranks.
    pub fn sum(&self, own: i64) -> i64 {
        let (mut sum, op) = (0_i64, self.mpi.op(Op::Sum));
        let (from, to) = ((&raw const own).cast(), (&raw mut sum).cast());
        // SAFETY: two numbers, of the datatype that is named.
        unsafe { (self.mpi.call.allreduce)(from, to, 1, self.word, op, self.world.comm) };
        sum
    }

    /// The sum of a number over the ranks of a communicator; calls `meanwhile` until all ranks
    /// have come.
    pub fn sum_meanwhile(&self, comm: Handle, own: i64, mut meanwhile: impl FnMut()) -> i64 {
        let (mut sum, op, call) = (0_i64, self.mpi.op(Op::Sum), &self.mpi.call);
        let (from, to) = ((&raw const own).cast(), (&raw mut sum).cast());
        let (mut request, mut is_done, mut status): (_, _, Status) = (0, 0, [0; 8]);
        hang_watch::calls(None);
        // SAFETY: two numbers, of the datatype that is named, which live until the end.
        let mut code = unsafe { (call.iallreduce)(from, to, 1, self.word, op, comm, &mut request) };
        while code == 0 && is_done == 0 {
            meanwhile();
            // SAFETY: the request from above, and local out parameters.
            code = unsafe { (call.test)(&mut request, &mut is_done, &mut status) };
        }
        self.end("iallreduce", code);
        // SAFETY: a local variable, which the call has written.
        unsafe { (&raw const sum).read_volatile() }
    }

    /// Runs a check and agrees on its outcome. The check returns why it was left out, the same
    /// on all ranks.
    pub fn check(&self, place: CheckPlace, check: impl FnOnce() -> Option<&'static str>) {
        self.check_in_detail(place, || {
            let left_out = check().map(|why| CheckOutcome::LeftOut(why.into()));
            (left_out.unwrap_or(CheckOutcome::Passed), String::new())
        });
    }

    /// Runs a check and agrees on its outcome. The check returns the outcome if no rank fails, and
    /// a detail, both as they are on rank 0.
    pub fn check_in_detail(
        &self,
        place: CheckPlace,
        check: impl FnOnce() -> (CheckOutcome, String),
    ) {
        hang_watch::enter(place.clone());
        self.place.replace(place.clone());
        let (outcome, detail) = check();
        hang_watch::calls(None);
        let outcome = if self.share_failures() { CheckOutcome::Failed } else { outcome };
        hang_watch::report(|report| report.checks.push(CheckReport { place, outcome, detail }));
    }

    /// Hands the failures of all ranks to rank 0. Returns whether there are any.
    fn share_failures(&self) -> bool {
        let own = self.failures.take();
        let own = if own.is_empty() { None } else { serde_json::to_string(&own).ok() };
        let ranks = self.world.ranks.cast_unsigned().to_usize();
        let texts = self.mpi.gather(self.world.comm, ranks, &own.unwrap_or_default());
        let mut texts = texts.unwrap_or_default();
        texts.retain(|text| !text.is_empty());
        for text in &texts {
            let failures: Vec<CallFailure> = serde_json::from_str(text).unwrap_or_default();
            hang_watch::report(|report| report.failures.extend(failures));
        }
        self.failed.set(self.failed.get() || !texts.is_empty());
        !texts.is_empty()
    }

    /// Returns the bytes of one rank of a communicator.
    pub fn broadcast(&self, mut bytes: Vec<u8>, comm: Handle, root: c_int) -> Vec<u8> {
        let byte = self.mpi.datatype("MPI_BYTE");
        let mut length: c_int = number(bytes.len());
        // SAFETY: a number of four bytes.
        unsafe { (self.mpi.call.bcast)((&raw mut length).cast(), 4, byte, root, comm) };
        bytes.resize(length.cast_unsigned().to_usize(), 0);
        // SAFETY: as many bytes as that.
        unsafe { (self.mpi.call.bcast)(bytes.as_mut_ptr().cast(), length, byte, root, comm) };
        bytes
    }

    /// Finalises MPI. Returns whether a check failed.
    pub fn finish(self) -> bool {
        let mut node = self.node.comm;
        call!(self, comm_free(&mut node));
        call!(self, more.finalize());
        self.failed.get()
    }
}

/// Returns numbers that the ranks of a node have in common, as the library compares them: that of
/// the machine, and that of the node that FOMPI_RANKS_PER_NODE simulates.
pub fn node_of(rank: usize) -> [u64; 2] {
    let per_node = Config::get().ranks_per_node.map(|ranks| u64::from(ranks.max(1)));
    let simulated = per_node.map_or(0, |ranks| rank.to_u64() / ranks);
    [process::number_of(&process::machine()), simulated]
}

/// A small number, as MPI counts.
pub fn number(count: usize) -> c_int {
    c_int::try_from(count).unwrap_or(c_int::MAX)
}
