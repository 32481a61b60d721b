//! What the checks of one job found. The ranks write it as JSON, and `fompi selftest` reads it.

use serde::{Deserialize, Serialize};

/// Where a check is: its name, the call that made its window, and the window's transport.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckPlace {
    /// name of the check
    pub check: String,
    /// call that made the window
    pub window: String,
    /// transport of the window, as the library reports it
    pub transport: String,
}

/// A call with a wrong result, or one that does not return.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallFailure {
    /// rank in MPI_COMM_WORLD
    pub rank: i32,
    /// the check
    #[serde(flatten)]
    pub place: CheckPlace,
    /// the call
    pub call: String,
    /// the result that the standard demands
    pub expected: String,
    /// the result
    pub got: String,
    /// whether the call did not return
    pub hangs: bool,
}

impl CallFailure {
    /// The line about it.
    pub fn line(&self) -> String {
        let CheckPlace { check, window, transport } = &self.place;
        let what = if self.hangs { "HANGS" } else { "FAILED" };
        let (call, rank) = (&self.call, self.rank);
        let places = [window, transport].map(|place| match place.as_str() {
            "" => String::new(),
            place => format!(", {place}"),
        });
        format!(
            "{what}: {call} on rank {rank}: expected {}, got {} (check {check}{})",
            self.expected,
            self.got,
            places.concat()
        )
    }
}

/// The name in C of a function: MPI_Win_lock for win_lock. What is no name of MPI stays as it is.
pub fn name_of(function: &str) -> String {
    if function.starts_with("fi_") || function.contains(' ') {
        return function.into();
    }
    let (first, rest) = function.split_at(1);
    format!("MPI_{}{rest}", first.to_uppercase())
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// all results are right
    Passed,
    /// a result is wrong
    Failed,
    /// a call does not return
    Hangs,
    /// no result is wrong: the detail says what happened
    Observed,
    /// not run, with the reason
    LeftOut(String),
}

/// A check on a window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckReport {
    /// the check
    #[serde(flatten)]
    pub place: CheckPlace,
    /// its result
    pub outcome: CheckOutcome,
    /// what the check saw
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// The provider of libfabric, with its attributes under libfabric's names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FabricReport {
    /// path of libfabric
    pub library: String,
    /// version of libfabric
    pub version: String,
    /// name of the provider
    pub provider: String,
    /// its version
    pub provider_version: String,
    /// name of the domain
    pub domain: String,
    /// modes of registration
    pub mr_mode: String,
    /// orders that it promises
    pub msg_order: String,
    /// who drives operations
    pub data_progress: String,
    /// bytes of the longest operation
    pub max_msg_size: usize,
    /// bytes of the longest writes that stay in order
    pub max_order_waw_size: usize,
    /// bytes that an operation may copy
    pub inject_size: usize,
    /// bytes of a key
    pub mr_key_size: usize,
    /// number of registrations that it is made for
    pub mr_cnt: usize,
}

/// Times of an operation between two ranks, in seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Speed {
    /// the operation
    pub operation: String,
    /// transport between the ranks
    pub transport: String,
    /// bytes that one operation moves
    pub bytes: usize,
    /// the shortest time
    pub least: f64,
    /// the median
    pub median: f64,
}

/// One job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JobReport {
    /// the settings of the job, such as `FOMPI_NET=tcp`
    pub settings: String,
    /// version of libfompi
    pub version: String,
    /// the ABI of the MPI
    pub abi: String,
    /// what the MPI says of itself
    pub mpi: String,
    /// path of the MPI
    pub library: String,
    /// number of ranks
    pub ranks: i32,
    /// number of nodes
    pub nodes: i32,
    /// the checks in their order
    pub checks: Vec<CheckReport>,
    /// checks or windows that were left out, because they have ended a job before
    pub skipped: Vec<String>,
    /// what was not tested, with reasons
    #[serde(default)]
    pub left_out: Vec<String>,
    /// the provider of libfabric, if it was tested
    #[serde(default)]
    pub libfabric: Option<FabricReport>,
    /// measurements
    pub speeds: Vec<Speed>,
    /// all failures, in the order in which they were found
    pub failures: Vec<CallFailure>,
}

impl JobReport {
    /// The number of checks that passed, and of those that did not.
    pub fn counts(&self) -> (usize, usize) {
        let count = |outcome: CheckOutcome| {
            self.checks.iter().filter(|check| check.outcome == outcome).count()
        };
        (count(CheckOutcome::Passed), count(CheckOutcome::Failed) + count(CheckOutcome::Hangs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_call_rank_values_and_place() {
        let place = CheckPlace {
            check: "fence".into(),
            window: "MPI_Win_create".into(),
            transport: "process_vm".into(),
        };
        let mut failure = CallFailure {
            rank: 1,
            place,
            call: "MPI_Get".into(),
            expected: "17".into(),
            got: "0".into(),
            hangs: false,
        };
        let line = "FAILED: MPI_Get on rank 1: expected 17, got 0 \
                    (check fence, MPI_Win_create, process_vm)";
        assert_eq!(failure.line(), line);
        let read = serde_json::from_str(&serde_json::to_string(&failure).unwrap());
        assert_eq!(read.ok().as_ref(), Some(&failure));
        failure.hangs = true;
        assert!(failure.line().starts_with("HANGS: MPI_Get on rank 1"));
    }
}
