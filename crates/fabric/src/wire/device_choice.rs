//! Choice of the device for windows over several nodes. Each rank tells all others which devices it
//! has and what its settings ask for, and each makes the same choice from these [`DeviceOffer`]s.
//!
//! | FOMPI_NET | choice                                                                          |
//! |-----------|---------------------------------------------------------------------------------|
//! | `auto`    | verbs if all ranks have them on one kind of link; else TCP, but where a node    |
//! |           | has a fast network that an MPI may use without TCP, the windows are delegated   |
//! | `verbs`   | verbs; where a rank has none, or the links differ, the windows are delegated    |
//! | `tcp`     | TCP                                                                             |
//! | `off`     | the windows are delegated                                                       |
//!
//! If the ranks have different values, all use the one that is last in this table.

use super::device::{DeviceKind, NetworkKind};
use super::this_process::Wire;
use crate::config::{Config, Net};
use crate::contact::interfaces;
use crate::error::Error;
use crate::messages::{self, Line, filled};
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::sys::fast_networks::FastNetworks;

/// The offer of a rank, which it sends to all others as bits: whether it has verbs, on which link,
/// and whether their atomics are those of the processor; its FOMPI_NET; the fast networks of its
/// node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceOffer(pub u64);

/// The choice of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// this kind of device; whether the atomics of all ranks' devices are those of the processor
    Use(DeviceKind, bool),
    /// none, because the settings say so
    Off,
    /// none: this rank has no RDMA device
    NoDevice(Rank),
    /// none: some ranks have InfiniBand, others RoCE
    Links,
    /// none: the first rank has no RDMA device, or the links differ; and the node of the second
    /// rank has a fast network
    Fast(Option<Rank>, Rank),
}

const _: () = assert!(Net::ALL.len() as u64 <= DeviceOffer::NET_BITS + 1);

impl DeviceOffer {
    const ETHERNET: u64 = 1;
    const INFINIBAND: u64 = 2;
    const LINKS: u64 = DeviceOffer::ETHERNET | DeviceOffer::INFINIBAND;
    const COHERENT: u64 = 4;
    const NET_SHIFT: u32 = 3;
    const NET_BITS: u64 = 3;
    const NETWORKS_SHIFT: u32 = DeviceOffer::NET_SHIFT + DeviceOffer::NET_BITS.count_ones();

    /// Returns the offer of this process. Opens its RDMA device if the settings allow it.
    pub fn own() -> DeviceOffer {
        let settings = &Config::get().net;
        let verbs = match settings.tries_verbs() {
            true => Wire::get(DeviceKind::Verbs).map_or(0, verbs_bits),
            false => 0,
        };
        DeviceOffer::new(verbs, settings.choice, FastNetworks::here())
    }

    fn new(verbs: u64, net: Net, networks: FastNetworks) -> DeviceOffer {
        let net = (net as u64) << DeviceOffer::NET_SHIFT;
        DeviceOffer(verbs | net | networks.0 << DeviceOffer::NETWORKS_SHIFT)
    }

    fn has_verbs(self) -> bool {
        self.0 & DeviceOffer::LINKS != 0
    }

    fn net(self) -> Net {
        Net::ALL[(self.0 >> DeviceOffer::NET_SHIFT & DeviceOffer::NET_BITS).to_usize()]
    }

    /// Returns the offer of a rank that shares its machine with all others: an MPI uses no network
    /// between them.
    pub fn on_one_machine(self) -> DeviceOffer {
        DeviceOffer(self.0 & ((1 << DeviceOffer::NETWORKS_SHIFT) - 1))
    }

    /// The fast networks of its node.
    pub fn networks(self) -> FastNetworks {
        FastNetworks(self.0 >> DeviceOffer::NETWORKS_SHIFT)
    }
}

/// Returns why this process has no RDMA device.
pub fn why_no_device() -> Option<Error> {
    Wire::get(DeviceKind::Verbs).err()
}

