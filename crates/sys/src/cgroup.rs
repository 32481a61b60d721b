//! The limits that control groups (cgroups(7)) set on the memory of this process: version 1,
//! version 2 and both at once, and those of all ancestors that can be seen from here. Every path is
//! below a root directory, so that tests can make a tree of their own. Not for the memory of the
//! node (`memory_limits`).

use super::proc_text;
use std::fs;
use std::path::{Path, PathBuf};

/// The versions, whose files have different names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A control group: that of this process, or an ancestor of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    version: Version,
    /// its name in /proc/PID/cgroup
    path: String,
    directory: PathBuf,
}

/// A limit on the memory of some processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// the limit
    pub bytes: u64,
    root: PathBuf,
    /// the group that sets it, if that can be seen
    group: Option<Group>,
}

/// A mounted hierarchy.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    version: Version,
    /// the group at the mount point
    root: String,
    point: String,
}

/// Values from here on mean that there is no limit.
const NO_LIMIT: u64 = 1 << 62;

/// Returns the limits of this process, from the files below `root` (`/`).
pub fn limits(root: &Path) -> Vec<Limit> {
    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let groups = text("proc/self/cgroup");
    let mut found = Vec::new();
    for mount in mounts(&text("proc/self/mountinfo")) {
        let Some(path) = path_in(&groups, mount.version) else { continue };
        of_mount(root, &mount, path, &mut found);
    }
    found
}

impl Limit {
    /// Whether it applies to another process, too. Also true if that cannot be seen.
    pub fn holds_for(&self, pid: i32) -> bool {
        let Some(group) = &self.group else { return true };
        let groups = fs::read_to_string(self.root.join(format!("proc/{pid}/cgroup")));
        groups.is_ok_and(|groups| path_in(&groups, group.version).is_none_or(|p| group.has(p)))
    }

    /// Returns the bytes that the group may still take. Pages that are only copies of files make
    /// room.
    pub fn available(&self) -> u64 {
        let Some(group) = &self.group else { return self.bytes };
        let (usage, all, shared) = match group.version {
            Version::One => ("memory.usage_in_bytes", "total_cache", "total_shmem"),
            Version::Two => ("memory.current", "file", "shmem"),
        };
        let used = number(&group.directory.join(usage)).unwrap_or(0);
        let stat = fs::read_to_string(group.directory.join("memory.stat")).unwrap_or_default();
        let field = |name| field(&stat, name).unwrap_or(0);
        let copies = field(all).saturating_sub(field(shared));
        self.bytes.saturating_sub(used.saturating_sub(copies))
    }
}

impl Group {
    /// Whether a process in the group `path` is in this one.
    fn has(&self, path: &str) -> bool {
        match path.strip_prefix(self.path.trim_end_matches('/')) {
            // The path of a group outside of the namespace of groups begins so.
            Some(rest) => rest.is_empty() || rest.starts_with('/') && !rest.starts_with("/.."),
            None => false,
        }
    }

    fn limit(&self) -> Option<u64> {
        let name = match self.version {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        };
        number(&self.directory.join(name)).filter(|bytes| *bytes < NO_LIMIT)
    }

    /// Whether it counts the memory of the groups inside of it, as all do but old ones of version
    /// 1.
    fn counts_others(&self) -> bool {
        number(&self.directory.join("memory.use_hierarchy")) != Some(0)
    }
}

/// Adds the limits of the group `path` and of its ancestors in a hierarchy.
fn of_mount(root: &Path, mount: &Mount, path: &str, found: &mut Vec<Limit>) {
    let Mount { version, point, .. } = mount;
    let point = root.join(point.trim_start_matches('/'));
    let Some(inner) = mount.inner(path) else {
        // The mount point is an ancestor if the path from there to the group cannot be seen.
        if mount.root.starts_with("/..") {
            let group = Group { version: *version, path: String::new(), directory: point };
            let limit = |bytes| Limit { bytes, root: root.to_owned(), group: None };
            found.extend(group.limit().map(limit));
        }
        return;
    };
    let mut least = u64::MAX;
    for end in ends(inner) {
        let directory = point.join(inner[..end].trim_start_matches('/'));
        let path = format!("{}{}", mount.root.trim_end_matches('/'), &inner[..end]);
        let group = Group { version: *version, path, directory };
        if end < inner.len() && !group.counts_others() {
            continue;
        }
        if let Some(bytes) = group.limit() {
            least = least.min(bytes);
            found.push(Limit { bytes, root: root.to_owned(), group: Some(group) });
        }
    }
    // Version 1 also shows the limits of ancestors that are not mounted here.
    let stat = point.join(inner.trim_start_matches('/')).join("memory.stat");
    let stat = fs::read_to_string(stat).unwrap_or_default();
    let all = field(&stat, "hierarchical_memory_limit").filter(|bytes| *bytes < NO_LIMIT);
    if let Some(bytes) = all.filter(|bytes| *bytes < least) {
        found.push(Limit { bytes, root: root.to_owned(), group: None });
    }
}

/// Returns the ends of the ancestors of a path in it, the path itself first.
fn ends(path: &str) -> impl Iterator<Item = usize> {
    let slashes = path.rmatch_indices('/').map(|(at, _)| at);
    std::iter::once(path.len()).chain(slashes)
}

impl Mount {
    /// Returns the path from the mount point to the group `path`: empty, or names after slashes.
    fn inner<'a>(&self, path: &'a str) -> Option<&'a str> {
        let inner = path.strip_prefix(self.root.trim_end_matches('/'))?;
        let inner = inner.trim_end_matches('/');
        let fits = inner.is_empty() || inner.starts_with('/');
        (fits && !inner.split('/').any(|name| name == "..")).then_some(inner)
    }
}

/// Returns the mounted hierarchies in which memory may be limited, from the text of
/// /proc/PID/mountinfo.
fn mounts(text: &str) -> impl Iterator<Item = Mount> {
    text.lines().filter_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let (name, options) = (kind.next()?, kind.nth(1).unwrap_or_default());
        let version = match name {
            "cgroup2" => Version::Two,
            "cgroup" if options.split(',').any(|option| option == "memory") => Version::One,
            _ => return None,
        };
        let mut place = place.split(' ').skip(3).map(unescaped);
        Some(Mount { version, root: place.next()?, point: place.next()? })
    })
}

/// Returns the group in a hierarchy, from the text of /proc/PID/cgroup.
fn path_in(text: &str, version: Version) -> Option<&str> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers) = (fields.next()?, fields.next()?);
        let is_it = match version {
            Version::One => controllers.split(',').any(|name| name == "memory"),
            Version::Two => number == "0" && controllers.is_empty(),
        };
        fields.next().filter(|_| is_it)
    })
}

/// A name in which some characters are a backslash and three octal digits.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match digits {
            Some(byte) => {
                name.push(char::from(byte));
                name.push_str(&part[3..]);
            }
            None => {
                name.push('\\');
                name.push_str(part);
            }
        }
    }
    name
}

/// Returns the number in a file.
fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Returns the number after a name in a text of lines.
fn field(text: &str, name: &str) -> Option<u64> {
    proc_text::behind(text, &format!("{name} "))?.parse().ok()
}

#[cfg(test)]
mod tests;
