"""Builds and runs tests/chaos, the bench for what programs do to their window's pages: one run of
it under a configuration, what it found, and a smaller run that finds it, too."""

import contextlib
import importlib.machinery
import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from programs import AFTERMATH, BUILD, C_FLAGS, NOISE, ROOT, RUN, end_run

FOLDER = ROOT / "tests" / "chaos"
PROGRAM = "chaos"
GROUPS = ("reads", "writes", "holds", "pins", "maps", "rights", "forks", "signals", "threads",
          "messages")
ALLOCATORS = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4",
              "mimalloc": "libmimalloc.so.2.0"}
# A user without privileges.
AS_USER = ["env", "HOME=/tmp", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
           "--inh-caps=-all", "--bounding-set=-all"]
# Longer than a round takes on a busy machine: a rank that stays in a call has hung.
STALL_SECONDS = float(os.environ.get("CHAOS_STALL", 60))
STATE_BYTES = 256
USERFAULTFD = Path("/proc/sys/vm/unprivileged_userfaultfd")


def script(name):
    """A script of scripts/dev as a module."""
    path = str(ROOT / "scripts" / "dev" / name)
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


mutants = script("mutants")


def build(mpi):
    """Builds the program with an MPI if it is older than its sources; returns its path."""
    target = BUILD / mpi.label / PROGRAM
    sources = sorted(FOLDER.glob("*.c"))
    newest = max(path.stat().st_mtime for path in [*sources, *FOLDER.glob("*.h")])
    if target.exists() and target.stat().st_mtime > newest:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([mpi.cc, *C_FLAGS, "-std=gnu11", "-o", target, *sources, "-pthread"], check=True,
                   env=mpi.environment())
    return target


def allocator_path(name):
    """The library of an allocator, or None."""
    found = sorted(Path("/usr/lib").glob(f"*/{ALLOCATORS[name]}"))
    return found[0] if found else None


@contextlib.contextmanager
def unprivileged_userfaultfd(value):
    """With this value of the sysctl, which is the whole machine's: it is set only where it differs,
    and set back. `None`: as it is."""
    before = USERFAULTFD.read_text().strip() if USERFAULTFD.exists() and os.geteuid() == 0 else None
    changes = None not in (before, value) and before != str(value)
    if changes:
        USERFAULTFD.write_text(f"{value}\n")
    try:
        yield
    finally:
        if changes:
            USERFAULTFD.write_text(f"{before}\n")


class Setting:
    """Where and how the bench runs. `adopt`: FOMPI_ADOPT, or None for the MPI alone. `watches`:
    vm.unprivileged_userfaultfd."""

    def __init__(self, mpi, adopt="auto", user=False, ranks=2, allocator=None, library=None,
                 arguments=(), values=None, watches=None):
        self.mpi, self.adopt, self.user, self.ranks = mpi, adopt, user, ranks
        self.allocator, self.library, self.watches = allocator, library, watches
        self.arguments, self.values = list(arguments), dict(values or {})

    def label(self):
        words = [self.mpi.label, f"adopt-{self.adopt}" if self.adopt else "plain"]
        words += ["user"] if self.user else []
        words += [self.allocator] if self.allocator else []
        words += [f"{self.ranks}-ranks"] if self.ranks != 2 else []
        words += ["userfaultfd"] if self.watches else []
        return "-".join(words)

    def command(self, seed, more):
        """The command that runs the same again."""
        words = ["scripts/dev/chaos", "--mpi", self.mpi.prefix or self.mpi.name]
        words += ["--adopt", self.adopt] if self.adopt else ["--plain"]
        words += ["--user" if self.user else "--root"]
        words += ["--allocator", self.allocator] if self.allocator else []
        words += ["--ranks", self.ranks] if self.ranks != 2 else []
        words += ["--userfaultfd"] if self.watches else []
        return shlex.join(map(str, [*words, "--seed", seed, *self.arguments, *more]))


class Outcome:
    """What a run found: `text` is empty if nothing."""

    def __init__(self, text, states, rounds, seconds):
        self.text, self.states, self.rounds, self.seconds = text, states, rounds, seconds

    @property
    def round(self):
        """The number of the round that was under way, or None."""
        found = re.search(r"round=(\d+)", self.text + "".join(self.states))
        return int(found.group(1)) if found else None

    def lines(self):
        return [line for line in self.text.splitlines() + self.states if line.strip()]


