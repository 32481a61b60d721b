//! Names of variables that a user may have meant by another one.

use crate::messages::{self, Filled, filled};

/// Passes on the warning about a variable that nothing reads: with the one of these names that was
/// meant, or with all of them if none is similar.
pub fn unknown<T>(name: &str, names: &[&str], warn: impl FnOnce(Filled<'_>) -> T) -> T {
    match nearest(name, names) {
        Some(nearest) => warn(filled!(messages::MISSPELLED_VARIABLE; name, nearest)),
        None => warn(filled!(messages::UNKNOWN_VARIABLE; name, names = names.join(", "))),
    }
}

/// The least similarity of two names, by Jaro and Winkler, at which one may mean the other.
const SIMILAR: f64 = 0.8;

/// Returns the name that is most similar to another one, apart from what all of them begin with.
pub fn nearest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let own = |name: &str| name.trim_start_matches("FOMPI_").to_owned();
    let similarity = |known: &&str| strsim::jaro_winkler(&own(known), &own(name));
    let best = names.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    let best = best.copied().filter(|best| similarity(best) >= SIMILAR);
    // Two letters that change places make a short name another one, by that measure.
    let is_near = |known: &&str| strsim::osa_distance(&own(known), &own(name)) == 1;
    best.or_else(|| names.iter().copied().find(is_near))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_name_means_the_nearest_one() {
        let names = [
            "FOMPI_VERBS",
            "FOMPI_VERBOSE",
            "FOMPI_DISABLE",
            "FOMPI_NET",
            "FOMPI_VERBS_LIBRARY",
            "FOMPI_VERBS_DEVICE",
            "FOMPI_LIB",
        ];
        let meant = [
            ("FOMPI_VERBOS", "FOMPI_VERBOSE"),
            ("FOMPI_LIBRARY", "FOMPI_LIB"),
            ("FOMPI_DISABLED", "FOMPI_DISABLE"),
            ("FOMPI_NETWORK", "FOMPI_NET"),
            ("FOMPI_VERBS_DEV", "FOMPI_VERBS_DEVICE"),
            ("FOMPI_VERB", "FOMPI_VERBS"),
            ("FOMPI_NTE", "FOMPI_NET"),
        ];
        for (name, known) in meant {
            assert_eq!(nearest(name, &names), Some(known), "{name}");
            let text = format!("unknown variable {name}: did you mean {known}? [FOMPI-W001]");
            assert_eq!(unknown(name, &names, |filled| filled.line().to_string()), text);
        }
        for name in ["FOMPI_XYZ", "FOMPI_", "FOMPI_HOME"] {
            assert_eq!(nearest(name, &names), None, "{name}");
        }
        let text = "unknown variable FOMPI_X; the known ones are FOMPI_NET, FOMPI_LIB [FOMPI-W002]";
        assert_eq!(
            unknown("FOMPI_X", &["FOMPI_NET", "FOMPI_LIB"], |filled| filled.line().to_string()),
            text
        );
    }
}
