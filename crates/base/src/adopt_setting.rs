//! Setting FOMPI_ADOPT: which memory of the program may become shared memory. The policy itself is
//! in `memory::adopted`.

/// Whether the pages of windows over the program's own memory move into memory that other processes
/// can map, see `memory::adopted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adopt {
    /// no page moves
    Never,
    /// pages move where it is proved that no code can detect it, at a bounded rate
    Auto,
    /// pages move where that is proved, at any rate
    Always,
}

impl Adopt {
    /// Returns what holds for a window with that value of the info key `fompi_adopt`: `false`
    /// forbids moves, `true` allows any rate. FOMPI_ADOPT=never forbids them in any case.
    pub fn for_window(self, info: Option<bool>) -> Adopt {
        match (self, info) {
            (Adopt::Never, _) | (_, Some(false)) => Adopt::Never,
            (Adopt::Auto, Some(true)) => Adopt::Always,
            (setting, _) => setting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variables::{ADOPTIONS, choice};

    #[test]
    fn the_info_of_a_window_modifies_the_setting() {
        use Adopt::{Always, Auto, Never};
        let rows = [
            ("auto", [Auto, Never, Always]),
            ("NEVER", [Never, Never, Never]),
            ("always", [Always, Never, Always]),
        ];
        for (value, expected) in rows {
            let setting = choice(value, &ADOPTIONS).unwrap();
            let for_window = [None, Some(false), Some(true)].map(|info| setting.for_window(info));
            assert_eq!(for_window, expected, "{value}");
        }
        assert_eq!((choice("yes", &ADOPTIONS), choice("edges", &ADOPTIONS)), (None, None));
    }
}
