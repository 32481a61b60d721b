//! The device, port and GID that this process uses, and their capabilities. The first suitable
//! device is taken unless the settings name one; the error lists what is wrong with each of the
//! others. Connections are elsewhere.

use std::sync::Arc;

use crate::config::Verbs;
use crate::device_order::DeviceOrder;
use crate::error::{Error, Result, kept};
use crate::number::Number;
use crate::request::SGE_MAX;
use crate::sys::ibverbs::verbs::*;
use crate::sys::ibverbs::{Domain, Gid, Library, List, Opened};

/// An opened port of a device, with those of its properties that matter here.
pub struct Port {
    /// protection domain of all memory and queue pairs of this process
    pub domain: Arc<Domain>,
    /// number of the port, counted from 1
    pub port: u8,
    /// GID of this port
    pub gid: Gid,
    /// index of the GID
    pub gid_index: u8,
    /// LID in the InfiniBand subnet; 0 for RoCE
    pub lid: u16,
    /// whether the link is RoCE
    pub ethernet: bool,
    /// whether packets need a global header for any address
    pub global: bool,
    /// path MTU as verbs encode it: 1 is 256 bytes, 5 is 4096
    pub mtu: u8,
    /// bytes of the longest message
    pub message_bytes_max: u32,
    /// largest number of requests in a queue pair
    pub requests_max: u32,
    /// largest number of pieces of memory in a WRITE, and in a READ, from 1 to [`SGE_MAX`]
    pub sges: (u32, u32),
    /// largest number of READs and atomics under way at an end as the origin
    pub reads_as_origin: u8,
    /// largest number of READs and atomics under way at an end as the target
    pub reads_as_target: u8,
    /// whether its atomics are atomic with respect to those of the CPU
    pub coherent: bool,
    /// the order in which it carries out requests as the target
    pub order: DeviceOrder,
}

/// The vendor number of Soft-RoCE, which executes requests in order, one at a time.
pub const SOFT_ROCE: u32 = 0x00ff_ffff;
/// The vendor number of the software adapter for tests. No vendor has it: the number is locally
/// administered. Its part number is the order that the adapter keeps: verbs have no call for that.
pub const SOFTWARE_ADAPTER: u32 = 0x0266_6f6d;

/// The error that no suitable device was found.
fn missing(what: impl Into<String>) -> Error {
    Error::NoVerbs(kept(what))
}

impl Port {
    /// Opens the device that the settings select.
    pub fn open(settings: &Verbs) -> Result<Port> {
        let library = Library::open(&settings.library).map_err(missing)?;
        Port::of(library, settings)
    }

    /// Opens a device among those of a library.
    pub fn of(library: &'static Library, settings: &Verbs) -> Result<Port> {
        let list = List::new(library).map_err(|error| match error {
            Error::System { errno: libc::ENOSYS, .. } => missing("the kernel knows of none"),
            error => missing(error.to_string()),
        })?;
        let mut reasons = Vec::new();
        for listed in list.devices() {
            let name = listed.name();
            if settings.device.as_ref().is_some_and(|wanted| *wanted != name) {
                continue;
            }
            if !listed.is_infiniband() {
                reasons.push(format!("{name} is neither InfiniBand nor RoCE"));
                continue;
            }
            match listed.open().and_then(|opened| Port::with(opened, settings)) {
                Ok(port) => return Ok(port),
                Err(Error::NoVerbs(reason)) => reasons.push(reason.into()),
                Err(error) => reasons.push(format!("{name}: {error}")),
            }
        }
        Err(missing(match (reasons.is_empty(), &settings.device) {
            (false, _) => reasons.join("; "),
            (true, Some(name)) => format!("there is no device {name}"),
            (true, None) => String::from("this machine has none"),
        }))
    }

    /// Opens the port of a device that the settings select, or its first active one.
    fn with(opened: Opened, settings: &Verbs) -> Result<Port> {
        let name = opened.name().to_owned();
        let attributes = opened.attributes()?;
        let atomics = attributes.atomic_cap;
        if atomics != IBV_ATOMIC_HCA && atomics != IBV_ATOMIC_GLOB {
            let what = "has no atomics of 8 bytes that answer in this machine's byte order";
            return Err(missing(format!("{name} {what}")));
        }
        let (port, found) = port(&opened, settings, attributes.phys_port_cnt)?;
        let ethernet = u32::from(found.link_layer) == IBV_LINK_LAYER_ETHERNET;
        let gid_index = match (settings.gid, ethernet) {
            (Some(index), _) => index,
            (None, true) => roce_gid(&opened, port, found.gid_tbl_len)?,
            (None, false) => 0,
        };
        let gid = opened.gid(port, gid_index.into())?;
        if ethernet && gid == Gid::default() {
            return Err(missing(format!("GID {gid_index} of port {port} of {name} is empty")));
        }
        let limit = settings.mtu.map_or(u8::MAX, |bytes| (bytes.ilog2() - 7).low_u8());
        let count = |value: i32| value.clamp(1, 16).cast_unsigned().low_u8();
        let sges = |value: i32| value.clamp(1, SGE_MAX.to_i32()).cast_unsigned();
        Ok(Port {
            port,
            gid,
            gid_index,
            lid: found.lid,
            ethernet,
            global: ethernet || u32::from(found.flags) & IB_UVERBS_QPF_GRH_REQUIRED != 0,
            mtu: (found.active_mtu.clamp(1, 5) as u8).min(limit),
            message_bytes_max: found.max_msg_sz.clamp(1 << 12, 1 << 30),
            sges: (sges(attributes.max_sge), sges(attributes.max_sge.min(attributes.max_sge_rd))),
            requests_max: attributes.max_qp_wr.max(1).cast_unsigned(),
            reads_as_origin: count(attributes.max_qp_init_rd_atom),
            reads_as_target: count(attributes.max_qp_rd_atom),
            coherent: atomics == IBV_ATOMIC_GLOB,
            order: order(attributes.vendor_id, attributes.vendor_part_id),
            domain: Domain::new(opened)?,
        })
    }

