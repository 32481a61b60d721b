"""The installed MPIs, the programs of c-tests and fortran-tests, how they are built with each MPI,
and how one is run: for the scripts that run them."""

import contextlib
import fcntl
import functools
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build"
C_TESTS = ROOT / "c-tests"
CLUSTER = ROOT / "scripts" / "dev" / "cluster"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
# The launcher, which cargo builds with the library.
FOMPIRUN = TARGET / "release" / "fompirun"
# What other scripts build and start.
OTHER_FOLDERS = {"abi", "adapter", "cluster", "gpu_libraries", "installed", "loaded",
                 "profiler", "robustness", "unknown"}
# What the stand-ins of c-tests/gpu_libraries are called beside a program.
GPU_LIBRARIES = {"cuda": "libcuda.so.1", "cuda_bare": "bare/libcuda.so.1",
                 "hip": "libamdhip64.so.6", "level_zero": "libze_loader.so.1"}
RUN_SECONDS_MAX = 120
# The host MPI leaves an RDMA device to the library.
OFF_THE_DEVICE = {"UCX_TLS": "tcp,self,posix", "OMPI_MCA_pml": "ob1", "OMPI_MCA_mtl": "^ofi",
                  "OMPI_MCA_btl": "^openib,ofi,uct", "I_MPI_FABRICS": "shm"}
# The script that uses this, for what it says.
PROGRAM = Path(sys.argv[0]).name
HEADS = "plain ranks|ranks|settings|aborts|profiler|linked|loads|gpu|c|standard|between nodes"
HEADER_LINE = re.compile(rf"^\W*({HEADS}):\s*(.*)$")


