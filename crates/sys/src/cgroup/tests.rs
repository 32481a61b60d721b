//! Limits of trees that the tests make: version 1, version 2, both, containers and namespaces.

use super::*;

const MIB: u64 = 1 << 20;

/// A root directory with some files, until it is dropped.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str, files: &[(&str, &str)]) -> Tree {
        let root = format!("fompi-cgroup-{}-{name}", std::process::id());
        let tree = Tree(std::env::temp_dir().join(root));
        for (path, text) in files {
            let path = tree.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        tree
    }

    fn limits(&self) -> Vec<u64> {
        limits(&self.0).iter().map(|limit| limit.bytes / MIB).collect()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const ONE: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n";
const TWO: &str =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
const UNLIMITED: &str = "9223372036854771712\n";

#[test]
fn version_2_has_the_limits_of_all_ancestors() {
    let tree = Tree::new(
        "two",
        &[
            ("proc/self/cgroup", "0::/slurm/job_7/step_0\n"),
            ("proc/self/mountinfo", TWO),
            ("sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n"),
            ("sys/fs/cgroup/slurm/job_7/memory.max", "314572800\n"),
            ("sys/fs/cgroup/slurm/memory.max", "1073741824\n"),
        ],
    );
    assert_eq!(tree.limits(), [300, 1024]);
}

#[test]
fn version_1_has_them_too_where_ancestors_count() {
    let tree = Tree::new(
        "one",
        &[
            ("proc/self/cgroup", "5:devices:/\n4:memory:/a/b\n1:name=systemd:/x\n"),
            ("proc/self/mountinfo", ONE),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", UNLIMITED),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "209715200\n"),
            ("sys/fs/cgroup/memory/a/memory.use_hierarchy", "1\n"),
            ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "314572800\n"),
        ],
    );
    assert_eq!(tree.limits(), [300, 200]);
    fs::write(tree.0.join("sys/fs/cgroup/memory/a/memory.use_hierarchy"), "0\n").unwrap();
    assert_eq!(tree.limits(), [300]);
}

#[test]
fn of_both_versions_the_one_that_has_the_memory_controller_counts() {
    let mounts = format!("{ONE}41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    let tree = Tree::new(
        "hybrid",
        &[
            ("proc/self/cgroup", "4:memory:/a\n0::/b\n"),
            ("proc/self/mountinfo", &mounts),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "314572800\n"),
            ("sys/fs/cgroup/unified/b/cgroup.procs", ""),
        ],
    );
    assert_eq!(tree.limits(), [300]);
}

#[test]
fn a_container_sees_its_own_group_at_the_mount_point() {
    let mounts = "9 8 0:32 /docker/c0 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
    let stat = "cache 0\nhierarchical_memory_limit 104857600\n";
    let tree = Tree::new(
        "container",
        &[
            ("proc/self/cgroup", "4:memory:/docker/c0/inner\n"),
            ("proc/self/mountinfo", mounts),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "314572800\n"),
            ("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", UNLIMITED),
            ("sys/fs/cgroup/memory/inner/memory.stat", stat),
        ],
    );
    assert_eq!(tree.limits(), [300, 100], "and that of an ancestor outside");
}

#[test]
fn in_a_namespace_the_root_is_the_own_group() {
    let tree = Tree::new(
        "namespace",
        &[
            ("proc/self/cgroup", "0::/\n"),
            ("proc/self/mountinfo", TWO),
            ("sys/fs/cgroup/memory.max", "314572800\n"),
        ],
    );
    assert_eq!(tree.limits(), [300]);
}

#[test]
fn what_is_mounted_from_outside_of_a_namespace_is_an_ancestor() {
    let outside = "30 23 0:26 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    let tree = Tree::new(
        "outside",
        &[
            ("proc/self/cgroup", "0::/\n"),
            ("proc/self/mountinfo", outside),
            ("sys/fs/cgroup/memory.max", "314572800\n"),
        ],
    );
    assert_eq!(tree.limits(), [300]);
    assert!(limits(&tree.0)[0].holds_for(1), "whose it is cannot be seen");
}

#[test]
fn a_group_that_is_not_mounted_has_no_limits_here() {
    let other = "30 23 0:26 /other /mnt/x rw - cgroup2 cgroup2 rw\n";
    for (name, group, mounts) in [("above", "/../..", TWO), ("beside", "/own", other)] {
        let tree = Tree::new(
            name,
            &[
                ("proc/self/cgroup", &format!("0::{group}\n")),
                ("proc/self/mountinfo", mounts),
                ("sys/fs/cgroup/memory.max", "314572800\n"),
                ("mnt/x/memory.max", "314572800\n"),
            ],
        );
        assert_eq!(tree.limits(), [0; 0]);
    }
    assert_eq!(limits(Path::new("/there/is/nothing")), []);
}

#[test]
fn names_with_spaces_are_found() {
    let mounts = "30 23 0:26 / /my\\040groups\\134x rw - cgroup2 cgroup2 rw\n";
    let tree = Tree::new(
        "spaces",
        &[
            ("proc/self/cgroup", "0::/a b:c\n"),
            ("proc/self/mountinfo", mounts),
            ("my groups\\x/a b:c/memory.max", "314572800\n"),
        ],
    );
    assert_eq!(tree.limits(), [300]);
}

#[test]
fn a_limit_holds_for_the_processes_of_its_group() {
    let tree = Tree::new(
        "others",
        &[
            ("proc/self/cgroup", "0::/job/a\n"),
            ("proc/self/mountinfo", TWO),
            ("proc/2/cgroup", "0::/job/b\n"),
            ("proc/3/cgroup", "0::/jobs\n"),
            ("proc/4/cgroup", "0::/job/a/x\n"),
            ("proc/5/cgroup", "0::/../job\n"),
            ("sys/fs/cgroup/job/a/memory.max", "314572800\n"),
            ("sys/fs/cgroup/job/memory.max", "314572801\n"),
        ],
    );
    let limits = limits(&tree.0);
    let held = |limit: &Limit| [2, 3, 4, 5, 6].map(|pid| limit.holds_for(pid));
    assert_eq!(held(&limits[0]), [false, false, true, false, false]);
    assert_eq!(held(&limits[1]), [true, false, true, false, false]);
}

#[test]
fn copies_of_files_are_available() {
    let tree = Tree::new(
        "available",
        &[
            ("proc/self/cgroup", "0::/job\n"),
            ("proc/self/mountinfo", TWO),
            ("sys/fs/cgroup/job/memory.max", "314572800\n"),
            ("sys/fs/cgroup/job/memory.current", "209715200\n"),
            ("sys/fs/cgroup/job/memory.stat", "anon 7\nfile 104857600\nshmem 52428800\n"),
        ],
    );
    assert_eq!(limits(&tree.0)[0].available(), 150 * MIB);
}
