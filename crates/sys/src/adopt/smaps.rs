//! Advice that the program has given for its memory: the flags of each mapping in /proc/self/smaps,
//! and other facts in that file.

use std::fs;

/// Advice that the program has given for a range of memory, which is repeated for a new mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// huge pages are wanted (MADV_HUGEPAGE)
    pub huge: bool,
    /// no memory is set aside (MAP_NORESERVE), as jemalloc and arenas of glibc have it
    pub no_reserve: bool,
}

/// What the flags of a range say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// nothing that a new mapping would lose
    Plain(Wishes),
    /// something else
    Else,
}

/// Flags of all memory that may be read and written: rights, accounting, and whether it was
/// written to. `ms` and `sh` are those of a segment.
const PLAIN: [&str; 9] = ["rd", "wr", "sh", "mr", "mw", "me", "ms", "ac", "sd"];
/// Mapped devices that hold no page of the program.
const HARMLESS: [&str; 2] = ["/dev/zero", "/dev/shm/"];

/// The mappings of the process at one moment.
pub struct Smaps {
    /// begin, end and flags, by address
    mappings: Vec<(u64, u64, Said)>,
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
        let (mut has_device, mut is_valgrind) = (false, false);
        for line in text.lines() {
            if let Some(flags) = line.strip_prefix("VmFlags:") {
                let said = if is_marked { Said::Else } else { said(flags) };
                mappings.push((range.0, range.1, said));
            } else if let Some(key) = line.strip_prefix("ProtectionKey:") {
                is_marked |= key.trim() != "0";
            } else if let Some(found) = header(line) {
                let name = line.splitn(6, ' ').nth(5).unwrap_or_default().trim_start();
                (range, is_marked) = (found, name.starts_with("[anon:"));
                let harmless = HARMLESS.iter().any(|start| name.starts_with(start));
                has_device |= name.starts_with("/dev/") && !harmless;
                is_valgrind |= name.contains("/vgpreload_");
            }
        }
        // A kernel that shows no flags.
        (!mappings.is_empty()).then_some(Smaps { mappings, has_device, is_valgrind })
    }

    /// Returns the advice that the program has given for a range of addresses.
    pub fn said_of(&self, first: u64, end: u64) -> Said {
        let over = self.mappings.iter().filter(|(start, stop, _)| *start < end && *stop > first);
        let mut said = over.map(|(_, _, said)| *said);
        let Some(one) = said.next() else { return Said::Else };
        if said.all(|other| other == one) { one } else { Said::Else }
    }
}

fn said(flags: &str) -> Said {
    let mut wishes = Wishes::default();
    for flag in flags.split_ascii_whitespace() {
        match flag {
            "hg" => wishes.huge = true,
            "nr" => wishes.no_reserve = true,
            _ if PLAIN.contains(&flag) => {}
            _ => return Said::Else,
        }
    }
    Said::Plain(wishes)
}

/// Returns the range of a line that begins a mapping.
fn header(line: &str) -> Option<(u64, u64)> {
    let (first, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((number(first)?, number(end)?))
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
        let kept = Wishes { huge: false, no_reserve: true };
        assert_eq!(said(" rd wr mr mw me nr sd "), Said::Plain(kept));
        assert_eq!(smaps.said_of(0x1000, 0x3000), Said::Plain(Wishes::default()));
        assert_eq!(smaps.said_of(0x2000, 0x3001), Said::Else);
        assert_eq!(
            smaps.said_of(0x5000, 0x6000),
            Said::Plain(Wishes { huge: true, no_reserve: false })
        );
        assert_eq!(smaps.said_of(0x5000, 0x7000), Said::Else, "a part of it");
        assert_eq!(smaps.said_of(0x6000, 0x7000), Said::Plain(Wishes::default()));
        assert_eq!(smaps.said_of(0x4000, 0x5000), Said::Else, "not mapped");
        let named = "1000-2000 rw-p 00000000 00:00 0   [anon:table]\nVmFlags: rd wr mr mw me ac \n";
        assert_eq!(Smaps::parse(named).unwrap().said_of(0x1000, 0x2000), Said::Else);
        for (key, expected) in [(0, Said::Plain(Wishes::default())), (3, Said::Else)] {
            let text = format!(
                "1000-2000 rw-p 00000000 00:00 0 \nProtectionKey:         {key}\nVmFlags: rd wr \n"
            );
            assert_eq!(Smaps::parse(&text).unwrap().said_of(0x1000, 0x2000), expected);
        }
        assert!(!smaps.has_device && !smaps.is_valgrind);
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
        assert_ne!(smaps.said_of(at, at + (1 << 20)), Said::Else);
    }
}
