//! The jobs that `fompi selftest` starts by itself: one for each transport that this machine has,
//! by settings that select it.

use super::test_summary::TestSummary;
use crate::command_line::SelftestOptions;
use fompi_fabric::net::why_no_device;
use fompi_selftest::job_report::{CallFailure, CheckOutcome, CheckPlace, CheckReport, JobReport};
use fompi_selftest::{AT, HANGS, LIBFABRIC};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Settings of a job.
type Settings = &'static [(&'static str, &'static str)];

/// The settings that keep memory of malloc from becoming shared memory.
const PROCESS_VM: Settings = &[("FOMPI_ADOPT", "never")];
/// Two nodes on this machine, with TCP and with RDMA between them.
const TCP: Settings = &[("FOMPI_RANKS_PER_NODE", "2"), ("FOMPI_NET", "tcp")];
const RDMA: Settings = &[("FOMPI_RANKS_PER_NODE", "2"), ("FOMPI_NET", "verbs")];

/// Launchers of Open MPI start more ranks than there are cores if this is set: 4 and 5.
const MORE_RANKS_THAN_CORES: [(&str, &str); 2] = [
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
];

/// The time that a job has in addition to the limit of a check.
const JOB: Duration = Duration::from_secs(180);

/// The most jobs that begin again, without the check that has ended the one before.
const RESTARTS_MAX: usize = 3;

/// Runs a job for each transport. An error: the first job did not begin.
pub fn run_all(options: &SelftestOptions) -> Result<TestSummary, String> {
    let mut jobs = vec![run(options, &[])?];
    let (mut settings, mut left_out) = (Vec::new(), Vec::new());
    let is_adopted = |check: &CheckReport| {
        check.place.window == "MPI_Win_create" && check.place.transport == "shared memory"
    };
    if jobs[0].checks.iter().any(is_adopted) {
        settings.push(PROCESS_VM);
    }
    if options.ranks > 2 {
        settings.push(TCP);
        match why_no_device() {
            None => settings.push(RDMA),
            Some(why) => left_out.push(format!("RDMA: {why}")),
        }
    } else {
        left_out.push("transports between nodes: three ranks are needed".into());
    }
    for settings in settings {
        jobs.push(run(options, settings)?);
    }
    Ok(TestSummary::of(jobs, left_out))
}

/// Runs a job. One that ends early begins again without the check that has ended it, or without
/// the window, if that cannot be made, measured or freed.
fn run(options: &SelftestOptions, settings: Settings) -> Result<JobReport, String> {
    let mut report = run_without(options, settings, &[])?;
    let mut skipped = Vec::new();
    while skipped.len() < RESTARTS_MAX
        && let Some(stopped) = stopped_in(&report)
    {
        let CheckPlace { check, window, .. } = &stopped.place;
        let is_of_window = ["creation", "speed", "free"].contains(&check.as_str());
        skipped.push(if is_of_window { window.clone() } else { check.clone() });
        let Ok(mut again) = run_without(options, settings, &skipped) else { break };
        // The check that has stopped this job, too, is the last one.
        again.checks.splice(0..0, [stopped]);
        again.failures.splice(0..0, report.failures);
        again.skipped = skipped.clone();
        report = again;
    }
    Ok(report)
}

/// The check in which a job ended early, by a call that hangs or by its end.
fn stopped_in(report: &JobReport) -> Option<CheckReport> {
    let last = report.checks.last()?;
    let is_early = last.outcome == CheckOutcome::Hangs || report.version.is_empty();
    (is_early && !last.place.window.is_empty()).then(|| last.clone())
}

fn run_without(
    options: &SelftestOptions,
    settings: Settings,
    skipped: &[String],
) -> Result<JobReport, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(&own);
    command.arg("run");
    if let Some(mpi) = &options.mpi {
        command.arg("--mpi").arg(mpi);
    }
    command.arg("-n").arg(options.ranks.to_string()).arg(&own);
    command.args(["selftest", "--child", "--limit", &options.limit.to_string()]);
    if let Some(library) = &options.library {
        command.arg("--library").arg(library);
    }
    if settings == TCP {
        command.arg("--libfabric").arg(&options.libfabric);
    } else {
        command.arg("--skip").arg(LIBFABRIC);
    }
    for name in skipped {
        command.arg("--skip").arg(name);
    }
    command.envs(settings.iter().copied());
    for (name, value) in MORE_RANKS_THAN_CORES {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    let job = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let job = job.map_err(|error| format!("{}: {error}", own.display()))?;
    let (status, said) = finish(job, JOB + Duration::from_secs(options.limit))?;
    report_of(&said, &status, settings)
}

