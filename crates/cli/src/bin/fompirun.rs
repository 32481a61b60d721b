//! The program `fompirun`, which is `fompi run`.

use std::process::ExitCode;

fn main() -> ExitCode {
    fompi_cli::fompirun()
}
