//! Paths that the documents name exist. Not for links into the network, nor for what a document
//! says of a file. Invariant: a word is left out by its form, never by a list.
//!
//! The test checks the targets of links, and the words in backticks and in blocks of code, in pages
//! and in comments of the sources. A word names something of this repository if it
//! - consists of letters, digits and `_-./` alone and does not begin with `/` or `.`, so that
//!   commands with placeholders like `<N>`, `$X` or `*` are left out,
//! - has no part of capital letters alone (PREFIX, PID), and does not begin with a folder of builds
//!   (`target/`, `build/`, `examples/build`), and
//! - begins with a folder of the repository, of `src` or of `crates`, as `mpi/family` does; or ends
//!   like a source file and either has a folder in front or stands alone in its backticks, as
//!   `acc.rs`.
//!
//! It exists if the path of a file or folder is that word or ends with it, with or without `.rs`,
//! if it is the number of a decision, or if a document makes the file (`<!-- file put.c -->`).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::{Source, collect, hold, sources};

const SOURCE_ENDINGS: [&str; 9] =
    [".rs", ".c", ".h", ".cpp", ".f90", ".inc", ".py", ".toml", ".md"];

/// The paths of a repository, and the names of files that its documents make.
struct Tree {
    paths: BTreeSet<String>,
    made: BTreeSet<String>,
}

impl Tree {
    fn of(mut paths: BTreeSet<String>, documents: &[Source]) -> Tree {
        // A source of a crate is also known by the name of its crate, as `base/sync.rs`.
        let crates = paths.iter().filter_map(|path| path.strip_prefix("crates/"));
        let short: Vec<String> = crates.map(|path| path.replacen("/src/", "/", 1)).collect();
        paths.extend(short);
        let texts = documents.iter().flat_map(|document| document.text.split("<!-- file ").skip(1));
        let made = texts.filter_map(|text| Some(text.split_once(" -->")?.0.to_owned()));
        Tree { made: made.collect(), paths }
    }

    fn is_folder(&self, name: &str) -> bool {
        let within = |folder: String| {
            self.paths.range(folder.clone()..).next().is_some_and(|path| path.starts_with(&folder))
        };
        within(format!("{name}/")) || within(format!("src/{name}/"))
    }

    fn has(&self, word: &str) -> bool {
        let (word, source) = (word.trim_end_matches('/'), format!("{word}.rs"));
        let is = |path: &str, name: &str| {
            let front = path.strip_suffix(name);
            front.is_some_and(|front| front.is_empty() || front.ends_with('/'))
        };
        let is_decision = |path: &str| {
            word.starts_with("docs/decisions/") && path.starts_with(&format!("{word}-"))
        };
        let fits = |path: &String| is(path, word) || is(path, &source) || is_decision(path);
        self.made.contains(word) || self.paths.iter().any(fits)
    }

    /// Whether a word names something of this repository; `alone`: in its backticks.
    fn is_named_by(&self, word: &str, alone: bool) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
        let mut parts = word.split('/');
        let placeholder =
            |part: &str| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase());
        let first = parts.clone().next().unwrap_or_default();
        if !word.chars().all(plain) || first.starts_with('.') || parts.any(placeholder) {
            return false;
        }
        let (within, source) =
            (word.contains('/'), SOURCE_ENDINGS.iter().any(|e| word.ends_with(e)));
        match within {
            true => {
                let is_built = ["target", "build", "dist"].contains(&first)
                    || word.starts_with("examples/build");
                !first.is_empty() && !is_built && (source || self.is_folder(first))
            }
            false => source && alone,
        }
    }

    /// The words of a document whose files do not exist, with their lines.
    fn missing(&self, document: &Source) -> Vec<String> {
        let mut missing = Vec::new();
        let mut in_code = false;
        for (line, number) in document.text.lines().zip(1..) {
            if line.starts_with("```") {
                in_code = !in_code;
                continue;
            }
            let spans: Vec<&str> = match in_code {
                true => vec![line],
                false => line.split('`').skip(1).step_by(2).collect(),
            };
            for span in spans {
                let words: Vec<&str> = span.split_whitespace().collect();
                let alone = words.len() == 1 && !in_code;
                let named = words.into_iter().filter(|word| self.is_named_by(word, alone));
                let gone = named.filter(|word| !self.has(word));
                missing.extend(gone.map(|word| format!("{}:{number}: {word}", document.path)));
            }
            let gone = links(line).filter(|link| !self.leads(document, link));
            missing.extend(gone.map(|link| format!("{}:{number}: ({link})", document.path)));
        }
        missing
    }

    /// Whether a link, as it is seen from the folder of its document, leads to something.
    fn leads(&self, document: &Source, link: &str) -> bool {
        let folder = Path::new(&document.path).parent().unwrap_or(Path::new(""));
        let mut path = PathBuf::new();
        for part in folder.join(link).components() {
            match part {
                Component::ParentDir => _ = path.pop(),
                part => path.push(part),
            }
        }
        self.paths.contains(path.to_str().unwrap_or_default())
    }
}

