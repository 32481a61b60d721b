//! Words and phrases that comments and documents no longer use. Not a judge of style: a phrase is
//! in the list only if no text has it, so the list can stay as it is or grow. Invariant: a phrase
//! counts where it stands between the ends of words, whatever its case and the breaks of lines.

use std::fs;
use std::path::Path;

use super::{Source, collect, hold, sources};

/// Phrases, in lower case, and what a text says in their place.
const BANNED: [(&str, &str); 32] = [
    ("who waits", "the waiting rank, a thread that waits"),
    ("who wait", "ranks that wait"),
    ("who has", "the rank that has"),
    ("who have", "ranks that have"),
    ("who is", "the rank that is"),
    ("who owns", "the owner"),
    ("who holds", "the holder"),
    ("who hold", "the holders"),
    ("who wants", "a rank that wants"),
    ("who knows", "a rank that knows"),
    ("who asks", "the caller"),
    ("who sees", "a reader"),
    ("who comes", "the next rank"),
    ("who calls", "the caller"),
    ("who enters", "a thread that enters"),
    ("who rings", "the rank that wakes"),
    ("those who", "ranks that"),
    ("in vain", "without a result"),
    ("how manieth", "the index"),
    ("so many-th", "every n-th"),
    ("has come", "has arrived, has entered"),
    ("is told that", "is notified, knows"),
    ("are told", "are notified"),
    ("had to do with", "has contacted, has used"),
    ("has had to do with", "uses"),
    ("knock", "probe"),
    ("knocks", "probes"),
    ("bell", "doorbell, wake-up"),
    ("bells", "wake-ups, posts"),
    ("door", "listener"),
    ("liked", "preferred"),
    ("shelf", "bucket"),
];

/// The page that shows such phrases as examples.
const SHOWS: &str = "docs/style.md";

/// A text in lower case with one space between words, and the line of each of its bytes.
fn flat(text: &str) -> (String, Vec<usize>) {
    let (mut flat, mut lines) = (String::from(" "), vec![1]);
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim_start();
        let marks = ["//!", "///", "//", "> ", "- "];
        let body = marks.iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
        for word in body.split_whitespace() {
            flat.push_str(&word.to_lowercase());
            flat.push(' ');
            lines.resize(flat.len(), number);
        }
    }
    (flat, lines)
}

/// The places of a document that have a banned phrase.
fn banned_in(document: &Source) -> Vec<String> {
    let (text, lines) = flat(&document.text);
    let is_end = |c: Option<char>| c.is_none_or(|c| !(c.is_alphanumeric() || c == '_'));
    let mut broken = Vec::new();
    for (phrase, instead) in BANNED {
        for (at, _) in text.match_indices(phrase) {
            let before = text[..at].chars().next_back();
            let behind = text[at + phrase.len()..].chars().next();
            if is_end(before) && is_end(behind) {
                let path = &document.path;
                broken.push(format!("{path}:{}: `{phrase}`, say: {instead}", lines[at]));
            }
        }
    }
    broken
}

/// The comments of a source, each in its line; also those behind code.
fn comments_of(source: &Source) -> Source {
    let comment = |line: &str| match line.find("// ").or_else(|| line.find("//!")) {
        _ if line.trim_start().starts_with("//") => format!("{line}\n"),
        Some(at) if !line[..at].ends_with(':') => format!("{}\n", &line[at..]),
        _ => String::from("\n"),
    };
    Source { path: source.path.clone(), text: source.text.lines().map(comment).collect() }
}

#[test]
fn texts_have_no_banned_phrase() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut found, mut programs) = (Vec::new(), Vec::new());
    collect(&root.join("docs"), &[".md", ".toml"], &mut found);
    collect(&root.join("c-tests"), &[".c", ".h", ".cpp"], &mut programs);
    for path in ["README.md", "CONTRIBUTING.md"] {
        if let Ok(text) = fs::read_to_string(root.join(path)) {
            found.push(Source { path: path.into(), text });
        }
    }
    found.retain(|document| document.path != SHOWS);
    found.extend(sources().iter().filter(|source| source.room() != "tidy").map(comments_of));
    found.extend(programs.iter().map(comments_of));
    let broken: Vec<String> = found.iter().flat_map(banned_in).collect();
    hold("style.md, Comments: a phrase that says less than its plain form", &broken);
}

#[test]
fn a_banned_phrase_is_noticed() {
    let of = |text: &str| {
        let source = Source { path: "src/a.rs".into(), text: text.into() };
        banned_in(&comments_of(&source)).len()
    };
    assert_eq!(of("/// Who\n/// waits for a rank is missed.\n"), 1);
    assert_eq!(of("let a = 1; // the bell, and a door\n"), 2);
    assert_eq!(of("/// The doorbell of the rank that waits. Indoors.\n"), 0);
    assert_eq!(of("let bell = \"who waits\";\nlet at = \"http://door\";\n"), 0);
}
