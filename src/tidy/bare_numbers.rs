//! No parameter or field for the number of a rank, a node or a slot is a plain `u32`: these have
//! types (`rank_numbers.rs`). The names of a parameter or field tell what it is for. Not for tests,
//! nor for counts (`ranks`, `nodes`).

use super::twins::is_test;
use super::{Source, hold, sources};

/// Names of parameters and fields that need a type, or a longer name if the number is another one.
const NAMES: [&str; 7] = ["rank", "target", "origin", "leader", "node", "slot", "rank_on_node"];
/// The file of the types.
const EXEMPT: &str = "base/rank_numbers.rs";

/// Whether the type that `code` begins with is `u32`, or holds one.
fn is_bare(code: &str) -> bool {
    let around = |c: char| "&<[( ".contains(c);
    let mut words = code.split(around).filter(|word| !word.is_empty());
    let first = words.find(|word| !["mut", "Option", "Vec", "Box", "Mutex"].contains(word));
    let Some(rest) = first.and_then(|word| word.strip_prefix("u32")) else { return false };
    !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
}

/// The lines with such a parameter or field, and its name.
fn bare(sources: &[Source]) -> Vec<String> {
    let mut broken = Vec::new();
    for source in sources {
        if is_test(source) || source.inner() == EXEMPT {
            continue;
        }
        for (number, line) in source.code() {
            if line.trim_end() == "mod tests {" {
                break;
            }
            for (at, _) in line.match_indices(": ") {
                let name = line[..at].rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next();
                let found = NAMES.iter().find(|known| name == Some(**known));
                let found = found.filter(|_| is_bare(&line[at + 2..]));
                broken.extend(found.map(|name| format!("{}:{number}: {name}", source.path)));
            }
        }
    }
    broken
}

#[test]
fn numbers_of_ranks_nodes_and_slots_have_types() {
    hold("style.md, Names: types of numbers", &bare(&sources()));
}

#[test]
fn a_bare_number_is_noticed() {
    let seen =
        |path: &str, text: &str| bare(&[Source { path: format!("src/{path}"), text: text.into() }]);
    assert_eq!(seen("a.rs", "fn f(a: u8, rank: u32) {}"), ["src/a.rs:1: rank"]);
    assert_eq!(seen("a.rs", "struct A {\n    pub node: u32,\n}"), ["src/a.rs:2: node"]);
    assert_eq!(seen("a.rs", "f(slot: Option<u32>, target: &mut [u32], leader: Vec<u32>)").len(), 3);
    assert_eq!(seen("a.rs", "let f = |rank: &u32| 0;"), ["src/a.rs:1: rank"]);
    let fine = "fn f(rank: Rank, my_rank: u32, ranks: u32, slot: u32x4, rank: Loss<u64>) {}";
    assert_eq!(seen("a.rs", fine), [""; 0]);
    assert_eq!(seen("a.rs", "// rank: u32\nmod tests {\n    fn f(rank: u32) {}\n}"), [""; 0]);
    assert_eq!(seen("a/tests/b.rs", "fn f(rank: u32) {}"), [""; 0]);
    assert_eq!(seen("base/rank_numbers.rs", "fn f(rank: u32) {}"), [""; 0]);
}
