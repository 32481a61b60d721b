//! Calls `fompi::fuzz_entries::packed_handles`, which says what its bytes mean.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fompi::fuzz_entries::packed_handles(data));
