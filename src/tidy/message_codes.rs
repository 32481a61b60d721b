//! Every error and warning has a code. Invariant: only two functions write to standard error, one
//! for lines with a code and one for information, and every message in the tables is used as its
//! placeholders need. That a text gets all its values where it is filled, the compiler checks.

use std::collections::BTreeMap;

use super::twins::is_test;
use super::{Source, code_of, hold, sources, words};
use crate::messages;

/// The files that may name these words: what writes to standard error, and what prints without a
/// code.
const WRITERS: [(&str, &[&str]); 4] = [
    ("stderr", &["base/messages/message.rs"]),
    ("eprint", &[]),
    ("eprintln", &[]),
    ("print_without_code", &["base/messages/message.rs", "base/messages/mod.rs", "report/mod.rs"]),
];

/// The code of a source without its tests.
fn product_code(source: &Source) -> String {
    let code = code_of(&source.text);
    code.split("\nmod tests {").next().unwrap_or_default().to_owned()
}

/// The sources of the library and the programs, without tests.
fn product() -> Vec<Source> {
    let is_product = |source: &Source| !is_test(source) && source.layer() != "tidy";
    sources().into_iter().filter(is_product).collect()
}

/// Places that write to standard error by themselves.
fn writers(sources: &[Source]) -> Vec<String> {
    let mut broken = Vec::new();
    for source in sources {
        let (inner, code) = (source.inner(), product_code(source));
        for (word, allowed) in WRITERS.iter().filter(|(_, allowed)| !allowed.contains(&&*inner)) {
            let is_named = |name: &str| name.split("::").any(|part| part == *word);
            if words(&code).any(is_named) {
                broken.push(format!("{}: {word}, which is for {allowed:?}", source.path));
            }
        }
    }
    broken
}

/// The names of all messages, each with its text.
fn texts() -> BTreeMap<String, &'static str> {
    let text_of: BTreeMap<&str, &str> =
        messages::all().iter().map(|entry| (entry.message.code, entry.message.text)).collect();
    let mut texts = BTreeMap::new();
    for source in sources().iter().filter(|source| source.inner().starts_with("base/messages/")) {
        for line in source.text.lines() {
            let mut parts = line.trim_start().splitn(3, ' ');
            let (Some(name), Some(code)) = (parts.next(), parts.next()) else { continue };
            let code = format!("FOMPI-{}", code.trim_matches('"'));
            if let Some(text) = text_of.get(&*code) {
                texts.insert(name.to_owned(), *text);
            }
        }
    }
    assert_eq!(texts.len(), text_of.len(), "the names are those of the tables");
    texts
}

/// The placeholders of a text.
fn placeholders(text: &str) -> Vec<&str> {
    text.split('{').skip(1).map(|rest| rest.split('}').next().unwrap_or_default()).collect()
}

/// Messages of these texts that nothing names, and errors whose message needs other values.
fn misused(texts: &BTreeMap<String, &str>, sources: &[Source]) -> Vec<String> {
    let outside = |source: &&Source| !source.inner().starts_with("base/messages/");
    let all: String = sources.iter().filter(outside).map(product_code).collect();
    let all = all.split_whitespace().collect::<Vec<_>>().join(" ").replace("( ", "(");
    let mut broken = Vec::new();
    for (name, text) in texts {
        let path = format!("messages::{name}");
        let used = |before: &str| {
            all.match_indices(&format!("{before}{path}")).any(|(at, found)| {
                let behind = all[at + found.len()..].chars().next();
                behind.is_none_or(|c| !(c.is_alphanumeric() || c == '_'))
            })
        };
        let needs = placeholders(text);
        if !used("") {
            broken.push(format!("{name}: not used; list its code in RETIRED"));
        }
        if used("Error::Wrong(&") && !needs.is_empty() {
            broken.push(format!("{name}: Error::Wrong has no values for {needs:?}"));
        }
        if used("Error::Argument(&") && needs != ["value"] {
            broken.push(format!("{name}: Error::Argument has one value, not {needs:?}"));
        }
    }
    broken
}

#[test]
fn every_line_but_information_has_a_code() {
    // The programs and libfompi_next.so say which of them prints.
    let is_other = |source: &Source| ["cli", "next", "selftest"].contains(&&*source.layer());
    let library: Vec<_> = product().into_iter().filter(|source| !is_other(source)).collect();
    hold("style.md, ERRORS: print a `Line` of a message", &writers(&library));
}

#[test]
fn every_message_is_used() {
    hold("messages of `base`", &misused(&texts(), &product()));
}

#[test]
fn a_line_without_a_code_is_noticed() {
    let of =
        |path: &str, text: &str| writers(&[Source { path: path.into(), text: text.into() }]).len();
    assert_eq!(of("src/abi/a.rs", "eprintln!(\"x\");\nstd::io::stderr().write_all(b);"), 2);
    assert_eq!(of("src/abi/a.rs", "messages::print_without_code(\"x\");"), 1);
    assert_eq!(of("src/report/mod.rs", "print_without_code(\"x\"); // stderr\n"), 0);
    assert_eq!(of("src/abi/a.rs", "a();\n#[cfg(test)]\nmod tests {\n    eprintln!();\n}\n"), 0);
}

#[test]
fn a_message_that_is_not_used_as_it_must_be_is_noticed() {
    let texts = [("PLAIN", "a"), ("VALUE", "a {value}"), ("TWO", "{a} {b}")];
    let texts = texts.map(|(name, text)| (name.to_owned(), text)).into();
    let of = |text: &str| {
        misused(&texts, &[Source { path: "src/abi/a.rs".into(), text: text.into() }]).len()
    };
    let well = "Error::Wrong(&messages::PLAIN); Error::Argument(\n    &messages::VALUE, 3);";
    assert_eq!(of(&format!("{well} filled!(messages::TWO; a, b)")), 0);
    assert_eq!(of(well), 1);
    assert_eq!(of(&format!("{well} messages::TWO_MORE")), 1);
    assert_eq!(of(&format!("{well} Error::Wrong(&messages::TWO)")), 1);
    assert_eq!(of(&format!("{well} Error::Argument(&messages::TWO)")), 1);
    assert_eq!(of(&format!("{well} messages::TWO Error::Argument(&messages::PLAIN, 1)")), 1);
}