class Mpi:
    """One installed MPI: its compilers, its mpiexec, and what it calls itself."""

    def __init__(self, suffix="", prefix=None):
        self.prefix = prefix
        self.cc = self._tool("mpicc", suffix)
        self.cxx = self._tool("mpicxx", suffix)
        self.fc = self._tool("mpifort", suffix) or self._tool("mpif90", suffix)
        self.exec = self._tool("mpiexec", suffix) or self._tool("mpirun", suffix)
        self.name, self.version = self._identify() if self.exec else (None, None)
        self._standard = None

    def _tool(self, tool, suffix):
        if self.prefix:
            path = Path(self.prefix) / "bin" / tool
            return str(path) if path.exists() else None
        return shutil.which(tool + suffix)

    def _identify(self):
        answer = subprocess.run([self.exec, "--version"], capture_output=True, text=True,
                                env=environment())
        text = answer.stdout + answer.stderr
        for name, pattern in (("openmpi", r"(?:Open MPI|OpenRTE)\)? v?([0-9.]+\w*)"),
                              ("intel", r"Intel.*Version\s+([0-9.]+)"),
                              ("mpich", r"Version:\s+([0-9.]+\w*)")):
            found = re.search(pattern, text)
            if found:
                return name, found.group(1)
        if "prte" in text.lower():
            return "openmpi", "5"
        sys.exit(f"{PROGRAM}: {self.exec} is of an unknown MPI")

    @property
    def standard(self):
        """The version of the standard that its mpi.h speaks of."""
        if self._standard is None:
            answer = subprocess.run([self.cc, *c_flags(self), "-x", "c", "-E", "-P", "-"],
                                    input="#include <mpi.h>\nMPI_VERSION\n", text=True,
                                    capture_output=True, env=self.environment())
            self._standard = int(answer.stdout.split()[-1])
        return self._standard

    @property
    def label(self):
        return f"{self.name}-{self.version}"

    def command(self, ranks, preload, program, options=()):
        """The command line that runs `program`, with `preload` in the ranks only, and with more
        options of the launcher."""
        libraries = ":".join(str(path) for path in preload)
        if self.name == "openmpi":
            old = int(self.version.split(".")[0]) < 5
            command = [self.exec] + (["--oversubscribe"] if old else
                                     ["--map-by", ":OVERSUBSCRIBE"])
            command += ["--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
            command += ["--mca", "orte_base_help_aggregate", "0"] if old else []
            command += ["-x", f"LD_PRELOAD={libraries}"] if preload else []
        else:
            command = [self.exec]
            command += ["-genv", "LD_PRELOAD", libraries] if preload else []
        return [*command, *options, "-n", str(ranks), *program]

    def cluster_command(self, ranks, per_node, preload, program, values, seconds, options=()):
        """The same on the nodes of scripts/dev/cluster; the ranks have the settings in `values`."""
        command = [str(CLUSTER), "mpirun", "--timeout", str(seconds), "--mpi", str(self.prefix or self.name),
                   "-n", str(ranks), "--ppn", str(per_node), *options]
        settings = {name: value for name, value in values.items()
                    if name.startswith(("FOMPI_", "CHECK_"))}
        if preload:
            settings["LD_PRELOAD"] = ":".join(str(path) for path in preload)
        for pair in settings.items():
            command += ["-x", "=".join(pair)]
        return command + ["--"] + program

    def environment(self):
        values = environment()
        if self.name == "openmpi":
            # Without a network for UCX, osc/ucx fails for each window, with a line of an error.
            values.setdefault("OMPI_MCA_osc", "^ucx")
        if self.prefix:
            paths = [str(Path(self.prefix) / "lib"), values.get("LD_LIBRARY_PATH", "")]
            values["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
            values["LIBRARY_PATH"] = values["LD_LIBRARY_PATH"]
            values["I_MPI_ROOT"] = str(self.prefix)
        return values


@functools.cache
def sources():
    """The source file of each program, by its name."""
    files = [path for suffix in (".c", ".cpp", ".py") for path in C_TESTS.glob(f"*/*{suffix}")
             if path.parent.name not in OTHER_FOLDERS]
    files += (ROOT / "fortran-tests").glob("*.f90")
    found = {}
    for path in sorted(files):
        if path.stem in found:
            sys.exit(f"{PROGRAM}: two programs are called {path.stem}")
        found[path.stem] = path
    return found


def environment():
    # Spawned processes get the library, too; Open MPI 5 needs this variable for it.
    values = dict(os.environ, FOMPI_FALLBACK="quiet", PRTE_MCA_rmaps_default_inherit="1")
    values.pop("FOMPI_CACHE", None) # a matter of scripts, which the library does not know
    if os.geteuid() == 0:
        values.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                      PRTE_ALLOW_RUN_AS_ROOT="1", PRTE_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return values


def installed(specs):
    """The MPIs of these names or prefixes; without any, those of Debian that are there."""
    if specs:
        found = [Mpi("." + spec) if spec in ("mpich", "openmpi") else Mpi(prefix=spec)
                 for spec in specs]
    else:
        found = [mpi for mpi in (Mpi(".mpich"), Mpi(".openmpi")) if mpi.exec and mpi.cc]
    for mpi in found:
        if not mpi.exec or not mpi.cc:
            sys.exit(f"{PROGRAM}: no mpicc and mpiexec for --mpi " + " ".join(specs))
    if not found:
        sys.exit(f"{PROGRAM}: no MPI found; scripts/install-deps installs two")
    return found


def unit_programs(messages):
    """The program of each crate's unit tests, by the crate, from what cargo's JSON says."""
    said = [json.loads(line) for line in messages.splitlines() if line.startswith("{")]
    return {one["target"]["name"].replace("_", "-"): one["executable"]
            for one in said if one.get("executable")}


def default_library():
    """The library that is tested unless another one is named: FOMPI_LIB, or what cargo builds."""
    return os.environ.get("FOMPI_LIB") or str(TARGET / "release" / "libfompi.so")


# In the environment of a run: its number, by which its processes are found.
RUN = "CHECK_RUN"
RUNS = itertools.count()


class Run:
    """A command in a session of its own, and what it has printed so far."""

    def __init__(self, command, values, cwd=BUILD):
        # Two launchers of Open MPI 4 that make and remove one directory at a time can both fail. A
        # command may be run as another user.
        self.folder = tempfile.TemporaryDirectory(prefix="run.")
        os.chmod(self.folder.name, 0o1777)
        self.number = f"{os.getpid()}-{next(RUNS)}"
        self.printed = Path(self.folder.name, "printed")
        values = dict(values, OMPI_MCA_orte_tmpdir_base=self.folder.name, **{RUN: self.number})
        BUILD.mkdir(exist_ok=True)
        # A file, because a child of a dead rank would keep a pipe open.
        with self.printed.open("a") as file:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file,
                                            stderr=subprocess.STDOUT, env=values, cwd=cwd,
                                            start_new_session=True)

    @property
    def output(self):
        return self.printed.read_text(errors="replace")

    def wait(self, seconds=RUN_SECONDS_MAX):
        """Waits until it ends, and ends it at the limit; returns (exit code, output)."""
        try:
            code, late = self.process.wait(seconds), ""
        except subprocess.TimeoutExpired:
            code, late = -1, f"did not end within {seconds} s\n"
            self.end()
        output = self.output + late
        self.folder.cleanup()
        return code, output

    def end(self):
        """Ends its processes."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        # Launchers start ranks in sessions of their own.
        end_run(self.number)


def processes_of(number):
    """The processes of a run that have not ended, which their environment names."""
    mark = f"{RUN}={number}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def end_run(number):
    """Ends what is left of a run."""
    for process in processes_of(number):
        try:
            os.kill(process, signal.SIGKILL)
        except OSError:
            pass


def run(command, values, seconds=RUN_SECONDS_MAX):
    """Runs a command in a session of its own, bounded in time; returns (exit code, output)."""
    return Run(command, values).wait(seconds)


# PMIx 4.2 waits 2 s in MPI_Finalize for the launcher; a launcher that the system did not run for so
# long takes the end of the rank for a failure. Open MPI 4.1 alone does so too: shown by stopping
# mpirun for 6 s when the rank calls PMIx_Finalize. The rank itself has printed nothing.
MISSED_END = re.compile(r"-+\n\S+ has exited due to process rank \d+ with PID 0 on\s")


def run_seen(what, command, values, seconds=RUN_SECONDS_MAX):
    """Does what `run` does. Runs the command again if the launcher missed the end of a rank; `what`
    names the run in the line that says so."""
    code, output = run(command, values, seconds)
    if MISSED_END.match(output):
        print(f"again: {what}, as the launcher missed the end of a rank", flush=True)
        code, output = run(command, values, seconds)
    return code, output


class Test:
    """One source file, and what its head says about running it."""

    def __init__(self, path):
        self.path = path
        self.name = path.stem
        self.head = {}
        for line in path.read_text().splitlines()[:20]:
            found = HEADER_LINE.match(line)
            if found:
                self.head[found.group(1)] = found.group(2).strip()
        if "ranks" not in self.head:
            sys.exit(f"{PROGRAM}: {path.name} does not say at how many ranks it runs")

    @property
    def standard(self):
        """The version of the standard from which on it makes sense."""
        return int(self.head.get("standard", 0))

    @property
    def module(self):
        """How a program of Fortran gets at MPI; its name says which binding it uses."""
        lines = {"f08": "use mpi_f08", "mpi": "use mpi", "mpif": "include 'mpif.h'"}
        return lines[self.name.split("_")[-1]] if self.path.suffix == ".f90" else None

    @property
    def environment(self):
        """The settings of the library that it wants."""
        values = dict(pair.split("=", 1) for pair in self.head.get("settings", "").split())
        return dict(values, CHECK_GPU="1") if "gpu" in self.head else values

    def ranks(self, plain):
        counts = plain and self.head.get("plain ranks") or self.head["ranks"]
        return [int(count) for count in counts.split()]

    def passed(self, code, output):
        pattern = self.head.get("aborts")
        if pattern is None:
            return code == 0 and not output.strip()
        return code != 0 and re.search(pattern, output) is not None


@contextlib.contextmanager
def locked(target):
    """Other processes that build the same file wait."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{target}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def compile_with(mpi, compiler, flags, source, target, libraries=()):
    """Builds `target` if it is older than its sources; returns the compiler's complaints."""
    files = [source, *source.parent.rglob("*.h"), *source.parent.glob("*.inc"),
             *C_TESTS.glob("*.h"), *(ROOT / "include").glob("*.h")]
    newest = max(file.stat().st_mtime for file in files)
    is_built = lambda: target.exists() and target.stat().st_mtime > newest
    # In a virtual machine another user may not write here.
    if is_built():
        return ""
    with locked(target):
        if is_built():
            return ""
        # Others take what is there without the lock, so the whole file comes there at once.
        new = target.with_name(f"new-{target.name}")
        answer = subprocess.run([compiler, *flags, "-o", str(new), source.name, *libraries],
                                capture_output=True, text=True, cwd=source.parent,
                                env=mpi.environment())
        if answer.returncode == 0:
            new.replace(target)
    return "" if answer.returncode == 0 else answer.stderr or "the compiler failed"


# What an MPI says of itself, whatever the program does (its launcher, that a child was faster than
# it), and the library of a wrong call that it carries out.
NOISE = re.compile(r"plm:rsh: Warning: setpgid|"
                   r"^fompi: .* is carried out as MPIs do; FOMPI_STRICT=1 makes it an error \[FOMPI-W02[01]\]$")

# What an MPI adds when a rank has given up.
AFTERMATH = re.compile(r"ORTE_ERROR_LOG|MPI_ABORT was invoked|with errorcode|NOTE: invoking|"
                       r"You may or may not see|exactly when Open MPI|called MPI_Abort|"
                       r"^=+$|CLEANING UP|YOU CAN IGNORE")

C_FLAGS = ["-g", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-stringop-overflow"]


def c_flags(mpi):
    return C_FLAGS + [f"-I{C_TESTS}"] + ([f"-I{mpi.prefix}/include"] if mpi.prefix else [])


def build(test, mpi):
    """Returns (program, what to preload in front, complaint); without a program and a complaint the
    test does not apply to this MPI."""
    in_front, complaint = build_profiler(test, mpi, "profiler")
    linked, more = build_profiler(test, mpi, "linked")
    program, yet_more = build_program(test, mpi, linked)
    complaint += more + yet_more + build_gpu_libraries(test, mpi) + build_loaded(test, mpi)
    return program, in_front, complaint


CXX_PROBE = "#include <mpi.h>\nMPI::Win win;"


def has_binding(test, mpi):
    """Whether this MPI has the binding of a test."""
    if test.path.suffix == ".cpp":
        return compiles(mpi, mpi.cxx, "c++", CXX_PROBE)
    return compiles(mpi, mpi.fc, "f95", f"{test.module}\nend\n")


def build_program(test, mpi, linked):
    target = BUILD / mpi.label / test.name
    if test.path.suffix == ".c":
        libraries = [str(path) for path in linked] + ["-lpthread", "-lm"]
        complaint = compile_with(mpi, mpi.cc, c_flags(mpi), test.path, target, libraries)
    elif test.path.suffix == ".cpp":
        if not has_binding(test, mpi):
            return None, ""
        flags = c_flags(mpi) + ["-Wno-error"]
        complaint = compile_with(mpi, mpi.cxx, flags, test.path, target)
    elif test.path.suffix == ".py":
        return python(mpi, test)
    else:
        return build_fortran(test, mpi, target)
    return [str(target)], complaint


def build_fortran(test, mpi, target):
    """A program of Fortran, with the part in C that it asks for. mpif.h says nothing of arguments,
    so the compiler may complain of none of those."""
    if not has_binding(test, mpi) or (test.standard and mpi.standard < test.standard):
        return None, ""
    modules = target.parent / f"{test.name}.modules"
    modules.mkdir(parents=True, exist_ok=True)
    flags = ["-g", "-O1", "-Wall", "-cpp", "-fallow-argument-mismatch",
             "-ffree-line-length-none", "-J", str(modules)]
    parts = []
    if "c" in test.head:
        parts = [target.parent / f"{test.name}.o"]
        source = test.path.parent / f"{test.head['c']}.c"
        complaint = compile_with(mpi, mpi.cc, c_flags(mpi) + ["-c"], source, parts[0])
        if complaint:
            return [str(target)], complaint
    complaint = compile_with(mpi, mpi.fc, flags + fortran_flags(mpi), test.path, target,
                             [str(part) for part in parts])
    return [str(target)], complaint


def python(mpi, test):
    """The interpreter that belongs to this MPI, if it has mpi4py."""
    if mpi.prefix:
        interpreter = Path(mpi.prefix) / "bin" / "python"
    else:
        # Debian's mpi4py is for its Open MPI.
        interpreter = Path("/usr/bin/python3") if mpi.name == "openmpi" else None
    if interpreter is None or not interpreter.exists():
        return None, ""
    answer = subprocess.run([str(interpreter), "-c", "import mpi4py"], capture_output=True)
    return ([str(interpreter), str(test.path)] if answer.returncode == 0 else None), ""


def fortran_flags(mpi):
    """Where the modules of Intel MPI from a package are, which its own compiler does not find."""
    if mpi.prefix is None:
        return []
    answer = subprocess.run(["gfortran", "-dumpversion"], capture_output=True, text=True)
    made_for = Path(mpi.prefix) / "include" / "mpi" / "gfortran"
    return [f"-I{path}" for path in made_for.glob(answer.stdout.split(".")[0].strip() + ".*")]


@functools.cache
def compiles(mpi, compiler, language, text):
    """Whether this MPI has a compiler that takes this text. No file is written: several processes ask at
    the same time."""
    if not compiler:
        return False
    command = [compiler, *fortran_flags(mpi), "-x", language, "-c", "-fsyntax-only", "-"]
    return subprocess.run(command, input=text, text=True, capture_output=True,
                          env=mpi.environment()).returncode == 0


def build_profiler(test, mpi, how):
    """The profiling libraries that the test wants, and the compiler's complaints."""
    name = test.head.get(how)
    if name is None:
        return [], ""
    source = ROOT / "c-tests" / "profiler" / f"{name}.c"
    target = BUILD / mpi.label / f"lib{name}.so"
    return [target], compile_with(mpi, mpi.cc, c_flags(mpi) + ["-shared", "-fPIC"], source, target)


def build_gpu_libraries(test, mpi):
    """Builds the stand-ins for run-time libraries of GPUs that the test loads, into a folder beside
    the program; returns the compiler's complaints."""
    complaints = ""
    for name in test.head.get("gpu", "").split():
        source = C_TESTS / "gpu_libraries" / f"{name}.c"
        target = BUILD / mpi.label / f"{test.name}.gpu" / GPU_LIBRARIES[name]
        flags = C_FLAGS + ["-shared", "-fPIC", "-Wno-unused-function"]
        complaints += compile_with(mpi, "cc", flags, source, target)
    return complaints


def build_loaded(test, mpi):
    """Builds the library that the test loads, beside the program; returns the compiler's
    complaints."""
    name = test.head.get("loads")
    if name is None:
        return ""
    target = BUILD / mpi.label / f"{test.name}.{name}.so"
    flags = c_flags(mpi) + ["-shared", "-fPIC"]
    return compile_with(mpi, mpi.cc, flags, C_TESTS / "loaded" / f"{name}.c", target)


@functools.cache
def adapter():
    """The software adapter, built."""
    script = ROOT / "scripts" / "dev" / "adapter"
    answer = subprocess.run([script], stdout=subprocess.PIPE, text=True, check=True)
    return answer.stdout.strip()


def on_adapter(folder):
    """The environment of ranks that use the software adapter, unless FOMPI_NET says otherwise, and
    find each other in `folder`."""
    return {"FOMPI_VERBS_LIBRARY": adapter(), "ADAPTER_DIR": str(folder),
            "FOMPI_NET": os.environ.get("FOMPI_NET", "verbs")}
