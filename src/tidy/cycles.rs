//! No cycle inside a layer, which is a top-level module of the library's own crate, or a crate: its
//! files name each other in one direction, as layers do. There is an edge from a file to each other
//! file of its layer whose items it names, in a `use` or in a path. An item that is passed on by
//! another `use` counts for the file in which it stands. A `mod.rs` is a file as any other: it may
//! declare its files and pass their names on, but if it names what they hold, that is an edge.
//! Tests are left out.
//!
//! The edges that close cycles are in [`LEFT`], which only gets shorter: one that closes no cycle
//! fails, too.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, code_of, hold, sources, words};

/// Edges that close a cycle: from a file, to a file.
const LEFT: [(&str, &str); 4] = [
    ("datatype/reduce/wide_elements.rs", "datatype/reduce/mod.rs"),
    ("epoch/lock/tickets.rs", "epoch/lock.rs"),
    ("memory/heap/fork_copies.rs", "memory/heap.rs"),
    ("window/wide/mod.rs", "window/wide/post_lists.rs"),
];

/// The names of a path, outermost first.
type Path = Vec<String>;

/// A file as a module.
struct Module {
    /// where it stands below `src`
    file: String,
    /// what its imports call the items of others: full paths
    names: BTreeMap<String, Path>,
    /// all paths that it names, as they are written
    named: Vec<Path>,
    /// what it calls `crate`: nothing for the library's own crate
    root: Path,
}

/// The modules by their paths.
struct Modules(BTreeMap<Path, Module>);

fn path_of(text: &str) -> Path {
    text.split("::").map(|name| name.trim().to_owned()).collect()
}

/// The path of a file's module: `a::b` for a/b.rs, a/b/mod.rs, and b.rs of the crate `a`.
fn module_path(inner: &str, is_of_crate: bool) -> Path {
    let root = if is_of_crate { "/lib" } else { "/mod" };
    let inner = inner.trim_end_matches(".rs").trim_end_matches("/mod").trim_end_matches(root);
    inner.split('/').map(str::to_owned).collect()
}

/// Code without its modules of tests, which stand at the beginning of a line, as rustfmt puts them.
fn without_tests(code: &str) -> String {
    let (mut kept, mut is_test, mut inside) = (String::new(), false, false);
    for line in code.lines() {
        if inside {
            inside = line != "}";
        } else if is_test && line.starts_with("mod ") && line.ends_with('{') {
            inside = true;
        } else {
            kept.push_str(line);
            kept.push('\n');
        }
        is_test = line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test");
    }
    kept
}

/// The paths of the tree of a `use`, each with the name that it gets.
fn leaves(tree: &str, before: &[String]) -> Vec<(Path, String)> {
    let tree = tree.trim();
    if let Some((start, inner)) = tree.strip_suffix('}').and_then(|tree| tree.split_once('{')) {
        let mut before = before.to_vec();
        before.extend(path_of(start).into_iter().filter(|name| !name.is_empty()));
        let (mut depth, mut found, mut from) = (0, Vec::new(), 0);
        for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    found.extend(leaves(&inner[from..at], &before));
                    from = at + 1;
                }
                _ => {}
            }
        }
        return found;
    }
    let (path, name) = tree.split_once(" as ").unwrap_or((tree, ""));
    let mut full = before.to_vec();
    full.extend(path_of(path).into_iter().filter(|name| name != "self" && !name.is_empty()));
    let last = full.last().cloned().unwrap_or_default();
    let name = if name.is_empty() { last } else { name.trim().to_owned() };
    if tree.is_empty() { Vec::new() } else { vec![(full, name)] }
}

