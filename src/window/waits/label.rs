//! How reports name windows.

use crate::window::Window;

/// Returns how a line names a window: by the name that the program gave it, or else by its handle.
pub fn label(window: &Window) -> String {
    let name = window.name.lock();
    let call = window.facts.flavor.call();
    match name.is_empty() {
        true => format!("window {:#x} of {call}", window.handle),
        false => format!("window \"{}\"", printable(&name)),
    }
}

/// Returns a name that a program gave, without characters that would break the line.
pub fn printable(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
