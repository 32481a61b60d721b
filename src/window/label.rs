//! Names of windows in errors and reports.

use super::Window;
use crate::report::printable;

/// Returns how a line names a window: by the name that the program gave it, or by its handle.
pub fn label(window: &Window) -> String {
    let call = window.facts.flavor.call();
    name(window).unwrap_or_else(|| format!("window {:#x} of {call}", window.handle))
}

/// Returns a call on a window, with the name that the program gave the window, if it gave one.
pub fn call_on(window: &Window, call: &str) -> String {
    name(window).map_or_else(|| call.to_owned(), |name| format!("{call} on {name}"))
}

/// Returns the name that the program gave a window, as a line has it.
fn name(window: &Window) -> Option<String> {
    let name = window.name.lock();
    (!name.is_empty()).then(|| format!("window \"{}\"", printable(&name)))
}
