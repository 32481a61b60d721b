//! The reason why windows over several nodes are delegated by the choice of a device: the ranks
//! have no device in common, or a faster network, or the settings say so. The line that reports it
//! has the cause of the rank that has no RDMA device.

use crate::error::{Result, kept};
use crate::fabric::net::{DeviceChoice, DeviceOffer, tcp_settings, why_no_device};
use crate::messages::{self, filled};
use crate::mpi::Host;
use crate::mpi::comm::Comm;
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::report::{Why, filled_reason};
use parking_lot::Mutex;

/// Returns the reason to delegate the windows, if that is the choice. All ranks learn why a rank
/// has no RDMA device. Collective.
pub fn refused(
    host: &Host,
    comm: Comm,
    choice: DeviceChoice,
    offers: &[DeviceOffer],
) -> Result<Option<Why>> {
    Ok(match choice {
        DeviceChoice::Use(..) => None,
        DeviceChoice::Off => Some(Why::NetOff),
        DeviceChoice::Links => Some(Why::Links),
        DeviceChoice::NoDevice(rank) => {
            let cause = cause(host, comm, rank)?;
            let filled = filled_reason(&filled!(messages::NO_DEVICE; call = "", cause));
            Some(Why::NoDevice(kept_once(filled)))
        }
        DeviceChoice::Fast(without, rank) => {
            let cause = match without {
                Some(without) => cause(host, comm, without)?,
                None => String::from("some of its processes have InfiniBand, others RoCE"),
            };
            let network = offers[rank.0.to_usize()].networks().text().unwrap_or_default();
            let settings = text_of(host, comm, rank, tcp_settings)?;
            let filled = filled!(messages::FAST_NETWORK; call = "", rank, network, settings, cause);
            Some(Why::FastNetwork(kept_once(filled_reason(&filled))))
        }
    })
}

/// Keeps a text for good, once however often it comes: communicators of one job have few of them.
fn kept_once(text: String) -> &'static str {
    static TEXTS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut texts = TEXTS.lock();
    if let Some(known) = texts.iter().find(|known| **known == text) {
        return known;
    }
    texts.push(kept(text));
    texts[texts.len() - 1]
}

/// Returns why rank `rank` has no RDMA device. Collective.
fn cause(host: &Host, comm: Comm, rank: Rank) -> Result<String> {
    let own = || why_no_device().map_or_else(String::new, |error| error.to_string());
    Ok(format!("rank {rank}: {}", text_of(host, comm, rank, own)?))
}

/// Words of a text.
const TEXT_WORDS: usize = 32;

/// Returns the text of rank `rank`, which calls `own`. Collective.
fn text_of(host: &Host, comm: Comm, rank: Rank, own: impl FnOnce() -> String) -> Result<String> {
    let mut words = [0_u64; TEXT_WORDS];
    if comm.rank(host)? == rank.0 {
        for (word, bytes) in words.iter_mut().zip(own().as_bytes().chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
    }
    comm.broadcast_from(host, rank.0, &mut words)?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let text = String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or(&[]));
    Ok(text.into_owned())
}
