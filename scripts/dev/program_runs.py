"""Runs of the programs of c-tests and fortran-tests: what each needs, and whether it passes."""

import fnmatch
import functools
import re
import sys

from programs import (AFTERMATH, NOISE, PROGRAM, ROOT, RUN_SECONDS_MAX, build, has_binding, python,
                      run_seen)

# With several devices the nodes have them in turns.
IN_TURNS = ["sh", "-c", """
    node=$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} / FOMPI_RANKS_PER_NODE))
    FOMPI_VERBS_DEVICE=rxe$((node % DEVICES)) exec "$0" "$@" """]
HOST_DEFECTS = "c-tests/host-defects"
DEFECT_SECONDS = "10"


class Defect:
    """A row of host-defects: a test that an MPI alone does not pass."""

    def __init__(self, row):
        fields = row.split(None, 6)
        if len(fields) < 7:
            sys.exit(f"{PROGRAM}: host-defects: seven columns wanted: {row}")
        self.test, self.mpi, self.version, ranks, self.where, _, self.reason = fields
        self.sometimes = ranks.endswith("~")
        self.ranks = ranks.rstrip("~").split(",")

    def covers(self, test, mpi, ranks, per_node, plain):
        return (fnmatch.fnmatch(test.name, self.test) and self.mpi == mpi.name
                and fnmatch.fnmatch(mpi.version, self.version)
                and (self.ranks == ["*"] or str(ranks) in self.ranks)
                and (plain or self.where == "both" or self.where == "nodes" and per_node > 0))


def defects(text):
    """The rows of a text of host-defects."""
    lines = text.splitlines()
    return [Defect(line) for line in lines if line.strip() and not line.startswith("#")]


@functools.cache
def rows():
    return defects((ROOT / HOST_DEFECTS).read_text())


def defect_of(test, mpi, ranks, per_node, plain=False):
    """The row of host-defects for a run, or nothing."""
    return next((row for row in rows() if row.covers(test, mpi, ranks, per_node, plain)), None)


class ProgramRun:
    """A program at one number of ranks, and of them on a node, on one MPI. `network`: how nodes
    reach each other: tcp, verbs, cluster (TCP between simulated machines), or none."""

    def __init__(self, test, mpi, ranks, per_node=0, network="", defect=None, tries=1):
        self.test, self.mpi = test, mpi
        self.ranks, self.per_node, self.defect = ranks, per_node, defect
        self.network, self.tries = network, tries

    @property
    def label(self):
        """What it is, in the form in which scripts read it."""
        nodes = f", {self.per_node} per node" if self.per_node else ""
        return (f"{self.test.name}, {self.mpi.name} {self.mpi.version}, "
                f"{self.ranks} rank{'s' * (self.ranks > 1)}{nodes}")

    @staticmethod
    def short(output):
        """The lines of an output that say most."""
        lines = [line for line in output.splitlines() if line.strip() and line[:3] != "---"]
        lines = [line for line in lines if not AFTERMATH.search(line)] or lines
        return "".join(f"    {line[:160]}\n" for line in lines[:6])

    def complaint(self, library, more=(), inside=()):
        """Runs it, with more settings, inside of a command; returns what is wrong, or nothing."""
        program, in_front, complaint = build(self.test, self.mpi)
        if complaint:
            return self.short(complaint)
        values = dict(self.mpi.environment(), **dict(more))
        values.update(self.test.environment)
        if not library:
            values.pop("CHECK_GPU", None)  # an MPI alone does not reach such memory
        if self.defect:
            values["CHECK_SECONDS"] = DEFECT_SECONDS
        if self.network in ("tcp", "cluster"):
            values["FOMPI_NET"] = "tcp"
        if self.per_node:
            teller = "CHECK" if self.network == "cluster" else "FOMPI"
            values[f"{teller}_RANKS_PER_NODE"] = str(self.per_node)
        if self.network and "between nodes" not in self.test.head:
            values["FOMPI_FALLBACK"] = "error"
        preload = in_front + ([library] if library else [])
        if "DEVICES" in values:
            program = IN_TURNS + program
        if self.network == "cluster":
            command = self.mpi.cluster_command(self.ranks, self.per_node, preload, program, values,
                                               RUN_SECONDS_MAX)
        else:
            command = self.mpi.command(self.ranks, preload, program)
        command = [*inside, *command]
        # An MPI alone may be unlucky: only what it does each time is held against the list. With
        # the library there is one try.
        for _ in range(1 if library else self.tries):
            seconds = RUN_SECONDS_MAX * int(values.get("CHECK_TIMES", 1))
            code, output = run_seen(self.test.name, command, values, seconds)
            problem = self.problem(code, output)
            if problem is None:
                return ""
        return self.short(problem)

    def problem(self, code, output):
        """What is wrong with a result, None if nothing."""
        output = "".join(line for line in output.splitlines(True) if not NOISE.search(line))
        passed = self.test.passed(code, output)
        if self.defect is None:
            return None if passed else output or f"exit code {code}"
        if passed and not self.defect.sometimes:
            return f"passes: no longer a defect: {self.defect.reason}"
        return None


def applies(test, mpi):
    """Whether an MPI has what a program needs."""
    if test.path.suffix == ".c":
        return True
    if test.path.suffix == ".py":
        return python(mpi, test)[0] is not None
    return has_binding(test, mpi) and (not test.standard or mpi.standard >= test.standard)


def left_out(network):
    """The programs that c-tests/nodes-exceptions leaves out between nodes."""
    places = {"all", "cluster", "tcp"} if network == "cluster" else {"all", network or "tcp"}
    text = (ROOT / "c-tests" / "nodes-exceptions").read_text()
    rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {row[0] for row in rows if row[1] in places}
