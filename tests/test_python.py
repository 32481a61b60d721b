"""The Python module `fompi`, from its sources, with Debian's mpi4py, which is for Open MPI:
`tests/test_packages.py` installs it as a wheel, with other MPIs.

usage: /usr/bin/python3 -m pytest tests/test_python.py
"""

import json
import re
import shutil

import pytest

import programs
from conftest import TOP, call, version

PYTHON = "/usr/bin/python3"
APP = TOP / "examples" / "app.py"
MPI4PY = "from mpi4py import MPI\n"
WINDOW = "MPI.Win.Allocate(4, 4, comm=MPI.COMM_WORLD).Free()\n"
TRANSPORT = "^fompi: MPI_Win_allocate: .* transport: shared memory"


@pytest.fixture
def python(library):
    """Runs Python, on some ranks of Debian's Open MPI if a number is given, and without libfompi in
    front unless the launcher is fompirun; returns the exit status and the lines."""
    def run(*words, ranks=0, launcher=shutil.which("mpirun.openmpi")):
        start = [launcher, "-n", ranks] if ranks else []
        return call(*start, PYTHON, *words, FOMPI_LIB=library, FOMPI_VERBOSE=1,
                    PYTHONPATH=TOP / "python" / "src", PYTHONDONTWRITEBYTECODE=1,
                    PYTHONUNBUFFERED="")
    return run


def has(pattern, lines):
    return any(re.search(pattern, line) for line in lines)


def test_import_ahead_of_mpi4py(python, folder):
    (folder / "app.py").write_text(f"import fompi\n{APP.read_text()}")
    status, lines = python(folder / "app.py", ranks=2)
    assert status == 0 and has(TRANSPORT, lines)
    assert sorted(line for line in lines if line.startswith("rank")) == \
        ["rank 0 got 1", "rank 1 got 0"]


def test_import_after_mpi4py(python):
    status, lines = python("-c", f"{MPI4PY}import fompi")
    assert status == 1
    assert has("^ImportError: mpi4py.MPI was imported before fompi, .*: import fompi first$", lines)


def test_import_after_another_mpi(python):
    opened = "import ctypes; ctypes.CDLL('libmpi.so.40'); import fompi"
    status, lines = python("-c", opened)
    assert status == 1 and has(r"^ImportError: this process loaded /\S*/libmpi\.so\.40", lines)


def test_module_runs_a_program(python):
    """That knows nothing of it, and has arguments."""
    status, lines = python("-m", "fompi", APP, ranks=2)
    assert status == 0 and has(TRANSPORT, lines)
    code = f"import sys; print(sys.argv)\n{MPI4PY}{WINDOW}"
    lines = python("-m", "fompi", "-c", code, "-x", 1)[1]
    assert "['-c', '-x', '1']" in lines and has(TRANSPORT, lines)
    assert has(TRANSPORT, python("-m", "fompi", "-m", "mpi4py", APP)[1])


def test_program_that_is_not_there(python):
    status, lines = python("-m", "fompi", "none.py")
    assert status == 1 and has("^fompi: none.py: no such program", lines)


@pytest.mark.parametrize("loaded", ("import", "preload"))
def test_info(loaded, python, library):
    """Ahead of the MPI, and with it."""
    shown = "print(json.dumps(fompi.info()))\n"
    code = f"import json, fompi\n{shown}{MPI4PY}{shown}"
    options = {} if loaded == "import" else {"launcher": programs.FOMPIRUN, "ranks": 1}
    found = [json.loads(line) for line in python("-c", code, **options)[1] if line.startswith("{")]
    ours = {"version": version(), "library": str(library), "loaded": loaded, "is_loaded": True}
    assert found[0] == {**ours, "mpi": None}
    assert re.search(r"/libmpi\.so\.40", found[1]["mpi"])
    assert found[1] == {**ours, "mpi": found[1]["mpi"]}


def test_library_that_came_too_late(python, library):
    """Loaded by hand, after mpi4py: it serves nothing, and the module says so."""
    code = (f"import ctypes\n{MPI4PY}ctypes.CDLL({str(library)!r}, ctypes.RTLD_GLOBAL)\n"
            "import fompi\nprint(fompi.is_loaded(), fompi.info()['loaded'])")
    assert "False program" in python("-c", code)[1]


def test_library_that_is_not_there(python, folder):
    code = "import os; os.environ['FOMPI_LIB'] = '/none.so'; import fompi"
    assert has("^ImportError: libfompi cannot be loaded: FOMPI_LIB=/none.so: no such file",
               python("-c", code)[1])


def test_library_that_is_another_one(python):
    code = ("import os, _ctypes; os.environ['FOMPI_LIB'] = _ctypes.__file__; import fompi")
    assert has("^ImportError: libfompi cannot be loaded: .*undefined symbol: fompi_version",
               python("-c", code)[1])


def test_pth_needs_pip(python):
    """The sources are not what pip has installed."""
    status, lines = python("-m", "fompi", "--enable-pth")
    assert status == 1 and has("^fompi: a .pth file needs a module that pip has installed", lines)


# --- notified operations: what they do is in c-tests/python/notified.py -----------------------------

HUB = TOP / "examples" / "hub_notify.py"


def test_hub_sleeps_until_any_solver_has_delivered(python):
    status, lines = python(HUB, 5, 0.2, ranks=4)
    assert status == 0
    (found,) = [re.fullmatch(r"deliveries=15 average=2\.0000 processor=(.*)%", line)
                for line in lines if line.startswith("deliveries=")]
    assert float(found[1]) < 25


def test_workers_fetch_arrays_by_pickled_handles(python):
    """What handles do is in c-tests/python/handles.py."""
    pytest.importorskip("numpy")
    status, lines = python(TOP / "examples" / "arrays.py", 20, ranks=4)
    assert status == 0 and "arrays=20 workers=3 total=6100 verified=1" in lines


def test_notified_operations_without_libfompi_in_front(python, library):
    """Windows that libfompi does not serve have none."""
    code = (f"import ctypes\n{MPI4PY}ctypes.CDLL({str(library)!r}, ctypes.RTLD_GLOBAL)\n"
            "import fompi\nfompi.set_num_notify(MPI.Win.Allocate(4, 4, comm=MPI.COMM_WORLD), 1)")
    status, lines = python("-c", code)
    assert status == 1 and has("^RuntimeError: libfompi was loaded after the MPI, .*: import fompi first", lines)
