"""Control groups that limit the memory of a job."""

import contextlib
import os
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
OLD = ROOT / "memory"  # of version 1


class Refused(Exception):
    """Why there is no such group here."""


def parent_and_limit(version):
    """The folder for a group of a version, and the name of its limit."""
    if version == 2:
        return ROOT, "memory.max"
    lines = [line.split(":") for line in Path("/proc/self/cgroup").read_text().splitlines()]
    (own,) = [path for _, controller, path in lines if controller == "memory"]
    return Path(f"{OLD}{own}"), "memory.limit_in_bytes"


def removed(folder):
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()


@contextlib.contextmanager
def limited(mib, version, inside=False):
    """A group with so much memory. Its processes are in it, or in another one inside of it; yields what is
    put in front of a command to run it there."""
    parent, limit = parent_and_limit(version)
    outer = parent / f"fompi-test.{os.getpid()}"
    group = outer / "inner" if inside else outer
    try:
        outer.mkdir()
        if version == 2 and not (outer / limit).exists():
            (parent / "cgroup.subtree_control").write_text("+memory")
        (outer / limit).write_text(f"{mib}M")
        swap = outer / "memory.swap.max"
        if swap.exists():  # which would keep what is too much
            swap.write_text("0")
        group.mkdir(exist_ok=True)
    except OSError as error:
        removed(outer)
        raise Refused(str(error)) from error
    try:
        yield ["sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$0" "$@"']
    finally:
        # Its processes may need some time to end.
        for _ in range(50):
            if removed(group) and removed(outer):
                break
            time.sleep(0.1)
