"""Fixtures of the tests that start programs of an MPI: the MPIs, what is built with them, and jobs
that are bounded in time.

    /usr/bin/python3 -m pytest tests/test_robust.py -k killed      what the name says
    /usr/bin/python3 -m pytest --last-failed                       what failed last
    /usr/bin/python3 -m pytest -n 8 ...                            eight tests at once
    --mpi mpich|openmpi|PREFIX     this MPI; without it those of MPIS, or those of Debian
    --everything                   all that a test has, as at night
"""

import contextlib
import functools
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "scripts" / "dev"))

import programs  # noqa: E402
from programs import BUILD, C_TESTS, CLUSTER  # noqa: E402

C_FLAGS = ["-O2", "-std=gnu11", "-pthread"]
# Where the library is, which other scripts read, and what they keep.
NO_SETTINGS = ("FOMPI_LIB", "FOMPI_CACHE")
# A job goes on when one of its ranks dies. MPICH's launcher ends itself then.
DIED = r"rank 2 \(process [0-9]+\) died"
LIVES_ON = {"openmpi": ["--mca", "orte_abort_on_non_zero_status", "0", "--enable-recovery"]}


def pytest_addoption(parser):
    parser.addoption("--mpi", action="append", default=[], metavar="NAME|PREFIX")
    parser.addoption("--everything", action="store_true")
    # Of program_tests.py, which says what they are.
    for option in ("--largest", "--in-vm", "--build-only", "--one-mpi"):
        parser.addoption(option, action="store_true")
    for option, default in (("--ranks", ""), ("--programs", ""), ("--ranks-per-node", "0"),
                            ("--network", "tcp")):
        parser.addoption(option, default=default)


installed = functools.cache(lambda specs: programs.installed(list(specs)))


def mpis(config):
    return installed(tuple(config.getoption("--mpi") or os.environ.get("MPIS", "").split()))


def pytest_collection_modifyitems(config, items):
    left_out = [item for item in items if is_left_out(item, config.getoption("--everything"))]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def is_left_out(item, everything):
    conditions = [mark.args[0] for mark in item.iter_markers("left_out")]
    in_gate = [mark.args[0] for mark in item.iter_markers("left_out_in_gate")]
    conditions += [] if everything else in_gate
    return (any(condition(item.callspec.params) for condition in conditions)
            or not everything and item.get_closest_marker("nightly") is not None)


def pytest_generate_tests(metafunc):
    has_own = hasattr(metafunc.module, "pytest_generate_tests")
    if "mpi" in metafunc.fixturenames and not has_own:
        found = mpis(metafunc.config)
        marks = {mark.name for mark in metafunc.definition.iter_markers()}
        in_gate = not metafunc.config.getoption("--everything")
        if "first_mpi" in marks or "first_mpi_in_gate" in marks and in_gate:
            found = found[:1]
        elif "last_mpi_in_gate" in marks and in_gate:
            found = found[-1:]
        metafunc.parametrize("mpi", found, ids=[mpi.prefix or mpi.name for mpi in found])


@pytest.fixture(scope="session")
def everything(pytestconfig):
    """Whether a test does all that it can, as at night."""
    return pytestconfig.getoption("--everything")


@pytest.fixture(scope="session")
def library():
    """The library under test."""
    path = Path(programs.default_library()).resolve()
    if not path.exists():
        pytest.fail(f"no library at {path}: cargo build --release makes it", pytrace=False)
    return path


@pytest.fixture(scope="session")
def adapter():
    """The software adapter, a library in place of libibverbs."""
    return programs.adapter()


@pytest.fixture
def folder():
    """A folder of the test; its name is short, because sockets are made in it."""
    with tempfile.TemporaryDirectory(prefix="tests.") as path:
        yield Path(path)


@pytest.fixture
def on_adapter(folder, adapter):
    """The settings of ranks that are a node each and use the software adapter."""
    return {"FOMPI_RANKS_PER_NODE": "1", "FOMPI_NET": "verbs", "FOMPI_VERBS_LIBRARY": adapter,
            "ADAPTER_DIR": str(folder)}