/// What a job says: its report, the place of its last check, and the calls that hang.
#[derive(Default)]
struct Said {
    report: Option<JobReport>,
    last: Option<CheckPlace>,
    hangs: Vec<CallFailure>,
}

/// Waits for a job, and ends it after a time. Passes on what is not meant for this program.
fn finish(mut job: Child, time: Duration) -> Result<(String, Said), String> {
    let (output, errors) = (job.stdout.take(), job.stderr.take());
    let reports = thread::spawn(move || {
        let mut text = Vec::new();
        _ = output.map(|mut output| output.read_to_end(&mut text));
        let text = String::from_utf8_lossy(&text).into_owned();
        text.lines().rev().find_map(|line| serde_json::from_str(line).ok())
    });
    let places = thread::spawn(move || {
        let mut said = Said::default();
        let lines = errors.into_iter().flat_map(|errors| BufReader::new(errors).lines());
        for line in lines.map_while(Result::ok) {
            let part = |start: &str| line.split_once(start).map(|(_, rest)| rest.to_owned());
            if let Some(place) = part(AT).and_then(|text| serde_json::from_str(&text).ok()) {
                said.last = Some(place);
            } else if let Some(call) = part(HANGS).and_then(|text| serde_json::from_str(&text).ok())
            {
                said.hangs.push(call);
            } else {
                eprintln!("{line}");
            }
        }
        said
    });
    let start = Instant::now();
    let status = loop {
        match job.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status.to_string(),
            None if start.elapsed() > time => {
                // A launcher ends its ranks at this signal; one that does not is ended itself.
                _ = kill_process(Pid::from_child(&job), Signal::TERM);
                thread::sleep(Duration::from_secs(5));
                _ = job.kill();
                _ = job.wait();
                break format!("no end in {} s", time.as_secs());
            }
            None => thread::sleep(Duration::from_millis(20)),
        }
    };
    let report = reports.join().unwrap_or_default();
    Ok((status, Said { report, ..places.join().unwrap_or_default() }))
}

/// The report of a job, with the calls that hang, or with the check in which the job ended early.
fn report_of(said: &Said, status: &str, settings: Settings) -> Result<JobReport, String> {
    let mut report = match (&said.report, &said.last) {
        (Some(report), _) => report.clone(),
        (None, Some(place)) => {
            let failure = CallFailure {
                rank: 0,
                place: place.clone(),
                call: "the job".into(),
                expected: "a report".into(),
                got: status.into(),
                hangs: false,
            };
            let check = CheckReport {
                place: place.clone(),
                outcome: CheckOutcome::Failed,
                detail: String::new(),
            };
            let (checks, failures) = (vec![check], vec![failure]);
            let texts = settings.iter().map(|(name, value)| format!("{name}={value}"));
            let settings = texts.collect::<Vec<_>>().join(" ");
            JobReport { settings, checks, failures, ..JobReport::default() }
        }
        (None, None) if said.hangs.is_empty() => {
            return Err(format!("the job did not begin ({status})"));
        }
        (None, None) => JobReport::default(),
    };
    let others = said.hangs.iter().filter(|hang| !report.failures.contains(hang)).cloned();
    report.failures = others.chain(report.failures.iter().cloned()).collect();
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_without_a_report_failed_in_its_last_check() {
        let place = CheckPlace { check: "fence".into(), ..CheckPlace::default() };
        let said = Said { last: Some(place), ..Said::default() };
        let report = report_of(&said, "exit status: 139", TCP).unwrap();
        assert_eq!(report.counts(), (0, 1));
        let line = report.failures[0].line();
        assert!(line.contains("got exit status: 139 (check fence)"), "{line}");
        assert_eq!(report.settings, "FOMPI_RANKS_PER_NODE=2 FOMPI_NET=tcp");
    }

    #[test]
    fn a_job_that_says_nothing_did_not_begin() {
        assert!(report_of(&Said::default(), "exit status: 1", &[]).is_err());
    }
}
