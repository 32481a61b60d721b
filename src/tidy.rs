//! Tests over the text of the sources for the rules of `docs/style.md` that a machine can check.
//! They know lines and words, not syntax, because rustfmt has made the text regular. Invariant: a
//! rule that is broken anywhere fails one test, which names every place.

mod bare_numbers;
mod cycles;
mod documents;
mod layers;
mod message_codes;
mod prose;
mod twins;

use std::fs;
use std::path::Path;

const LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 60;
const COLUMNS_MAX: usize = 100;

/// A source file: its path from the root of the repository, and its text.
struct Source {
    path: String,
    text: String,
}

impl Source {
    /// The path below `src`; in a crate, the name of its folder and the path below its `src`.
    fn inner(&self) -> String {
        let path = self.path.strip_prefix("crates/").unwrap_or(&self.path);
        path.strip_prefix("src/").unwrap_or(path).replacen("/src/", "/", 1)
    }

    /// Whether it belongs to a crate below the library itself.
    fn is_of_crate(&self) -> bool {
        self.path.starts_with("crates/")
    }

    /// The top-level module or crate that it belongs to: `abi` for abi.rs and for everything in
    /// abi/.
    fn layer(&self) -> String {
        let inner = self.inner();
        let first = inner.split('/').next().unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first).to_owned()
    }

    /// The lines of code, strings and comments left out, with their numbers.
    fn code(&self) -> Vec<(usize, String)> {
        code_of(&self.text).lines().zip(1..).map(|(line, number)| (number, line.into())).collect()
    }
}

/// The end of a string or a comment; the lines keep their numbers.
fn end_of_token(rest: &str) -> Option<(&'static str, usize)> {
    let raw = ["r#\"", "r\""].iter().find(|start| rest.starts_with(**start));
    match (raw, rest) {
        (Some(&"r#\""), _) => Some(("\"#", 3)),
        (Some(start), _) => Some(("\"", start.len())),
        _ if rest.starts_with('"') => Some(("\"", 1)),
        _ if rest.starts_with("//") => Some(("\n", 2)),
        _ if rest.starts_with("/*") => Some(("*/", 2)),
        _ => None,
    }
}

/// A text without its strings and comments.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if let Some(quoted) = ["'\"'", "'\\\"'", "'\\''"].iter().find(|q| rest.starts_with(**q)) {
            at += quoted.len();
            continue;
        }
        let Some((end, start)) = end_of_token(rest) else {
            code.push(c);
            at += c.len_utf8();
            continue;
        };
        let plain_string = rest.starts_with('"');
        let mut to = at + start;
        while to < text.len() && !text[to..].starts_with(end) {
            let c = text[to..].chars().next().unwrap_or_default();
            code.extend((c == '\n').then_some(c));
            let escape = plain_string && c == '\\' && !text[to..].starts_with("\\\n");
            to += c.len_utf8() + usize::from(escape);
        }
        at = (to + if end == "\n" { 0 } else { end.len() }).min(text.len());
    }
    code
}

/// The words of a line of code: names, and paths like `crate::fabric::Rank`.
fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
}

/// The first name of every path that starts at `crate`, with its line: of `crate::a::B`, and of
/// each one in `crate::{a::B, c::{D, E}}`.
fn named_from_crate(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (at, start) in code.match_indices("crate::") {
        let mut depth = 0;
        let mut item_starts = true;
        for (offset, c) in code[at + start.len()..].char_indices() {
            let here = at + start.len() + offset;
            match c {
                '{' => depth += 1,
                '}' => (depth, item_starts) = (depth - 1, false), // also after a last comma
                ',' if depth == 1 => item_starts = true,
                _ if item_starts && (c.is_alphanumeric() || c == '_') => {
                    item_starts = false;
                    let name = words(&code[here..]).next().unwrap_or_default();
                    let line = code[..here].lines().count();
                    found.push((line, name.split("::").next().unwrap_or_default()));
                }
                _ => {}
            }
            if depth == 0 && !item_starts {
                break;
            }
        }
    }
    found
}

/// Collects the files below `folder` whose name ends in one of `endings`; none if there is no such
/// folder. Generated files are not ours to shape.
fn collect(folder: &Path, endings: &[&str], found: &mut Vec<Source>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            if !name.ends_with("/generated") {
                collect(&path, endings, found);
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(Source { path: name, text: fs::read_to_string(&path).unwrap() });
        }
    }
}

