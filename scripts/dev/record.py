"""Runs that ended as they should, and will do so again as long as nothing that they depend on changes:
the gate runs only those that have changed, and `scripts/test nightly` all of them.

c-tests/plain-record has the programs that are right on an MPI alone, whatever becomes of the library.
docs/conformance/mutants-record has the rows of the conformance page whose test was seen to fail
under their mutation: they run again when the file of the mutation, the test or the row changes."""

import hashlib
import re

from programs import C_FLAGS, C_TESTS, ROOT

INCLUDE = re.compile(r"""^\s*#?\s*include\s+["'<]([^"'>]+)[">']""", re.MULTILINE | re.IGNORECASE)


class Record:
    """A file of lines, each of which is the name of a run and the number of what it depends on."""

    def __init__(self, path, head):
        self.path, self.head = ROOT / path, head

    def lines(self):
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return {line for line in lines if not line.startswith("#")}

    def write(self, passed, known=None):
        """Adds the lines of runs that ended as they should. Older ones of the same runs go, and
        those whose runs are not `known` any more."""
        name = lambda line: line.rsplit(" ", 1)[0]
        run = {name(line) for line in passed}
        kept = {line for line in self.lines()
                if name(line) not in run and (known is None or name(line) in known)}
        text = "".join(f"{line}\n" for line in sorted(kept | set(passed)))
        self.path.write_text(self.head + text)


PLAIN = Record("c-tests/plain-record", """\
# Runs on the MPIs alone that ended as they should (scripts/dev/ctests --plain --record writes this):
# test, MPI, ranks, and a number for all that they depend on: the sources, and the row of host-defects.
""")
MUTANTS = Record("docs/conformance/mutants-record", """\
# Rows of the conformance page whose test was seen to fail (scripts/dev/mutants --record writes this):
# mutation, test, and a number for the files that are mutated, the sources of the test, and the row.
""")


def number(said, texts):
    """The number of a text and of others, in whatever order and under whatever name: it stays when a
    file moves."""
    digest = hashlib.sha256(said.encode())
    for text in sorted(texts):
        digest.update(text)
    return digest.hexdigest()[:16]


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
    """The texts of all that a program is built from."""
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
    return [path.read_bytes() for path in known]


def code_of(path):
    """The text of a source of Rust without the lines that are comments."""
    lines = (line.strip() for line in path.read_text().splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//")).encode()


def plain_line(job):
    """The line of a run of ctests without the library."""
    said = repr((C_FLAGS, job.defect and vars(job.defect)))
    return f"{job.test.name} {job.mpi.label} {job.ranks} {number(said, sources_of(job.test))}"


def mutant_name(row):
    return f"{row.mutant} {row.test.label}"


def mutant_line(row, changes, files, test):
    """The line of a row; `changes`: its mutations; `files`: where else it changes the library;
    `test`: the program, or None for a unit test."""
    files = {ROOT / "src" / change.place.file for change in changes} | set(files)
    texts = sources_of(test) if test else [code_of(row.test.path)]
    said = repr((mutant_name(row), [(change.old, change.new) for change in changes]))
    return f"{mutant_name(row)} {number(said, texts + [code_of(path) for path in files])}"
