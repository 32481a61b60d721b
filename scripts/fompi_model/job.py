"""Compiles rma_bench with the compiler of the MPI that runs the job, and runs it: by a launcher
that this program starts, or in place of each rank of a job in which this program was started."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
SIZE = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
HYDRA = ("hydra_pmi_proxy", "mpiexec.hydra", "mpirun.mpich", "mpiexec.mpich", "hydra_bstrap_proxy")
OPENMPI = ("orted", "orterun", "prted", "prte", "prterun", "mpirun.openmpi", "mpiexec.openmpi")


class Failed(Exception):
    """What went wrong, as a sentence for the user."""


def number_in(names):
    for name in names:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None


def rank():
    """The rank of this process in its job; None outside of a job."""
    return number_in(RANK)


def size():
    return number_in(SIZE)


def ticks(stat, cores):
    """Ticks in which these cores have worked and been idle so far, from the text of /proc/stat."""
    worked = idle = 0
    for line in stat.splitlines():
        name, *values = line.split()
        if name in {f"cpu{core}" for core in cores}:
            counts = [int(value) for value in values[:8]]  # the guests' times are in the user's
            idle += counts[3] + counts[4]
            worked += sum(counts) - counts[3] - counts[4]
    return worked, idle


def busy_cores(seconds=0.5):
    """How many of the cores that this process may use others keep busy; None if that is not known."""
    cores = os.sched_getaffinity(0)
    try:
        before = ticks(Path("/proc/stat").read_text(encoding="ascii"), cores)
        time.sleep(seconds)
        after = ticks(Path("/proc/stat").read_text(encoding="ascii"), cores)
    except OSError:
        return None
    worked, idle = after[0] - before[0], after[1] - before[1]
    return len(cores) * worked / (worked + idle) if worked + idle > 0 else None


def parents():
    """The programs of the parents of this process, the nearest first."""
    found, process = [], os.getppid()
    while process > 1:
        try:
            found.append(os.readlink(f"/proc/{process}/exe"))
            status = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            break
        process = int(status.rsplit(")", 1)[1].split()[1])
    return found


def compiler_beside(program):
    """The mpicc of the installation that a launcher, or a part of one, belongs to; None if the
    program is no launcher. Debian has several MPIs in one folder, and names its programs so."""
    folder, name = os.path.split(program)
    if name in OPENMPI:
        suffix = ".openmpi"
    elif name in HYDRA:
        suffix = ".mpich"
    elif name.startswith(("mpirun", "mpiexec")):
        suffix = os.path.splitext(os.path.realpath(program))[1]
    else:
        return None
    for at in (folder, os.path.dirname(os.path.realpath(program))):
        for name in ("mpicc" + suffix, "mpicc"):
            path = os.path.join(at, name)
            if os.access(path, os.X_OK):
                return path
    return None


def compiler(named=None, launcher=None):
    """The mpicc to use: the named one, that of the launcher, or the first one in PATH."""
    if named:
        path = shutil.which(named)
        if not path:
            raise Failed(f"--mpicc {named}: no such program")
        return path
    for program in [launcher] if launcher else parents():
        path = compiler_beside(program)
        if path:
            return path
    path = shutil.which("mpicc")
    if not path:
        raise Failed("no mpicc in the launcher's folder or in PATH: name one with --mpicc")
    return path


def clean(mpicc=None):
    """The environment without what is preloaded: compilers must not have it. Intel MPI's finds its
    headers by I_MPI_ROOT."""
    found = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    if mpicc:
        found.setdefault("I_MPI_ROOT", str(Path(mpicc).resolve().parent.parent))
    return found


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "fompi"


def compiled(mpicc, sources):
    """The path of rma_bench, which is compiled once for each MPI and each version of its sources.
    The processes of a job come here at the same time: one compiles, the others wait."""
    files = sorted(path for path in sources.iterdir() if path.suffix in (".c", ".h"))
    if not files:
        raise Failed(f"no sources of rma_bench in {sources}")
    show = subprocess.run([mpicc, "-show"], env=clean(mpicc), capture_output=True, text=True,
                          check=False)
    digest = hashlib.sha256((os.path.realpath(mpicc) + show.stdout).encode())
    for path in files:
        digest.update(path.name.encode() + path.read_bytes())
    folder = cache()
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"rma_bench-{digest.hexdigest()[:16]}"
    with open(folder / "lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks: several compile, and the last rename stays
        if not program.exists():
            partial = folder / f"{program.name}.{os.uname().nodename}.{os.getpid()}"
            command = [mpicc, "-O2", "-std=gnu11", "-o", str(partial),
                       *(str(path) for path in files if path.suffix == ".c"), "-ldl", "-lm"]
            done = subprocess.run(command, env=clean(mpicc), capture_output=True, text=True,
                                  check=False)
            if done.returncode != 0:
                raise Failed(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")
            os.replace(partial, program)
    return str(program)


def launch_command(fompirun, arguments, program, plain):
    """The command that starts a program in a new job, and the launcher in it. With `plain` nothing
    is preloaded."""
    command = [fompirun, *arguments["mpi"], "--print", "-n", str(arguments["ranks"]),
               *arguments["more"], program]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    if said.returncode != 0:
        raise Failed(said.stderr.strip() or f"{' '.join(command)} failed")
    import shlex
    words = shlex.split(said.stdout)
    if not plain:
        return words, words[0]
    return [words[0], "-n", str(arguments["ranks"]), *arguments["more"], program], words[0]


class Output:
    """The lines of rma_bench as they come: points, and facts about the job."""

    def __init__(self, expected):
        self.points, self.about, self.transports, self.errors = [], {}, [], []
        self.expected, self.progress = expected, sys.stderr.isatty()

    def line(self, text):
        if text.startswith("about "):
            name, _, value = text[6:].strip().partition(" ")
            value = " ".join(value.split())
            # "MPICH Version: 4.0.2", "Open MPI v4.1.4, package: ...", "Intel(R) MPI ... for Linux"
            if name == "mpi":
                value = re.split(r",| for ", value.replace(" Version:", ""))[0]
            self.about[name] = value
        elif text.startswith("measurement="):
            self.points.append(dict(pair.split("=", 1) for pair in text.split() if "=" in pair))
            if self.progress:
                print(f"\r... {len(self.points)} of about {self.expected} points ", end="",
                      file=sys.stderr, flush=True)

    def error_line(self, text):
        found = re.search(r"^fompi: MPI_Win_\w+: .* transport: (.+?)( \(.* ABI\))?$", text.strip())
        if found:
            if found.group(1) not in self.transports:
                self.transports.append(found.group(1))
        elif text.strip():
            self.errors.append(text.rstrip())


def run(command, expected, environment):
    """Runs rma_bench, or a launcher with it, and returns its output. Everything that the process
    manager has opened for this process stays open for the child, which takes its place."""
    output = Output(expected)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, errors="replace", close_fds=False,
                             env={**environment, "FOMPI_VERBOSE": "1"})
    reader = threading.Thread(target=lambda: [output.error_line(line) for line in child.stderr])
    reader.start()
    for line in child.stdout:
        output.line(line)
    status = child.wait()
    reader.join()
    if output.progress:
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
    wrong = [point for point in output.points if point.get("verified") != "1"]
    if wrong:
        names = sorted({point["measurement"] for point in wrong})
        raise Failed(f"wrong data, so that the times mean nothing: {', '.join(names)}")
    if status != 0 or not output.points:
        raise Failed("\n".join([f"{command[0]} ended with status {status}", *output.errors[-20:]]))
    return output