/// The trees of all `use`, each with whether it passes names on (`pub use`), and the code without
/// them.
fn imports(code: &str) -> (Vec<(bool, String)>, String) {
    let (mut trees, mut rest, mut open) = (Vec::new(), String::new(), None);
    for line in code.lines() {
        let text = line.trim_start();
        let item = match text.strip_prefix("pub") {
            Some(item) => item.split_once(' ').map_or(item, |(_, item)| item),
            None => text,
        };
        let tree = match (open.take(), item.strip_prefix("use ")) {
            (Some((passes_on, tree)), _) => (passes_on, tree + text),
            (None, Some(tree)) => (item != text, tree.to_owned()),
            (None, None) => {
                rest.push_str(line);
                rest.push('\n');
                continue;
            }
        };
        match tree.1.strip_suffix(';') {
            Some(text) => trees.push((tree.0, text.to_owned())),
            None => open = Some(tree),
        }
    }
    (trees, rest)
}

impl Modules {
    fn of(sources: &[Source]) -> Modules {
        let mut modules = Modules(BTreeMap::new());
        for source in sources {
            let path = module_path(&source.inner(), source.is_of_crate());
            if path.iter().any(|name| ["fake_device", "tests", "tidy"].contains(&name.as_str())) {
                continue;
            }
            let (trees, rest) = imports(&without_tests(&code_of(&source.text)));
            let (mut names, mut named) = (BTreeMap::new(), Vec::new());
            for (passes_on, tree) in trees {
                for (path, name) in leaves(&tree, &[]) {
                    named.extend((!passes_on).then_some(path.clone()));
                    names.insert(name, path);
                }
            }
            named.extend(words(&rest).filter(|word| word.contains("::")).map(path_of));
            let file = source.inner();
            let root = path[..usize::from(source.is_of_crate())].to_vec();
            modules.0.insert(path, Module { file, names, named, root });
        }
        modules
    }

    /// The full path of what a module calls `path`; `None` if that is nothing of the library.
    fn full(&self, module: &[String], path: &[String], turns: u32) -> Option<Path> {
        let (first, rest) = path.split_first()?;
        let supers = path.iter().take_while(|name| *name == "super").count();
        let (start, rest) = match first.as_str() {
            "crate" => (self.0.get(module)?.root.clone(), rest),
            "self" => (module.to_vec(), rest),
            "super" => (module[..module.len().checked_sub(supers)?].to_vec(), &path[supers..]),
            other if other.starts_with("fompi_") => (path_of(&other["fompi_".len()..]), rest),
            _ => {
                let child = [module, std::slice::from_ref(first)].concat();
                match self.0.get(module)?.names.get(first) {
                    _ if self.0.contains_key(&child) => (child, rest),
                    Some(name) if turns > 0 => (self.full(module, name, turns - 1)?, rest),
                    _ => return None,
                }
            }
        };
        Some([&start, rest].concat())
    }

    /// The module in which the item with this full path stands.
    fn place(&self, path: &[String], turns: u32) -> Option<&Path> {
        let length = (1..=path.len()).rev().find(|to| self.0.contains_key(&path[..*to]))?;
        let (module, rest) = path.split_at(length);
        let (found, place) = self.0.get_key_value(module)?;
        let passed_on = rest.first().and_then(|name| place.names.get(name)).filter(|_| turns > 0);
        let further = passed_on.and_then(|name| self.full(module, name, 8)).and_then(|path| {
            let path = [&path, &rest[1..]].concat();
            self.place(&path, turns - 1)
        });
        Some(further.unwrap_or(found))
    }

    /// The edges inside of layers, by files.
    fn edges(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (path, module) in &self.0 {
            let full = module.named.iter().filter_map(|named| self.full(path, named, 8));
            for to in full.collect::<Vec<_>>().iter().filter_map(|full| self.place(full, 8)) {
                if to != path && to[0] == path[0] {
                    edges.entry(&module.file).or_default().insert(&self.0[to].file);
                }
            }
        }
        edges
    }
}

/// Returns a path along the edges from one file to another.
fn way<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &'a str, to: &str) -> Vec<&'a str> {
    let mut ways = vec![vec![from]];
    let mut seen = BTreeSet::from([from]);
    let mut next = 0;
    while let Some(way) = ways.get(next).cloned() {
        let last = way[way.len() - 1];
        if last == to && way.len() > 1 {
            return way;
        }
        for further in edges.get(last).into_iter().flatten() {
            if *further == to || seen.insert(further) {
                ways.push([&way[..], &[further]].concat());
            }
        }
        next += 1;
    }
    Vec::new()
}

