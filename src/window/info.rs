//! The hints of a window (MPI-4.1 §12.2.7): what the user gave and what get_info reports.

use super::Flavor;
use crate::error::Result;
use crate::mpi::comm::check;
use crate::mpi::{Handle, Host};
use std::collections::BTreeMap;
use std::ffi::CString;

/// The keys that a window knows. Others are ignored, as the standard wants it.
const KEYS: [&str; 9] = [
    "no_locks",
    "accumulate_ordering",
    "accumulate_ops",
    "mpi_accumulate_granularity",
    "same_size",
    "same_disp_unit",
    "alloc_shared_noncontig",
    "mpi_minimum_memory_alignment",
    "mpi_assert_memory_alloc_kinds",
];

/// The key of [`Host::alignment`].
const ALIGNMENT: &str = "mpi_minimum_memory_alignment";

/// The value of that key; what is no power of two has no meaning.
fn alignment(value: Option<&str>) -> u64 {
    let asked = value.and_then(|value| value.trim().parse::<u64>().ok());
    asked.filter(|asked| asked.is_power_of_two()).unwrap_or(1)
}

/// Hints by key.
#[derive(Clone, Debug, Default)]
pub struct Hints(BTreeMap<&'static str, String>);

impl Hints {
    /// What a window of this flavor does if nobody says anything else.
    pub fn defaults(flavor: Flavor) -> Hints {
        let mut hints = BTreeMap::from([
            ("no_locks", "false"),
            ("accumulate_ordering", "rar,raw,war,waw"),
            ("accumulate_ops", "same_op_no_op"),
            ("mpi_accumulate_granularity", "0"),
            ("same_size", "false"),
            ("same_disp_unit", "false"),
        ]);
        if flavor == Flavor::Shared {
            hints.insert("alloc_shared_noncontig", "false");
        }
        Hints(hints.into_iter().map(|(key, value)| (key, value.to_owned())).collect())
    }

    /// Takes the values of the known keys of an info object.
    pub fn take(&mut self, host: &Host, info: Handle) -> Result<()> {
        if info == host.constants.info_null {
            return Ok(());
        }
        for key in KEYS {
            if let Some(value) = host.info_get(info, key)? {
                self.0.insert(key, value);
            }
        }
        Ok(())
    }

    /// Whether a boolean hint is set.
    pub fn is_set(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// To a multiple of which memory that the library allocates must begin
    /// (mpi_minimum_memory_alignment, MPI-4.1 §9.2); 1 if the user does not say.
    pub fn alignment(&self) -> u64 {
        alignment(self.0.get(ALIGNMENT).map(String::as_str))
    }

    /// A new info object with all of it; the user frees it.
    pub fn give(&self, host: &Host) -> Result<Handle> {
        let mut info: Handle = 0;
        // SAFETY: an out parameter of ours.
        check(unsafe { (host.call.info_create)(&mut info) })?;
        for (key, value) in &self.0 {
            let key = CString::new(*key).unwrap_or_default();
            let value = CString::new(value.as_str()).unwrap_or_default();
            // SAFETY: a valid info object and two C strings.
            check(unsafe { (host.call.info_set)(info, key.as_ptr(), value.as_ptr()) })?;
        }
        Ok(info)
    }
}

impl Host {
    /// The least alignment that an info object asks for (MPI-4.1 §9.2); 1 if it asks for none.
    pub fn alignment(&self, info: Handle) -> Result<u64> {
        if info == self.constants.info_null {
            return Ok(1);
        }
        Ok(alignment(self.info_get(info, ALIGNMENT)?.as_deref()))
    }

    /// The value of `key` in an info object.
    pub fn info_get(&self, info: Handle, key: &str) -> Result<Option<String>> {
        let mut value = vec![0_u8; self.constants.max_info_val as usize + 1];
        let (mut found, length) = (0, self.constants.max_info_val - 1);
        let key = CString::new(key).unwrap_or_default();
        let text = value.as_mut_ptr().cast();
        // SAFETY: `value` has room for `length` characters and the final zero.
        check(unsafe { (self.call.info_get)(info, key.as_ptr(), length, text, &mut found) })?;
        let end = value.iter().position(|byte| *byte == 0).unwrap_or(0);
        value.truncate(end);
        Ok((found != 0).then(|| String::from_utf8_lossy(&value).into_owned()))
    }
}
