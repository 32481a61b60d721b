//! Tests of probes of another process.

use super::*;

/// Returns a notice about subject 7.
fn notices(about: u64) -> [u64; 2] {
    if about == 7 { [1, 2] } else { [0; 2] }
}

/// Runs a probe, and returns its result.
fn told(by: &Echo, contact: &Contact, about: u64) -> Result<[u64; 2]> {
    let (mut probe, mut told) = (Probe::new(&by.0, contact, secret(), about), Ok(None));
    until("an answer", || {
        told = probe.step();
        !matches!(told, Ok(None))
    });
    told.map(Option::unwrap)
}

#[test]
fn a_probe_returns_the_failure_notice() {
    let (one, other) = (Echo::new(), Echo::new());
    let listener = Listener::start(&other, &ListenPlaces::default()).unwrap();
    let contact = listener.contact();
    assert_eq!(told(&one, contact, 7), Ok([0; 2]), "no notice is known");
    other.0.set_notices(notices);
    assert_eq!((told(&one, contact, 7), told(&one, contact, 8)), (Ok([1, 2]), Ok([0; 2])));
}

#[test]
fn a_process_that_is_reached_answers_at_one_address() {
    let (one, other) = (Echo::new(), Echo::new());
    let listener = Listener::start(&other, &ListenPlaces::default()).unwrap();
    let contact = *listener.contact();
    let found = reach(&one.0, &contact, secret()).unwrap();
    assert!(contact.addresses().contains(&found), "{found}");
    drop(listener);
    let error = reach(&one.0, &contact, secret()).unwrap_err().to_string();
    assert!(error.contains("no first contact: ") && error.contains("refused"), "{error}");
}

#[test]
fn a_probe_of_a_closed_port_or_of_another_process_fails() {
    let one = Echo::new();
    let other = Listener::start(&Echo::new(), &ListenPlaces::default()).unwrap();
    let mut contact = *other.contact();
    // Another process listens there.
    contact.0[0] ^= 1;
    let error = told(&one, &contact, 7).unwrap_err();
    assert_eq!(error, contact.lost("its connection thread is gone"));
    contact.0[0] ^= 1;
    drop(other);
    let error = told(&one, &contact, 7).unwrap_err();
    assert_eq!(error, contact.lost("its connection thread is gone"));
}
