//! A simulated device, for tests of this module and of the transport over it.

// As in tests: its items have the names of the manual pages, and numbers are small.
#![allow(
    clippy::missing_docs_in_private_items,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

#[allow(clippy::missing_safety_doc)] // the C library's functions
pub mod fake;
mod jobs;
pub mod profile;

use super::Port;
use crate::config::Verbs;
use crate::error::Result;
use fake::FAKE;
use profile::{PROFILE, Profile};

/// Opens the port of a simulated device with this profile.
pub fn port(profile: &Profile, settings: &Verbs) -> Result<Port> {
    PROFILE.with_borrow_mut(|current| *current = profile.clone());
    let port = Port::of(&FAKE, settings);
    PROFILE.with_borrow_mut(|current| *current = Profile::default());
    port
}
