//! `fompi explain`: when an error or a warning occurs, and its remedy.

use crate::command_line::ExplainOptions;
use crate::output::{print_json, print_lines};
use fompi_base::messages::{self, Explanation};
use serde::Serialize;
use std::process::ExitCode;

/// The answer, as `--json` prints it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Explained {
    code: &'static str,
    /// the MPI error class, if it is the same each time
    class: Option<&'static str>,
    /// the text, with placeholders for values
    text: &'static str,
    when: &'static str,
    remedy: &'static str,
}

/// Prints the explanation of a message. Status 2: there is no such code.
pub fn print(options: &ExplainOptions) -> ExitCode {
    let Some(explained) = explained(&options.code) else {
        eprintln!(
            "fompi: no message has the code {}; codes are FOMPI-E001 and so on, for errors, and \
             FOMPI-W001 and so on, for warnings",
            options.code
        );
        return ExitCode::from(2);
    };
    if options.json { print_json(&explained) } else { print_lines(&explained.lines()) }
}

/// Returns the explanation of a code, in small or large letters, with or without `FOMPI-` and
/// brackets.
fn explained(code: &str) -> Option<Explained> {
    let code = code.trim_matches(['[', ']']).to_uppercase();
    let code = code.strip_prefix("FOMPI-").unwrap_or(&code);
    let is_it = |entry: &&Explanation| entry.message.code.strip_prefix("FOMPI-") == Some(code);
    let Explanation { message, when, remedy } = messages::all().into_iter().find(is_it)?;
    let class = message.class.map(|class| class.name());
    Some(Explained { code: message.code, class, text: message.text, when, remedy })
}

impl Explained {
    fn lines(&self) -> Vec<String> {
        let Explained { code, class, text, when, remedy } = self;
        let class = class.map(|class| format!("    class: {class}"));
        let texts = [format!("{code}: {text}"), format!("    when: {when}")];
        texts.into_iter().chain(class).chain([format!("    remedy: {remedy}")]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_as_users_type_it() {
        let first = explained("FOMPI-E001").unwrap();
        assert_eq!(first.class, Some("MPI_ERR_RANK"));
        for code in ["fompi-e001", "[FOMPI-E001]", "E001", "e001"] {
            assert_eq!(explained(code).as_ref(), Some(&first), "{code}");
        }
        for code in ["", "FOMPI-", "FOMPI-E", "E1", "FOMPI-E0011", "FOMPI-X001"] {
            assert_eq!(explained(code), None, "{code}");
        }
    }

    #[test]
    fn each_message_is_explained() {
        for entry in messages::all() {
            let lines = explained(entry.message.code).unwrap().lines();
            let classes = usize::from(entry.message.class.is_some());
            assert_eq!(lines.len(), 3 + classes, "{lines:?}");
            assert!(lines[0].starts_with(&format!("{}: ", entry.message.code)));
        }
    }
}
