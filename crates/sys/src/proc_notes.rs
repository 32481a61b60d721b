//! Texts that processes of one user on this node show each other: notes. A note is a file in
//! memory; other processes find its name and contents in /proc/PID/fd. Notes serve reports for
//! people, and no protocol depends on them.

use super::{last_error, memfd};
use crate::error::Result;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The most bytes of a note that are read.
const BYTES_MAX: u64 = 1 << 16;
/// The begin of the names of these files.
const NAME: &core::ffi::CStr = c"fompi-note";

/// A text that other processes can read until this value is dropped.
pub struct Note {
    _file: File,
}

impl Note {
    /// Shows a text.
    pub fn show(text: &str) -> Result<Note> {
        let mut file = memfd::create(NAME)?;
        file.write_all(text.as_bytes()).map_err(|_| last_error("write"))?;
        Ok(Note { _file: file })
    }
}

/// Returns the notes of all other processes of this user that /proc shows.
pub fn of_others() -> Vec<String> {
    let own = super::process::id();
    // SAFETY: the call has no conditions.
    let user = unsafe { libc::geteuid() };
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pid = |entry: &fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    let others = folders.filter(|entry| pid(entry).is_some_and(|pid| pid != own));
    let others = others.filter(|entry| entry.metadata().is_ok_and(|meta| meta.uid() == user));
    others.flat_map(|entry| of_process(&entry.path())).collect()
}

/// Returns the notes of a process, by its folder in /proc.
fn of_process(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
    files.filter_map(|file| read(&file.path())).collect()
}

/// Returns the text of an open file of a process, if that is a note.
fn read(link: &Path) -> Option<String> {
    let target = fs::read_link(link).ok()?;
    let name = NAME.to_str().unwrap_or_default();
    target.to_str()?.strip_prefix("/memfd:")?.strip_prefix(name)?;
    // The descriptor may belong to another file by now; opening a FIFO would block.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(link).ok()?;
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_seen_while_it_is_shown() {
        let own = std::path::PathBuf::from(format!("/proc/{}", super::super::process::id()));
        let text = format!("one\ntwo {}", super::super::process::id());
        let is_seen = || of_process(&own).contains(&text);
        let note = Note::show(&text).unwrap();
        assert!(is_seen());
        assert!(!of_others().contains(&text), "this process is no other one");
        drop(note);
        assert!(!is_seen());
    }
}
