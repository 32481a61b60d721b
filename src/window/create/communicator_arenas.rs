//! The resources that all windows of a communicator share: the arena of its processes if all are on
//! one node, otherwise a wide arena. If processes of one node may not copy each other's memory,
//! windows over memory of the program have a second wide arena, in which those processes are on
//! different nodes. The resources are created for the first window, and kept as an attribute of the
//! communicator. If they could not be created for a temporary reason, the next window tries again.

#![allow(clippy::missing_safety_doc)] // callbacks: called by the host MPI

use super::settings_check;
use crate::arena::Arena;
use crate::arena::wait_progress;
use crate::arena::wide::{Need, WideArena};
use crate::config::Config;
use crate::error::Result;
use crate::fabric::layout::RANKS_MAX;
use crate::liveness::departures;
use crate::mpi::comm::{Comm, check};
use crate::mpi::{Handle, Host};
use crate::report::lone_rank_warning;
use crate::report::{self, Why};
use crate::window::waits;
use core::ffi::{c_int, c_void};
use std::sync::{Arc, OnceLock};

/// The resources that all windows of a communicator use.
#[derive(Clone)]
pub enum CommResources {
    /// its processes are on one node
    Node(Arc<Arena>, Arc<ApartArena>),
    /// its processes are on several nodes
    Wide(Arc<WideArena>, Arc<ApartArena>),
    /// there is no transport between them
    None(Why),
}

/// The wide arena for windows over memory of the program, if processes of one node may not copy
/// each other's memory, or why there is none. It is made for the first such window.
#[derive(Default)]
pub struct ApartArena(OnceLock<core::result::Result<Arc<WideArena>, Why>>);

impl CommResources {
    /// Returns the resources of a communicator; the first call creates them, within the user's call
    /// `call`, and is collective. `None`: FOMPI_DISABLE is set on all ranks.
    pub fn of(
        host: &'static Host,
        comm: Comm,
        call: &'static str,
    ) -> Result<Option<CommResources>> {
        let keyval = keyval(host)?;
        let (mut cached, mut found): (*mut Option<CommResources>, c_int) =
            (core::ptr::null_mut(), 0);
        let value = (&raw mut cached).cast();
        // SAFETY: local out parameters; the attribute is the pointer that was set below.
        check(unsafe { (host.call.comm_get_attr)(comm.0, keyval, value, &mut found) })?;
        if found != 0 {
            // SAFETY: set below, and dropped by `delete` only, together with the attribute.
            return Ok(unsafe { &*cached }.clone());
        }
        lone_rank_warning::warn_once(host);
        let one_machine = settings_check::check(host, comm, call)?;
        let resources = match Config::get().disable {
            true => None,
            false => Some(CommResources::make(host, comm, one_machine)?),
        };
        if matches!(&resources, Some(CommResources::None(why)) if why.may_pass()) {
            return Ok(resources);
        }
        let cached = Box::into_raw(Box::new(resources.clone()));
        // SAFETY: from here on the attribute owns the box.
        check(unsafe { (host.call.comm_set_attr)(comm.0, keyval, cached.cast()) })?;
        Ok(resources)
    }

    /// Returns the wide arena for windows over memory of the program if processes of one node may
    /// not copy each other's memory, or why there is none. Collective.
    pub fn apart(
        &self,
        host: &'static Host,
        comm: Comm,
    ) -> Result<core::result::Result<Arc<WideArena>, Why>> {
        let (apart, one_machine) = match self {
            CommResources::Node(_, apart) => (apart, true),
            CommResources::Wide(_, apart) => (apart, false),
            CommResources::None(why) => return Ok(Err(*why)),
        };
        if let Some(known) = apart.0.get() {
            return Ok(known.clone());
        }
        let made = WideArena::make(host, comm, Need::Copies { one_machine })?;
        if matches!(&made, Err(why) if why.may_pass()) {
            return Ok(made);
        }
        Ok(apart.0.get_or_init(|| made).clone())
    }

    /// `one_machine`: whether all processes may be on one machine.
    fn make(host: &'static Host, comm: Comm, one_machine: bool) -> Result<CommResources> {
        departures::do_first(|| {
            report::print_repeats();
            waits::print();
        });
        wait_progress::report_by(waits::report_if_due);
        let size = comm.size(host)?;
        if size > RANKS_MAX {
            return Ok(CommResources::None(Why::TooMany));
        }
        let one_node = Config::get().ranks_per_node.is_none_or(|ranks| size <= ranks);
        if one_machine && one_node {
            match Arena::make(host, comm, 0)? {
                Ok(arena) => return Ok(CommResources::Node(arena, Arc::default())),
                // The processes lack the same resource on several nodes.
                Err(why) if why.may_pass() => return Ok(CommResources::None(why)),
                Err(_) => {}
            }
        }
        Ok(match WideArena::make(host, comm, Need::Segments)? {
            Ok(wide) => CommResources::Wide(wide, Arc::default()),
            Err(why) => CommResources::None(why),
        })
    }
}

fn keyval(host: &Host) -> Result<c_int> {
    static KEYVAL: OnceLock<c_int> = OnceLock::new();
    unsafe extern "C" fn delete(_: Handle, _: c_int, value: *mut c_void, _: *mut c_void) -> c_int {
        // SAFETY: the attribute's value is the box that `CommResources::of` leaked.
        drop(unsafe { Box::from_raw(value.cast::<Option<CommResources>>()) });
        0
    }
    if let Some(keyval) = KEYVAL.get() {
        return Ok(*keyval);
    }
    let new = host.comm_keyval(delete)?;
    Ok(*KEYVAL.get_or_init(|| new))
}
