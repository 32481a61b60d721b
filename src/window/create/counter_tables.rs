//! Tables of counters of notifications: windows of the library's own, which the ranks of a window
//! make and free together ([`notifications`](crate::window::notifications)).

use super::agreement::OwnRequest;
use super::communicator_arenas::CommResources;
use super::{Agreed, WindowRequest, agree, free, own, own_request};
use crate::config::Adopt;
use crate::epoch::notification::Table;
use crate::error::{Error, Result};
use crate::fabric::net::Wire;
use crate::memory::heap;
use crate::messages;
use crate::mpi::Host;
use crate::mpi::hints::Hints;
use crate::number::{Number, Offset};
use crate::sys::page_bytes;
use crate::window::{Flavor, LocalWindow, Memory, Notifications, Window, registry, wide};
use core::ptr;
use std::sync::Arc;

impl Window {
    /// Gives this rank `number` counters, all 0, in place of those that it has. Collective. An
    /// error of one rank is an error of all, and the counters stay.
    pub fn set_counters(
        &self,
        host: &'static Host,
        node: &LocalWindow,
        number: Result<u32>,
    ) -> Result<()> {
        let number = self.epochs.may_change_counters().and(number);
        let table = make(host, node, number.map(|number| Table(number).bytes()))?;
        let new = Arc::new(Notifications::new(table));
        end(host, self.notifications.replace(Some(new)))
    }

    /// Gives the counters back, before the window is freed. Collective.
    pub fn end_counters(&self, host: &'static Host) -> Result<()> {
        end(host, self.notifications.replace(None))
    }
}

/// Makes a table of `bytes` bytes of zeros at this rank, over the processes of a window and by its
/// transport. The process that serves a rank of that window for other nodes serves the rank's part
/// of the table, too. Collective. An error of one rank is an error of all.
fn make(host: &'static Host, node: &LocalWindow, bytes: Result<u64>) -> Result<&'static Window> {
    // Ranks that serve their own memory for other nodes.
    let are_own = node.spans_nodes() && !matches!(node.memory, Memory::Common(_));
    let flavor = if are_own { Flavor::Create } else { Flavor::Allocate };
    let (entry, info, comm) = (registry::reserve(), host.constants.info_null, node.comm().0);
    let (base, disp_unit) = (ptr::null_mut(), 8);
    let mut request = WindowRequest { flavor, base, size: 0, disp_unit, info, comm };
    let ready = entry.as_ref().map(drop).map_err(Error::clone).and(bytes);
    let ready = ready.and_then(|bytes| {
        request.size = bytes.cast_signed().to_isize();
        if are_own {
            let memory = heap::allocate(bytes, page_bytes())?;
            // SAFETY: memory of this size that was just allocated.
            unsafe { memory.write_bytes(0, bytes.to_usize()) };
            request.base = memory.cast();
        }
        own_request(&request, &Hints::of(flavor))
    });
    let ready = ready.map(|own| OwnRequest { adopt: Adopt::Never, gpu: false, ..own });
    let agreed = match &node.wide {
        Some(part) => wide::exchange::agree(host, &part.wide, flavor, ready),
        None => {
            let resources = CommResources::Node(node.arena().clone(), Arc::default());
            agree(host, &resources, flavor, ready)
        }
    };
    match agreed {
        Ok(Agreed::Made(made)) => Ok(own(host, &request, entry?, Hints::of(flavor), *made)),
        other => {
            if !request.base.is_null() {
                heap::release(request.base.cast());
            }
            other.and(Err(Error::Wrong(&messages::NO_NOTIFICATIONS)))
        }
    }
}

/// Frees the table of counters that are not in use any more. Collective.
fn end(host: &'static Host, old: Option<Arc<Notifications>>) -> Result<()> {
    let Some(table) = old.map(|old| old.end()) else { return Ok(()) };
    let own = (table.facts.flavor == Flavor::Create).then_some(table.facts.base);
    free(host, table)?;
    if let Some(base) = own {
        if let Some((address, bytes)) = heap::allocation(base.to_u64(), 0) {
            Wire::opened().for_each(|wire| wire.deregister(address, bytes));
        }
        heap::release(ptr::with_exposed_provenance_mut(base));
    }
    Ok(())
}
