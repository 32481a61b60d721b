//! A warning about ranks that are alone in MPI_COMM_WORLD although their launcher has started
//! several processes. Then the launcher belongs to another MPI than the program, and each process
//! is a job of its own. Launchers and MPIs do not report this, and fompirun cannot see which MPI a
//! script loads. The warning is written when the first window is made. Correctness does not depend
//! on it.

use crate::config::{Config, Fallback};
use crate::messages::{self, filled};
use crate::mpi::Host;
use crate::mpi::comm::Comm;
use crate::sync::{AtomicBool, Ordering};
use crate::sys::job;

/// The variables in which launchers of MPICH's family, and Open MPI's, pass the number of ranks and
/// the rank.
const SIZES: [[&str; 2]; 2] =
    [["PMI_SIZE", "PMI_RANK"], ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"]];
/// The variables in which srun passes them. The script of a job has SLURM_NTASKS and SLURM_PROCID,
/// too, and may start a single process without srun; but it has no variable for the size of a step.
/// mpirun in a job starts its helpers by srun.
const STEP: [&str; 2] = ["SLURM_STEP_NUM_TASKS", "SLURM_PROCID"];

/// The numbers that a launcher passes to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Started {
    /// the number of processes that it has started together
    processes: u32,
    /// the number of this process among them
    world_rank: u32,
    /// the variable that has the number of processes
    variable: &'static str,
}

/// Writes the warning once, on the first of the processes. MPI is initialised, because the user has
/// a communicator.
pub fn warn_once(host: &Host) {
    static CHECKED: AtomicBool = AtomicBool::new(false);
    // Relaxed: the flag orders nothing.
    if CHECKED.swap(true, Ordering::Relaxed) {
        return;
    }
    let config = Config::get();
    let wanted = config.verbose || config.fallback != Fallback::Quiet && !config.disable;
    let Some(started) = started().filter(|_| wanted) else { return };
    if started.processes < 2 || started.world_rank != 0 {
        return;
    }
    // Sessions need no MPI_Init, and have no MPI_COMM_WORLD without it.
    if !host.initialized() || Comm(host.constants.comm_world).size(host) != Ok(1) {
        return;
    }
    // A tool that a rank starts inherits the rank's environment, and rightly is a job of its own.
    if job::is_below_a_rank(started.variable) {
        return;
    }
    let name = Host::seen().map_or_else(String::new, |(name, _)| format!(" ({name})"));
    filled!(messages::LONE_RANK; processes = started.processes, name).line().print();
}

/// Returns the numbers that the launcher of this process has passed. If one launcher was started
/// inside of another, these are the numbers of the one with fewer processes, which may be the
/// nearer one.
fn started() -> Option<Started> {
    started_by(|name| std::env::var(name).ok())
}

fn started_by(variable: impl Fn(&str) -> Option<String>) -> Option<Started> {
    let number = |name: &str| variable(name)?.parse().ok();
    let told = |[size, rank]: [&'static str; 2]| {
        Some(Started { processes: number(size)?, world_rank: number(rank)?, variable: size })
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
            started.map(|started| (started.processes, started.world_rank))
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
