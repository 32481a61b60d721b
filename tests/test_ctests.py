"""The programs of c-tests and fortran-tests on each MPI, with the library preloaded. A program passes if it
exits with 0 and prints nothing. Its head says how it runs:

    // ranks: 1 2 4          the rank counts
    // plain ranks: 2        other counts without the library, where the MPI alone is too slow
    // settings: FOMPI_STRICT=1     the environment, beside what all have
    // aborts: Put           must end with an error, and print something that matches
    // profiler: counter     c-tests/profiler/counter.c is preloaded in front
    // linked: counter       it is linked with the program, so what is preloaded comes before it
    // gpu: cuda hip         c-tests/gpu_libraries/cuda.c and hip.c are built as the libraries that
                             they stand in for, beside the program; CHECK_GPU=1 is in the
                             environment, unless the library is not preloaded
    // loads: session        c-tests/loaded/session.c is built beside the program, which loads it
    // c: attributes         fortran-tests/attributes.c is linked in
    // standard: 4           only where the MPI knows this version of the standard
    // between nodes: ...    why some of its windows are left to the MPI underneath there; those of
                             other programs are refused if they would be

usage: /usr/bin/python3 -m pytest -n 2 tests/test_ctests.py -k lock_fairness

On the first MPI each program runs at one rank, if it does, and at its largest count up to three, on Open
MPI at the largest of all; with --everything at all. tests/program_tests.py has more options.
"""

import os
from pathlib import Path

import pytest

from program_tests import VM_SETTINGS, check, parametrize


def pytest_generate_tests(metafunc):
    parametrize(metafunc, is_plain=False)


@pytest.fixture(scope="module", autouse=True)
def nothing_left_in_shared_memory():
    yield
    assert list(Path("/dev/shm").glob("*fompi*")) == []


@pytest.fixture
def settings(job, pytestconfig, request):
    if pytestconfig.getoption("--in-vm"):
        return VM_SETTINGS
    if job.network != "verbs":
        return {}
    on_adapter = request.getfixturevalue("on_adapter")
    return on_adapter | {"FOMPI_NET": os.environ.get("FOMPI_NET", "verbs")}


def test_program(job, library, settings, pytestconfig):
    check(job, library, settings, pytestconfig)
