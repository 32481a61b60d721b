"""What scripts/bench runs: the figures of benches/definitions.toml as jobs of rma_bench and the programs
of benches/layers, under each MPI in layers (bench_layers.py)."""

import dataclasses
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

from bench_layers import KEY_OF_LAYER, is_ours
from energy import Energy, Spent
from programs import FOMPIRUN, ROOT, Mpi

DEFINITIONS = ROOT / "benches" / "definitions.toml"
TITLES = {"mpich": "MPICH", "openmpi": "Open MPI", "intel": "Intel MPI"}
STOP_SECONDS, SHARE_SECONDS_MIN = 8, 12
# The time of one measurement of an MPI alone in a short check: some of them make no progress.
PLAIN_SMOKE_SECONDS = 20
FOUND_SUFFIXES = (".mpich", ".openmpi")


def definitions():
    return tomllib.loads(DEFINITIONS.read_text())


def values_of(sweep):
    """The values of a parameter; None: the program's own, which is the number of ranks."""
    if not isinstance(sweep, dict):
        return sweep
    values, value = [], sweep["from"]
    while value <= sweep["to"]:
        values.append(value)
        value *= sweep["by"]
    return values


def title(mpi):
    return f"{TITLES.get(mpi.name, mpi.name)} {mpi.version}"


def named_mpi(name):
    """The MPI that --mpi names: by its suffix, or by its folder."""
    if "/" not in name:
        return Mpi(suffix=f".{name}")
    path = os.path.abspath(name)
    if os.path.basename(path) == "bin":
        path = os.path.dirname(path)
    return Mpi(prefix=path)


def found_mpis(names):
    """Those named, or Debian's and the one in PATH, each once."""
    if names:
        mpis = [named_mpi(name) for name in names]
        for name, mpi in zip(names, mpis):
            if not (mpi.cc and mpi.exec):
                sys.exit(f"bench: --mpi {name}: no mpicc or no mpiexec of it")
        return mpis
    found = {}
    for suffix in (*FOUND_SUFFIXES, ""):
        if shutil.which(f"mpicc{suffix}") and shutil.which(f"mpiexec{suffix}"):
            mpi = Mpi(suffix=suffix)
            found.setdefault(mpi.label, mpi)
    return list(found.values())


@dataclasses.dataclass(frozen=True)
class Engine:
    """An MPI and a layer on it."""
    mpi: Mpi
    layer: str
    program: object

    @property
    def label(self):
        return f"{title(self.mpi)}, {self.layer}"


@dataclasses.dataclass
class Job:
    """Measurements of one engine at one number of ranks and over one kind of window: (name, values)
    in the order of the figures. A measurement that two figures have runs once, with the values of
    both."""
    engine: Engine
    ranks: int
    window: str
    parts: list
    broken: dict = dataclasses.field(default_factory=dict)
    left_out: set = dataclasses.field(default_factory=set)

    @property
    def weight(self):
        """What part of a run it takes, about: its points, each the longer the more ranks there are."""
        return self.ranks * sum(len(values or [1]) for _, values in self.parts)

    def named(self, measurement):
        """A measurement, with the kind of window if it is not the usual one."""
        return measurement if self.window == "allocate" else f"{measurement} ({self.window})"


def sweep_of(figure, series, quick):
    """The values of a series: its own, or the figure's up to its own largest one."""
    full = values_of(series.get("full", figure.get("full")))
    if not quick or full is None:
        return full
    return [value for value in series.get("quick") or figure["quick"] if value <= max(full)]


def ranks_of(figure, quick):
    return figure.get("quick_ranks", figure["ranks"]) if quick else figure["ranks"]


def window_of(figure):
    """The kind of window of a figure, as rma_bench calls it."""
    return figure.get("window", "allocate")


def jobs_of(figures, engine, quick):
    """The jobs of an engine, by the number of ranks."""
    jobs = {}
    key = KEY_OF_LAYER[engine.layer]
    for figure in figures:
        for series in figure["series"]:
            name = series.get(key)
            if name is None:
                continue
            for ranks in ranks_of(figure, quick):
                # A job of its own for a measurement that is alone.
                kept = jobs.setdefault((ranks, window_of(figure), name if figure.get("alone") else ""),
                                       {})
                values = sweep_of(figure, series, quick)
                kept[name] = sorted({*(kept.get(name) or []), *values}) if values else None
    in_order = sorted(jobs.items(), key=lambda job: (job[0][0], job[0][2] != ""))
    return [Job(engine, ranks, window, list(kept.items())) for (ranks, window, _), kept in in_order]


