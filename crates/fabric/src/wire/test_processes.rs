//! Processes on simulated and real devices, for tests of this transport and of those above it.

use super::device::{Device, DeviceKind};
pub use super::this_process::Wire;
use crate::config::{Config, NetSettings, Verbs};
use crate::contact::{Contact, Secret};
use crate::device_order::DeviceOrder;
use crate::error::Result;
use crate::sync::{AtomicUsize, Ordering};
use crate::tcp::TcpDevice;
use crate::verbs::fake_device::{port, profile::Profile};
use crate::verbs::{self, Port};
use parking_lot::Mutex;

/// The secret that all processes of the tests know.
pub fn secret() -> Secret {
    Secret::from([3, 4])
}

/// Admits a process to the job of the tests.
pub(super) fn of_the_job(wire: Wire) -> Wire {
    wire.admit(secret());
    wire
}

/// Makes a process on the device of this machine, or on those that TEST_DEVICES names, in turns.
pub fn on_device() -> Wire {
    static TURNS: AtomicUsize = AtomicUsize::new(0);
    let mut settings = Config::get().net.clone();
    if let Ok(names) = std::env::var("TEST_DEVICES") {
        let names: Vec<&str> = names.split(',').collect();
        // Relaxed: only uniqueness matters.
        let turn = TURNS.fetch_add(1, Ordering::Relaxed);
        settings.verbs.device = Some(names[turn % names.len()].to_owned());
    }
    of_the_job(Wire::open(DeviceKind::Verbs, &settings).unwrap())
}

/// Returns what another process of the tests must know to reach this one.
pub fn address(wire: &Wire) -> (Contact, Secret) {
    (wire.contact().unwrap(), secret())
}

/// Lets one test at a time use the device.
pub fn turn() -> impl Drop {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock()
}

/// Makes a process of the job on an opened port.
pub(super) fn on_port(port: Port, settings: &Verbs) -> Result<Wire> {
    let device = Box::new(verbs::VerbsDevice::on(port)?);
    let settings = NetSettings { verbs: settings.clone(), ..NetSettings::default() };
    Wire::on(Device::Verbs(device), &settings).map(of_the_job)
}

/// Makes a process on a simulated device with this profile.
pub(super) fn on_profile(profile: &Profile, settings: &Verbs) -> Result<Wire> {
    on_port(port(profile, settings)?, settings)
}

/// Makes a process on a simulated device that keeps this order, and says so.
pub(super) fn keeping(order: DeviceOrder) -> Wire {
    on_profile(&Profile::keeping(order), &Verbs::default()).unwrap()
}

/// Makes a process on the simulated device.
pub fn on_fake() -> Wire {
    keeping(DeviceOrder::RELIABLE)
}

/// Makes a process on a simulated device whose READs overtake WRITEs.
pub fn on_write_after_write() -> Wire {
    keeping(DeviceOrder::WRITE_AFTER_WRITE)
}

/// Makes a process on a simulated device that keeps no order.
pub fn on_unordered() -> Wire {
    keeping(DeviceOrder::NONE)
}

/// Makes a process that is reached by TCP.
pub fn on_tcp() -> Wire {
    let device = Device::Tcp(TcpDevice::open());
    Wire::on(device, &NetSettings::default()).map(of_the_job).unwrap()
}