/// Returns the settings that select TCP over the fast network of this node.
pub fn tcp_settings() -> String {
    let found = interfaces().unwrap_or_default().into_iter();
    let found = found.filter(|(_, address)| !address.to_canonical().is_loopback());
    let names: Vec<String> = found.map(|(name, _)| name).collect();
    match FastNetworks::interface(&names) {
        Some(name) if Config::get().net.interface.is_none() => {
            format!("FOMPI_NET=tcp FOMPI_NET_INTERFACE={name}")
        }
        _ => String::from("FOMPI_NET=tcp"),
    }
}

fn verbs_bits(wire: &Wire) -> u64 {
    let link = match wire.kind() {
        NetworkKind::Roce => DeviceOffer::ETHERNET,
        NetworkKind::InfiniBand => DeviceOffer::INFINIBAND,
        NetworkKind::Tcp => unreachable!("no RDMA device"),
    };
    link | if wire.is_coherent() { DeviceOffer::COHERENT } else { 0 }
}

/// Returns the first rank whose offer is as asked.
fn first(offers: &[DeviceOffer], asked: impl Fn(&DeviceOffer) -> bool) -> Option<Rank> {
    offers.iter().position(asked).map(|at| Rank(at.to_u32()))
}

impl DeviceChoice {
    /// Returns the choice of ranks with these offers, in the order of the ranks.
    pub fn of(offers: &[DeviceOffer]) -> DeviceChoice {
        let net = offers.iter().map(|offer| offer.net()).max().unwrap_or(Net::Auto);
        let common = offers.iter().fold(u64::MAX, |common, offer| common & offer.0);
        // The processor of the target carries requests by TCP out.
        let tcp = DeviceChoice::Use(DeviceKind::Tcp, true);
        let without = first(offers, |offer| !offer.has_verbs());
        let verbs = match without {
            Some(rank) => DeviceChoice::NoDevice(rank),
            None if common & DeviceOffer::LINKS == 0 => DeviceChoice::Links,
            None => DeviceChoice::Use(DeviceKind::Verbs, common & DeviceOffer::COHERENT != 0),
        };
        let fast = first(offers, |offer| offer.networks() != FastNetworks(0));
        match (net, verbs) {
            (Net::Off, _) => DeviceChoice::Off,
            (Net::Tcp, _) => tcp,
            (Net::Verbs, verbs) | (Net::Auto, verbs @ DeviceChoice::Use(..)) => verbs,
            (Net::Auto, _) => fast.map_or(tcp, |rank| DeviceChoice::Fast(without, rank)),
        }
    }

    /// The kind of the device that is used.
    pub fn kind(self) -> DeviceKind {
        match self {
            DeviceChoice::Use(kind, _) => kind,
            _ => unreachable!("the windows are delegated"),
        }
    }

    /// Whether all devices are coherent. If one is not, all ranks change contended words by the
    /// device only.
    pub fn coherent(self) -> bool {
        self == DeviceChoice::Use(self.kind(), true)
    }
}

