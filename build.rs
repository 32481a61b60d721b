//! How libfompi.so is linked: its own calls of functions that it exports stay inside (a profiler
//! may stand in front of it), and it is known as libfompi.so to programs that link it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libfompi.so");
}