/// Where the edges differ from the list of those that are left.
fn broken(modules: &Modules, left: &[(&str, &str)]) -> Vec<String> {
    let mut edges = modules.edges();
    let mut broken = Vec::new();
    let mut removed = Vec::new();
    for (from, to) in left {
        match edges.get_mut(from).and_then(|named| named.take(to)) {
            Some(to) => removed.push((*from, to)),
            None => broken.push(format!("{from} -> {to} is in the list, and is no edge")),
        }
    }
    let mut told = BTreeSet::new();
    for file in edges.keys() {
        let cycle = way(&edges, file, file);
        if !cycle.is_empty() && told.is_disjoint(&cycle.iter().copied().collect()) {
            told.extend(cycle.iter().copied());
            broken.push(cycle.join(" -> "));
        }
    }
    for (from, to) in removed {
        if way(&edges, to, from).is_empty() {
            broken.push(format!("{from} -> {to} is in the list, and closes no cycle"));
        }
    }
    broken
}

#[test]
fn files_of_a_layer_name_each_other_one_way() {
    hold("style.md, Modules: cycles", &broken(&Modules::of(&sources()), &LEFT));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The modules of a layer `a` with these files and texts.
    fn modules(files: &[(&str, &str)]) -> Modules {
        let source = |(path, text): &(&str, &str)| Source {
            path: format!("src/a/{path}"),
            text: (*text).to_owned(),
        };
        Modules::of(&files.iter().map(source).collect::<Vec<_>>())
    }

    fn found(files: &[(&str, &str)], left: &[(&str, &str)]) -> Vec<String> {
        broken(&modules(files), left)
    }

    #[test]
    fn a_cycle_is_found_through_groups_paths_and_names_that_are_passed_on() {
        let one = "mod b;\nmod c;\npub use b::{\n    d::{self, E as F},\n    Thing,\n};\n";
        let two = "use crate::a::c::{x, y::Y};\npub struct Thing;\n";
        let cycle = ["a/b.rs -> a/c.rs -> a/b.rs"];
        for three in ["use super::Thing;", "use crate::{z, a::{Thing}};", "fn f(_: super::b::X) {}"]
        {
            let files = [("mod.rs", one), ("b.rs", two), ("c.rs", three)];
            assert_eq!(found(&files, &[]), cycle, "{three}");
        }
        let files = [("mod.rs", one), ("b.rs", two), ("c.rs", "use super::Other;\n")];
        assert_eq!(found(&files, &[]), [""; 0]);
    }

    #[test]
    fn what_tests_comments_and_texts_name_is_no_edge() {
        let one = "use super::c::x;\n#[cfg(test)]\nmod tests {\n    use super::c::y;\n}\n";
        let two = "// super::b::x\n/* use super::b; */\n#[cfg(all(test, not(loom)))]\n\
                   mod tests {\n    use crate::a::b::x;\n}\nconst A: &str = \"super::b::x\";\n";
        assert_eq!(found(&[("mod.rs", ""), ("b.rs", one), ("c.rs", two)], &[]), [""; 0]);
    }

    #[test]
    fn an_edge_that_is_left_must_be_there_and_close_a_cycle() {
        let files = [("mod.rs", ""), ("b.rs", "use super::c;\n"), ("c.rs", "use super::b;\n")];
        assert_eq!(found(&files, &[("a/c.rs", "a/b.rs")]), [""; 0]);
        let files = [("mod.rs", ""), ("b.rs", "use super::c;\n"), ("c.rs", "")];
        let left = [("a/b.rs", "a/c.rs"), ("a/c.rs", "a/b.rs")];
        assert_eq!(
            found(&files, &left),
            [
                "a/c.rs -> a/b.rs is in the list, and is no edge",
                "a/b.rs -> a/c.rs is in the list, and closes no cycle"
            ]
        );
    }
}
