//! The answer of `fompi selftest`: the reports of all jobs, as text and as JSON. Failures come
//! first, then the tables, then one line for an issue.

use fompi_selftest::LIBFABRIC;
use fompi_selftest::job_report::{CheckOutcome, CheckReport, FabricReport, JobReport, Speed};
use serde::Serialize;

/// The answer, as `--json` prints it.
#[derive(Serialize)]
pub struct TestSummary {
    /// the line for an issue
    line: String,
    passed: usize,
    /// number of checks that failed or hang, and of jobs that ended early
    pub failed: usize,
    /// transports that were tested
    transports: Vec<String>,
    /// transports that were not, with the reasons
    left_out: Vec<String>,
    jobs: Vec<JobReport>,
}

impl TestSummary {
    /// The summary of jobs; at least one has run.
    pub fn of(jobs: Vec<JobReport>, mut left_out: Vec<String>) -> TestSummary {
        let counts = jobs.iter().map(JobReport::counts);
        let (passed, failed) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let mut transports: Vec<String> = Vec::new();
        for check in jobs.iter().flat_map(|job| &job.checks) {
            let transport = &check.place.transport;
            if !transport.is_empty() && !transports.contains(transport) {
                transports.push(transport.clone());
            }
        }
        let hang = |job: &JobReport| {
            let last = job.checks.last().filter(|check| check.outcome == CheckOutcome::Hangs)?;
            let place = format!("{}, {}", last.place.window, last.place.check);
            Some(format!("checks behind the one that hangs ({place})"))
        };
        left_out.extend(jobs.iter().filter_map(hang));
        left_out.extend(jobs.iter().flat_map(|job| &job.left_out).cloned());
        let skipped = jobs.iter().flat_map(|job| &job.skipped);
        left_out.extend(skipped.map(|name| format!("more of `{name}`, which ended a job")));
        let mut summary =
            TestSummary { line: String::new(), passed, failed, transports, left_out, jobs };
        summary.line = summary.issue_line();
        summary
    }

    fn issue_line(&self) -> String {
        // A job that ended early says nothing of itself.
        let told = self.jobs.iter().find(|job| !job.version.is_empty());
        let Some(job) = told.or(self.jobs.first()) else { return String::new() };
        let transports = self.transports.join(", ");
        let (passed, failed) = (self.passed, self.failed);
        let nodes = self.jobs.iter().map(|job| job.nodes).max().unwrap_or(1);
        let (version, abi, mpi, ranks) = (&job.version, &job.abi, &job.mpi, job.ranks);
        let libfabric = self.jobs.iter().find_map(|job| job.libfabric.as_ref());
        let libfabric = libfabric.map_or_else(String::new, |found| {
            let FabricReport { version, provider, .. } = found;
            format!("; libfabric {version}: {provider}")
        });
        let mpi = mpi.split(',').next().unwrap_or_default();
        let mpi = mpi.split_whitespace().collect::<Vec<_>>().join(" ");
        format!(
            "fompi selftest: libfompi {version}; {abi}; {mpi}; {}; {ranks} ranks, nodes: {nodes}; \
             transports: {transports}{libfabric}; {passed} passed, {failed} failed",
            std::env::consts::ARCH
        )
    }

    /// The text.
    pub fn lines(&self) -> Vec<String> {
        let failures = self.jobs.iter().flat_map(|job| &job.failures);
        let mut lines: Vec<String> = failures.map(|failure| failure.line()).collect();
        let library = self.jobs.iter().map(|job| &job.library).find(|path| !path.is_empty());
        lines.extend(library.map(|path| format!("MPI: {path}")));
        for job in &self.jobs {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            let settings = match job.settings.as_str() {
                "" => "default settings",
                settings => settings,
            };
            lines.push(format!("{} ranks, nodes: {}, {settings}", job.ranks, job.nodes));
            lines.extend(table_of_checks(&job.checks));
            lines.push(String::new());
            lines.extend(table_of_speeds(&job.speeds));
            lines.extend(job.libfabric.iter().flat_map(|found| lines_of_libfabric(found, job)));
        }
        lines.push(String::new());
        lines.extend(self.left_out.iter().map(|why| format!("not tested: {why}")));
        lines.push(self.line.clone());
        lines
    }
}

/// Columns as wide as their widest cell.
fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|at| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max())
        .map(Option::unwrap_or_default)
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// The names of things in the order in which they come first.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// The checks on the windows that a call makes.
fn on<'a>(checks: &'a [CheckReport], window: &'a str) -> impl Iterator<Item = &'a CheckReport> {
    checks.iter().filter(move |check| check.place.window == window)
}

