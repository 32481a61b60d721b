//! Texts of the kernel in /proc and in control groups, and what stands where in them.

use core::str::SplitAsciiWhitespace;

/// Returns what stands behind a name at the begin of a line of a text.
pub fn behind<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Returns the addresses with which a mapping begins in /proc/PID/maps and in smaps: the first one,
/// and one past the last.
pub fn range(line: &str) -> Option<(u64, u64)> {
    let (first, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((number(first)?, number(end)?))
}

/// Returns the fields of /proc/PID/stat from the third one on. The name ahead of them, in
/// parentheses, may contain spaces and parentheses.
pub fn stat_fields(stat: &[u8]) -> Option<SplitAsciiWhitespace<'_>> {
    let behind = stat.iter().rposition(|byte| *byte == b')')? + 1;
    Some(str::from_utf8(&stat[behind..]).ok()?.split_ascii_whitespace())
}