def arguments(parts, window, runs, seconds):
    """The command line of rma_bench: measurements of the same values side by side."""
    words = []
    for k, (name, values) in enumerate(parts):
        if k and parts[k - 1][1] == values:
            words[start] += f",{name}"
            continue
        words += ["then"] if words else []
        start = len(words)
        words += [name, "--window", window, "--runs", str(runs), "--seconds", str(seconds)]
        words += ["--values", ",".join(map(str, values))] if values else []
    return words


def settings_for(mpi, place, table):
    """Variables that definitions.toml has for this MPI, in all layers; what is set already stays."""
    variables = {}
    for setting in table:
        if title(mpi).startswith(setting["mpi"]) and setting["place"] == place:
            variables |= setting["variables"]
    return {name: os.environ.get(name, value) for name, value in variables.items()}


# A line of an MPI by which a measurement fails: the MPI does something else than it was asked for.
ERROR = re.compile(r"\b(errors?|fail(s|ed|ure|ures)?|abort(s|ed)?|unable|cannot|not found)\b", re.IGNORECASE)
WARNING = re.compile(r"\bwarn(ing)?\b", re.IGNORECASE)


def error_line(lines, warnings):
    """The first line of a run's output in which the MPI reports an error, or nothing. What it calls a
    warning goes into `warnings`, without numbers."""
    own = ("begin=", "measurement=", "example=", "fompi:")
    lines = [line.strip() for line in lines if not line.startswith(own)]
    warnings |= {re.sub(r"0x[0-9a-f]+|\d+", "N", line) for line in lines if WARNING.search(line)}
    return next((line for line in lines if ERROR.search(line) and not WARNING.search(line)), "")


