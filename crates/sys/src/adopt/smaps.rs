//! The flags of each mapping in /proc/self/smaps, which show the program's advice for its memory,
//! and other facts in that file.

use crate::proc_text;
use std::fs;

/// Flags of a range of memory that a new mapping gets, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptFlags {
    /// huge pages are wanted (MADV_HUGEPAGE)
    pub huge: bool,
    /// no memory is set aside (MAP_NORESERVE), as jemalloc and arenas of glibc have it
    pub no_reserve: bool,
}

/// The flags of a range (`VmFlags`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmFlags {
    /// none that a new mapping would lose
    Plain(KeptFlags),
    /// others
    Other,
}

/// Flags of all memory that may be read and written: rights, accounting, and whether it was
/// written to. `ms` and `sh` are those of a segment.
const PLAIN: [&str; 9] = ["rd", "wr", "sh", "mr", "mw", "me", "ms", "ac", "sd"];
/// Mapped devices that hold no page of the program.
const HARMLESS: [&str; 2] = ["/dev/zero", "/dev/shm/"];

/// Huge pages of a mapping, in KiB.
const HUGE: [&str; 2] = ["AnonHugePages:", "ShmemPmdMapped:"];

/// A mapping of the process.
struct Mapped {
    first: u64,
    end: u64,
    flags: VmFlags,
    has_huge_page: bool,
}

/// The mappings of the process at one moment.
pub struct Smaps {
    /// by address
    mappings: Vec<Mapped>,
    /// whether a device is mapped
    pub has_device: bool,
    /// whether valgrind runs the process
    pub is_valgrind: bool,
}

impl Smaps {
    /// Reads the file; `None` if the system does not show it.
    pub fn read() -> Option<Smaps> {
        Smaps::parse(&fs::read_to_string("/proc/self/smaps").ok()?)
    }

    fn parse(text: &str) -> Option<Smaps> {
        let (mut mappings, mut range, mut is_marked) = (Vec::new(), (0, 0), false);
        let mut has_huge_page = false;
        let (mut has_device, mut is_valgrind) = (false, false);
        for line in text.lines() {
            if let Some(flags) = line.strip_prefix("VmFlags:") {
                let flags = if is_marked { VmFlags::Other } else { parse_flags(flags) };
                mappings.push(Mapped { first: range.0, end: range.1, flags, has_huge_page });
            } else if let Some(key) = line.strip_prefix("ProtectionKey:") {
                is_marked |= key.trim() != "0";
            } else if let Some(size) = HUGE.iter().find_map(|kind| line.strip_prefix(kind)) {
                has_huge_page |= !size.trim().starts_with("0 ");
            } else if let Some(found) = proc_text::range(line) {
                let name = line.splitn(6, ' ').nth(5).unwrap_or_default().trim_start();
                (range, is_marked, has_huge_page) = (found, name.starts_with("[anon:"), false);
                let harmless = HARMLESS.iter().any(|start| name.starts_with(start));
                has_device |= name.starts_with("/dev/") && !harmless;
                is_valgrind |= name.contains("/vgpreload_");
            }
        }
        // A kernel that shows no flags.
        (!mappings.is_empty()).then_some(Smaps { mappings, has_device, is_valgrind })
    }

    /// Returns the mappings that overlap a range of addresses.
    fn over(&self, first: u64, end: u64) -> impl Iterator<Item = &Mapped> {
        self.mappings.iter().filter(move |mapped| mapped.first < end && mapped.end > first)
    }

    /// Whether a mapping that overlaps a range of addresses has a huge page.
    pub fn has_huge_page(&self, first: u64, end: u64) -> bool {
        self.over(first, end).any(|mapped| mapped.has_huge_page)
    }

    /// Returns the flags of a range of addresses; `Other` if its mappings differ.
    pub fn vm_flags(&self, first: u64, end: u64) -> VmFlags {
        let mut flags = self.over(first, end).map(|mapped| mapped.flags);
        let Some(one) = flags.next() else { return VmFlags::Other };
        if flags.all(|other| other == one) { one } else { VmFlags::Other }
    }
}

