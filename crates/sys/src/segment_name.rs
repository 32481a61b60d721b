//! Names of segments ([`segment`](super::segment)), which processes of a node send to each other.

use crate::number::Number;

/// The values by which another process of the node finds a segment, and checks that it is the right
/// one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Name {
    /// the process that has it open
    pub pid: i32,
    /// its descriptor there
    pub fd: i32,
    /// device of the file: another process with the same id would show another file
    pub device: u64,
    /// its inode
    pub inode: u64,
    /// its bytes
    pub bytes: u64,
    /// the number in the address at which the process passes the file, see `passing`
    pub passer: u64,
}

impl Name {
    /// Returns it in the form in which it is sent to other processes.
    pub fn to_words(self) -> [u64; 5] {
        let [pid, fd] = [self.pid, self.fd].map(|number| number.cast_unsigned().to_u64());
        [pid << 32 | fd, self.device, self.inode, self.bytes, self.passer]
    }

    /// Returns the name that `to_words` has converted.
    pub fn from_words(words: &[u64; 5]) -> Name {
        let [numbers, device, inode, bytes, passer] = *words;
        let [pid, fd] = [numbers >> 32, numbers].map(|number| number.low_u32().cast_signed());
        Name { pid, fd, device, inode, bytes, passer }
    }
}
