//! `fompirun --check`: whether a program that is started without fompirun uses libfompi.

use super::linked::{is_elf, libraries_of};
use std::path::Path;

const WITH_FOMPIRUN: &str = "start it with fompirun";

/// Returns whether the program uses libfompi, and the lines about it.
pub fn check(program: &Path) -> (bool, Vec<String>) {
    let said = format!("fompirun: {}", program.display());
    if !is_elf(program) {
        let why = "is not a linked program, but a script or a text";
        return (false, vec![format!("{said} {why}: {WITH_FOMPIRUN}")]);
    }
    let libraries = libraries_of(program);
    let lost: Vec<&str> = libraries
        .iter()
        .filter(|library| library.path.is_none())
        .map(|library| library.name.as_str())
        .collect();
    if !lost.is_empty() {
        let line = format!(
            "{said} does not start: not found: {}. LD_LIBRARY_PATH with the folder helps, or \
             -Wl,-rpath,FOLDER where it is linked",
            lost.join(" ")
        );
        return (false, vec![line]);
    }
    let place = |is: fn(&str) -> bool| libraries.iter().position(|library| is(&library.name));
    let mpi = place(|name| name.starts_with("libmpi") && name.contains(".so"));
    let ours = place(|name| name == "libfompi.so");
    let Some(mpi) = mpi else {
        let line = format!(
            "{said} is linked with no shared MPI: with a static one libfompi cannot be used; if it \
             loads one later, {WITH_FOMPIRUN}"
        );
        return (false, vec![line]);
    };
    let name = &libraries[mpi].name;
    match ours {
        Some(ours) if ours < mpi => (true, vec![format!("{said} uses libfompi")]),
        Some(_) => {
            let line = format!(
                "{said} does not use libfompi, which comes after {name}: name -lfompi first where \
                 it is linked, or {WITH_FOMPIRUN}"
            );
            (false, vec![line])
        }
        None => (false, not_linked(&said, name)),
    }
}

/// The lines about a program that is linked with the library `mpi`, and not with libfompi.
fn not_linked(said: &str, mpi: &str) -> Vec<String> {
    vec![
        format!(
            "{said} uses the one-sided layer of its MPI, {mpi}; it is not linked with libfompi: \
             {WITH_FOMPIRUN}"
        ),
        String::from(
            "fompirun: if -lfompi was named where it is linked, the linker left it out because the \
             program's own files call nothing of it (--as-needed; Fortran calls it by the bindings \
             of its MPI): put -Wl,--no-as-needed in front of -lfompi",
        ),
    ]
}
