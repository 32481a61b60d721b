//! The name that a user may have meant.

use strsim::osa_distance;

/// Returns the name that differs least from `word`, if it is a likely misspelling: a letter, two in
/// names of five and more, or a fifth of a long name.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.into_iter().map(|name| (osa_distance(word, name), name));
    let (distance, name) = near.min()?;
    let most = match name.len() {
        0..5 => 1,
        length => (length / 5).max(2),
    };
    (0 < distance && distance <= most).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_name_is_near_and_another_one_is_not() {
        let options = ["mpi", "print", "check", "version", "help"];
        let expected = [("mip", "mpi"), ("pirnt", "print"), ("chekc", "check"), ("hlep", "help")];
        for (word, name) in expected {
            assert_eq!(nearest(word, options), Some(name));
        }
        for word in ["mpi", "map-by", "np", "personality", "pset", "x", ""] {
            assert_eq!(nearest(word, options), None, "{word}");
        }
        assert_eq!(
            nearest("FOMPI_VERBOS", ["FOMPI_VERBS", "FOMPI_VERBOSE"]),
            Some("FOMPI_VERBOSE")
        );
    }
}