    /// Name of the device and number of the port, for messages.
    pub fn name(&self) -> String {
        format!("{}:{}", self.domain.device().name(), self.port)
    }
}

/// Returns the order in which a device carries out requests as the target.
fn order(vendor: u32, part: u32) -> DeviceOrder {
    match (vendor, part) {
        (SOFT_ROCE, _) => DeviceOrder::ONE_AT_A_TIME,
        (SOFTWARE_ADAPTER, 1) => DeviceOrder::WRITE_AFTER_WRITE,
        (SOFTWARE_ADAPTER, 2) => DeviceOrder::NONE,
        _ => DeviceOrder::RELIABLE,
    }
}

/// Returns the selected port, or the first active one.
fn port(opened: &Opened, settings: &Verbs, count: u8) -> Result<(u8, ibv_port_attr)> {
    let name = opened.name();
    if let Some(wanted) = settings.port
        && wanted > count
    {
        return Err(missing(format!("{name} has no port {wanted}, but {count}")));
    }
    for port in 1..=count {
        if settings.port.is_some_and(|wanted| wanted != port) {
            continue;
        }
        let found = opened.port(port)?;
        if found.state == IBV_PORT_ACTIVE {
            return Ok((port, found));
        }
    }
    Err(missing(match settings.port {
        Some(port) => format!("port {port} of {name} is down"),
        None => format!("no port of {name} is active"),
    }))
}

/// Preference among the GIDs of a RoCE port: RoCE version 2 first, since it is routable; then IPv4
/// addresses, since an administrator has assigned them; link-local addresses last.
fn gid_preference(gid: Gid, version_2: Option<bool>) -> Option<u8> {
    let Gid(bytes) = gid;
    if bytes == [0; 16] {
        return None;
    }
    let mapped = bytes[..10] == [0; 10] && bytes[10..12] == [0xff; 2];
    let link_local = bytes[0] == 0xfe && bytes[1] & 0xc0 == 0x80;
    let version = match version_2 {
        Some(true) => 2,
        None => 1,
        Some(false) => 0,
    };
    Some(version * 4 + u8::from(mapped) * 2 + u8::from(!link_local))
}

/// Index of the preferred GID of a RoCE port; the first of equal ones.
fn roce_gid(opened: &Opened, port: u8, count: i32) -> Result<u8> {
    let mut best = None;
    for index in 0..count.clamp(0, 256).cast_unsigned() {
        let Ok(gid) = opened.gid(port, index) else { continue };
        let preference = gid_preference(gid, is_version_2(opened, port, index));
        if preference > best.map(|(preference, _)| preference) {
            best = preference.map(|preference| (preference, index.low_u8()));
        }
    }
    best.map(|(_, index)| index)
        .ok_or_else(|| missing(format!("port {port} of {} has no GID", opened.name())))
}

/// Whether a GID is one of RoCE version 2, if the library or the system reports it.
fn is_version_2(opened: &Opened, port: u8, index: u32) -> Option<bool> {
    if let Some(kind) = opened.gid_type(port, index) {
        return Some(kind == IBV_GID_TYPE_ROCE_V2);
    }
    let device = opened.name();
    let path = format!("/sys/class/infiniband/{device}/ports/{port}/gid_attrs/types/{index}");
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().eq_ignore_ascii_case("RoCE v2"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gid(text: &str) -> Gid {
        Gid(text.parse::<std::net::Ipv6Addr>().unwrap().octets())
    }

    #[test]
    fn an_ipv4_address_of_roce_version_2_is_preferred() {
        let order = [
            (gid("::ffff:10.0.0.1"), Some(true)),
            (gid("2001:db8::1"), Some(true)),
            (gid("fe80::1"), Some(true)),
            (gid("::ffff:10.0.0.1"), None),
            (gid("fe80::1"), None),
            (gid("::ffff:10.0.0.1"), Some(false)),
            (gid("fe80::1"), Some(false)),
            (gid("::"), Some(true)),
        ];
        for pair in order.windows(2) {
            assert!(
                gid_preference(pair[0].0, pair[0].1) > gid_preference(pair[1].0, pair[1].1),
                "{pair:?}"
            );
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let none = Verbs { library: String::from("libfompi-none.so"), ..Verbs::default() };
        let text = |settings: &Verbs| Port::open(settings).err().unwrap().to_string();
        assert!(text(&none).contains("cannot load libfompi-none.so"), "{}", text(&none));
        let c = Verbs { library: String::from("libc.so.6"), ..Verbs::default() };
        assert!(text(&c).contains("has no ibv_get_device_list"), "{}", text(&c));
    }
}
