//! Modules of the library's own crate, and which of them each may name: read from `docs/style.md`,
//! so that the page and the sources cannot say different things. Not for the crates below, whose
//! manifests say what they may name. Invariant: a name on the page that nothing in the sources
//! needs is wrong, too.
//!
//! The page has a table of the modules, one row for each, the upper layers first. Its second column
//! holds the modules that the first may name. A row whose first column holds paths adds to what
//! these files may name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{Source, code_of, hold, named_from_crate, sources, words};

const TABLE: &str = "| module | may name |";

/// The rules that a page has for layers.
struct Rules {
    /// the layers from the top down, and what each may name
    layers: Vec<(String, Vec<String>)>,
    /// beginnings of paths below `src`, and what else these may name
    also: Vec<(String, Vec<String>)>,
}

/// The texts in backticks.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

impl Rules {
    fn of(page: &str) -> Rules {
        let (_, table) = page.split_once(TABLE).expect("a table of the layers");
        let (mut layers, mut also) = (Vec::new(), Vec::new());
        for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
            let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
            assert_eq!(cells.len(), 2, "a row of two columns: {row}");
            for name in quoted(cells[0]) {
                let list = if name.contains('/') { &mut also } else { &mut layers };
                list.push((name, quoted(cells[1])));
            }
        }
        Rules { layers, also }
    }

    fn of_this_repository() -> Rules {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/style.md");
        Rules::of(&fs::read_to_string(page).unwrap())
    }

    /// The place of a layer in the table.
    fn index(&self, layer: &str) -> Option<usize> {
        self.layers.iter().position(|(name, _)| name == layer)
    }

    /// Where the table contradicts itself: a layer may name one above it, or one without a row.
    fn upward(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for (index, (layer, below)) in self.layers.iter().enumerate() {
            for name in below.iter().filter(|name| self.index(name) <= Some(index)) {
                broken.push(format!("{layer} may name {name}, which is no row below it"));
            }
        }
        broken
    }

    /// Where the sources and the table contradict each other, in either direction.
    fn broken_layers(&self, sources: &[Source]) -> Vec<String> {
        let mut broken = self.upward();
        let mut needed = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for source in sources.iter().filter(|source| !source.is_of_crate()) {
            let layer = source.layer();
            let Some(index) = self.index(&layer) else {
                if source.inner().contains('/') && layer != "tidy" {
                    broken.push(format!("{}: {layer} has no row", source.path));
                }
                continue;
            };
            seen.insert(layer.clone());
            let also = self.also.iter().filter(|(path, _)| source.inner().starts_with(path));
            for (number, named) in named_from_crate(&code_of(&source.text)) {
                if named == layer || self.index(named).is_none() {
                    continue;
                }
                let mut rows = also.clone().chain([&self.layers[index]]);
                match rows.find(|(_, names)| names.iter().any(|name| name == named)) {
                    Some((row, _)) => _ = needed.insert((row.as_str(), named.to_owned())),
                    None => broken.push(format!("{}:{number}: {layer} names {named}", source.path)),
                }
            }
        }
        for (row, names) in self.layers.iter().chain(&self.also) {
            let unused = names.iter().filter(|name| !needed.contains(&(row, (*name).clone())));
            broken.extend(unused.map(|name| format!("{row} may name {name}, and does not")));
        }
        let layers = self.layers.iter().filter(|(layer, _)| !seen.contains(layer));
        broken.extend(layers.map(|(layer, _)| format!("there is no layer {layer}")));
        broken
    }
}

#[test]
fn layers_depend_one_way() {
    hold("style.md, Modules", &Rules::of_this_repository().broken_layers(&sources()));
}

