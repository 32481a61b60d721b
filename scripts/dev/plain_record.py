"""Which programs passed on which MPI alone, as they are: c-tests/plain-record. A program that is
right on the plain MPI stays so as long as neither of them changes, whatever becomes of the library.
So the gate runs what has changed, and `scripts/test nightly` all of it."""

import hashlib
import re

from programs import C_FLAGS, C_TESTS

RECORD = C_TESTS / "plain-record"
HEAD = """\
# Runs on the MPIs alone that ended as they should (scripts/dev/ctests --plain --record writes this):
# test, MPI, ranks, and a number for all that they depend on: the sources, and the row of host-defects.
"""
INCLUDE = re.compile(r"""^\s*#?\s*include\s+["'<]([^"'>]+)[">']""", re.MULTILINE | re.IGNORECASE)


def sources(path, known):
    """The files that a source includes, itself among them, but for those of the system."""
    if path in known or not path.is_file():
        return known
    known.add(path)
    for name in INCLUDE.findall(path.read_text()):
        found = path.parent / name
        sources((found if found.is_file() else C_TESTS / name).resolve(), known)
    return known


def key(job):
    """A line of the record for a job."""
    test, mpi = job.test, job.mpi
    known = sources(test.path.resolve(), set())
    for how in ("profiler", "linked"):
        if how in test.head:
            sources(C_TESTS / "profiler" / f"{test.head[how]}.c", known)
    if "c" in test.head:
        sources(test.path.resolve().parent / f"{test.head['c']}.c", known)
    digest = hashlib.sha256(repr((C_FLAGS, job.defect and vars(job.defect))).encode())
    # By their texts: the number stays when a file moves.
    for text in sorted(path.read_bytes() for path in known):
        digest.update(text)
    return f"{test.name} {mpi.label} {job.ranks} {digest.hexdigest()[:16]}"


def on_record():
    lines = RECORD.read_text().splitlines() if RECORD.exists() else []
    return {line for line in lines if not line.startswith("#")}


def write(passed):
    """Adds the lines of runs that ended as they should; older ones of the same runs go."""
    run = {line.rsplit(" ", 1)[0] for line in passed}
    kept = {line for line in on_record() if line.rsplit(" ", 1)[0] not in run}
    RECORD.write_text(HEAD + "".join(f"{line}\n" for line in sorted(kept | set(passed))))
