//! Words and phrases that comments, documents and the sentences of the conformance rows must not
//! use. Not a judge of style: a phrase is in a list only if no text has it, so the lists can stay
//! as they are or grow. Invariant: a phrase counts if it is between the ends of words, in any case
//! and across line breaks, unless it is a name in backticks.

use std::fs;
use std::path::Path;

use super::{Source, collect, hold, sources};

/// Phrases, in lower case, each with a replacement.
type Phrases = &'static [(&'static str, &'static str)];

/// Phrases that no text has.
const BANNED: Phrases = &[
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
    ("who only", "a call that only, a rank that only"),
    ("no one", "no rank, no process, no thread"),
    ("hands out", "allocates, assigns"),
    ("handed out", "allocated, assigned"),
    ("sees to it", "makes sure"),
    ("sees to that", "does that"),
    ("goes on waiting", "continues to wait"),
    ("answer alike", "get the same result"),
    ("may land", "may take effect, may arrive"),
    ("land in", "take effect in, arrive in"),
    ("taken along", "copied with"),
    ("by right", "rightly"),
    ("cheaper by", "saves"),
    ("nor is it", "it is not ... either"),
    ("seen whole", "atomic as a whole, read as a whole"),
];

/// Phrases that the programs of `c-tests` may have in their comments, and no other text.
const BANNED_BUT_IN_PROGRAMS: Phrases = &[
    ("nobody", "no rank, no process, no thread"),
    ("somebody", "a rank, a thread, a user"),
    ("anybody", "any rank, any process"),
    ("whoever", "a rank that, any thread that"),
    ("so many", "the number, at most that number"),
    ("what is there", "the contents, the value"),
    ("all the same", "still, too"),
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

/// Returns the places of a document that have one of these phrases.
fn banned_in(document: &Source, phrases: Phrases) -> Vec<String> {
    let (text, lines) = flat(&document.text);
    let is_end = |c: Option<char>| c.is_none_or(|c| !(c.is_alphanumeric() || c == '_'));
    let mut broken = Vec::new();
    for (phrase, instead) in phrases {
        for (at, _) in text.match_indices(*phrase) {
            let before = text[..at].chars().next_back();
            let behind = text[at + phrase.len()..].chars().next();
            let is_name = before == Some('`') && behind == Some('`');
            if is_end(before) && is_end(behind) && !is_name {
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

/// The keys of a conformance row whose values are sentences.
const SENTENCES: [&str; 4] = ["rule", "because", "note", "title"];

/// The sentences of a file of conformance rows, each in its line.
fn sentences_of(rows: &Source) -> Source {
    let mut is_sentence = false;
    let sentence = |line: &str| {
        let key = line.split_once(" = ").map(|(key, _)| key);
        match key.filter(|key| key.chars().all(|c| c.is_ascii_lowercase() || c == '_')) {
            Some(key) => is_sentence = SENTENCES.contains(&key),
            None if line.starts_with('[') => is_sentence = false,
            None => {}
        }
        if is_sentence { format!("{}\n", line.replace(['"', '\\'], " ")) } else { "\n".into() }
    };
    Source { path: rows.path.clone(), text: rows.text.lines().map(sentence).collect() }
}

#[test]
fn texts_have_no_banned_phrase() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut pages, mut rows, mut programs) = (Vec::new(), Vec::new(), Vec::new());
    for folder in ["docs", "benches", "c-tests", "examples", "scripts"] {
        collect(&root.join(folder), &[".md"], &mut pages);
    }
    collect(&root.join("docs"), &[".toml"], &mut rows);
    collect(&root.join("c-tests"), &[".c", ".h", ".cpp"], &mut programs);
    for path in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        if let Ok(text) = fs::read_to_string(root.join(path)) {
            pages.push(Source { path: path.into(), text });
        }
    }
    pages.retain(|page| page.path != SHOWS);
    pages.extend(rows.iter().map(sentences_of));
    pages.extend(sources().iter().filter(|source| source.layer() != "tidy").map(comments_of));
    let programs: Vec<Source> = programs.iter().map(comments_of).collect();
    let mut broken: Vec<String> =
        pages.iter().chain(&programs).flat_map(|text| banned_in(text, BANNED)).collect();
    broken.extend(pages.iter().flat_map(|page| banned_in(page, BANNED_BUT_IN_PROGRAMS)));
    hold("style.md, Comments: a phrase that says less than its plain form", &broken);
}

#[test]
fn a_banned_phrase_is_noticed() {
    let of = |text: &str| {
        let source = Source { path: "src/a.rs".into(), text: text.into() };
        banned_in(&comments_of(&source), BANNED).len()
    };
    assert_eq!(of("/// Who\n/// waits for a rank is missed.\n"), 1);
    assert_eq!(of("let a = 1; // the bell, and a door\n"), 2);
    assert_eq!(of("/// The doorbell of the rank that waits. Indoors. See `door`.\n"), 0);
    assert_eq!(of("let bell = \"who waits\";\nlet at = \"http://door\";\n"), 0);
}

#[test]
fn a_banned_phrase_in_the_sentence_of_a_row_is_noticed() {
    let of = |text: &str| {
        let rows = Source { path: "docs/conformance/a.toml".into(), text: text.into() };
        banned_in(&sentences_of(&rows), BANNED_BUT_IN_PROGRAMS).len()
    };
    assert_eq!(of("[[rule]]\nrule = \"Nobody waits.\"\nmutant = \"a\"\n"), 1);
    assert_eq!(of("rule = \"\"\"\\\n  What is \\\n  there.\"\"\"\nwhere = \"a.rs b\"\n"), 1);
    assert_eq!(of("rule = \"A rank waits.\"\nmutant = \"wakes-nobody\"\nfrom = \"nobody\"\n"), 0);
}