def built(mpi, source, *arguments, name=None):
    """A program of c-tests, by its path there, built with an MPI: its path."""
    source = C_TESTS / source
    compiler, flags = mpi.cc, programs.c_flags(mpi) + C_FLAGS
    if source.suffix != ".c":
        compiler, flags = mpi.fc, ["-w", "-fallow-argument-mismatch"]
    target = BUILD / mpi.label / "tests" / source.parent.name / (name or source.stem)
    complaint = programs.compile_with(mpi, compiler, flags, source, target,
                                      [*map(str, arguments), "-lm"])
    if complaint:
        pytest.fail(complaint, pytrace=False)
    return target


def built_test(mpi, name):
    """A program of test_ctests.py, built as it builds it: its path."""
    program, _, complaint = programs.build(programs.Test(programs.sources()[name]), mpi)
    if complaint:
        pytest.fail(complaint, pytrace=False)
    return program[0]


@pytest.fixture
def build(mpi):
    """Builds a program of c-tests with the test's MPI."""
    return functools.partial(built, mpi)


class Job:
    """A job of an MPI, and what it printed."""

    def __init__(self, command, values):
        self.command, self.code = command, None
        self.run = programs.Run(command, values)
        self._output = ""

    @property
    def output(self):
        return self.run.output if self.code is None else self._output

    def wait(self, seconds):
        self.code, self._output = self.run.wait(seconds)
        print(f"{' '.join(map(str, self.command))}\nexit code {self.code}\n{self._output}")
        return self

    def end(self):
        """Ends what is left of it."""
        if self.code is None:
            self.run.end()
        programs.end_run(self.run.number)

    def wait_until(self, condition, seconds=60):
        """Waits until the condition holds, or the job ends."""
        end = time.monotonic() + seconds
        while not condition() and self.run.process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)

    def lines(self, pattern):
        """How many lines are this pattern as a whole."""
        return sum(bool(re.fullmatch(pattern, line)) for line in self.output.splitlines())

    def said(self, pattern=""):
        """How many lines of the library match a pattern. Those that it only counted when they came
        again, count as often."""
        count = 0
        for line in self.output.splitlines():
            if re.match(f"fompi: .*{pattern}", line):
                more = re.match(r"fompi: (\d+) times: ", line)
                count += int(more[1]) - 1 if more else 1
        return count

    def left(self):
        """The processes that are left of it after a few seconds."""
        for _ in range(50):
            found = programs.processes_of(self.run.number)
            if not found:
                break
            time.sleep(0.1)
        return found


def settings_of(mpi, env):
    """The environment of a job: of the caller's settings of the library none."""
    values = {name: value for name, value in mpi.environment().items()
              if not name.startswith(("FOMPI_", "ADAPTER_"))}
    return values | {name: str(value) for name, value in env.items()}


def started(mpi, library, ranks, program, *words, env={}, options=(), in_front=()):
    """Starts ranks of a program with the library, if one is named, or a command if there are no
    ranks."""
    command = [str(program), *map(str, words)]
    if ranks:
        command = mpi.command(ranks, [library] if library else [], command, options)
    return Job([*in_front, *command], settings_of(mpi, env))


def call(*words, cwd=TOP, seconds=60, **env):
    """The exit status of a command without settings of the caller, and the lines that it prints."""
    values = {name: value for name, value in programs.environment().items()
              if not name.startswith("FOMPI_")
              and name not in ("LD_PRELOAD", "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH")}
    values |= {"OMPI_MCA_rmaps_base_oversubscribe": "1"}
    values |= {name: str(value) for name, value in env.items()}
    code, output = programs.Run([*map(str, words)], values, cwd).wait(seconds)
    print(*words, f"-> {code}\n{output}")
    return code, output.splitlines()


def version():
    """The version in Cargo.toml."""
    return re.search('^version = "(.*)"', (TOP / "Cargo.toml").read_text(), re.MULTILINE)[1]


@pytest.fixture
def start(mpi, library):
    """Does what `started` does; what is left of the jobs ends with the test."""
    jobs = []

    def start_job(*words, preload=library, **options):
        jobs.append(started(mpi, preload, *words, **options))
        return jobs[-1]

    yield start_job
    for job in jobs:
        job.end()


@pytest.fixture
def run(start):
    """Does what `start` does, and waits for the job."""
    def run_job(*words, seconds=programs.RUN_SECONDS_MAX, **options):
        return start(*words, **options).wait(seconds)
    return run_job


