//! The checks of `fompi selftest`: a program of any MPI, which opens libfompi and the MPI at run
//! time. Each rank of the job runs all checks on windows of each flavour; rank 0 has the report.

#![cfg(not(loom))]

mod atomicity_checks;
mod communication_checks;
mod hang_watch;
pub mod job_group;
mod job_rank;
pub mod job_report;
mod libfabric;
mod opened_mpi;
mod speeds;
mod synchronisation_checks;
mod tested_window;
mod window_checks;

pub use hang_watch::{AT, HANGS};
pub use job_rank::node_of;
pub use libfabric::LIBFABRIC;

use fompi_base::config;
use job_rank::JobRank;
use job_report::{CheckPlace, JobReport};
use opened_mpi::OpenedMpi;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tested_window::{TestedFlavour, TestedWindow};

/// A check: returns why it was left out.
type Check = fn(&TestedWindow) -> Option<&'static str>;

/// The checks by their names.
const CHECKS: [(&str, Check); 19] = [
    ("attributes", window_checks::attributes),
    ("name, hints, group", window_checks::descriptions),
    ("error handler", window_checks::error_handler),
    ("keyvals", window_checks::keyvals),
    ("attach, detach", window_checks::attach_detach),
    ("load and store", window_checks::shared_memory),
    ("fence", synchronisation_checks::fence),
    ("post, start, complete, wait", synchronisation_checks::post_start),
    ("exclusive lock", synchronisation_checks::exclusive_lock),
    ("shared lock", synchronisation_checks::shared_lock),
    ("lock_all, flush, sync", synchronisation_checks::lock_all),
    ("put, get", communication_checks::put_get),
    ("calls with requests", communication_checks::requests),
    ("large counts", communication_checks::large_counts),
    ("operations", communication_checks::operations),
    ("atomic: one element", atomicity_checks::single_elements),
    ("atomic: several elements", atomicity_checks::several_elements),
    ("busy target", atomicity_checks::busy_target),
    ("locks that are free", synchronisation_checks::free_locks),
];

/// The time of a check of libfabric, which makes fewer rounds if they take longer.
const FABRIC_CHECK: Duration = Duration::from_secs(6);

/// The way in which a rank runs its checks.
pub struct RankOptions<'a> {
    /// libfompi.so
    pub fompi: &'a Path,
    /// MPI libraries; the first that can be opened is used
    pub libraries: &'a [PathBuf],
    /// the time after which a check counts as hanging
    pub limit: Duration,
    /// checks, or calls that make windows, that are left out
    pub skipped: &'a [String],
    /// the provider of libfabric that is checked
    pub libfabric: &'a str,
    /// whether `fompi selftest` reads the output of the job
    pub is_child: bool,
    /// writes the report, on rank 0
    pub write: fn(&JobReport),
}

/// Runs all checks as a rank of a job. Returns whether one failed, on rank 0, which has written the
/// report; false on other ranks, because a launcher that sees one fail may end rank 0 before it has
/// written. An error: the checks could not run.
pub fn run(options: &RankOptions) -> Result<bool, String> {
    hang_watch::start(options.limit, options.is_child);
    // The settings are those that the library has.
    let is_disabled = config::settings_with(Some(options.fompi)).config.disable;
    let mpi = OpenedMpi::open(Some(options.fompi), options.libraries)?;
    let report = JobReport {
        settings: settings(),
        version: mpi.fompi.clone(),
        abi: mpi.abi_name().into(),
        mpi: mpi.line.clone(),
        library: mpi.library.display().to_string(),
        ..JobReport::default()
    };
    let rank = JobRank::start(mpi)?;
    let report = JobReport { ranks: rank.world.ranks, nodes: rank.nodes, ..report };
    let is_first = rank.world.me == 0;
    hang_watch::identify(rank.world.me, is_first.then_some((report, options.write)));
    let mut measured = Vec::new();
    let wish = Wish { skipped: options.skipped, is_disabled };
    for flavour in TestedFlavour::ALL.into_iter().filter(|flavour| !wish.skips(flavour.name())) {
        check_flavour(&rank, flavour, &wish, &mut measured);
    }
    if !wish.skips(LIBFABRIC) {
        let seconds = FABRIC_CHECK.min(options.limit / 2);
        libfabric::run(&rank, options.libfabric, seconds, |name| wish.skips(name));
    }
    hang_watch::enter(CheckPlace { check: "end".into(), ..CheckPlace::default() });
    let failed = rank.finish();
    let Some(report) = hang_watch::finish() else { return Ok(false) };
    (options.write)(&report);
    Ok(failed)
}

/// What the user or the job before has asked for.
struct Wish<'a> {
    /// checks, or calls that make windows
    skipped: &'a [String],
    /// whether FOMPI_DISABLE passes all calls to the host MPI
    is_disabled: bool,
}

impl Wish<'_> {
    /// Whether a check or a call is left out.
    fn skips(&self, name: &str) -> bool {
        self.skipped.iter().any(|skipped| skipped == name)
    }
}

/// Makes a window, runs all checks on it, and measures on it if it has a new transport.
fn check_flavour(rank: &JobRank, flavour: TestedFlavour, wish: &Wish, measured: &mut Vec<String>) {
    let mut made = None;
    let place = |check: &str, transport: &str| CheckPlace {
        check: check.into(),
        window: flavour.name().into(),
        transport: transport.into(),
    };
    rank.check(place("creation", ""), || {
        made = TestedWindow::make(rank, flavour);
        let is_hosts = made.as_ref().is_some_and(TestedWindow::is_of_host_mpi);
        if is_hosts && !wish.is_disabled {
            let got = "one of the host MPI, for the reason that FOMPI_VERBOSE=1 prints";
            rank.fail(flavour.call(), "a window of libfompi", got);
        }
        None
    });
    // A creation fails on all ranks or on none.
    let Some(window) = made else { return };
    // libfompi has no part in a window of the host MPI.
    if wish.is_disabled || !window.is_of_host_mpi() {
        check_window(&window, wish, measured);
    }
    let transport = window.transport.clone();
    rank.check(place("free", &transport), || {
        window.free();
        None
    });
}

/// Runs the checks on a window.
fn check_window(window: &TestedWindow, wish: &Wish, measured: &mut Vec<String>) {
    let rank = window.rank;
    for (name, check) in CHECKS.into_iter().filter(|(name, _)| !wish.skips(name)) {
        rank.check(window.place(name), || check(window));
    }
    let is_of_world = window.ranks.comm == rank.world.comm;
    if is_of_world && rank.world.ranks > 1 && !measured.contains(&window.transport) {
        measured.push(window.transport.clone());
        rank.check(window.place("speed"), || speeds::measure(window));
    }
}

/// The variables of libfompi in the environment, without the one of fompirun.
fn settings() -> String {
    let own = |(name, _): &(String, String)| name.starts_with("FOMPI_") && name != "FOMPI_LIB";
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
    });
    let mut texts: Vec<_> =
        variables.filter(own).map(|(name, value)| format!("{name}={value}")).collect();
    texts.sort();
    texts.join(" ")
}