/// All Rust sources of the library: of its own crate and of those below it.
fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    for folder in ["crates", "src"] {
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &[".rs"], &mut found);
    }
    assert!(found.iter().any(Source::is_of_crate));
    found
}

/// Fails with all places at once.
fn hold(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}

/// The functions of a file: line of `fn`, and number of lines to the closing brace.
fn functions(text: &str) -> Vec<(usize, usize)> {
    let code = code_of(text);
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        if !words(line).any(|word| word == "fn") || line.trim_start().starts_with('.') {
            continue;
        }
        let close = format!("{}}}", &line[..indent]);
        let ends = |line: &&str| line.trim_end() == close || line.trim_end().ends_with(';');
        if line.trim_end().ends_with(';') || line.trim_end().ends_with('}') {
            continue;
        }
        let body = lines[first + 1..].iter().take_while(|line| {
            let deeper = line.len() - line.trim_start().len() > indent;
            line.trim().is_empty() || deeper || !ends(line)
        });
        found.push((first + 1, body.count() + 2));
    }
    found
}

#[test]
fn a_file_is_short_and_says_what_it_is_for() {
    let mut broken = Vec::new();
    for source in sources() {
        let count = source.text.lines().count();
        if count > LINES_MAX {
            broken.push(format!("{}: {count} lines, at most {LINES_MAX}", source.path));
        }
        if !source.text.starts_with("//!") {
            broken.push(format!("{}: does not open with //!", source.path));
        }
    }
    hold("style.md, SIZE and COMMENTS", &broken);
}

#[test]
fn a_line_is_short() {
    let mut broken = Vec::new();
    for source in sources() {
        for (number, line) in source.text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS_MAX {
                broken.push(format!("{}:{}: {columns} columns", source.path, number + 1));
            }
        }
    }
    hold("style.md, SIZE", &broken);
}

#[test]
fn a_function_is_short() {
    let mut broken = Vec::new();
    for source in sources() {
        for (line, count) in functions(&source.text) {
            if count > FUNCTION_LINES_MAX {
                broken.push(format!("{}:{line}: a function of {count} lines", source.path));
            }
        }
    }
    hold("style.md, SIZE", &broken);
}

#[test]
fn atomics_come_from_sync_alone() {
    let mut broken = Vec::new();
    for source in sources().iter().filter(|source| source.inner() != "base/sync.rs") {
        for (number, code) in source.code() {
            if words(&code).any(|word| word.contains("sync::atomic")) {
                broken.push(format!("{}:{number}", source.path));
            }
        }
    }
    hold("style.md, ATOMICS", &broken);
}

#[test]
fn nothing_is_left_for_later() {
    // Written in two halves, so that this file does not break its own rule.
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("dbg", "!("),
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("unreachable", "_unchecked"),
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = sources();
    for folder in ["c-tests", "examples", "fortran-tests", "include", "benches", "scripts"] {
        collect(
            &root.join(folder),
            &[".c", ".h", ".cpp", ".f90", ".inc", ".sh", ".py"],
            &mut found,
        );
    }
    let mut broken = Vec::new();
    for source in &found {
        for (number, line) in source.text.lines().enumerate() {
            if let Some(mark) = marks.iter().find(|mark| line.contains(**mark)) {
                broken.push(format!("{}:{}: {mark}", source.path, number + 1));
            }
        }
    }
    hold("style.md, MAIN", &broken);
}

#[test]
fn strings_and_comments_are_not_code() {
    assert_eq!(code_of(r#"let a = "unsafe \" // no"; // unsafe"#), "let a = ; ");
    assert_eq!(code_of("if c == '\"' { b } /* x\ny */ else"), "if c ==  { b } \n else");
    assert_eq!(code_of("a(\"x \\\n y\"); r#\"b\"c\"#;\nd"), "a(\n); ;\nd");
}

#[test]
fn grouped_names_are_seen() {
    let code = "use crate::fabric::Rank;\nuse crate::{\n    a::{b, c},\n    d,\n};\nx(crate::e::F)";
    assert_eq!(named_from_crate(code), [(1, "fabric"), (3, "a"), (4, "d"), (6, "e")]);
}

#[test]
fn functions_are_counted_to_their_closing_brace() {
    let text = "trait T {\n    fn a(&self);\n    fn b(\n        &self,\n    ) -> u8;\n}\n\
                fn c() {\n    if x {\n    }\n}\nfn d() {}\n\
                fn e<T>() -> T\nwhere\n    T: U,\n{\n}\n";
    assert_eq!(functions(text), [(3, 3), (7, 4), (12, 5)]);
}
