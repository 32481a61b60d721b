//! One noun, one type: no two public types of different layers have one name, and no two files of
//! the sources. Not for tests, nor for `mod.rs` and `lib.rs`.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, hold, sources, words};

/// Whether a source belongs to tests.
pub fn is_test(source: &Source) -> bool {
    let of_tests = ["simulator", "testkit", "fake_device", "tests", "tests.rs"];
    source.inner().split('/').any(|part| of_tests.contains(&part))
}

/// The part of a path that is a namespace: `fabric/verbs`, but `window` for all of it.
fn namespace_of(source: &Source) -> String {
    let inner = source.inner();
    let parts: Vec<&str> = inner.split('/').collect();
    match parts[..] {
        ["fabric", inner, _, ..] => format!("fabric/{inner}"),
        [layer, _, ..] => layer.to_owned(),
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

/// Each name with its places.
fn named(twins: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    twins.iter().map(|(name, places)| format!("{name}: {places:?}")).collect()
}

fn type_twins(sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    twins(
        sources.iter().filter(|source| !is_test(source)).flat_map(|source| {
            types_of(source).into_iter().map(|name| (name, namespace_of(source)))
        }),
    )
}

fn file_twins(sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    twins(sources.iter().filter(|source| !is_test(source)).filter_map(|source| {
        let name = source.path.rsplit('/').next()?;
        (!["lib.rs", "mod.rs"].contains(&name)).then(|| (name.to_owned(), source.path.clone()))
    }))
}

#[test]
fn no_two_layers_have_a_type_of_one_name() {
    hold("style.md, Names: types", &named(&type_twins(&sources())));
}

#[test]
fn no_two_files_have_one_name() {
    hold("style.md, Names: files", &named(&file_twins(&sources())));
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
}
