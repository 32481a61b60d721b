//! Properties of the simulated device, and what fails on it. Not how the device works: `fake`.

use std::cell::RefCell;
use std::sync::Arc;

use crate::device_order::DeviceOrder;
use crate::sync::AtomicBool;
use crate::sys::ibverbs::Gid;
use crate::sys::ibverbs::verbs::*;
use crate::verbs::port::{SOFT_ROCE, SOFTWARE_ADAPTER};

/// Properties of the next device that this thread opens.
#[derive(Clone)]
pub struct Profile {
    /// numbers of the vendor and of the part, by which it says what order it keeps
    pub vendor: u32,
    pub part: u32,
    /// the order that it keeps
    pub order: DeviceOrder,
    pub ethernet: bool,
    pub states: Vec<ibv_port_state>,
    pub gids: Vec<(Gid, u32)>,
    pub atomics: ibv_atomic_cap,
    pub send_max: u32,
    pub inline_max: u32,
    /// largest number of pieces of memory in a request, and in a READ
    pub sges: (i32, i32),
    pub message_max: u32,
    /// whether it has failed: nothing completes any more, and this is reported once
    pub failed: Arc<AtomicBool>,
    /// queue pairs that are refused before one is made
    pub pairs_refused: u32,
    /// bytes that may be registered
    pub locked_max: usize,
    /// whether it forgets fenced requests until something else is posted
    pub forgets: bool,
}

impl Profile {
    /// A device that keeps this order, and says so.
    pub fn keeping(order: DeviceOrder) -> Profile {
        let (vendor, part) = match order {
            DeviceOrder::RELIABLE => (0, 0),
            DeviceOrder::ONE_AT_A_TIME => (SOFT_ROCE, 0),
            DeviceOrder::WRITE_AFTER_WRITE => (SOFTWARE_ADAPTER, 1),
            DeviceOrder::NONE => (SOFTWARE_ADAPTER, 2),
            _ => unreachable!("no device says so"),
        };
        Profile { vendor, part, order, ..Profile::default() }
    }
}

impl Default for Profile {
    fn default() -> Profile {
        let gid = |text: &str| Gid(text.parse::<std::net::Ipv6Addr>().unwrap().octets());
        Profile {
            vendor: 0,
            part: 0,
            order: DeviceOrder::RELIABLE,
            ethernet: true,
            states: vec![IBV_PORT_ACTIVE],
            gids: vec![(gid("fe80::1"), IBV_GID_TYPE_ROCE_V2), (gid("::ffff:10.9.8.7"), 2)],
            atomics: IBV_ATOMIC_HCA,
            send_max: 1000,
            inline_max: 512,
            sges: (16, 16),
            message_max: 1 << 20,
            failed: Arc::default(),
            pairs_refused: 0,
            locked_max: usize::MAX,
            forgets: false,
        }
    }
}

thread_local! {
    /// The profile of this thread.
    pub static PROFILE: RefCell<Profile> = RefCell::default();
}
