//! One noun, one type: no two public types of different rooms have one name, and no two files of
//! the sources. Not for tests, nor for `mod.rs`. Invariant: the lists of twins that are left only
//! shrink, because an entry that is not needed any more is wrong, too.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, hold, sources, words};

/// Names of public types that several rooms still have.
const TYPES_LEFT: &[&str] = &[
    "Counts", "Device", "Distant", "End", "Held", "Kind", "Lease", "Link", "Opening", "Place",
    "Purpose", "Region", "Road", "Service", "Shape", "Target",
];

/// Names of files that several folders still have.
const FILES_LEFT: &[&str] = &[
    "address.rs",
    "bytes.rs",
    "contract.rs",
    "device.rs",
    "heap.rs",
    "pending.rs",
    "plain.rs",
    "whole.rs",
    "words.rs",
];

/// Whether a source belongs to tests.
fn is_test(source: &Source) -> bool {
    source.inner().split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// The part of a path that makes a room for names: `fabric/verbs`, but `window` for all of it.
fn room_of_names(source: &Source) -> String {
    let parts: Vec<&str> = source.inner().split('/').collect();
    match parts[..] {
        ["fabric", inner, _, ..] => format!("fabric/{inner}"),
        [room, _, ..] => room.to_owned(),
        [file, ..] => file.to_owned(),
        [] => String::new(),
    }
}

/// The public types that a source defines: those of its own code, not of modules within tests.
fn types_of(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for (_, line) in source.code() {
        if line.trim_end() == "mod tests {" {
            break;
        }
        let line = line.trim_start();
        let mut words = words(line).filter(|word| !word.is_empty());
        let public = words.next() == Some("pub") && !line.starts_with("pub(super)");
        let mut rest = words.filter(|word| !["crate", "unsafe"].contains(word));
        let kind = rest.next().unwrap_or_default();
        if public && ["struct", "enum", "trait", "union", "type"].contains(&kind) {
            found.extend(rest.next().map(str::to_owned));
        }
    }
    found
}

/// Names that stand in several places, with these.
fn twins(named: impl Iterator<Item = (String, String)>) -> BTreeMap<String, BTreeSet<String>> {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, place) in named {
        places.entry(name).or_default().insert(place);
    }
    places.retain(|_, places| places.len() > 1);
    places
}

/// The twins that are not in the list, and the entries of the list that are no twins any more.
fn broken(twins: &BTreeMap<String, BTreeSet<String>>, left: &[&str]) -> Vec<String> {
    let new = twins.iter().filter(|(name, _)| !left.contains(&name.as_str()));
    let new = new.map(|(name, places)| format!("{name}: {places:?}"));
    let old = left.iter().filter(|name| !twins.contains_key(**name));
    new.chain(old.map(|name| format!("{name} has no twin any more: take it off the list")))
        .collect()
}

fn type_twins(sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    twins(
        sources.iter().filter(|source| !is_test(source)).flat_map(|source| {
            types_of(source).into_iter().map(|name| (name, room_of_names(source)))
        }),
    )
}

fn file_twins(sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    twins(sources.iter().filter(|source| !is_test(source)).filter_map(|source| {
        let name = source.path.rsplit('/').next()?;
        (name != "mod.rs").then(|| (name.to_owned(), source.path.clone()))
    }))
}

#[test]
fn no_two_rooms_have_a_type_of_one_name() {
    hold("style.md, Names: types", &broken(&type_twins(&sources()), TYPES_LEFT));
}

#[test]
fn no_two_files_have_one_name() {
    hold("style.md, Names: files", &broken(&file_twins(&sources()), FILES_LEFT));
}

#[test]
fn twins_are_noticed() {
    let source = |path: &str, text: &str| Source { path: path.into(), text: text.into() };
    let sources = [
        source("src/a/x.rs", "pub struct Run;\nstruct Own;\n"),
        source("src/b/x.rs", "pub(crate) enum Run {}\nstruct Own;\n"),
        source("src/b/tests/x.rs", "pub struct Run;\npub struct Other;\n"),
        source("src/a/mod.rs", "pub type Other = u8;\nmod tests {\n    pub struct Own;\n}\n"),
        source("src/b/mod.rs", "pub struct Own;\n"),
    ];
    assert_eq!(type_twins(&sources).into_keys().collect::<Vec<_>>(), ["Run"]);
    assert_eq!(file_twins(&sources).into_keys().collect::<Vec<_>>(), ["x.rs"]);
    let twins = file_twins(&sources);
    assert_eq!(broken(&twins, &["x.rs"]), [""; 0]);
    assert_eq!(broken(&twins, &[]).len(), 1);
    assert_eq!(broken(&twins, &["x.rs", "y.rs"]).len(), 1);
}
