//! The page that lists all messages, `docs/reference/messages.md`. The test below compares it, and
//! writes it for `scripts/dev/messages`.

use super::{Explanation, RETIRED, all};
use core::fmt::Write;

const HEAD: &str = "\
<!-- Written by scripts/dev/generate from crates/base/src/messages. -->

# Messages

All errors and warnings of libfompi, by code. A line ends with its code in brackets; the text that
`MPI_Error_string` returns for an error does, too. A code never changes its meaning. Words in braces
stand for values. [Errors](errors.md) describes how a program gets an error, and
[Troubleshooting](../guide/troubleshooting.md) has the symptoms without a message.
";

/// Returns the page.
fn page() -> String {
    let mut page = String::from(HEAD);
    for (title, kind) in [("Errors", "FOMPI-E"), ("Warnings", "FOMPI-W")] {
        let _ = write!(page, "\n## {title}\n");
        for entry in all().iter().filter(|entry| entry.message.code.starts_with(kind)) {
            page += &section(entry);
        }
    }
    if !RETIRED.is_empty() {
        let _ = write!(page, "\n## Retired codes\n\n{}\n", RETIRED.join(", "));
    }
    page
}

/// Returns the part of the page about one message.
fn section(entry: &Explanation) -> String {
    let Explanation { message, when, remedy } = entry;
    let class = message.class.map_or(String::new(), |class| format!("{}. ", class.name()));
    let (code, text) = (message.code, message.text);
    let block = format!("<!-- text -->\n```text\n{text}\n```");
    format!("\n### {code}\n\n{block}\n\n{class}{when}\n\nRemedy: {remedy}\n")
}

#[test]
fn the_page_is_that_of_these_messages() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/messages.md");
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == page(), "{path} is outdated: run scripts/dev/generate messages");
}
