//! The fallback to the host MPI on a network that libfompi cannot drive, as `fompi info` and
//! `fompi doctor` report it.

use fompi_fabric::net::{DeviceChoice, DeviceOffer, tcp_settings};

/// Windows over several nodes like this one fall back.
pub struct HostFallback {
    /// the reason
    pub problem: String,
    /// the settings that prevent it
    pub remedy: String,
}

impl HostFallback {
    /// Returns the fallback; `None` if such windows do not fall back because of a network.
    pub fn here() -> Option<HostFallback> {
        let offer = DeviceOffer::own();
        let DeviceChoice::Fast(..) = DeviceChoice::of(&[offer, offer]) else { return None };
        let network = offer.networks().text().unwrap_or_default();
        Some(HostFallback {
            problem: format!(
                "the host MPI may use {network}, which libfompi cannot drive: windows over \
                 several nodes fall back to it"
            ),
            remedy: format!("{} selects TCP", tcp_settings()),
        })
    }
}
