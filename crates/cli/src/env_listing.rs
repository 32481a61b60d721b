//! `fompi env`: the FOMPI_ variables with their types, defaults and meanings, the values in force,
//! and where these come from.

use crate::command_line::EnvOptions;
use crate::found_library::find_library;
use crate::output::{print_json, print_lines};
use fompi_base::config::{self, Applied, GivenValue, ValueSource};
use fompi_base::messages::Line;
use fompi_base::variables::{VARIABLES, Variable};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The answer, as `--json` prints it.
#[derive(Serialize)]
struct Listing<'a> {
    /// the library whose installation's file is read
    library: Option<&'a Path>,
    /// the configuration files, in the order in which they are read
    files: Vec<ListedFile>,
    variables: Vec<ListedVariable<'a>>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct ListedFile {
    path: PathBuf,
    exists: bool,
}

#[derive(Serialize)]
struct ListedVariable<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    values: &'a str,
    default: &'a str,
    /// whether all ranks of a job have to agree on it
    common: bool,
    meanings: Vec<Meaning<'a>>,
    value: &'a str,
    source: ListedSource<'a>,
}

#[derive(Serialize)]
struct Meaning<'a> {
    value: &'a str,
    meaning: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum ListedSource<'a> {
    Default,
    Environment,
    File { path: &'a Path, line: usize },
}

/// Prints the variables as the library would read them here.
pub fn print(options: &EnvOptions) -> ExitCode {
    let library = find_library().ok();
    let applied = config::settings_with(library.as_deref());
    if options.json {
        let listing = Listing {
            library: library.as_deref(),
            files: files(library.as_deref()),
            variables: VARIABLES.iter().map(|variable| listed(variable, &applied)).collect(),
            warnings: applied.warnings.iter().map(Line::to_string).collect(),
        };
        return print_json(&listing);
    }
    let mut lines: Vec<String> =
        VARIABLES.iter().map(|variable| text(variable, &applied)).collect();
    for file in files(library.as_deref()) {
        let state = if file.exists { "read" } else { "absent" };
        lines.push(format!("file: {} ({state})", file.path.display()));
    }
    applied.warnings.iter().for_each(Line::print);
    print_lines(&lines)
}

fn files(library: Option<&Path>) -> Vec<ListedFile> {
    let paths = config::files(library).into_iter();
    paths.map(|path| ListedFile { exists: path.exists(), path }).collect()
}

fn given<'a>(variable: &Variable, applied: &'a Applied) -> Option<&'a GivenValue> {
    applied.in_force.iter().find(|given| given.name == variable.name)
}

fn listed<'a>(variable: &'a Variable, applied: &'a Applied) -> ListedVariable<'a> {
    let given = given(variable, applied);
    let meaning = |(value, meaning): &(&'a str, &'a str)| Meaning { value, meaning };
    ListedVariable {
        name: variable.name,
        values: variable.values,
        default: variable.default.text(),
        common: variable.is_common,
        meanings: variable.meanings.iter().map(meaning).collect(),
        value: given.map_or(variable.default.text(), |given| &given.value),
        source: match given.map(|given| &given.source) {
            None => ListedSource::Default,
            Some(ValueSource::Environment) => ListedSource::Environment,
            Some(ValueSource::File(path, line)) => ListedSource::File { path, line: *line },
        },
    }
}

/// The lines about a variable: its value and where that comes from, its type, and its meanings.
fn text(variable: &Variable, applied: &Applied) -> String {
    let (name, default) = (variable.name, variable.default.text());
    let mut lines = vec![match given(variable, applied) {
        None => format!("{name}: {default} (default)"),
        Some(given) => format!("{name}={} (from {})", given.value, given.source),
    }];
    let common = if variable.is_common { "; the same on all ranks" } else { "" };
    lines.push(format!("    {}; default: {default}{common}", variable.values));
    let meanings = variable.meanings.iter();
    lines.extend(meanings.map(|(value, meaning)| format!("    {value}: {meaning}")));
    lines.join("\n")
}
