//! The hints of a window (MPI-4.1 §12.2.7): the values that the user gave, and those that get_info
//! reports.

use super::Flavor;
use super::transfer_attributes::{ORDERED, TransferAttributes};
use crate::config::Config;
use crate::error::Result;
use crate::mpi::comm::{Comm, check};
use crate::mpi::{Handle, Host, info};
use std::collections::BTreeMap;
use std::ffi::CString;

/// The keys that a window takes. It ignores other keys, as the standard demands, and values that
/// the standard does not define. It also ignores [`GRANULARITY`].
const KEYS: [&str; 13] = [
    "no_locks",
    "accumulate_ordering",
    "accumulate_ops",
    "same_size",
    "same_disp_unit",
    NONCONTIG,
    ALIGNMENT,
    "mpi_assert_memory_alloc_kinds",
    ADOPT,
    COUNTERS,
    SYMMETRIC,
    CONFLICTS,
    ATTRIBUTES,
];

/// The key by which a program forbids that the memory of a created window moves, or consents to it
/// (`Adopt::for_window`).
pub const ADOPT: &str = "fompi_adopt";

/// The key by which a program asks that the memory of an allocated window begins at one address in
/// all processes. All give it. MPI_Win_get_info reports whether it does.
pub const SYMMETRIC: &str = "fompi_symmetric";

/// The key by which a program asks that conflicting accesses are errors (`window::conflicts`).
pub const CONFLICTS: &str = "fompi_conflicts";

/// The key by which a program gives all transfers of a window attributes: words of
/// [`TransferAttributes::named`]. MPI_Win_get_info returns those that are known.
pub const ATTRIBUTES: &str = "fompi_attributes";

/// The key by which a program promises the most counters of notifications that it asks for; 0: no
/// promise.
pub const COUNTERS: &str = "mpi_assert_max_num_notify";

/// The key by which a program asks for the bytes that one synchronization of an accumulate covers.
/// The library chooses (docs/decisions/0004): 0, the default, whatever the program asks for.
const GRANULARITY: &str = "mpi_accumulate_granularity";

/// The key by which a window reports which accumulates are atomic with each other for each element:
/// those of any operations. A window of the host MPI has no such key.
const ATOMIC: (&str, &str) = ("fompi_accumulate_ops", "any_op");

/// The key by which a window reports its transport. A window of the host MPI has no such key.
const TRANSPORT: &str = "fompi_transport";

/// The key of [`alignment_of`].
const ALIGNMENT: &str = "mpi_minimum_memory_alignment";

/// The key of windows in which there may be gaps between the memory of the ranks.
pub const NONCONTIG: &str = "alloc_shared_noncontig";

/// The value of the alignment's key; 1 for a value that is no power of two.
fn alignment(value: Option<&str>) -> u64 {
    let asked = value.and_then(|value| value.trim().parse::<u64>().ok());
    asked.filter(|asked| asked.is_power_of_two()).unwrap_or(1)
}

/// Whether a key has a meaning for windows of this flavor.
fn concerns(key: &str, flavor: Flavor) -> bool {
    match key {
        NONCONTIG => flavor == Flavor::Shared,
        ALIGNMENT => matches!(flavor, Flavor::Allocate | Flavor::Shared),
        ADOPT => matches!(flavor, Flavor::Create),
        SYMMETRIC => flavor == Flavor::Allocate,
        _ => true,
    }
}

/// Whether a key describes memory that exists when the window has been made, so that a later value
/// cannot be true. A permission of the program, such as for gaps in shared memory, can be withdrawn
/// later: get_info then reports the new value, which has no effect.
fn is_for_creation(key: &str) -> bool {
    [ALIGNMENT, ADOPT, COUNTERS, SYMMETRIC, CONFLICTS, ATTRIBUTES].contains(&key)
}

