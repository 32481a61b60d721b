"""What has changed since the commit that tested.toml names: for the stages mutants and plain of the
gate, which run only that.

A file has changed if its text differs from that of the commit; lines of comments in sources of Rust do
not count. Without git, or without the commit (a shallow clone, an archive), everything has changed, as
nothing shows the contrary."""

import functools
import re
import subprocess
import tomllib

from programs import C_TESTS, ROOT

TESTED = ROOT / "scripts" / "dev" / "tested.toml"
INCLUDE = re.compile(r"""^\s*#?\s*include\s+["'<]([^"'>]+)[">']""", re.MULTILINE | re.IGNORECASE)


def git(*words, folder=ROOT):
    """What a git command prints; raises if it fails, or if there is no git."""
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True,
                          text=True, errors="replace").stdout


def code_of(text):
    """The text of a source of Rust without the lines that are comments."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


class Base:
    """A commit, and what differs from it. `missing`: why that is not known, or None."""

    def __init__(self, commit, folder=ROOT):
        self.commit, self.folder, self.missing = commit, folder, None
        try:
            git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", folder=folder)
            names = git("diff", "--name-only", "--no-renames", "-z", commit, "--", folder=folder)
            names += git("ls-files", "--others", "--exclude-standard", "-z", folder=folder)
        except FileNotFoundError:
            self.missing = "there is no git"
        except subprocess.CalledProcessError as failed:
            absent = f"commit {commit[:12]} is not here (git fetch --unshallow completes a shallow clone)"
            self.missing = (failed.stderr.strip().splitlines() or [absent])[0]
        if not self.missing:
            self.differs = {name for name in names.split("\0") if name and self.has_changed(name)}

    def text(self, name):
        """The text of a file in the commit; empty if it was not there."""
        try:
            return git("show", f"{self.commit}:{name}", folder=self.folder)
        except subprocess.CalledProcessError:
            return ""

    def has_changed(self, name):
        """Whether a file that git names differs by more than comments."""
        path = self.folder / name
        if not name.endswith(".rs") or not path.is_file():
            return True
        return code_of(path.read_text()) != code_of(self.text(name))

    def any_changed(self, paths):
        """Whether one of these files has changed."""
        names = (str(path.relative_to(self.folder)) for path in paths)
        return bool(self.missing) or any(name in self.differs for name in names)

    def tables(self, under):
        """The TOML files of a folder in the commit."""
        names = git("ls-tree", "-r", "--name-only", self.commit, "--", under, folder=self.folder)
        return [tomllib.loads(self.text(name)) for name in names.split() if name.endswith(".toml")]

    def __str__(self):
        return f"{self.commit[:12]} (scripts/dev/tested.toml)"


@functools.cache
def tested():
    return tomllib.loads(TESTED.read_text())


@functools.cache
def base():
    return Base(tested()["commit"])


def report(what, left, count):
    """Says how many of the rows or runs are left out, or why all are run."""
    missing = base().missing
    print(f"all {count} {what} are run: {missing}" if missing else
          f"{left} of {count} {what} are not run: nothing that they depend on has changed since {base()}",
          flush=True)


def included(path, known):
    """The files that a source includes, itself among them, but for those of the system."""
    if path in known or not path.is_file():
        return known
    known.add(path)
    for name in INCLUDE.findall(path.read_text()):
        found = path.parent / name
        included((found if found.is_file() else C_TESTS / name).resolve(), known)
    return known


def sources_of(test):
    """The files that a program is built from."""
    known = included(test.path.resolve(), set())
    for how in ("profiler", "linked"):
        if how in test.head:
            included(C_TESTS / "profiler" / f"{test.head[how]}.c", known)
    if "loads" in test.head:
        included(C_TESTS / "loaded" / f"{test.head['loads']}.c", known)
    for name in test.head.get("gpu", "").split():
        included(C_TESTS / "gpu_libraries" / f"{name}.c", known)
    if "c" in test.head:
        included(test.path.resolve().parent / f"{test.head['c']}.c", known)
    return known


@functools.cache
def old_rows():
    """The functions and rules of docs/conformance in the commit, by their mutation."""
    found = {}
    for table in base().tables("docs/conformance"):
        for values in table.get("functions", []) + table.get("rule", []):
            found.setdefault(mutant_of(values), []).append(values)
    return found


def mutant_of(values):
    return values.get("mutant") or values.get("name")


def row_has_changed(row, others, files, test):
    """Whether a row of docs/conformance, its mutation, a mutated file or its test has changed.
    `others`: the rows that define its mutation; `files`: those that the mutation changes; `test`: the
    program, or None for a unit test."""
    paths = set(files) | (sources_of(test) if test else {row.test.path})
    if base().any_changed(paths):
        return True
    old = old_rows().get(row.mutant, [])
    return any(one.values not in old for one in (row, *others))


def run_has_changed(job, old_defects):
    """Whether a run without the library has changed: its program, its row of host-defects (`old_defects`:
    the rows in the commit), or the MPI."""
    covers = lambda row: row.covers(job.test, job.mpi, job.ranks, job.per_node, True)
    old = next((row for row in old_defects if covers(row)), None)
    fields = lambda row: row and vars(row)
    return (base().any_changed(sources_of(job.test)) or job.mpi.label not in tested()["mpis"]
            or fields(old) != fields(job.defect))