/// Returns a line if the ranks have different values of FOMPI_NET, which names the one that all of
/// them use.
pub fn settings_differ(offers: &[DeviceOffer]) -> Option<Line> {
    let here = offers.first()?.net();
    let other = first(offers, |offer| offer.net() != here)?;
    let all = offers.iter().map(|offer| offer.net()).max()?.name();
    let (here, there) = (here.name(), offers[other.0.to_usize()].net().name());
    Some(filled!(messages::NETS_DIFFER; there, rank = other, here, all).line())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const NONE: u64 = 0;
    const ROCE: u64 = DeviceOffer::ETHERNET;
    const IB: u64 = DeviceOffer::INFINIBAND | DeviceOffer::COHERENT;
    const TCP: DeviceChoice = DeviceChoice::Use(DeviceKind::Tcp, true);

    /// The choice of ranks with these devices, settings and fast networks.
    fn choice(ranks: &[(u64, Net, u64)]) -> DeviceChoice {
        let offer =
            |(verbs, net, networks): &_| DeviceOffer::new(*verbs, *net, FastNetworks(*networks));
        DeviceChoice::of(&ranks.iter().map(offer).collect::<Vec<_>>())
    }

    #[test]
    fn verbs_are_used_where_all_have_them() {
        for net in [Net::Auto, Net::Verbs] {
            let roce =
                [(ROCE, net, FastNetworks::ACTIVE_PORT), (ROCE | DeviceOffer::COHERENT, net, 0)];
            assert_eq!(choice(&roce), DeviceChoice::Use(DeviceKind::Verbs, false));
            assert_eq!(choice(&[(IB, net, 0); 2]), DeviceChoice::Use(DeviceKind::Verbs, true));
        }
    }

    #[test]
    fn tcp_is_used_where_a_rank_has_no_verbs_and_no_node_a_fast_network() {
        assert_eq!(choice(&[(NONE, Net::Auto, 0); 3]), TCP);
        assert_eq!(choice(&[(IB, Net::Auto, 0), (NONE, Net::Auto, 0)]), TCP);
        assert_eq!(choice(&[(IB, Net::Auto, 0), (ROCE, Net::Auto, 0)]), TCP, "no common link");
    }

    #[test]
    fn a_fast_network_of_any_node_keeps_windows_with_the_mpi() {
        let networks =
            [FastNetworks::ACTIVE_PORT, FastNetworks::CXI, FastNetworks::HFI1, FastNetworks::EFA];
        for network in networks {
            let ranks = [(IB, Net::Auto, 0), (NONE, Net::Auto, 0), (NONE, Net::Auto, network)];
            assert_eq!(choice(&ranks), DeviceChoice::Fast(Some(Rank(1)), Rank(2)));
            let ranks = ranks.map(|(verbs, _, network)| (verbs, Net::Tcp, network));
            assert_eq!(choice(&ranks), TCP, "asked for");
        }
    }

    #[test]
    fn a_fast_network_does_not_matter_on_one_machine() {
        let fast = FastNetworks(FastNetworks::CXI);
        let here = |verbs| DeviceOffer::new(verbs, Net::Auto, fast).on_one_machine();
        assert_eq!(DeviceChoice::of(&[here(NONE), here(NONE)]), TCP);
        assert_eq!(DeviceChoice::of(&[here(IB); 2]), DeviceChoice::Use(DeviceKind::Verbs, true));
        let off = DeviceOffer::new(IB, Net::Off, FastNetworks(0)).on_one_machine();
        assert_eq!(DeviceChoice::of(&[here(IB), off]), DeviceChoice::Off);
    }

    #[test]
    fn a_device_that_is_asked_for_is_not_replaced() {
        let verbs = |verbs| (verbs, Net::Verbs, FastNetworks::CXI);
        assert_eq!(choice(&[verbs(IB), verbs(NONE)]), DeviceChoice::NoDevice(Rank(1)));
        assert_eq!(choice(&[verbs(IB), verbs(ROCE)]), DeviceChoice::Links);
        assert_eq!(choice(&[(IB, Net::Tcp, 0); 2]), TCP);
        assert_eq!(choice(&[(IB, Net::Off, 0); 2]), DeviceChoice::Off);
    }

    #[test]
    fn ranks_with_different_settings_use_the_last_one_and_say_so() {
        let with = |nets: &[Net]| nets.iter().map(|net| (IB, *net, 0)).collect::<Vec<_>>();
        let verbs = DeviceChoice::Use(DeviceKind::Verbs, true);
        assert_eq!(choice(&with(&[Net::Auto, Net::Verbs])), verbs);
        assert_eq!(choice(&with(&[Net::Tcp, Net::Auto, Net::Verbs])), TCP);
        assert_eq!(choice(&with(&[Net::Auto, Net::Off, Net::Tcp])), DeviceChoice::Off);
        let line = |nets: &[Net]| {
            let offers = nets.iter().map(|net| DeviceOffer::new(NONE, *net, FastNetworks(0)));
            settings_differ(&offers.collect::<Vec<_>>())
        };
        assert_eq!(line(&[Net::Tcp; 3]), None);
        let text = "FOMPI_NET is tcp on rank 2, auto on rank 0: all ranks use tcp [FOMPI-W022]";
        let line = line(&[Net::Auto, Net::Auto, Net::Tcp]).map(|line| line.to_string());
        assert_eq!(line.as_deref(), Some(text));
    }
}
