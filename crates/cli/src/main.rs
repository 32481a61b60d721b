//! The program `fompi`.

use std::process::ExitCode;

fn main() -> ExitCode {
    fompi_cli::fompi()
}
