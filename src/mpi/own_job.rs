//! The job of this process: which of its ranks are on this node, and whether it is connected with
//! other jobs (MPI-4.1 §11.7 to §11.10).

use super::comm::Comm;
use super::{Handle, Host};
use crate::sync::{AtomicBool, Ordering};

/// Variables in which launchers pass the number of ranks of the job on this node: those of Hydra
/// (MPICH, Intel MPI) and of Open MPI.
const RANKS_HERE: [&str; 2] = ["MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"];

static CONNECTED: AtomicBool = AtomicBool::new(false);

/// Records that this process calls a function that may connect its job with another one.
pub fn note_connection() {
    CONNECTED.store(true, Ordering::Relaxed);
}

/// Whether this process has called such a function.
pub fn is_connected() -> bool {
    // Relaxed: a thread that calls such a function while another one makes a window counts as a
    // thread of the program anyway.
    CONNECTED.load(Ordering::Relaxed)
}

/// Whether `ranks` ranks of this node are all ranks of the job here: as many as MPI_COMM_WORLD has,
/// or as the launcher has passed. False for a job that another one has started, and for a process
/// without MPI_Init.
pub fn has_only(host: &Host, ranks: u32) -> bool {
    if !host.initialized() || has_parent(host) {
        return false;
    }
    let here = RANKS_HERE.iter().find_map(|name| std::env::var(name).ok()?.parse().ok());
    here == Some(ranks) || Comm(host.constants.comm_world).size(host) == Ok(ranks)
}

fn has_parent(host: &Host) -> bool {
    let mut parent: Handle = host.constants.comm_null;
    // SAFETY: a local out parameter.
    let code = unsafe { (host.call.comm_get_parent)(&mut parent) };
    code != 0 || host.handle(parent) != host.constants.comm_null
}
