//! The programs `fompi` and `fompirun`: they start programs on libfompi, and show its settings.

#![cfg(not(loom))]
#![forbid(unsafe_code)]

mod command_line;
mod doctor;
mod env_listing;
mod explanation;
mod fast_network;
mod found_library;
mod info;
mod launched_job;
mod manual_pages;
mod output;
mod python_module;
mod run;
mod searched_path;
mod selftest;
mod suggestions;

use clap::Parser;
use command_line::{Action, Fompi};
use std::process::ExitCode;

/// Runs `fompi` with the arguments of this process.
pub fn fompi() -> ExitCode {
    // The words behind `run` are mostly those of another program.
    if std::env::args_os().nth(1).is_some_and(|word| word == "run") {
        return run::start(std::env::args_os().skip(2).collect());
    }
    match Fompi::parse().action {
        Action::Run(_) => run::start(Vec::new()),
        Action::Env(options) => env_listing::print(&options),
        Action::Info(options) => info::print(&options),
        Action::Doctor(options) => doctor::print(&options),
        Action::Selftest(options) => selftest::start(&options),
        Action::Explain(options) => explanation::print(&options),
        Action::Pages { folder } => match manual_pages::write_below(&folder) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("fompi: {}: {error}", folder.display());
                ExitCode::FAILURE
            }
        },
    }
}

/// Runs `fompirun` with the arguments of this process.
pub fn fompirun() -> ExitCode {
    run::start(std::env::args_os().skip(1).collect())
}