fn parse_flags(flags: &str) -> VmFlags {
    let mut kept_flags = KeptFlags::default();
    for flag in flags.split_ascii_whitespace() {
        match flag {
            "hg" => kept_flags.huge = true,
            "nr" => kept_flags.no_reserve = true,
            _ if PLAIN.contains(&flag) => {}
            _ => return VmFlags::Other,
        }
    }
    VmFlags::Plain(kept_flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_the_program_has_set_are_told() {
        let text = "1000-3000 rw-p 00000000 00:00 0 \nSize: 8 kB\nVmFlags: rd wr mr mw me ac sd \n\
                    3000-4000 rw-p 00000000 00:00 0  [heap]\nVmFlags: rd wr mr mw me dd ac \n\
                    5000-6000 rw-p 00000000 00:00 0 \nVmFlags: rd wr mr mw me ac hg \n\
                    6000-7000 rw-s 00000000 00:01 7  /dev/shm/a\nVmFlags: rd wr sh mr mw me ms \n";
        let smaps = Smaps::parse(text).unwrap();
        let kept = KeptFlags { huge: false, no_reserve: true };
        assert_eq!(parse_flags(" rd wr mr mw me nr sd "), VmFlags::Plain(kept));
        assert_eq!(smaps.vm_flags(0x1000, 0x3000), VmFlags::Plain(KeptFlags::default()));
        assert_eq!(smaps.vm_flags(0x2000, 0x3001), VmFlags::Other);
        assert_eq!(
            smaps.vm_flags(0x5000, 0x6000),
            VmFlags::Plain(KeptFlags { huge: true, no_reserve: false })
        );
        assert_eq!(smaps.vm_flags(0x5000, 0x7000), VmFlags::Other, "a part of it");
        assert_eq!(smaps.vm_flags(0x6000, 0x7000), VmFlags::Plain(KeptFlags::default()));
        assert_eq!(smaps.vm_flags(0x4000, 0x5000), VmFlags::Other, "not mapped");
        let named = "1000-2000 rw-p 00000000 00:00 0   [anon:table]\nVmFlags: rd wr mr mw me ac \n";
        assert_eq!(Smaps::parse(named).unwrap().vm_flags(0x1000, 0x2000), VmFlags::Other);
        for (key, expected) in [(0, VmFlags::Plain(KeptFlags::default())), (3, VmFlags::Other)] {
            let text = format!(
                "1000-2000 rw-p 00000000 00:00 0 \nProtectionKey:         {key}\nVmFlags: rd wr \n"
            );
            assert_eq!(Smaps::parse(&text).unwrap().vm_flags(0x1000, 0x2000), expected);
        }
        assert!(!smaps.has_device && !smaps.is_valgrind);
    }

    #[test]
    fn huge_pages_are_told_of_each_mapping() {
        let text = "1000-5000 rw-p 00000000 00:00 0\nSize: 16 kB\nAnonHugePages:         0 kB\n\
                    VmFlags: rd wr\n\
                    5000-9000 rw-p 00000000 00:00 0\nSize: 16 kB\nAnonHugePages:      2048 kB\n\
                    VmFlags: rd wr\n\
                    9000-b000 rw-p 00000000 00:00 0\nSize: 16 kB\nAnonHugePages:         0 kB\n\
                    VmFlags: rd wr\n";
        let smaps = Smaps::parse(text).unwrap();
        assert!(!smaps.has_huge_page(0x1000, 0x5000));
        assert!(smaps.has_huge_page(0x1000, 0x5001));
        assert!(smaps.has_huge_page(0x8000, 0x9000));
        assert!(!smaps.has_huge_page(0x9000, 0xa000));
    }

    #[test]
    fn devices_and_valgrind_are_told() {
        let of = |name: &str| {
            let text = format!("1000-2000 rw-s 00000000 00:05 9   {name}\nVmFlags: rd wr \n");
            let smaps = Smaps::parse(&text).unwrap();
            (smaps.has_device, smaps.is_valgrind)
        };
        assert_eq!(of("/dev/cxi0"), (true, false));
        assert_eq!(of("/dev/zero (deleted)"), (false, false));
        assert_eq!(of("/usr/libexec/valgrind/vgpreload_core-amd64-linux.so"), (false, true));
        assert!(Smaps::parse("1000-2000 rw-s 00000000 00:05 9 x\nSize: 4 kB\n").is_none());
    }

    #[test]
    fn this_process_has_plain_memory() {
        let memory = vec![1_u8; 1 << 20];
        let at = memory.as_ptr().addr() as u64;
        let smaps = Smaps::read().unwrap();
        assert_ne!(smaps.vm_flags(at, at + (1 << 20)), VmFlags::Other);
    }
}
