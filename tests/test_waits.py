"""The reports of ranks that wait long for others, with FOMPI_VERBOSE=2: the call, the window, the
missing ranks, and the deadlock of locks that a rank is part of, which is named without the setting,
too; and the table at the end of the job.

usage: /usr/bin/python3 -m pytest tests/test_waits.py
"""

import time
from types import SimpleNamespace

import pytest

from conftest import built, started

WINDOW = 'window "a table "'
PROCESS = r"\(process [0-9]+\)"
# The name of the call and the text after it, for each case: on one node, and between two.
ON_NODE = {
    "fence": f"MPI_Win_fence, {WINDOW}: not called yet by rank 1 {PROCESS}",
    "start": f"MPI_Win_start, {WINDOW}: MPI_Win_post for this rank not called yet by rank 1 "
             f"{PROCESS}",
    "wait": f"MPI_Win_wait, {WINDOW}: MPI_Win_complete not called yet by an origin, MPI_Win_start "
            f"not by rank 1 {PROCESS}",
    "shared": f"MPI_Win_lock, {WINDOW}, for the shared lock of rank 1 {PROCESS}, which another "
              "rank holds exclusively",
    "exclusive": f"MPI_Win_lock, {WINDOW}, for the exclusive lock of rank 1 {PROCESS}, which "
                 "another rank holds by MPI_Win_lock_all",
    "lock_all": f"MPI_Win_lock_all, {WINDOW}: a rank holds an exclusive lock",
    "standing": f"MPI_Win_lock_all, {WINDOW}: a rank holds an exclusive lock",
    "notified": f"FOMPI_Win_wait_notify, {WINDOW}, for counter 1, which is 1, to reach 3",
    "notified_any": f"FOMPI_Win_wait_any_notify, {WINDOW}, for one of counters 0 to 2, the highest "
                    "of which is 1, to reach 3",
}
BETWEEN_NODES = {
    "fence": f"MPI_Win_fence, {WINDOW}: not called yet by every rank on the nodes of rank 1",
    "start": f"MPI_Win_start, {WINDOW}: MPI_Win_post for this rank not called yet by rank 1",
    "wait": f"MPI_Win_wait, {WINDOW}: MPI_Win_complete not called yet by an origin",
    "shared": f"MPI_Win_lock, {WINDOW}, for the shared lock of rank 1, which another rank holds "
              "exclusively",
    "notified": ON_NODE["notified"],
    "notified_any": ON_NODE["notified_any"],
}
WORLD = r"of MPI_COMM_WORLD \(process [0-9]+\)"
LOCK = (f"fompi: rank 0 {PROCESS} has waited [0-9]+ s in MPI_Win_lock, {WINDOW}, for the exclusive "
        "lock of ")
CIRCLE = (f"{LOCK}rank 1 {PROCESS}, held by rank 1 {WORLD}, which waits for the exclusive lock of "
          f"rank 2, held by rank 2 {WORLD}, which waits for the exclusive lock of rank 0, held by "
          r"this process: a deadlock \[FOMPI-W019\]")
HOLDER = (f"{LOCK}rank 0 {PROCESS}, held by rank 1 {WORLD}, which waits for MPI_Win_lock_all of "
          r"window 0x[0-9a-f]+ of MPI_Win_allocate \[FOMPI-W017\]")
FREE = (f"fompi: rank 0 has waited [0-9]+ s in MPI_Win_free, {WINDOW}, for rank 1 {PROCESS} "
        r"\[FOMPI-W018\]")
# Longer than ranks wait until they look for a deadlock.
SILENT_SECONDS = 33


def case(what, ranks=2, verbose=2, nodes=False):
    """What a test starts, as its parameter."""
    name = f"{what}-{verbose}" if what == "deadlock" else what
    return pytest.param(SimpleNamespace(what=what, ranks=ranks, verbose=verbose, nodes=nodes),
                        id=name)


@pytest.fixture(scope="module")
def jobs(request, library, adapter, tmp_path_factory):
    """The jobs of all tests of this file that are to run: they sleep most of the time."""
    found = {}
    for item in request.session.items:
        if item.module is not request.module:
            continue
        mpi, wanted = item.callspec.params["mpi"], item.callspec.params["case"]
        folder = tmp_path_factory.mktemp("w")
        env = {"FOMPI_VERBOSE": wanted.verbose} if wanted.verbose is not None else {}
        if wanted.nodes:
            env |= {"FOMPI_RANKS_PER_NODE": 1, "FOMPI_NET": "verbs", "FOMPI_VERBS_LIBRARY": adapter,
                    "ADAPTER_DIR": folder}
        job = started(mpi, library, wanted.ranks, built(mpi, "robustness/waits.c"), wanted.what,
                      folder / "go", env=env)
        job.go, job.began = folder / "go", time.monotonic()
        found[item.nodeid] = job
    yield found
    for job in found.values():
        job.end()


@pytest.fixture
def job(jobs, request):
    """The job of a test."""
    return jobs[request.node.nodeid]


def released(job, condition):
    """Lets the ranks go on when the condition holds, and waits for the end of the job."""
    job.wait_until(condition)
    job.go.touch()
    return job.wait(60)


def reports(job, says, transport):
    """Rank 0 says for which ranks it waits, is released, and the table has a row for its wait."""
    released(job, lambda: job.lines("fompi: rank 0 .* has waited .*"))
    assert job.code == 0
    assert job.lines(f"fompi: rank 0 {PROCESS} has waited [0-9]+ s in {says} "
                     r"\[FOMPI-W017\]") >= 1
    assert job.lines(f"fompi: +1 +2 +{transport} +[0-9.]+ s +[0-9.]+ s by rank 0 +"
                     'MPI_Win_allocate "a table "') >= 1
    assert job.lines("fompi: +1 +2 .* MPI_Win_allocate, not freed: rank 0 alone") >= 1
    assert job.lines("fompi: rank 1 .*") == 0


@pytest.mark.parametrize("case", map(case, ON_NODE))
def test_rank_says_for_whom_it_waits(mpi, case, job):
    reports(job, ON_NODE[case.what], "shared memory")


@pytest.mark.parametrize("case", [case(what, nodes=True) for what in BETWEEN_NODES])
@pytest.mark.first_mpi
def test_rank_says_for_whom_it_waits_between_nodes(mpi, case, job):
    reports(job, BETWEEN_NODES[case.what], "verbs between nodes")


@pytest.mark.parametrize("case", [case("deadlock", ranks=3), case("deadlock", ranks=3, verbose=0)])
def test_deadlock_is_named(mpi, case, job):
    released(job, lambda: job.lines(CIRCLE))
    assert job.lines(CIRCLE) >= 1


@pytest.mark.parametrize("case", [case("holder", ranks=3)])
def test_holder_of_a_lock_is_named(mpi, case, job):
    released(job, lambda: job.lines(HOLDER))
    assert job.lines(HOLDER) >= 1


@pytest.mark.parametrize("case", [case("free")])
def test_free_names_the_window_and_the_rank(mpi, case, job):
    """And again when it has waited twice as long."""
    released(job, lambda: job.lines(FREE) >= 2)
    assert job.code == 0
    assert job.lines(FREE) >= 2
    assert job.lines("fompi: rank 1 .*") == 0


@pytest.mark.parametrize("case", [case("holder", ranks=3, verbose=None)])
def test_nothing_is_said_without_the_setting(mpi, case, job):
    released(job, lambda: time.monotonic() - job.began > SILENT_SECONDS)
    assert job.code == 0
    assert job.output == ""
