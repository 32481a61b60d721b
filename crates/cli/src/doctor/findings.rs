//! What a check of `fompi doctor` finds, and the files that it reads.

use crate::output::{print_json, print_lines};
use fompi_base::error::kept;
use serde::{Deserialize, Deserializer, Serialize};
use std::path::PathBuf;
use std::process::ExitCode;

/// The severity of a finding, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// programs fail, or run without libfompi
    Error,
    /// a transport or a kind of memory cannot be used
    Warning,
    /// it depends on the job whether this matters
    Note,
}

/// A problem of this machine, program or job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub severity: Severity,
    /// the name of the check, which does not change between versions
    #[serde(deserialize_with = "kept_text")]
    pub check: Text,
    /// what is wrong, with the value and the limit
    pub problem: String,
    /// what to do
    pub remedy: String,
    /// the page that explains it
    #[serde(deserialize_with = "kept_text")]
    pub page: Text,
}

/// A text of this program, or of another rank.
type Text = &'static str;

fn kept_text<'de, D: Deserializer<'de>>(from: D) -> Result<Text, D::Error> {
    String::deserialize(from).map(kept)
}

impl Finding {
    /// The lines about it.
    pub fn lines(&self) -> [String; 3] {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        [
            format!("{severity}: {}: {}", self.check, self.problem),
            format!("    remedy: {}", self.remedy),
            format!("    see: {}", self.page),
        ]
    }
}

/// All findings, as `--json` prints them.
#[derive(Serialize)]
pub struct Report {
    pub findings: Vec<Finding>,
    /// the nodes of the job, if this process is a rank of one
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
}

impl Report {
    /// Prints the findings, the worst first. Status 1: an error or a warning.
    pub fn print(mut self, json: bool) -> ExitCode {
        self.findings.sort_by_key(|finding| finding.severity);
        let is_well = self.findings.iter().all(|finding| finding.severity == Severity::Note);
        let printed = if json { print_json(&self) } else { print_lines(&self.lines()) };
        if is_well { printed } else { ExitCode::FAILURE }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.findings.iter().flat_map(Finding::lines).collect();
        let on = match self.nodes.as_slice() {
            [] => String::new(),
            nodes => format!(" on {}", nodes.join(", ")),
        };
        lines.push(match self.findings.len() {
            0 => format!("no problem found{on}"),
            1 => format!("1 finding{on}"),
            count => format!("{count} findings{on}"),
        });
        lines
    }
}

/// The root of the files that the checks read: `/`, or a folder of a test.
#[derive(Clone, Debug)]
pub struct FileRoot(pub PathBuf);

impl FileRoot {
    /// Returns the path of a file, which is given without the leading slash.
    pub fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    /// Returns the text of a file without blanks around it; empty if it cannot be read.
    pub fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).unwrap_or_default().trim().to_owned()
    }

    /// Whether there are device files of RDMA adapters.
    pub fn has_device_files(&self) -> bool {
        self.names("dev/infiniband").iter().any(|name| name.starts_with("uverbs"))
    }

    /// Returns the names in a folder, sorted; none if it cannot be read.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

/// A folder with files for a test, removed at the end.
#[cfg(test)]
pub struct TestRoot(PathBuf);

#[cfg(test)]
impl TestRoot {
    pub fn new(name: &str, files: &[(&str, &str)]) -> TestRoot {
        let folder = format!("fompi-doctor-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        for (file, text) in files {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        TestRoot(folder)
    }

    pub fn root(&self) -> FileRoot {
        FileRoot(self.0.clone())
    }
}

#[cfg(test)]
impl Drop for TestRoot {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
