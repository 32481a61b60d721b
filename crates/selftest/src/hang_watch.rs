//! Thread that ends this process if a check takes too long, and names the call that hangs. A rank
//! that only waits for the other ranks between checks names nothing. Rank 0 writes the report as
//! far as it goes, and the others wait for that.

use crate::job_report::{CallFailure, CheckOutcome, CheckPlace, CheckReport, JobReport, name_of};
use fompi_base::sync::Mutex;
use serde::Serialize;
use std::io::{Write, stderr};
use std::thread;
use std::time::{Duration, Instant};

/// The beginning of a line of standard error that has a failure as JSON.
pub const HANGS: &str = "fompi-selftest-hangs ";
/// The beginning of a line of standard error that has the check that begins.
pub const AT: &str = "fompi-selftest-at ";
/// The time that rank 0 has for its report, before other ranks end and the launcher ends rank 0.
const REPORT: Duration = Duration::from_secs(2);

/// A report, and the function that writes it.
pub type OpenReport = (JobReport, fn(&JobReport));

/// The check that runs.
struct Running {
    place: CheckPlace,
    /// the call of the check; `None` while the rank waits for others between checks
    call: Option<&'static str>,
    since: Instant,
    rank: i32,
    /// the report so far; on rank 0 only
    report: Option<OpenReport>,
    /// whether a failure is written as JSON
    is_child: bool,
}

static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

fn change(change: impl FnOnce(&mut Running)) {
    if let Some(running) = RUNNING.lock().as_mut() {
        change(running);
    }
}

/// Starts the thread, in a process that has not called MPI.
pub fn start(limit: Duration, is_child: bool) {
    let place = CheckPlace { check: "start".into(), ..CheckPlace::default() };
    let (since, call) = (Instant::now(), Some("init"));
    *RUNNING.lock() = Some(Running { place, call, since, rank: -1, report: None, is_child });
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_millis(100));
            let mut running = RUNNING.lock();
            let Some(running) = running.as_mut() else { continue };
            if running.since.elapsed() > limit {
                end(running, limit);
            }
        }
    });
}

/// Sets the rank of this process, and on rank 0 the report and the function that writes it.
pub fn identify(rank: i32, report: Option<OpenReport>) {
    change(|running| (running.rank, running.report) = (rank, report));
}

/// Notes the check that begins.
pub fn enter(place: CheckPlace) {
    change(|running| {
        if running.is_child && running.report.is_some() {
            write_json(AT, &place);
        }
        (running.place, running.call, running.since) = (place, None, Instant::now());
    });
}

/// Notes the call of the check that begins; `None` between checks.
pub fn calls(call: Option<&'static str>) {
    change(|running| running.call = call);
}

/// Changes the report, if this is rank 0.
pub fn report(add: impl FnOnce(&mut JobReport)) {
    change(|running| {
        if let Some((report, _)) = &mut running.report {
            add(report);
        }
    });
}

/// Returns the report, if this is rank 0, and watches no more.
pub fn finish() -> Option<JobReport> {
    RUNNING.lock().take()?.report.map(|(report, _)| report)
}

/// Writes a line for `fompi selftest`, which has started this job.
fn write_json(start: &str, value: &impl Serialize) {
    write_line(&format!("{start}{}\n", serde_json::to_string(value).unwrap_or_default()));
}

/// In one piece, so that lines of ranks do not mix.
fn write_line(line: &str) {
    _ = stderr().write_all(line.as_bytes());
}

/// Names the call that hangs, and ends the process.
fn end(running: &mut Running, limit: Duration) -> ! {
    let own = running.call.map(|call| {
        let failure = CallFailure {
            rank: running.rank,
            place: running.place.clone(),
            call: name_of(call),
            expected: "an end of the call".into(),
            got: format!("none in {} s", limit.as_secs()),
            hangs: true,
        };
        match running.is_child {
            true => write_json(HANGS, &failure),
            false => write_line(&format!("fompi selftest: {}\n", failure.line())),
        }
        failure
    });
    match &mut running.report {
        Some((report, write)) => {
            thread::sleep(REPORT / 2); // other ranks name their calls first
            report.failures.extend(own);
            let place = running.place.clone();
            report.checks.push(CheckReport {
                place,
                outcome: CheckOutcome::Hangs,
                detail: String::new(),
            });
            write(report);
        }
        None => thread::sleep(REPORT),
    }
    // SAFETY: nothing runs after it. Handlers of `exit` could wait for the call that hangs.
    unsafe { libc::_exit(1) }
}
