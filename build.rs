//! How libfompi.so is linked: its own calls of functions that it exports stay inside (a profiler
//! may stand in front of it; it exports nothing but functions), it is known as libfompi.so to
//! programs that link it, and dlclose leaves it in place, because the host MPI and the C library
//! keep pointers to its functions. And a number of the sources that it is built from, by which
//! ranks find that they have different builds.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders of the sources.
const SOURCES: [&str; 2] = ["crates", "src"];
/// The folders of the programs and of another library, which are no part of this one.
const OF_OTHERS: [&str; 3] = ["crates/cli", "crates/next", "crates/selftest"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src");
    for entry in fs::read_dir("crates").expect("a folder of sources can be read") {
        let folder = entry.expect("a folder of sources can be read").path();
        if !is_of_others(&folder) {
            println!("cargo::rerun-if-changed={}", folder.display());
        }
    }
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libfompi.so");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rustc-env=SOURCES_NUMBER={:08x}", number_of_sources() & 0xffff_ffff);
}

/// The FNV-1a hash of the processor, and of the names and texts of all sources: any change of the layout of shared memory
/// or of a protocol is one of these.
fn number_of_sources() -> u64 {
    let mut files = Vec::new();
    for folder in SOURCES {
        collect(Path::new(folder), &mut files);
    }
    files.sort();
    let mut number = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            number = (number ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    };
    // Processes of two processors read shared memory in different ways.
    add(std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it").as_bytes());
    for file in files {
        add(file.as_os_str().as_encoded_bytes());
        add(&fs::read(&file).expect("a source can be read"));
    }
    number ^ number >> 32
}

/// Adds the files in a folder and in those inside of it.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources can be read") {
        let path = entry.expect("a folder of sources can be read").path();
        match path.is_dir() {
            true if is_of_others(&path) => {}
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}

/// Whether a folder is no part of the library.
fn is_of_others(folder: &Path) -> bool {
    OF_OTHERS.iter().any(|name| folder == Path::new(name))
}
