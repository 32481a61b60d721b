//! Input of fuzz targets: bytes of the fuzzer as numbers that a test takes one after the other, and
//! the inputs that are kept for each target below `fuzz/corpus`. Each target is in the module whose
//! code it calls; `fuzz_entries` lists them. Invariant: the same bytes give the same numbers.

/// Bytes from which numbers are taken. After the last one all numbers are 0.
pub struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    /// Starts with the first byte.
    pub fn of(bytes: &'a [u8]) -> Choices<'a> {
        Choices(bytes)
    }

    /// Whether all bytes are taken.
    pub fn are_used_up(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a byte.
    pub fn byte(&mut self) -> u8 {
        self.bytes::<1>()[0]
    }

    /// Takes a byte, as a number below `bound`, which is at most 256.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// Takes eight bytes.
    pub fn word(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    /// Takes `N` bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        let taken = self.part(N);
        bytes[..taken.len()].copy_from_slice(taken);
        bytes
    }

    /// Takes `count` bytes, or all if there are fewer.
    pub fn part(&mut self, count: usize) -> &'a [u8] {
        let (part, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        part
    }

    /// Takes all bytes.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// Calls a target with each input that is kept for it.
pub fn replay(target: &str, entry: impl Fn(&[u8])) {
    let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for file in std::fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        println!("{}", path.display()); // shown if it fails
        entry(&std::fs::read(path).unwrap());
        count += 1;
    }
    assert!(count > 0, "no inputs in {folder}");
}