/// Whether the standard defines a value for a key (MPI-4.1 §12.2, §9.2).
fn has_meaning(key: &str, value: &str) -> bool {
    let value = value.trim();
    match key {
        "accumulate_ordering" => {
            let known = |order: &str| ["rar", "raw", "war", "waw"].contains(&order.trim());
            value == "none" || value.split(',').all(known)
        }
        "accumulate_ops" => ["same_op", "same_op_no_op"].contains(&value),
        ALIGNMENT => value.parse::<u64>().is_ok_and(u64::is_power_of_two),
        COUNTERS => value.parse::<i32>().is_ok_and(|most| most >= 0),
        "mpi_assert_memory_alloc_kinds" => true,
        ATTRIBUTES => !TransferAttributes::named(value).is_none(),
        _ => ["true", "false"].iter().any(|known| value.eq_ignore_ascii_case(known)),
    }
}

/// Returns the hints of a window of this flavor without values of the user.
fn defaults(flavor: Flavor) -> BTreeMap<&'static str, &'static str> {
    let defaults = [
        ("no_locks", "false"),
        ("accumulate_ordering", "rar,raw,war,waw"),
        ("accumulate_ops", "same_op_no_op"),
        (GRANULARITY, "0"),
        ("same_size", "false"),
        ("same_disp_unit", "false"),
        (NONCONTIG, "false"),
        (COUNTERS, "0"),
    ];
    defaults.into_iter().filter(|(key, _)| concerns(key, flavor)).collect()
}

/// The hints of a window.
#[derive(Clone, Debug)]
pub struct Hints {
    flavor: Flavor,
    /// the values that the user gave; a window without any allocates nothing
    values: BTreeMap<&'static str, String>,
}

impl Hints {
    /// Creates the hints of a window of this flavor, all with their default values.
    pub fn of(flavor: Flavor) -> Hints {
        Hints { flavor, values: BTreeMap::new() }
    }

    /// Takes the hints of the settings and of an info object when the window is made.
    pub fn take(&mut self, host: &Host, info: Handle) -> Result<()> {
        if Config::get().conflicts {
            self.report(CONFLICTS, true);
        }
        self.change(host, info, |_| true)?;
        self.keep_attributes();
        Ok(())
    }

    /// Returns the hints of a duplicate of the window, for which a program gives an info object.
    /// The attributes are its own.
    pub fn of_duplicate(mut self, host: &Host, info: Handle) -> Result<Hints> {
        self.values.remove(ATTRIBUTES);
        self.change(host, info, |key| key == ATTRIBUTES || !is_for_creation(key))?;
        self.keep_attributes();
        Ok(self)
    }

    /// Replaces the text of the attributes by those that transfers have, with FOMPI_ORDER.
    fn keep_attributes(&mut self) {
        let order = if Config::get().strict_order { ORDERED } else { 0 };
        let all = self.attributes().and(order);
        if !all.is_none() {
            self.values.insert(ATTRIBUTES, all.names());
        }
    }

    /// The attributes that all transfers have.
    pub fn attributes(&self) -> TransferAttributes {
        let given = self.values.get(ATTRIBUTES);
        given.map_or_else(TransferAttributes::default, |text| TransferAttributes::named(text))
    }

    /// Takes hints after creation. Those that only creation can use are ignored.
    pub fn update(&mut self, host: &Host, info: Handle) -> Result<()> {
        self.change(host, info, |key| !is_for_creation(key))
    }

    fn change(&mut self, host: &Host, info: Handle, may: impl Fn(&str) -> bool) -> Result<()> {
        if info == host.constants.info_null {
            return Ok(());
        }
        for key in KEYS.into_iter().filter(|key| concerns(key, self.flavor) && may(key)) {
            if let Some(value) =
                info::value(host, info, key)?.filter(|value| has_meaning(key, value))
            {
                self.values.insert(key, value);
            }
        }
        Ok(())
    }