@pytest.fixture
def run_plain(run):
    """Does what `run` does, without the library."""
    return functools.partial(run, preload=None)


@pytest.fixture
def passes(run):
    """Does what `run` does; the job must end by itself, with status 0."""
    def run_job(*words, **options):
        job = run(*words, **options)
        assert job.code == 0
        return job
    return run_job


def until_lines(count, path):
    """The commands of a shell around a rank, after that rank has ended: it waits until so many
    ranks have written a line to the file, and gives them time to end."""
    return (f'for i in $(seq 300); do [ "$(wc -l <{path})" -ge {count} ] && break; sleep 0.1; done'
            "; sleep 1")


@pytest.fixture
def said_by_survivors(mpi, run, folder):
    """Runs a command on some ranks, of which one dies; the others live on where the launcher lets
    them. MPICH's ends itself when a rank dies, so there the rank has a shell around it that the
    launcher sees, and that ends after `then`. Returns what the ranks wrote to the file `survivors`,
    and the job."""
    def run_job(*command, ranks=3, then=until_lines(2, "FILE"), seconds=60, **options):
        path = folder / "survivors"
        path.write_text("")
        command = [str(path) if word is Path else word for word in command]
        if mpi.name != "openmpi":
            command = ["sh", "-c", f'"$0" "$@"; {then.replace("FILE", str(path))}', *command]
        options.setdefault("options", LIVES_ON.get(mpi.name, ()))
        job = run(ranks, *command, seconds=seconds, **options)
        print(path.read_text())
        return path.read_text().splitlines(), job
    return run_job


def errors(lines, text, seconds="[0-9]"):
    """How many of the lines report an error after so many seconds, with the code of its message."""
    pattern = (rf"rank [0-3] after {seconds}\.[0-9] s, error: (?:FO)?MPI_[A-Za-z_]+: {text} "
               r"\[FOMPI-E[0-9]{3}\]")
    return sum(bool(re.fullmatch(pattern, line)) for line in lines)


@pytest.fixture
def program_passes(library, request):
    """A program of c-tests or fortran-tests, as tests/node_runs.py makes a run of it, passes; also
    with more settings, which its own go before."""
    def check(run, env):
        on_network = {}
        if run.network == "verbs":
            on_network = request.getfixturevalue("on_adapter")
        complaint = run.complaint(library, on_network | env)
        if complaint:
            pytest.fail(f"{run.label}\n{complaint}", pytrace=False)
    return check


def with_setting(rank, setting, program):
    """A command for all ranks, of which one has a setting of its own."""
    return ["sh", "-c", f'[ "${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}" != {rank} ] || export "$0"\n'
            'exec "$@"', setting, program]


@pytest.fixture
def files_of_library(folder):
    """The files of the library that are newer than the test, after a few seconds."""
    began = folder.stat().st_mtime

    def found():
        folders = {Path("/dev/shm"), Path("/tmp"), Path(tempfile.gettempdir())}
        for path in (path for folder in folders for path in folder.glob("*fompi*")):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime > began and path.stat().st_uid == os.geteuid():
                    yield str(path)

    def left():
        for _ in range(50):
            names = list(found())
            if not names:
                break
            time.sleep(0.1)
        return names
    return left


@functools.cache
def namespaces_refused():
    """Why simulated nodes cannot be made here, or nothing."""
    namespaces = ["unshare", "--fork", "--pid", "--mount", "--net", "--uts", "--ipc", "true"]
    answer = subprocess.run(namespaces, capture_output=True, text=True)
    return answer.returncode and f"no namespaces: {answer.stderr.strip()}"


@pytest.fixture(scope="module")
def cluster():
    """Starts so many simulated nodes, or ends those that there are; they end with the tests of
    the file."""
    os.environ["CLUSTER_NAME"] = f"tests.{os.getpid()}"
    up = 0

    def nodes(count):
        nonlocal up
        if namespaces_refused():
            pytest.skip(namespaces_refused())
        if up not in (0, count):
            subprocess.run([CLUSTER, "down"])
        if count not in (0, up):
            subprocess.run([CLUSTER, "up", str(count)], check=True)
        up = count

    yield nodes
    if up:
        subprocess.run([CLUSTER, "down"])