def states_in(path, ranks):
    """Where each rank was: the point, and the round."""
    found = []
    for rank in range(ranks):
        try:
            text = Path(f"{path}.{rank}").read_bytes()
        except OSError:
            continue
        point, plan = text[:STATE_BYTES], text[STATE_BYTES:]
        first = lambda part: part.split(b"\0")[0].decode(errors="replace").strip()
        found.append(f"rank {rank} was in: {first(point)}; {first(plan)}")
    return found


def watched(command, values, seconds, path, ranks):
    """Runs a command; ends it if no rank's state changes for long. Returns (exit code, output)."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", env=values,
                               cwd=BUILD, start_new_session=True)
    output = []
    reader = threading.Thread(target=lambda: output.extend(process.stdout), daemon=True)
    reader.start()
    changed = begin = time.monotonic()
    before, why = None, ""
    while process.poll() is None:
        time.sleep(0.2)
        now, state = time.monotonic(), states_in(path, ranks)
        if state != before:
            before, changed = state, now
        if now - changed > STALL_SECONDS:
            why = f"hung: no rank went on for {STALL_SECONDS:.0f} s\n"
        elif now - begin > seconds + 2 * STALL_SECONDS:
            why = f"did not end within {seconds + 2 * STALL_SECONDS:.0f} s\n"
        if why:
            os.killpg(process.pid, signal.SIGKILL)
            break
    # Launchers start ranks in sessions of their own.
    end_run(values[RUN])
    process.wait()
    reader.join(5)
    return (-1 if why else process.returncode), why + "".join(output)


def run(setting, seed, seconds, more=()):
    """Runs the bench once; returns its outcome."""
    mpi, begin = setting.mpi, time.monotonic()
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="chaos.") as folder:
        os.chmod(folder, 0o777)
        # Another user may not reach the files of this one.
        program = shutil.copy(build(mpi), folder)
        preload = []
        if setting.allocator:
            preload.append(allocator_path(setting.allocator))
        if setting.adopt:
            preload.append(shutil.copy(setting.library, folder))
        state = f"{folder}/state"
        command = mpi.command(setting.ranks, preload,
                              [program, "--seed", str(seed), "--seconds", str(seconds), "--state",
                               state, "--folder", folder, *setting.arguments, *more])
        values = dict(mpi.environment(), FOMPI_FALLBACK="error", TMPDIR=folder, **setting.values)
        values[RUN] = f"{os.getpid()}-{time.monotonic_ns()}"
        if setting.adopt:
            values["FOMPI_ADOPT"] = setting.adopt
        command = (AS_USER if setting.user else []) + command
        with unprivileged_userfaultfd(None if setting.watches is None else int(setting.watches)):
            code, output = watched(command, values, seconds, state, setting.ranks)
        lines = [line for line in output.splitlines()
                 if line.strip(" =-") and not NOISE.search(line) and not AFTERMATH.search(line)]
        ended = re.search(r"chaos: seed \d+: (\d+) rounds", output)
        rounds = int(ended.group(1)) if ended else 0
        took = time.monotonic() - begin
        if code == 0 and ended:
            return Outcome("", [], rounds, took)
        said = [line for at, line in enumerate(lines)
                if "FOUND" in line or (at and "FOUND" in lines[at - 1])]
        if code == -1:
            said = lines[:1] + said
        own = said or [line for line in lines if not line.startswith("chaos: not possible")]
        text = "\n".join(line[:1200] for line in own[:8]) or f"exit code {code}"
        return Outcome(text, states_in(state, setting.ranks), rounds, took)


def minimised(setting, seed, outcome, seconds=20):
    """The arguments of a smaller run that finds something, too; those of the whole one if none."""
    number = outcome.round
    if number is None:
        return []
    alone = ["--round", str(number), "--rounds", "1", "--times", "50"]
    acts = max([len(re.findall(r"(?:before|alive|after)-(?:before|alive|after) \d", part))
                for part in "".join(outcome.states).split("; rank")] or [0])
    for more in [alone + ["--act", str(act)] for act in range(acts)] + [alone]:
        if run(setting, seed, seconds, more).text:
            return more
    return []


def report(setting, seed, outcome, smaller):
    """What to print of a failure."""
    again = setting.command(seed, [])
    lines = [f"FAIL {setting.label()}, seed {seed}, after {outcome.seconds:.0f} s"]
    lines += ["    " + line for line in outcome.lines()[:10]]
    lines += [f"    again: {again}"]
    if smaller:
        lines += [f"    smaller: {setting.command(seed, smaller)}"]
    return "\n".join(lines)
