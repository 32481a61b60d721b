"""The applications of scripts/paper: programs of examples, run plain and with libfompi in turns.
Each program runs its message-passing and its one-sided variants in one process."""

import csv
import os
import re
import statistics
import subprocess
import sys

from bench_jobs import launcher, title
from programs import BUILD, CLUSTER, ROOT

COLUMNS = ("program place nodes ranks mpi layer variant seconds least runs verified more").split()
LAYERS = ("plain", "libfompi")
RESULT = re.compile(r"^example=(\S+) (.*)$", re.MULTILINE)
SECONDS_MAX = 300


def ranks_of(application, most):
    """Numbers of ranks, at most so many: those of the table, or the powers of two."""
    powers = [1, 2, 4, 8, 16, 32, 64]
    wanted = application["ranks"] if isinstance(application["ranks"], list) else powers
    return [ranks for ranks in wanted if ranks <= most]


def build(mpi):
    """The folder of the programs of an MPI."""
    out = BUILD / mpi.label / "examples"
    made = subprocess.run(["make", "-s", "-C", ROOT / "examples", f"MPICC={mpi.cc}",
                           f"MPIFC={mpi.fc}", f"OUT={out}"], env=mpi.environment(),
                          stdin=subprocess.DEVNULL)
    if made.returncode:
        sys.exit(f"paper: the examples do not compile with {mpi.label}")
    return out


def command_of(mpi, library, layer, nodes, ranks, program):
    """The command line and the environment of a run."""
    is_ours = layer == "libfompi"
    ours = {"FOMPI_FALLBACK": "error"} | ({"FOMPI_NET": "tcp"} if nodes else {})
    values = mpi.environment()
    if is_ours:
        values |= ours | {"FOMPI_LIB": str(library)}
    elif mpi.name == "openmpi" and mpi.version.startswith("4."):
        # Its osc/rdma fails in MPI_Compare_and_swap on one node.
        values["OMPI_MCA_osc"] = "^rdma"
    if not nodes:
        return [*launcher(mpi, is_ours, ranks), "-n", str(ranks), *program], values
    per_node = -(-ranks // nodes)
    preload, settings = ([library], ours) if is_ours else ([], {})
    return mpi.cluster_command(ranks, per_node, preload, program, settings, SECONDS_MAX), values


def results(text):
    """variant -> its pairs, of what a program printed."""
    found = {}
    for _, line in RESULT.findall(text):
        pairs = dict(word.split("=", 1) for word in line.split() if "=" in word)
        found[pairs["variant"]] = pairs
    return found


class Runs:
    """What the runs of all rounds gave: pairs by (program, ranks, mpi, layer, variant)."""

    def __init__(self, nodes):
        self.place, self.nodes = "nodes" if nodes else "node", nodes
        self.seen, self.failed = {}, []

    def add(self, application, mpi, library, layer, ranks, folders):
        program = [str(folders[mpi.label] / application["program"]),
                   *application["arguments"].split()]
        command, values = command_of(mpi, library, layer, self.nodes, ranks, program)
        what = f"{application['program']}, {ranks} ranks, {title(mpi)}, {layer}"
        try:
            run = subprocess.run(command, env=values, stdin=subprocess.DEVNULL, text=True,
                                 capture_output=True, timeout=SECONDS_MAX + 20)
        except subprocess.TimeoutExpired:
            self.failed.append(f"{what}: no end after {SECONDS_MAX} s")
            return
        if run.returncode:
            reason = (run.stderr.strip().splitlines() or [""])[-1]
            self.failed.append(f"{what}: status {run.returncode} {reason}")
        for variant, pairs in results(run.stdout).items():
            key = application["program"], ranks, title(mpi), layer, variant
            self.seen.setdefault(key, []).append(pairs)

    def rows(self):
        for (program, ranks, mpi, layer, variant), all_pairs in self.seen.items():
            seconds = [float(pairs["seconds"]) for pairs in all_pairs]
            in_order = sorted(all_pairs, key=lambda pairs: float(pairs["seconds"]))
            middle = in_order[len(seconds) // 2]
            columns = ("variant", "ranks", "seconds", "verified")
            more = " ".join(f"{name}={value}" for name, value in middle.items()
                            if name not in columns)
            yield {"program": program, "place": self.place, "nodes": self.nodes or 1, "ranks": ranks,
                   "mpi": mpi, "layer": layer, "variant": variant,
                   "seconds": f"{statistics.median(seconds):.9f}", "least": f"{min(seconds):.9f}",
                   "runs": len(seconds), "more": more,
                   "verified": int(all(pairs["verified"] == "1" for pairs in all_pairs))}


def run_all(applications, mpis, library, nodes, rounds, ranks_max, say):
    """Runs the applications on one node, or between `nodes` simulated ones that are up."""
    runs = Runs(nodes)
    folders = {mpi.label: build(mpi) for mpi in mpis}
    # A program runs all of its variants, so once is enough for all of its entries.
    for application in {one["program"]: one for one in applications}.values():
        for ranks in ranks_of(application, ranks_max):
            if nodes and ranks < nodes:
                continue
            for turn in range(rounds):
                for mpi in mpis:
                    for layer in LAYERS[:: -1 if turn % 2 else 1]:
                        what = f"{application['program']}, {ranks} ranks"
                        say(f"{what}, {title(mpi)}, {layer}")
                        runs.add(application, mpi, library, layer, ranks, folders)
    return runs


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
