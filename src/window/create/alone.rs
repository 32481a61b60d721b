//! Ranks that are alone although their launcher has started several: it belongs to another MPI than
//! the program, so each process is a job of its own. Launchers and MPIs say nothing of it, and
//! fompirun cannot see which MPI a script loads. Said when the first window is made. Correctness
//! does not rest on it.

use crate::config::{Config, Fallback};
use crate::mpi::Host;
use crate::mpi::comm::Comm;
use crate::sync::{AtomicBool, Ordering};
use crate::sys::job;
use crate::window::report;

/// Where those of MPICH's family and Open MPI's tell how many ranks there are, and the rank.
const SIZES: [[&str; 2]; 2] =
    [["PMI_SIZE", "PMI_RANK"], ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"]];
/// Where srun does. The script of a job has SLURM_NTASKS and SLURM_PROCID too, and may well start
/// one process by itself; it has no size of a step. mpirun in a job starts its helpers by srun.
const STEP: [&str; 2] = ["SLURM_STEP_NUM_TASKS", "SLURM_PROCID"];

/// What a launcher tells a process that it has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Started {
    /// how many processes it has started together
    processes: u32,
    /// which one of them this is
    rank: u32,
    /// the variable that says how many
    variable: &'static str,
}

/// Says it once, on the first of the processes. MPI is there: the user has a communicator.
pub fn tell(host: &Host) {
    static LOOKED: AtomicBool = AtomicBool::new(false);
    // Relaxed: the flag orders nothing.
    if LOOKED.swap(true, Ordering::Relaxed) {
        return;
    }
    let config = Config::get();
    let wanted = config.verbose || config.fallback != Fallback::Quiet && !config.disable;
    let Some(started) = started().filter(|_| wanted) else { return };
    if started.processes < 2 || started.rank != 0 {
        return;
    }
    // Sessions need no MPI_Init, and have no MPI_COMM_WORLD without it.
    if !host.initialized() || Comm(host.constants.comm_world).size(host) != Ok(1) {
        return;
    }
    // A tool that a rank starts has the rank's environment, and is a job of its own by right.
    if job::is_below_a_rank(started.variable) {
        return;
    }
    let name = Host::seen().map_or_else(String::new, |(name, _)| format!(" ({name})"));
    report::say(&format!(
        "the launcher started {} processes, but MPI_COMM_WORLD has one rank: the launcher belongs \
         to another MPI than the program{name}; start it with the launcher of that MPI \
         (fompirun --mpi ...)",
        started.processes
    ));
}

/// What the launcher of this process tells it. Where one launcher was started inside of another,
/// the one with fewer processes: it may be the nearer one.
fn started() -> Option<Started> {
    started_by(|name| std::env::var(name).ok())
}

fn started_by(variable: impl Fn(&str) -> Option<String>) -> Option<Started> {
    let number = |name: &str| variable(name)?.parse().ok();
    let told = |[size, rank]: [&'static str; 2]| {
        Some(Started { processes: number(size)?, rank: number(rank)?, variable: size })
    };
    SIZES.into_iter().filter_map(told).min().or_else(|| told(STEP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_of_nested_launchers_counts_and_srun_where_no_other_is() {
        let said = |variables: &[(&str, &str)]| {
            let value = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
            let started = started_by(|name| value(name).map(str::to_owned));
            started.map(|started| (started.processes, started.rank))
        };
        let mut all = vec![("PMI_SIZE", "4"), ("PMI_RANK", "2")];
        assert_eq!(said(&all), Some((4, 2)));
        all.extend([("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0")]);
        assert_eq!(said(&all), Some((1, 0)));
        all.extend([("SLURM_NTASKS", "9"), ("SLURM_PROCID", "0")]);
        assert_eq!(said(&all[4..]), None, "the script of a job");
        all.push(("SLURM_STEP_NUM_TASKS", "3"));
        assert_eq!(said(&all[4..]), Some((3, 0)));
        assert_eq!(said(&all), Some((1, 0)), "srun has started the helpers of mpirun");
        assert_eq!(said(&[("PMI_SIZE", "many"), ("PMI_RANK", "0")]), None);
    }
}