    /// Whether a boolean hint is set.
    pub fn is_set(&self, key: &str) -> bool {
        self.values.get(key).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Sets the value of a boolean hint to what is so, for MPI_Win_get_info.
    pub fn report(&mut self, key: &'static str, value: bool) {
        self.values.insert(key, value.to_string());
    }

    /// Whether accumulates of one process take effect in the order of their calls.
    pub fn orders_accumulates(&self) -> bool {
        let given = self.values.get("accumulate_ordering");
        given.is_none_or(|given| ["rar", "raw", "war", "waw"].iter().all(|one| given.contains(one)))
    }

    /// Returns the value of a boolean hint, if the user gave one.
    pub fn given(&self, key: &str) -> Option<bool> {
        self.values.contains_key(key).then(|| self.is_set(key))
    }

    /// Returns the value of a hint that is a number, if the user gave one.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.values.get(key)?.trim().parse().ok()
    }

    /// The alignment of memory that the library allocates for the window
    /// (mpi_minimum_memory_alignment, MPI-4.1 §9.2); 1 if the user gives none.
    pub fn alignment(&self) -> u64 {
        alignment(self.values.get(ALIGNMENT).map(String::as_str))
    }

    /// Returns a new info object with all hints, the transport of the window, the atomicity of its
    /// accumulates, and the kinds of memory that `comm` supports; the user frees it.
    pub fn give(&self, host: &Host, comm: Comm, transport: &str) -> Result<Handle> {
        let kinds = info::memory_kinds(host, comm)?;
        let kinds = kinds.iter().map(|kinds| (info::KINDS, kinds.as_str()));
        let mut own = defaults(self.flavor);
        own.extend(self.values.iter().map(|(key, value)| (*key, value.as_str())));
        let mut info: Handle = 0;
        // SAFETY: a local out parameter.
        check(unsafe { (host.call.info_create)(&mut info) })?;
        for (key, value) in own.into_iter().chain(kinds).chain([(TRANSPORT, transport), ATOMIC]) {
            let key = CString::new(key).unwrap_or_default();
            let value = CString::new(value).unwrap_or_default();
            // SAFETY: a valid info object and two C strings.
            check(unsafe { (host.call.info_set)(info, key.as_ptr(), value.as_ptr()) })?;
        }
        Ok(info)
    }
}

/// Returns the least alignment that an info object asks for (MPI-4.1 §9.2); 1 if it asks for none.
pub fn alignment_of(host: &Host, info: Handle) -> Result<u64> {
    if info == host.constants.info_null {
        return Ok(1);
    }
    Ok(alignment(info::value(host, info, ALIGNMENT)?.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_of_the_standard_have_a_meaning() {
        for (key, value) in [
            ("no_locks", "true"),
            ("no_locks", "FALSE"),
            ("accumulate_ordering", "none"),
            ("accumulate_ordering", "war, rar"),
            ("accumulate_ops", "same_op"),
            (ALIGNMENT, "4096"),
            ("mpi_assert_memory_alloc_kinds", "system,cuda:device"),
            (ATTRIBUTES, "faster, ordered"),
        ] {
            assert!(has_meaning(key, value), "{key} {value}");
        }
        for (key, value) in [
            ("same_size", "perhaps"),
            ("accumulate_ordering", ""),
            ("accumulate_ordering", "none,rar"),
            ("accumulate_ops", "any"),
            (ALIGNMENT, "24"),
            (ATTRIBUTES, "true"),
        ] {
            assert!(!has_meaning(key, value), "{key} {value}");
        }
    }

    #[test]
    fn a_window_reports_the_hints_that_concern_it() {
        let has = |flavor, key| defaults(flavor).contains_key(key);
        assert!(has(Flavor::Shared, NONCONTIG));
        assert!(!has(Flavor::Allocate, NONCONTIG));
        assert!(has(Flavor::Dynamic, "accumulate_ops"));
        assert!(!has(Flavor::Allocate, ALIGNMENT));
        assert!(concerns(SYMMETRIC, Flavor::Allocate) && !concerns(SYMMETRIC, Flavor::Shared));
    }
}
