//! Answers on standard output, as lines or as JSON.

use serde::Serialize;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// Prints lines. A reader that has closed the pipe has read enough.
pub fn print_lines(lines: &[String]) -> ExitCode {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("fompi: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Prints an answer as JSON.
pub fn print_json(answer: &impl Serialize) -> ExitCode {
    match serde_json::to_string_pretty(answer) {
        Ok(text) => print_lines(&[text]),
        Err(error) => {
            eprintln!("fompi: {error}");
            ExitCode::FAILURE
        }
    }
}
