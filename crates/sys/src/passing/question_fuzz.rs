//! Made-up questions for files, as a process asks them that knows the key. Only a file that the
//! question describes in full, and that is sealed, is passed.

use super::packets;
use super::question::{Question, to_bytes, to_words};
use crate::handshake::BYTES;
use crate::segment::{Name, Segment};
use fompi_testkit::Choices;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// A file that may be passed, and one that may not: it is not sealed.
fn files() -> &'static (Segment, File) {
    static FILES: OnceLock<(Segment, File)> = OnceLock::new();
    FILES.get_or_init(|| {
        let file = crate::memfd::create(c"not-sealed").unwrap();
        file.set_len(4096).unwrap();
        (Segment::create(4096).unwrap(), file)
    })
}

/// The mark of one of the files, changed or not, and whether that file may be passed under it.
fn mark(choices: &mut Choices) -> (Name, bool) {
    let (segment, file) = files();
    let (name, status) = (segment.name(), file.metadata().unwrap());
    let right = match choices.below(3) {
        0 => Name {
            fd: file.as_raw_fd(),
            device: status.dev(),
            inode: status.ino(),
            bytes: status.len(),
            ..Name::default()
        },
        _ => Name { pid: 0, passer: 0, ..name },
    };
    let mut mark = right;
    match choices.below(6) {
        0 => mark.fd = choices.word() as i32,
        1 => mark.device ^= choices.word(),
        2 => mark.inode ^= choices.word(),
        3 => mark.bytes ^= choices.word(),
        _ => {}
    }
    (mark, mark == right && right.fd == name.fd)
}

/// The target `file_questions`: the bytes of a question, made up or of a mark, and its answer.
pub fn file_questions(data: &[u8]) {
    let mut choices = Choices::of(data);
    while !choices.are_used_up() {
        let (mark, may_pass) = mark(&mut choices);
        let mut bytes: [u8; BYTES] = Question::File(mark).to_bytes();
        match choices.below(3) {
            0 => bytes = choices.bytes(),
            1 => bytes[choices.below(BYTES)] ^= choices.byte(),
            _ => {}
        }
        // No process has a descriptor below 0.
        let is_that = mark.fd >= 0 && bytes == Question::File(mark).to_bytes();
        assert_eq!(to_bytes(to_words(&bytes)), bytes);
        let Some(question) = Question::of_bytes(&bytes) else {
            assert!(!is_that, "a question for a file is read");
            continue;
        };
        assert_eq!(question.to_bytes(), bytes, "a question has one form");
        if let Question::File(asked) = question {
            let passed = packets::duplicate(&asked).map(File::from);
            assert!(!is_that || passed.is_some() == may_pass);
            assert!(passed.is_none_or(|file| packets::is_file(&file, &asked)));
        }
    }
}

#[cfg(test)]
#[test]
fn the_kept_questions_are_answered_or_not() {
    fompi_testkit::replay("file_questions", file_questions);
}