/// The files to which the links of a line lead; not those of the network, nor within the page, nor
/// to items of Rust, which rustdoc follows.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    let files = targets.filter(|target| {
        !target.contains("::") && !target.contains("://") && !target.starts_with('#')
    });
    files.map(|target| target.split('#').next().unwrap_or_default())
}

/// The documents of this repository that people write, or read first.
fn documents() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    collect(&root.join("docs"), &[".md"], &mut found);
    for path in [
        "README.md",
        "CONTRIBUTING.md",
        "ROADMAP.md",
        "SECURITY.md",
        "benches/README.md",
        "benches/fairness.md",
        "c-tests/README.md",
        "examples/README.md",
        "c-tests/adapter/README.md",
    ] {
        if let Ok(text) = fs::read_to_string(root.join(path)) {
            found.push(Source { path: path.into(), text });
        }
    }
    found
}

/// The comments of the sources, each in its line. Not those of this test, which have examples.
fn comments() -> impl Iterator<Item = Source> {
    let others = sources().into_iter().filter(|source| source.layer() != "tidy");
    others.map(|Source { path, text }| {
        let comment = |line: &str| {
            let line = line.trim_start();
            if line.starts_with("//") { format!("{line}\n") } else { String::from("\n") }
        };
        Source { path, text: text.lines().map(comment).collect() }
    })
}

/// Adds all files and folders below `folder`, except those of git and of builds.
fn paths(folder: &Path, found: &mut BTreeSet<String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        if [".git", "target", "build", "dist", "examples/build"].contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            paths(&path, found);
        }
        found.insert(name);
    }
}

#[test]
fn what_documents_name_is_there() {
    let mut found = BTreeSet::new();
    paths(Path::new(env!("CARGO_MANIFEST_DIR")), &mut found);
    let documents = documents();
    let tree = Tree::of(found, &documents);
    let all = documents.into_iter().chain(comments());
    let missing: Vec<String> = all.flat_map(|text| tree.missing(&text)).collect();
    hold("paths that documents and comments name", &missing);
}

fn small() -> Tree {
    let made = Source { path: "README.md".into(), text: "<!-- file put.c -->\n".into() };
    let paths = [
        "README.md",
        "docs",
        "docs/a.md",
        "docs/decisions/0001-a.md",
        "scripts",
        "scripts/test",
        "src",
        "src/abi",
        "src/abi/acc.rs",
        "crates/base/src/sync.rs",
    ];
    Tree::of(paths.map(str::to_owned).into(), &[made])
}

#[test]
fn a_path_that_is_gone_is_noticed() {
    let of = |text: &str| small().missing(&Source { path: "docs/a.md".into(), text: text.into() });
    for there in [
        "`abi/acc`",
        "`base/sync.rs`",
        "`src/abi/`",
        "`acc.rs` `put.c`",
        "`scripts/test quick`",
        "`docs/decisions/0001`",
        "[x](a.md#y)",
        "[x](../README.md)",
        "```\nscripts/test\n```",
    ] {
        assert_eq!(of(there), [""; 0], "{there}");
    }
    for gone in [
        "`abi/gone`",
        "`base/gone`",
        "`src/gone/`",
        "`gone.rs`",
        "`gone.c`",
        "`docs/decisions/0002`",
        "`scripts/te`",
        "`scripts/gone quick`",
        "`other/gone.rs`",
        "[x](gone.md#y)",
        "[x](../docs/gone.md)",
        "```\nscripts/gone\n```",
        "`cc.rs`",
    ] {
        assert_eq!(of(gone).len(), 1, "{gone}");
    }
    for other in [
        "`scripts/<name>`",
        "`PREFIX/bin/x.c`",
        "`/proc/x.c`",
        "`../lib/x.c`",
        "`osc/sm`",
        "`python3 app.py`",
        "`target/release/x.rs`",
        "`build/x.md`",
        "`abi/$X`",
        "abi/gone",
        "[x](https://a/b.md)",
    ] {
        assert_eq!(of(other), [""; 0], "{other}");
    }
}
