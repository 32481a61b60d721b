//! The command lines of `fompi` and `fompirun`. Help texts, manual pages and completions come from
//! these types.

use clap::{Args, Parser, Subcommand, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

/// Run MPI programs on libfompi
#[derive(Parser)]
#[command(name = "fompi", version, disable_help_subcommand = true)]
pub struct Fompi {
    /// the subcommand
    #[command(subcommand)]
    pub action: Action,
}

/// The subcommands.
#[derive(Subcommand)]
pub enum Action {
    /// Start mpirun with libfompi preloaded into the ranks
    #[command(disable_help_flag = true, override_usage = RUN_USAGE, after_help = RUN_MORE)]
    Run(RunOptions),
    /// Print the FOMPI_ variables, their values here and where these come from
    Env(EnvOptions),
    /// Print the MPI and the layer that a program gets, and what this machine has for windows
    Info(InfoOptions),
    /// Print what keeps libfompi from working here, or from working fast, with remedies
    Doctor(DoctorOptions),
    /// Test libfompi on this machine with its MPI, and print what passed and how fast
    Selftest(SelftestOptions),
    /// Print when an error or a warning occurs, and its remedy
    Explain(ExplainOptions),
    /// Write manual pages and completions of shells below FOLDER, the `share` of an installation
    #[command(hide = true)]
    Pages {
        /// the folder
        folder: PathBuf,
    },
}

/// The options of `fompi env`.
#[derive(Args)]
pub struct EnvOptions {
    /// Print JSON (docs/reference/fompi.md)
    #[arg(long)]
    pub json: bool,
}

/// The options of `fompi info`.
#[derive(Args)]
pub struct InfoOptions {
    /// A program, a Python or a script of it, or a launcher such as mpirun
    #[arg(value_hint = ValueHint::CommandName)]
    pub program: Option<PathBuf>,
    /// Print JSON (docs/reference/fompi.md)
    #[arg(long)]
    pub json: bool,
    /// This program has started itself as a rank, with the library preloaded. The value: whether
    /// that was so before
    #[arg(long, hide = true, value_name = "PRELOADED")]
    pub rank: Option<bool>,
}

/// The options of `fompi doctor`.
#[derive(Args)]
pub struct DoctorOptions {
    /// A program, a Python or a script of it, whose MPI and launcher are checked, too
    #[arg(value_hint = ValueHint::CommandName)]
    pub program: Option<PathBuf>,
    /// Print JSON (docs/reference/fompi.md)
    #[arg(long)]
    pub json: bool,
}

/// The options of `fompi selftest`.
#[derive(Args)]
pub struct SelftestOptions {
    /// Number of ranks of each job that it starts
    #[arg(short = 'n', value_name = "RANKS", default_value_t = 4)]
    pub ranks: u32,
    /// Start jobs by this launcher, as fompi run does
    #[arg(long, value_name = "NAME|PATH")]
    pub mpi: Option<OsString>,
    /// Use this MPI library in place of the one that belongs to the launcher
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub library: Option<PathBuf>,
    /// Check this provider of libfabric between two nodes, which no window uses
    #[arg(long, value_name = "PROVIDER", default_value = "cxi")]
    pub libfabric: String,
    /// Time after which a check counts as hanging
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub limit: u64,
    /// Print JSON (docs/reference/fompi.md)
    #[arg(long)]
    pub json: bool,
    /// Leave out a check, or all checks of the windows of a call
    #[arg(long, hide = true, value_name = "NAME")]
    pub skip: Vec<String>,
    /// Run as a rank of a job that this program has started
    #[arg(long, hide = true)]
    pub child: bool,
}

/// The options of `fompi explain`.
#[derive(Args)]
pub struct ExplainOptions {
    /// The code at the end of the line, such as FOMPI-E042
    pub code: String,
    /// Print JSON (docs/reference/fompi.md)
    #[arg(long)]
    pub json: bool,
}

/// The usage of `fompirun`.
pub const RUN_USAGE: &str = "\
fompirun [--mpi NAME|PATH] [--mpi-next] [arguments of mpirun] program [arguments]
       fompirun --check program";

const RUN_HELP: &str = "\
usage: {usage}

Starts `mpirun` with libfompi.so preloaded into the ranks only, so that their one-sided MPI calls
run on libfompi. All other arguments and the exit status are mpirun's.

{options}{after-help}
";

const RUN_MORE: &str = "\
These options come first. Names for --mpi are mpich and openmpi on Debian; a path may also be that
of a folder with a launcher, or with one in its bin.

Without --mpi, the mpirun (or mpiexec) in the folder of fompirun is used, unless that is /usr/bin;
then the one in the folder of the Python that is started; then the first one in PATH. If the program
is linked with another MPI, the launcher of that MPI is used, if it is found; so is that of the MPI
that mpi4py takes in the Python that is started, in place of the first one in PATH.

FOMPI_LIB: the library to preload. Without it: libfompi.so in the folder of fompirun, or in ../lib,
../lib64 or ../lib/<multiarch>, relative to that folder.

FOMPI_*: reach the ranks; see `fompi env`.

LD_PRELOAD: its present libraries (profilers, checkers) stay in front of libfompi.

For a program that was built with AddressSanitizer, its libasan is preloaded first.";

/// The options of `fompirun`, which stand in front of those of the launcher.
#[derive(Args)]
pub struct RunOptions {
    /// Use mpirun.NAME or mpiexec.NAME from PATH, or the launcher at this path
    #[arg(long, value_name = "NAME|PATH", allow_hyphen_values = true)]
    pub mpi: Option<OsString>,
    /// Preload libfompi_next.so, too: notified operations by the proposal's names
    #[arg(long)]
    pub mpi_next: bool,
    /// Print the command instead of running it
    #[arg(long)]
    pub print: bool,
    /// Print the layer that serves a program by itself; status 1 if not libfompi
    #[arg(long, value_name = "PROGRAM", allow_hyphen_values = true)]
    pub check: Option<PathBuf>,
    /// Print the version of libfompi, and of the launcher
    #[arg(long, short = 'V')]
    pub version: bool,
    /// Print this text
    #[arg(long, short)]
    pub help: bool,
    /// The arguments of mpirun, with the program
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS OF MPIRUN",
        value_hint = ValueHint::CommandWithArguments
    )]
    pub words: Vec<OsString>,
}

/// The command line of `fompirun`.
#[derive(Parser)]
#[command(
    name = "fompirun",
    about = "Start mpirun with libfompi preloaded into the ranks",
    override_usage = RUN_USAGE,
    help_template = RUN_HELP,
    after_help = RUN_MORE,
    disable_help_flag = true,
    args_override_self = true,
    no_binary_name = true
)]
pub struct Fompirun {
    /// the options
    #[command(flatten)]
    pub options: RunOptions,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        Fompi::command().debug_assert();
        Fompirun::command().debug_assert();
    }

    #[test]
    fn lines_of_the_help_fit_on_a_screen() {
        let help = Fompirun::command().render_help().to_string();
        assert!(help.lines().all(|line| line.len() <= 100), "{help}");
    }
}