/// Where files name the RDMA device that may not: verbs outside of fabric and of the settings, and
/// libibverbs outside of `fabric/verbs`.
fn broken_verbs(sources: &[Source]) -> Vec<String> {
    let mut broken = Vec::new();
    for source in sources {
        let is_in = |places: &[&str]| places.iter().any(|place| source.inner().starts_with(place));
        let banned: &[&str] = match () {
            () if is_in(&["fabric/verbs/", "sys/", "base/config", "base/net_settings.rs"])
                || is_in(&["base/variables.rs", "cli/"]) =>
            {
                &[]
            }
            // Its tests run over a simulated libibverbs.
            () if is_in(&["fabric/wire/tests/"]) => &[],
            () if is_in(&["fabric/"]) => &["ibverbs"],
            () => &["ibverbs", "verbs"],
        };
        for (line, code) in source.code() {
            let names = words(&code).flat_map(|word| word.split("::"));
            let named = names.filter(|name| banned.contains(&name.to_lowercase().as_str()));
            broken.extend(named.map(|name| format!("{}:{line}: {name}", source.path)));
        }
    }
    broken
}

#[test]
fn only_fabric_knows_verbs() {
    hold("style.md, Modules", &broken_verbs(&sources()));
}

#[test]
fn a_name_of_verbs_is_noticed() {
    let seen = |path: &str, text: &str| broken_verbs(&[source(path, text)]);
    let text = "use crate::fabric::verbs::Nic; use crate::sys::ibverbs;";
    assert_eq!(
        seen("window/a.rs", text),
        ["src/window/a.rs:1: verbs", "src/window/a.rs:1: ibverbs"]
    );
    assert_eq!(seen("fabric/wire/a.rs", text), ["src/fabric/wire/a.rs:1: ibverbs"]);
    assert_eq!(seen("fabric/verbs/a.rs", text), [""; 0]);
    assert_eq!(seen("abi/a.rs", "mod verbs_counts; // verbs"), [""; 0]);
}

const PAGE: &str = "Text.\n\n| module | may name |\n|---|---|\n| `a` | `b`, `c` |\n| `b` | `c` |\n\
                    | `c` | nothing |\n| `c/x.rs`, `c/y/` | `b` |\n";

fn source(path: &str, text: &str) -> Source {
    Source { path: format!("src/{path}"), text: text.into() }
}

/// Sources that need all of [`PAGE`], and no more.
fn small() -> Vec<Source> {
    vec![
        source("a.rs", "use crate::b::B; use crate::c::C;"),
        source("b/mod.rs", "use crate::c::C; use crate::error::Error;"),
        source("c/mod.rs", "// crate::a"),
        source("c/x.rs", "use crate::b::B;"),
        source("c/y/z.rs", "use crate::{b::B, c::C};"),
    ]
}

#[test]
fn what_fits_to_the_page_is_not_complained_about() {
    let rules = Rules::of(PAGE);
    assert_eq!(rules.broken_layers(&small()), [""; 0]);
}

#[test]
fn a_wrong_row_is_noticed() {
    let said = |from: &str, to: &str| {
        assert_eq!(PAGE.matches(from).count(), 1, "{from}");
        Rules::of(&PAGE.replace(from, to)).broken_layers(&small())
    };
    assert_eq!(said("| `b` | `c` |", "| `b` | nothing |"), ["src/b/mod.rs:1: b names c"]);
    assert_eq!(said("`c/x.rs`, ", ""), ["src/c/x.rs:1: c names b"]);
    assert_eq!(said("| `c/x", "| `c/mod.rs`, `c/x"), ["c/mod.rs may name b, and does not"]);
    assert_eq!(said("| nothing |\n", "| nothing |\n| `e` | nothing |\n"), ["there is no layer e"]);
    let swapped =
        said("| `a` | `b`, `c` |\n| `b` | `c` |\n", "| `b` | `c` |\n| `a` | `b`, `c` |\n");
    assert_eq!(swapped, ["a may name b, which is no row below it"]);
    let gone = said("| `b` | `c` |\n", "");
    assert!(gone.contains(&"src/b/mod.rs: b has no row".to_owned()), "{gone:?}");
    let loose = said("| `b` | `c` |", "| `b` | `c`, `d` |");
    assert_eq!(loose, ["b may name d, which is no row below it", "b may name d, and does not"]);
}
