//! Bytes of a target: where calls on single words need no lock ([`super::passes`]).

/// Whole words of eight bytes of a target, from the first to the end, as addresses in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetBytes {
    /// the address of the first byte
    pub first: u64,
    /// the address behind the last byte
    pub end: u64,
}

/// Bytes of a word.
const WORD: u64 = 8;

impl TargetBytes {
    /// No byte.
    pub const NONE: TargetBytes = TargetBytes { first: 0, end: 0 };

    /// Returns the words that have some of `bytes` bytes from the address `first` on.
    #[inline(always)]
    pub fn new(first: u64, bytes: u64) -> TargetBytes {
        let end = first.saturating_add(bytes).saturating_add(WORD - 1);
        TargetBytes { first: first & !(WORD - 1), end: end & !(WORD - 1) }
    }

    /// Whether some byte is one of both.
    #[inline]
    pub fn overlaps(self, other: TargetBytes) -> bool {
        self.first < other.end && other.first < self.end
    }

    /// Whether all bytes of the other ones are some of these.
    #[inline]
    pub fn covers(self, other: TargetBytes) -> bool {
        self.first <= other.first && other.end <= self.end
    }

    /// Returns bytes that cover these and the other ones. Where the other ones are outside, they
    /// are at least twice as many on that side: a call that goes through an array word by word
    /// leaves them a few times only.
    pub fn grown_to(self, other: TargetBytes) -> TargetBytes {
        let (length, TargetBytes { mut first, mut end }) = (self.end - self.first, self);
        if length == 0 {
            return other;
        }
        if other.first < first {
            first = other.first.min(first.saturating_sub(length));
        }
        if other.end > end {
            end = other.end.max(end.saturating_add(length));
        }
        TargetBytes { first, end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_whole_words() {
        assert_eq!(TargetBytes::new(16, 8), TargetBytes { first: 16, end: 24 });
        assert_eq!(TargetBytes::new(15, 2), TargetBytes { first: 8, end: 24 });
        assert_eq!(TargetBytes::new(u64::MAX - 3, 9).end, !7);
        assert!(TargetBytes::new(20, 2).overlaps(TargetBytes::new(16, 4)), "one word");
        assert!(!TargetBytes::new(24, 8).overlaps(TargetBytes::new(16, 8)));
        assert!(!TargetBytes::NONE.overlaps(TargetBytes::new(0, u64::MAX)));
    }

    #[test]
    fn bytes_grow_to_cover_others_and_few_times_in_a_sweep() {
        let one = TargetBytes::new(800, 8);
        assert_eq!(one.grown_to(one), one);
        assert_eq!(TargetBytes::NONE.grown_to(one), one);
        for other in [TargetBytes::new(0, 8), TargetBytes::new(792, 8), TargetBytes::new(9000, 8)] {
            let grown = one.grown_to(other);
            assert!(grown.covers(one) && grown.covers(other), "{grown:?}");
        }
        for step in [8, 8u64.wrapping_neg()] {
            let (mut noted, mut times) = (one, 0);
            for word in 0..90u64 {
                let next = TargetBytes::new(800u64.wrapping_add(word.wrapping_mul(step)), 8);
                if !noted.covers(next) {
                    (noted, times) = (noted.grown_to(next), times + 1);
                }
            }
            assert!(times <= 7, "{times}");
        }
    }
}