def stopped(child):
    """Ends what a launcher that runs still has started: gently, then by force."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        if child.poll() is not None:
            return
        os.killpg(child.pid, how)
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            pass


def cores():
    """How many cores the processors are of that this process may use: two threads of a core are two
    processors, on which a launcher starts one rank."""
    found = set()
    for processor in os.sched_getaffinity(0):
        path = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
        found.add(path.read_text() if path.exists() else processor)
    return len(found)


def launcher(mpi, with_ours, ranks):
    """What starts ranks on this node, each on a core of its own if there are as many. Otherwise the
    system may run two ranks on one core, for as long as a short program takes."""
    words = [str(FOMPIRUN), "--mpi", mpi.exec] if with_ours else [mpi.exec]
    fits = ranks <= cores()
    if mpi.name == "openmpi":
        words += ["--bind-to", "core" if fits else "none"]
        words += [] if fits else ["--map-by", ":OVERSUBSCRIBE"]
    elif mpi.name == "mpich" and fits:
        words += ["-bind-to", "core"]
    return words


def ended(child, seconds, lines, each):
    """Waits until a run ends, at most this time, and at most the time of `each` without another
    line of its. Returns whether it has ended."""
    now = time.monotonic()
    end, seen, last = now + seconds, 0, now
    while now < end and now - last < each:
        try:
            child.wait(min(1, end - now))
            return True
        except subprocess.TimeoutExpired:
            now = time.monotonic()
        if len(lines) > seen:
            seen, last = len(lines), now
    return False


def command(mpi, layer, library, nodes, ranks, program, seconds):
    """The command line of a job on this node, or on simulated ones."""
    with_ours = is_ours(layer)
    if not nodes:
        return [*launcher(mpi, with_ours, ranks), "-n", str(ranks), *program]
    values = {"FOMPI_NET": os.environ.get("FOMPI_NET", "tcp"), "FOMPI_FALLBACK": "error"}
    # Otherwise the system may run the ranks of two nodes on one processor while the other is idle.
    return mpi.cluster_command(ranks, -(-ranks // nodes), [library] if with_ours else [], program,
                               values if with_ours else {}, seconds, ["--own-processors"])


def environment_of(mpi, library, nodes, settings):
    """The environment of a job; the layers share it."""
    return mpi.environment() | {"FOMPI_FALLBACK": "error", "FOMPI_LIB": str(library)} | \
        settings_for(mpi, "nodes" if nodes else "node", settings)


class Runner:
    """Starts jobs on this node, or between simulated nodes."""

    def __init__(self, options, settings, library):
        self.runs, self.seconds, self.nodes = options.runs, options.seconds, options.nodes
        self.settings, self.library, self.smoke = settings, library, options.smoke
        self.warnings, self.energy = set(), Energy()
        self.spent = Spent(self.energy)
        self.deadline = options.start + 60 * options.minutes if options.minutes else math.inf

    def command(self, engine, ranks, words):
        return command(engine.mpi, engine.layer, self.library, self.nodes, ranks,
                       [str(engine.program), *words], 600)

    def environment(self, engine):
        return environment_of(engine.mpi, self.library, self.nodes, self.settings)

    def run(self, job, share, progress):
        """All points of a job. After a measurement in which the job broke off it goes on with the
        next one, until the job's time is over: its share of what is left of the run, and twice as
        much again, because most jobs need less."""
        points, parts = [], job.parts
        left = self.deadline - time.monotonic()
        end = time.monotonic() + min(left, max(SHARE_SECONDS_MIN, 3 * left * share))
        while parts:
            left = end - time.monotonic()
            if left < STOP_SECONDS:
                job.left_out |= {name for name, _ in parts}
                break
            seconds = 60 + sum(len(values or [1]) for _, values in parts) * (2 + 6 * self.seconds)
            began = time.monotonic()
            status, lines, said = self.watched(job, parts, min(seconds, left), progress)
            begun = [line[6:].strip() for line in lines if line.startswith("begin=")]
            wrong = error_line([*lines, *said], self.warnings)
            if wrong and status in (0, 1):
                job.broken |= {name: f"the MPI reports: {wrong[:120]}" for name, _ in parts}
                break
            points += self.points(job, lines)
            said = " / ".join(said[:3])[:300]
            if status in (0, 1) and len(begun) == len(parts):
                break
            if status is None and seconds > left:
                job.left_out |= {name for name, _ in parts if name not in begun[:-1]}
                break
            passed = time.monotonic() - began
            reason = f"no end after {passed:.0f} s" if status is None else f"status {status}"
            if not begun:
                job.broken |= {name: f"{reason}: {said}" for name, _ in parts}
                break
            job.broken[begun[-1]] = f"{reason}: {said}"
            parts = parts[[name for name, _ in parts].index(begun[-1]) + 1:]
        return points

    def watched(self, job, parts, seconds, progress):
        """A run: its status (None after the time), its lines, and those that it complains in."""
        words = arguments(parts, job.window, self.runs, self.seconds)
        before, began = self.energy.read(), time.monotonic()
        # An MPI that breaks off may print any bytes.
        child = subprocess.Popen(self.command(job.engine, job.ranks, words), text=True,
                                 errors="replace", stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=self.environment(job.engine), start_new_session=True)
        lines, errors = [], []

        def read_lines():
            for line in child.stdout:
                lines.append(line)
                if line.startswith("begin="):
                    progress(f"{job.engine.label}, {job.ranks} ranks: {line[6:].strip()}")
        readers = [threading.Thread(target=read_lines, daemon=True),
                   threading.Thread(target=lambda: errors.extend(child.stderr), daemon=True)]
        for reader in readers:
            reader.start()
        each = self.smoke and job.engine.layer == "plain"
        try:
            is_late = not ended(child, seconds, lines, PLAIN_SMOKE_SECONDS if each else math.inf)
        finally:
            stopped(child)
            self.spent.add(job.engine.label, before, time.monotonic() - began)
        # Ranks that outlive their launcher keep the pipes open.
        for reader in readers:
            reader.join(STOP_SECONDS)
        said = [line.strip() for line in errors if re.search(r"\w", line)]
        return None if is_late else child.returncode, list(lines), said

    def points(self, job, lines):
        points, asked = [], ""
        for line in lines:
            if line.startswith("begin="):
                asked = line[6:].strip()
            if line.startswith("measurement="):
                point = dict(pair.split("=", 1) for pair in line.split())
                unit = next(key[7:] for key in point if key.startswith("median_"))
                points.append(Point(job.engine, job.ranks, job.window, asked, unit, point))
        return points


KNOWN = re.compile(r"measurement|ranks|nodes|window|parameter|value|runs|batch|verified|"
                   r"(median|least|p90)_(ns|bytes)")


@dataclasses.dataclass
class Point:
    """A line of rma_bench: `asked` is the measurement that printed it, `window` the kind of window
    that it was to use."""
    engine: Engine
    ranks: int
    window: str
    asked: str
    unit: str
    pairs: dict

    @property
    def key(self):
        return (self.engine.mpi.label, self.engine.layer, self.ranks, self.window, self.asked,
                self.pairs["measurement"], int(self.pairs["value"]))

    def number(self, which):
        return float(self.pairs[f"{which}_{self.unit}"])

    @property
    def more(self):
        return {name: value for name, value in self.pairs.items() if not KNOWN.fullmatch(name)}
