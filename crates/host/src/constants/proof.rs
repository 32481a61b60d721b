//! The tables of constants as C rows, which `c-tests/abi/constants.c` compares with an mpi.h.
//!
//! `scripts/dev/generate-constants` writes them, and the tests here compare them with the files. A
//! row is a macro call, so the C program decides what to do with it:
//! `INTEGER(name, value)`, `HANDLE(name, value)`,
//! `HANDLE_OR_INTEL(name, value, value in Intel MPI)`, `DATATYPE(name, handle, size, extent)`.
//! In Open MPI the value of a handle is the name of its data symbol.

use std::fmt::Write;
use std::path::PathBuf;

use super::{Constants, MPICH, OPENMPI_INTEGERS, PREDEFINED, STANDARD, STANDARD_INTEL};
use fompi_base::error::Class;
use fompi_datatype::reduce::OPS;

/// Names that an mpi.h may lack but has no `#ifdef` for, and the MPI version that brought them.
const SINCE: &[(&str, u32)] = &[("MPI_COMBINER_VALUE_INDEX", 41)];

/// The number for a combiner that the ABI does not have.
const NO_COMBINER: i32 = -1;

/// Integers of an ABI.
fn numbers(constants: &Constants) -> String {
    let mut text = String::new();
    let classes = Class::ALL.iter().map(|&class| (class.name(), constants.class(class)));
    for (name, value) in constants.integers().into_iter().chain(classes) {
        if name.starts_with("MPI_COMBINER_") && value == NO_COMBINER {
            continue;
        }
        let row = format!("INTEGER({name}, {value})");
        match SINCE.iter().find(|(newer, _)| *newer == name) {
            Some((_, version)) => {
                let condition = format!("#if 10 * MPI_VERSION + MPI_SUBVERSION >= {version}");
                writeln!(text, "{condition}\n{row}\n#endif").unwrap();
            }
            None => writeln!(text, "{row}").unwrap(),
        }
    }
    text
}

/// A row for a name that an mpi.h may lack; such a name is a macro.
fn optional(name: &str, row: &str) -> String {
    format!("#ifdef {name}\n{row}\n#endif\n")
}

/// The row of a predefined datatype with its handle in C.
fn datatype(index: usize, handle: &str) -> String {
    let (name, basic) = (PREDEFINED[index].name, PREDEFINED[index].basic);
    let (size, extent) = (basic.size(), basic.extent());
    optional(name, &format!("DATATYPE({name}, {handle}, {size}, {extent})"))
}

/// The MPICH ABI.
fn mpich() -> String {
    let mut text = numbers(&MPICH);
    let handles = MPICH.handles().into_iter().map(|(name, value, _)| (name, value));
    for (name, value) in handles.chain(OPS.iter().map(|known| (known.name, known.mpich))) {
        text += &optional(name, &format!("HANDLE({name}, {value:#010x})"));
    }
    for (index, known) in PREDEFINED.iter().enumerate() {
        text += &datatype(index, &format!("{:#x}", known.mpich));
    }
    text
}

/// The Open MPI ABI.
fn open_mpi() -> String {
    let mut text = numbers(&OPENMPI_INTEGERS);
    let handles = OPENMPI_INTEGERS.handles().into_iter().map(|(name, _, symbol)| (name, symbol));
    let all = handles.chain(OPS.iter().map(|known| (known.name, known.openmpi)));
    for (name, symbol) in all.map(|(name, symbol)| (name, symbol.to_str().unwrap())) {
        text += &optional(name, &format!("HANDLE({name}, {symbol})"));
    }
    for (index, known) in PREDEFINED.iter().enumerate() {
        if let Some(symbol) = known.openmpi {
            text += &datatype(index, symbol.to_str().unwrap());
        }
    }
    text
}

/// The MPI-5 ABI.
fn standard() -> String {
    let mut text = numbers(&STANDARD);
    let handles = STANDARD.handles().into_iter().zip(STANDARD_INTEL.handles());
    let handles = handles.map(|((name, value, _), (_, intel, _))| (name, value, intel));
    let ops = OPS.iter().map(|known| (known.name, known.standard, known.standard));
    for (name, value, intel) in handles.chain(ops) {
        text += &match value == intel {
            true => format!("HANDLE({name}, {value:#x})\n"),
            false => format!("HANDLE_OR_INTEL({name}, {value:#x}, {intel:#x})\n"),
        };
    }
    for (index, known) in PREDEFINED.iter().enumerate().filter(|(_, known)| known.standard != 0) {
        text += &datatype(index, &format!("{:#x}", known.standard));
    }
    text
}

/// Compares rows with the committed file, or writes it if that was asked for.
fn agree(file: &str, rows: &str) {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../c-tests/abi/generated").join(file);
    let text = format!("/* Written by scripts/dev/generate-constants. */\n{rows}");
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == text,
        "{} is outdated: run scripts/dev/generate-constants",
        path.display()
    );
}

#[test]
fn the_c_rows_are_those_of_the_tables() {
    agree("mpich.h", &mpich());
    agree("openmpi.h", &open_mpi());
    agree("standard.h", &standard());
}

#[test]
fn no_two_datatypes_have_the_same_handle() {
    for (index, one) in PREDEFINED.iter().enumerate() {
        for other in &PREDEFINED[..index] {
            assert_ne!(one.name, other.name);
            assert_ne!(one.mpich, other.mpich, "{} {}", one.name, other.name);
            assert!(one.openmpi.is_none() || one.openmpi != other.openmpi, "{}", one.name);
            assert!(one.standard == 0 || one.standard != other.standard, "{}", one.name);
        }
    }
}
