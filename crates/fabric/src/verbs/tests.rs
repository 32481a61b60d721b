//! Tests of the choice of device, port and address, on simulated devices.

use super::fake_device::{port, profile::Profile};
use crate::config::Verbs;
use crate::sys::ibverbs::Gid;
use crate::sys::ibverbs::verbs::IBV_PORT_ACTIVE;

/// The reason why a device with this profile is not used.
fn refusal(profile: &Profile, settings: &Verbs) -> String {
    port(profile, settings).err().unwrap().to_string()
}

#[test]
fn the_first_active_port_is_taken_unless_one_is_asked_for() {
    let profile =
        Profile { states: vec![1, IBV_PORT_ACTIVE, IBV_PORT_ACTIVE], ..Profile::default() };
    let device =
        |name: &str, port| Verbs { device: Some(name.to_owned()), port, ..Verbs::default() };
    assert_eq!(port(&profile, &Verbs::default()).unwrap().name(), "fake0:2");
    assert_eq!(port(&profile, &device("fake0", Some(3))).unwrap().name(), "fake0:3");
    let text = refusal(&profile, &device("fake0", Some(1)));
    assert!(text.contains("port 1 of fake0 is down"), "{text}");
    let text = refusal(&profile, &device("fake0", Some(4)));
    assert!(text.contains("fake0 has no port 4, but 3"), "{text}");
    let text = refusal(&profile, &device("fake1", None));
    assert!(text.contains("there is no device fake1"), "{text}");
    let down = Profile { states: vec![1, 2], ..Profile::default() };
    let text = refusal(&down, &Verbs::default());
    assert!(text.contains("no port of fake0 is active"), "{text}");
}

#[test]
fn an_address_is_taken_as_it_is_asked_for() {
    let gid = |last| Gid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last]);
    let profile = Profile {
        gids: vec![(gid(1), 1), (gid(1), 2), (gid(2), 2), (Gid::default(), 2)],
        ..Profile::default()
    };
    let index = |wanted| Verbs { gid: wanted, ..Verbs::default() };
    let taken = |wanted| port(&profile, &index(wanted)).unwrap().gid_index;
    assert_eq!((taken(None), taken(Some(2)), taken(Some(0))), (1, 2, 0));
    let text = refusal(&profile, &index(Some(3)));
    assert!(text.contains("GID 3 of port 1 of fake0 is empty"), "{text}");
    let none = Profile { gids: vec![], ..Profile::default() };
    let text = refusal(&none, &Verbs::default());
    assert!(text.contains("port 1 of fake0 has no GID"), "{text}");
}

#[test]
fn packets_are_no_longer_than_asked_for() {
    let small = Verbs { mtu: Some(256), ..Verbs::default() };
    let mtu = |settings: &Verbs| port(&Profile::default(), settings).unwrap().mtu;
    assert_eq!((mtu(&small), mtu(&Verbs::default())), (1, 3));
}

#[test]
fn atomics_must_answer_in_our_byte_order() {
    let profile = Profile { atomics: 0, ..Profile::default() };
    let text = refusal(&profile, &Verbs::default());
    assert!(text.contains("fake0 has no atomics of 8 bytes"), "{text}");
}
