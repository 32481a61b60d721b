"""Jobs whose ranks differ: one has a setting of its own, another build of the library, or no
library. A difference that is not allowed is an error on all ranks, which names it; with an allowed
one all windows work; a job that waits says why.

usage: /usr/bin/python3 -m pytest tests/test_mixed.py
"""

import re

import pytest

from conftest import with_setting

SAME = "start all ranks with the same value"
RANK_1 = r"rank 1 \(process [0-9]+\)"


@pytest.fixture
def differing(build, run):
    """Three ranks, of which rank 1 has a setting of its own."""
    def run_job(name, setting, **env):
        program = build(f"robustness/{name}.c")
        return run(3, *with_setting(1, setting, program), env=env, seconds=60)
    return run_job


def all_are_told(job, what, there, here, remedy=SAME):
    """All ranks say that it differs, and each says both values."""
    what = f"MPI_Win_allocate: {what}"
    assert job.code == 0
    remedy += r" \[FOMPI-E108\]"
    assert job.lines(f"rank 0: {what} is {there} on rank 1, {here} here: {remedy}") == 1
    assert job.lines(f"rank 1: {what} is {here} on rank [02], {there} here: {remedy}") == 1
    assert job.lines(f"rank 2: {what} is {there} on rank 1, {here} here: {remedy}") == 1


# --- the library ----------------------------------------------------------------------------------


def test_rank_without_the_library_is_named_once(build, start, library):
    """The line comes while the others wait for it; then the job is ended. On Open MPI the rank's
    own MPI may answer in its place, and the others have an error."""
    only_others = ('[ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 1 ] || export LD_PRELOAD="$0"\n'
                   'exec "$1"')
    job = start(3, "sh", "-c", only_others, library, build("robustness/differs.c"), preload=None,
                env={"FOMPI_VERBOSE": 2, "OMPI_MCA_orte_abort_print_stack": 0})
    job.wait_until(lambda: "not loaded" in job.output, 30)
    job.run.end()
    print(job.output)
    assert job.lines(
        r"fompi: (rank 0 has waited 5 s in MPI_Win_allocate: )?libfompi is not loaded in "
        rf"{RANK_1}; start all ranks with the library, as fompirun does \[FOMPI-W0(09|16)\]") >= 1
    assert job.lines(r"fompi: (?!rank 2 |libfompi [^ ]* is loaded).*") >= 1


def test_late_rank_is_named(build, run):
    """By one that waits for it, where it makes a window and where it frees it."""
    job = run(3, build("robustness/differs.c"), 7, env={"FOMPI_VERBOSE": 2}, seconds=60)
    waited = "fompi: rank 0 has waited 5 s in"
    assert job.code == 0
    assert job.lines(f"{waited} MPI_Win_allocate for {RANK_1}: libfompi is loaded there, but "
                     r"MPI_Win_allocate was not called yet on this communicator "
                     r"\[FOMPI-W011\]") == 1
    assert job.lines(rf"{waited} MPI_Win_free, window .*, for {RANK_1} \[FOMPI-W018\]") == 1
    assert job.lines("fompi: rank .* has waited .*") == 2


def test_another_build(differing, library, folder):
    """A library whose sources have another number."""
    other = folder / "libfompi.so"
    text, count = re.subn(rb"(fompi build )[0-9a-f]{8}", rb"\g<1>0123abcd", library.read_bytes())
    assert count > 0
    other.write_bytes(text)
    job = differing("differs", f"LD_PRELOAD={other}")
    what = "MPI_Win_allocate: libfompi.so is build"
    remedy = r"here: start all ranks with the same file \[FOMPI-E107\]"
    assert job.code == 0
    assert job.lines(f"rank 1: {what} [0-9a-f]{{8}} on rank 0, 0123abcd {remedy}") == 1
    assert job.lines(f"rank [02]: {what} 0123abcd on rank 1, [0-9a-f]{{8}} {remedy}") == 2


# --- settings, on one node ------------------------------------------------------------------------


@pytest.mark.parametrize("name, there, here", (
    ("FOMPI_DISABLE", "1", "not set"), ("FOMPI_RANKS_PER_NODE", "2", "not set"),
    ("FOMPI_RANKS_PER_NODE", "2", "1")))
def test_setting_that_may_not_differ(name, there, here, differing):
    env = {} if here == "not set" else {name: here}
    all_are_told(differing("differs", f"{name}={there}", **env), name, there, here)


def test_fatal_error_names_the_setting(differing):
    job = differing("differs", "FOMPI_DISABLE=1", FATAL=1)
    assert job.code not in (0, -1)
    assert re.search("^fompi: rank [012]: MPI_Win_allocate: FOMPI_DISABLE is .* here: ", job.output,
                     re.MULTILINE)


@pytest.mark.parametrize("setting", (
    "VERBOSE=2", "FALLBACK=error", "VERBS=off", "VERBS_DEVICE=none",
    "VERBS_GID=7", "VERBS_MTU=256", "NET=off", "NET_PORTS=9000-9100",
    "DISABLE=0"))
def test_setting_that_may_differ(setting, differing):
    assert differing("settings", f"FOMPI_{setting}").code == 0


# --- settings, between nodes ----------------------------------------------------------------------


@pytest.fixture
def nodes(differing, on_adapter):
    """The same as three nodes over the software adapter, which FOMPI_NET chooses by default."""
    env = on_adapter | {"FOMPI_NET": "auto", "OMPI_MCA_osc": "pt2pt"}
    return lambda name, setting, **more: differing(name, setting, **env | more)


@pytest.mark.parametrize("setting", ("DATATYPES=block", "VERBS_MTU=256", "FALLBACK=error"))
def test_setting_of_one_node_that_may_differ(setting, nodes):
    job = nodes("settings", f"FOMPI_{setting}")
    assert job.code == 0
    assert "delegated" not in job.output


def test_all_nodes_take_tcp_if_one_must(nodes):
    job = nodes("settings", "FOMPI_VERBS=off", FOMPI_VERBOSE=1)
    assert job.code == 0
    assert job.said(".* transport: TCP between nodes") > 0


def test_node_without_the_device(nodes):
    job = nodes("settings", "FOMPI_VERBS_DEVICE=none", FOMPI_NET="verbs")
    assert job.code == 0
    line = (r"fompi: .* delegated .* one has no RDMA device \(rank 1: .* no device none\) "
            r"\[FOMPI-W024\]")
    assert job.lines(line) == 1


@pytest.mark.parametrize("net, transport", (
    ("tcp", "TCP between nodes"), ("off", "and FOMPI_NET=off")))
def test_network_of_one_node_is_said_and_used_by_all(net, transport, nodes):
    job = nodes("settings", f"FOMPI_NET={net}", FOMPI_VERBOSE=1)
    assert job.code == 0
    line = (rf"fompi: FOMPI_NET is {net} on rank 1, auto on rank 0: all ranks use {net} "
            r"\[FOMPI-W022\]")
    assert job.lines(line) == 1
    assert job.lines(f".*{transport}.*") >= 2


def test_setting_of_one_node_that_may_not_differ(nodes):
    all_are_told(nodes("differs", "FOMPI_DISABLE=1"), "FOMPI_DISABLE", "1", "not set")
