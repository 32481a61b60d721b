//! Made-up contacts and greetings, as another process of the job sends them.

use std::sync::OnceLock;

use super::device::{Device, NetworkKind};
use super::greeting::{Greeting, answer};
use crate::contact::{BYTES, Contact, Identity};
use crate::tcp::TcpDevice;
use fompi_testkit::Choices;

/// The target `greetings`: the words of a contact, and the bytes of a greeting.
pub fn greetings(data: &[u8]) {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    let device = DEVICE.get_or_init(|| Device::Tcp(TcpDevice::open()));
    let identity = IDENTITY.get_or_init(Identity::default);
    let mut choices = Choices::of(data);
    let contact = Contact(core::array::from_fn(|_| choices.word()));
    // A byte that is no UTF-8 is three bytes then.
    assert!(contact.node().len() <= 3 * 32 && contact.addresses().len() <= 5);
    assert!(contact.lost("a cause").to_string().contains("a cause"));
    let question: [u8; BYTES] = choices.bytes();
    let reply = answer(device, identity, &question);
    let Some(greeting) = Greeting::from(&question) else {
        assert!(reply.is_none(), "what is no greeting is not answered");
        return;
    };
    assert_eq!(greeting.bytes(), question, "a greeting has one form");
    let reply = reply.unwrap();
    let answered = Greeting::from(&reply.bytes).unwrap();
    assert_eq!(reply.keeps_stream, greeting.obstacle(NetworkKind::Tcp).is_none());
    assert!(answered.obstacle(NetworkKind::Tcp).is_none());
}

#[cfg(test)]
#[test]
fn the_kept_greetings_are_answered() {
    fompi_testkit::replay("greetings", greetings);
}
