"""Each system call that the library makes for the first windows of a process, and for its first
contact with a process of another node over TCP, fails in turn on one rank: the k-th call of each
function, with each error that the system may give for it. c-tests/tools/inject_calls.c says what
must hold then; it goes through the calls of later windows by itself.

usage: /usr/bin/python3 -m pytest -n 4 tests/test_inject.py

With --everything each error of each function on each MPI, and between nodes also over the software
adapter. Otherwise one error of each, and interruption by a signal, within a node on the first MPI
and between nodes on the last.
"""

import functools
import re
import subprocess

import pytest

from conftest import built_test, mpis

CALLS_MAX = 8
EINTR = 4
PLACES = {"node": {}, "tcp": {"FOMPI_RANKS_PER_NODE": 1, "FOMPI_NET": "tcp"}, "adapter": None}


@functools.cache
def plan(mpi, everything):
    """The functions with their errors, or with one of them and EINTR."""
    text = subprocess.run([built_test(mpi, "inject_calls"), "--plan"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    rows = [(function, int(error)) for function, error in map(str.split, text.splitlines())]
    if everything:
        return rows
    first = dict(reversed(rows))
    return [row for row in rows if row[1] in (EINTR, first[row[0]])]


def pytest_generate_tests(metafunc):
    found, everything = mpis(metafunc.config), metafunc.config.getoption("--everything")
    where = {"node": found[:1], "tcp": found[-1:]}
    if everything:
        where = dict.fromkeys(PLACES, found)
    metafunc.parametrize("place, mpi, function, error", [
        pytest.param(place, mpi, *row, id=f"{place}-{mpi.prefix or mpi.name}-{row[0]}-{row[1]}")
        for place, on in where.items() for mpi in on for row in plan(mpi, everything)])


def test_system_call_that_fails(place, mpi, function, error, run, request):
    """Call after call, until there are no more. What a signal interrupts is not even a reason to
    delegate a window."""
    env = request.getfixturevalue("on_adapter") if place == "adapter" else PLACES[place]
    env = env | {"FOMPI_FALLBACK": "error" if error == EINTR else "quiet", "INJECT_COUNT": 1,
                 "INJECT_RANK": 1}
    for k in range(1, CALLS_MAX + 1):
        job = run(2, built_test(mpi, "inject_calls"), "--first", seconds=60,
                  env=env | {"INJECT": f"{function} {k} {error}"})
        assert job.code == 0
        failed = re.search("^([01]) calls failed$", job.output, re.MULTILINE)
        assert failed
        if failed[1] == "0":
            return