/// One row for each check, one column for each call that makes windows.
fn table_of_checks(checks: &[CheckReport]) -> Vec<String> {
    let windows = distinct(checks.iter().map(|check| check.place.window.as_str()));
    let is_window = |window: &&str| !["", LIBFABRIC].contains(window);
    let windows: Vec<&str> = windows.into_iter().filter(is_window).collect();
    let checks: Vec<CheckReport> =
        checks.iter().filter(|check| check.place.window != LIBFABRIC).cloned().collect();
    let checks = checks.as_slice();
    let names = distinct(checks.iter().map(|check| check.place.check.as_str()));
    let short =
        |name: &str| name.trim_start_matches("MPI_Win_").replace("create over MPI_", "create, ");
    let header = windows.iter().map(|window| short(window));
    let transports = windows.iter().map(|window| {
        let transport = on(checks, window).map(|check| check.place.transport.as_str());
        short_transport(transport.last().unwrap_or_default())
    });
    let mut rows: Vec<Vec<String>> = vec![
        ["window"].map(String::from).into_iter().chain(header).collect(),
        ["transport"].map(String::from).into_iter().chain(transports).collect(),
    ];
    for name in names.into_iter().filter(|name| *name != "end") {
        let cells = windows.iter().map(|window| {
            let found = on(checks, window).find(|check| check.place.check == name);
            found.map_or("", |check| shown(&check.outcome)).to_owned()
        });
        rows.push([name.to_owned()].into_iter().chain(cells).collect());
    }
    aligned(&rows)
}

/// The attributes of a provider, and one row for each check of it.
fn lines_of_libfabric(found: &FabricReport, job: &JobReport) -> Vec<String> {
    let FabricReport { version, provider, provider_version, domain, .. } = found;
    let FabricReport { library, mr_mode, msg_order, data_progress, .. } = found;
    let FabricReport { max_msg_size, max_order_waw_size, inject_size, .. } = found;
    let FabricReport { mr_key_size, mr_cnt, .. } = found;
    let mut lines = vec![
        String::new(),
        format!("libfabric {version} ({library}), no window uses it"),
        format!("provider {provider} {provider_version}, domain {domain}, {data_progress}"),
        format!("mr_mode: {mr_mode}; mr_key_size {mr_key_size}, mr_cnt {mr_cnt}"),
        format!("msg_order: {msg_order}; max_order_waw_size {max_order_waw_size}"),
        format!("max_msg_size {max_msg_size}, inject_size {inject_size}"),
    ];
    let row = |check: &CheckReport| {
        let detail = match &check.outcome {
            CheckOutcome::LeftOut(why) => why,
            _ => &check.detail,
        };
        vec![shown(&check.outcome).to_owned(), check.place.check.clone(), detail.clone()]
    };
    lines.extend(aligned(&on(&job.checks, LIBFABRIC).map(row).collect::<Vec<_>>()));
    lines
}

/// The name of a transport in a table.
fn short_transport(name: &str) -> String {
    name.trim_end_matches(" between nodes").to_owned()
}

fn shown(outcome: &CheckOutcome) -> &'static str {
    match outcome {
        CheckOutcome::Passed => "passed",
        CheckOutcome::Failed => "FAILED",
        CheckOutcome::Hangs => "HANGS",
        CheckOutcome::Observed => "observed",
        CheckOutcome::LeftOut(_) => "-",
    }
}

/// One row for each operation: times in microseconds, and the bandwidth of large ones.
fn table_of_speeds(speeds: &[Speed]) -> Vec<String> {
    let titles =
        ["transport", "operation", "bytes", "least us", "median us", "most MB/s", "median MB/s"];
    let mut rows = vec![titles.map(String::from).to_vec()];
    for speed in speeds {
        let rate = |seconds: f64| match speed.bytes {
            0..4096 => String::new(),
            #[expect(clippy::cast_precision_loss, reason = "a size of few megabytes")]
            bytes => format!("{:.0}", bytes as f64 / seconds / 1e6),
        };
        rows.push(vec![
            short_transport(&speed.transport),
            speed.operation.clone(),
            if speed.bytes == 0 { String::new() } else { speed.bytes.to_string() },
            format!("{:.3}", speed.least * 1e6),
            format!("{:.3}", speed.median * 1e6),
            rate(speed.least),
            rate(speed.median),
        ]);
    }
    if speeds.is_empty() { Vec::new() } else { aligned(&rows) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fompi_selftest::job_report::{CallFailure, CheckPlace};

    fn place(check: &str, window: &str) -> CheckPlace {
        CheckPlace { check: check.into(), window: window.into(), transport: "process_vm".into() }
    }

    fn job() -> JobReport {
        let report = |check, outcome| CheckReport {
            place: place(check, "MPI_Win_create"),
            outcome,
            detail: String::new(),
        };
        let failure = CallFailure {
            rank: 2,
            place: place("fence", "MPI_Win_create"),
            call: "MPI_Put".into(),
            expected: "7".into(),
            got: "0".into(),
            hangs: false,
        };
        JobReport {
            version: "1.2.3".into(),
            ranks: 4,
            nodes: 1,
            checks: vec![
                report("fence", CheckOutcome::Failed),
                report("lock", CheckOutcome::Passed),
                report("large counts", CheckOutcome::LeftOut("none".into())),
            ],
            failures: vec![failure],
            ..JobReport::default()
        }
    }

    #[test]
    fn the_first_line_names_a_failure_and_the_last_one_counts() {
        let summary = TestSummary::of(vec![job()], vec!["RDMA: no device".into()]);
        let lines = summary.lines();
        assert_eq!(summary.transports, ["process_vm"]);
        assert!(lines[0].starts_with("FAILED: MPI_Put on rank 2: expected 7, got 0"), "{lines:?}");
        assert!(lines.last().is_some_and(|line| line.ends_with("1 passed, 1 failed")), "{lines:?}");
        assert!(lines.contains(&"not tested: RDMA: no device".into()), "{lines:?}");
        assert!(lines.iter().any(|line| line.split_whitespace().eq(["fence", "FAILED"])));
    }
}
