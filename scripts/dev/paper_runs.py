"""The applications of scripts/paper: programs of examples. In each round the message-passing variants on
the MPI, the one-sided ones on the MPI, and the same with libfompi take turns, each in a job of its own."""

import csv
import re
import statistics
import subprocess
import sys

import host_layers
from bench_jobs import command, environment_of, error_line, title
from bench_layers import rma_bench
from energy import Energy
from programs import BUILD, CLUSTER, ROOT

COLUMNS = ("program place nodes ranks mpi layer variant seconds least p90 runs verified more").split()
# Message-passing variants need no window, so they are run once, on the MPI alone.
LAYERS = ("messages", "plain", "libfompi")
RESULT = re.compile(r"^example=(\S+) (.*)$", re.MULTILINE)
SECONDS_MAX = 300


def ranks_of(application, least, most):
    """Numbers of ranks from `least` to `most`: those of the table, or the powers of two."""
    powers = [1, 2, 4, 8, 16, 32, 64]
    wanted = application["ranks"] if isinstance(application["ranks"], list) else powers
    return [ranks for ranks in wanted if least <= ranks <= most]


def build(mpi):
    """The folder of the programs of an MPI."""
    out = BUILD / mpi.label / "examples"
    made = subprocess.run(["make", "-s", "-C", ROOT / "examples", f"MPICC={mpi.cc}",
                           f"MPIFC={mpi.fc}", f"OUT={out}"], env=mpi.environment(),
                          stdin=subprocess.DEVNULL)
    if made.returncode:
        sys.exit(f"paper: the examples do not compile with {mpi.label}")
    return out


def variants_of(applications, program, layer):
    """The variants that a layer runs of a program, of all of its entries."""
    found = {}
    for one in applications:
        if one["program"] == program:
            found |= dict.fromkeys(one["messages"] if layer == "messages" else [one["onesided"]])
    return list(found)


def results(text):
    """variant -> its pairs, of what a program printed."""
    found = {}
    for _, line in RESULT.findall(text):
        pairs = dict(word.split("=", 1) for word in line.split() if "=" in word)
        found[pairs["variant"]] = pairs
    return found


class Runs:
    """What the runs of all rounds gave: pairs by (program, ranks, mpi, layer, variant)."""

    def __init__(self, applications, library, nodes, settings):
        self.applications, self.library, self.settings = applications, library, settings
        self.place, self.nodes = "nodes" if nodes else "node", nodes
        self.seen, self.failed, self.warnings = {}, [], set()
        self.energy = Energy()

    def add(self, application, mpi, layer, ranks, folder):
        variants = variants_of(self.applications, application["program"], layer)
        program = [str(folder / application["program"]), *application["arguments"].split(),
                   "--variant", ",".join(variants)]
        words = command(mpi, layer, self.library, self.nodes, ranks, program, SECONDS_MAX)
        what = f"{application['program']}, {ranks} ranks, {title(mpi)}, {layer}"
        before = self.energy.read()
        try:
            run = subprocess.run(words, env=environment_of(mpi, self.library, self.nodes, self.settings),
                                 stdin=subprocess.DEVNULL, text=True, errors="replace",
                                 capture_output=True, timeout=SECONDS_MAX + 20)
        except subprocess.TimeoutExpired:
            self.failed.append(f"{what}: no end after {SECONDS_MAX} s")
            return
        wrong = error_line((run.stdout + run.stderr).splitlines(), self.warnings)
        if run.returncode or wrong:
            self.failed.append(f"{what}: status {run.returncode} {wrong}")
        # Of the whole job, with its start and all of its variants.
        spent = {"job_joules": f"{self.energy.since(before):.3f}"} if self.energy else {}
        for variant, pairs in results(run.stdout).items() if not wrong else ():
            key = application["program"], ranks, title(mpi), layer, variant
            self.seen.setdefault(key, []).append(pairs | spent)

    def rows(self):
        for (program, ranks, mpi, layer, variant), all_pairs in self.seen.items():
            in_order = sorted(all_pairs, key=lambda pairs: float(pairs["seconds"]))
            seconds = [float(pairs["seconds"]) for pairs in in_order]
            columns = ("variant", "ranks", "seconds", "verified")
            more = " ".join(f"{name}={value}" for name, value in in_order[len(seconds) // 2].items()
                            if name not in columns)
            yield {"program": program, "place": self.place, "nodes": self.nodes or 1, "ranks": ranks,
                   "mpi": mpi, "layer": layer, "variant": variant,
                   "seconds": f"{statistics.median(seconds):.9f}", "least": f"{seconds[0]:.9f}",
                   "p90": f"{seconds[len(seconds) * 9 // 10]:.9f}", "runs": len(seconds), "more": more,
                   "verified": int(all(pairs["verified"] == "1" for pairs in all_pairs))}


def run_all(applications, mpis, library, nodes, rounds, ranks_range, settings, say):
    """Runs the applications on one node, or between `nodes` simulated ones that are up. Also returns the
    lines about the host MPIs."""
    runs = Runs(applications, library, nodes, settings)
    folders = {mpi.label: build(mpi) for mpi in mpis}
    hosts = host_layers.lines(mpis, {mpi.label: rma_bench(mpi) for mpi in mpis}, nodes, settings)
    # A job runs all variants of its layer, so once is enough for all entries of a program.
    for application in {one["program"]: one for one in applications}.values():
        for ranks in ranks_of(application, *ranks_range):
            for turn in range(rounds):
                for mpi in mpis:
                    first = turn % len(LAYERS)
                    for layer in (LAYERS[first:] + LAYERS[:first])[:: -1 if turn % 2 else 1]:
                        say(f"{application['program']}, {ranks} ranks, {title(mpi)}, {layer}")
                        runs.add(application, mpi, layer, ranks, folders[mpi.label])
    lacking = [] if runs.energy else [f"energy: not measured: {runs.energy.lacking}"]
    return runs, hosts + [f"warning: {line}" for line in sorted(runs.warnings)] + lacking


def write(path, head, runs):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {line}\n" for line in [*head, *(f"failed: {w}" for w in runs.failed)])
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(runs.rows())


def cluster(*words):
    subprocess.run([CLUSTER, *words], check=True, stdout=subprocess.DEVNULL,
                   stdin=subprocess.DEVNULL)
