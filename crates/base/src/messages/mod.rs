//! Messages of the library: every error and warning, with its code, its text and advice for users.
//! `docs/reference/messages.md` lists them. Invariant: a code has one meaning for ever, so the
//! numbers of its kind have no gap, and a code that is not used any more is in [`RETIRED`].
//!
//! The function that finds a cause names the message; [`filled!`](crate::filled) gives it the
//! values, and does not compile unless their names are those of the text's placeholders.

mod message;
#[cfg(all(test, not(loom)))]
mod messages_page;
mod of_arguments;
mod of_epochs;
mod of_fompirun;
mod of_handles;
mod of_notifications;
mod of_processes;
mod of_resources;
mod of_windows;
mod warnings;

pub use crate::filled;
pub use message::{Explanation, Filled, Line, Message, fill, print_without_code};
pub use of_arguments::*;
pub use of_epochs::*;
pub use of_fompirun::*;
pub use of_handles::*;
pub use of_notifications::*;
pub use of_processes::*;
pub use of_resources::*;
pub use of_windows::*;
pub use warnings::*;

/// The codes that had a meaning once. None of them gets another one.
pub const RETIRED: [&str; 1] = ["FOMPI-E096"];

/// Returns all messages, by kind and number: errors, then warnings.
pub fn all() -> Vec<&'static Explanation> {
    let tables = [
        of_arguments::TABLE,
        of_epochs::TABLE,
        of_windows::TABLE,
        of_resources::TABLE,
        of_processes::TABLE,
        of_fompirun::TABLE,
        of_notifications::TABLE,
        of_handles::TABLE,
        warnings::TABLE,
    ];
    let mut all: Vec<_> = tables.into_iter().flatten().collect();
    all.sort_by_key(|entry| entry.message.code);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_one_meaning_and_none_is_missing() {
        let used: Vec<&str> = all().iter().map(|entry| entry.message.code).collect();
        for kind in ["FOMPI-E", "FOMPI-W"] {
            let mut codes: Vec<&str> = used.iter().copied().chain(RETIRED).collect();
            codes.retain(|code| code.starts_with(kind));
            codes.sort_unstable();
            let expected: Vec<_> = (1..=codes.len()).map(|n| format!("{kind}{n:03}")).collect();
            assert_eq!(codes, expected);
        }
        assert!(used.iter().all(|code| code.len() == "FOMPI-E001".len()));
    }

    #[test]
    fn advice_is_in_sentences_and_a_text_is_none() {
        for Explanation { message, when, remedy } in all() {
            let is_sentence = |text: &str| {
                text.ends_with('.') && text.starts_with(|c: char| c.is_ascii_uppercase())
            };
            assert!(is_sentence(when) && is_sentence(remedy), "{}", message.code);
            assert!(!message.text.ends_with('.'), "{}", message.code);
            let is_error = message.code.starts_with("FOMPI-E");
            assert!(is_error || message.class.is_none(), "{}", message.code);
        }
    }
}
