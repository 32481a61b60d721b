"""Ranks that die or cannot be reached: the others get an error that names them, within seconds, on
one node, over the software adapter and over TCP. A rank that is slow is not lost.

usage: /usr/bin/python3 -m pytest tests/test_lost_ranks.py
"""

import re
from pathlib import Path

import pytest

from conftest import DIED, errors, until_lines, with_setting

# Over a network.
UNREACHABLE = r"rank [0-2] \(process [0-9]+ on node [^ ]+\) cannot be reached: "
WHY = r"[a-z ]+(: .+)?"
OVER_TCP = (r"(it has (closed|reset) the connection|it has died|another rank has lost it|"
            r"its connection thread is gone|no first contact: .*)")
WITHOUT_PIDFD = "pidfd_open=ENOSYS"
BETWEEN_NODES = ("lock", "start", "fence", "notified", "puts", "gets", "requests", "accumulates", "attaches")


# --- on one node ----------------------------------------------------------------------------------


@pytest.mark.waits
@pytest.mark.parametrize("mode", (
    "lock", "shared", "fence", "start", "wait", "test", "create", "created", "dynamic", "free",
    "again", "puts", "gets", "requests", "accumulates", "attaches", "holds", "holds_all", "queued",
    "notified", "polled",
    # Where the system knows no pidfd_open.
    "without-lock", "without-wait", "without-create"))
def test_killed_rank_is_named(mode, build, said_by_survivors):
    command = [build("robustness/killed.c"), mode.removeprefix("without-"), Path]
    if mode.startswith("without-"):
        command = [build("robustness/deny.c"), WITHOUT_PIDFD, "--", *command]
    lines, job = said_by_survivors(*command, env={"FOMPI_ADOPT": "never"})
    assert errors(lines, DIED) == 2
    assert job.left() == []


def expect_withdrawn(lines):
    """The memory was withdrawn within some seconds, and an access behind that refused."""
    assert sorted(re.sub("[0-9]\\.[0-9] s", "N s", line) for line in lines) == [
        "rank 0 after N s: withdrawn", "rank 1 after N s: refused"]


@pytest.mark.waits
@pytest.mark.parametrize("how", ("inside", "meanwhile"))
def test_withdrawal_does_not_wait_for_a_killed_rank(how, build, said_by_survivors):
    lines, _ = said_by_survivors(build("robustness/withdrawn.c"), how, Path)
    expect_withdrawn(lines)


@pytest.mark.waits
@pytest.mark.parametrize("mode", ("lock", "fence", "puts", "attaches"))
def test_killed_rank_ends_the_job(mode, build, run, folder):
    job = run(3, build("robustness/killed.c"), mode, folder / "out", seconds=60,
              env={"FOMPI_ADOPT": "never"})
    assert job.code not in (0, -1)
    assert job.left() == []


@pytest.mark.alone
def test_killed_rank_leaves_no_file(build, run, folder, files_of_library):
    run(3, build("robustness/killed.c"), "fence", folder / "out", seconds=60)
    assert files_of_library() == []


@pytest.mark.waits
@pytest.mark.parametrize("mode", ("known", "fresh", "full", "without"))
def test_reused_process_number(mode, build, said_by_survivors):
    """The number of a rank that died goes to a process outside of the job, which stays as it is; in
    the ways in which the library tells them apart."""
    command = [build("robustness/reused.c"), "known" if mode == "without" else mode, Path]
    if mode == "without":
        command = [build("robustness/deny.c"), "pidfd_open=EPERM", "--", *command]
    lines, _ = said_by_survivors(*command, env={"FOMPI_ADOPT": "never"})
    for line in lines:
        if line.startswith("rank 0: skipped, "):
            pytest.skip(line.removeprefix("rank 0: skipped, "))
    assert sorted(lines) == ["rank 0: done", "rank 1: done"]


# --- over the software adapter --------------------------------------------------------------------


@pytest.mark.waits
@pytest.mark.last_mpi_in_gate
@pytest.mark.parametrize("mode, victim, late", (
    ("lock", 3, 2), ("fence", 3, -1), ("fence", 3, 2), ("start", 3, 0), ("created", 3, 2),
    ("free", 3, 1), ("wait", 1, 0), ("test", 1, 2), ("fence", 1, 3), ("fence", 2, 1),
    ("beside", 3, -1), ("beside", 2, -1)))
def test_lost_rank_that_nobody_contacted(mode, victim, late, build, said_by_survivors, folder,
                                         on_adapter):
    """The three other ranks of four, two on each node, report which rank is lost, or nothing, while
    none of them exits: also of a rank that leads no node, and that no process has contacted."""
    lines, _ = said_by_survivors(
        build("robustness/lost.c"), mode, Path, victim, late, ranks=4, seconds=60,
        then=until_lines(3, "FILE"), env=on_adapter | {"FOMPI_RANKS_PER_NODE": 2})
    process = (folder / "survivors.pid").read_text().strip()
    error = (rf"error: MPI_[A-Za-z_]+: rank {victim} \(process {process} on node [^ ]+\) "
             rf"cannot be reached: {WHY} \[FOMPI-E103\]")
    what = "no error: " if mode == "beside" else error
    assert sum(bool(re.fullmatch(rf"rank [0-3] after [0-9]+\.[0-9] s, {what}", line))
               for line in lines) == 3


# With the netmod that Debian gives it, MPICH cannot spawn.
@pytest.mark.left_out(lambda params: params["mpi"].name == "mpich")
@pytest.mark.waits
def test_rank_that_has_left_is_not_lost(build, run, folder, on_adapter):
    out = folder / "survivors"
    job = run(2, build("robustness/lost.c"), "departed", out, env=on_adapter)
    print(out.read_text())
    assert job.code == 0
    lines = out.read_text().splitlines()
    assert sum(bool(re.fullmatch("rank [01] .* no error: ", line)) for line in lines) == 2


@pytest.mark.waits
@pytest.mark.parametrize("mode", BETWEEN_NODES)
def test_killed_rank_on_another_node(mode, build, said_by_survivors, on_adapter):
    lines, _ = said_by_survivors(build("robustness/killed.c"), mode, Path, env=on_adapter)
    assert errors(lines, UNREACHABLE + WHY) == 2


@pytest.mark.waits
def test_withdrawal_does_not_wait_for_a_killed_rank_on_another_node(build, said_by_survivors, on_adapter):
    lines, _ = said_by_survivors(build("robustness/withdrawn.c"), "meanwhile", Path, env=on_adapter)
    expect_withdrawn(lines)


@pytest.fixture
def traffic(build, run, on_adapter):
    """Traffic between nodes, with more settings."""
    def run_job(ranks=2, program=None, **settings):
        program = program or [build("nodes/nodes_traffic.c")]
        return run(ranks, *program, seconds=60, env=on_adapter | settings)
    return run_job


@pytest.mark.waits
@pytest.mark.parametrize("setting, line", (
    ("ADAPTER_CUT", f"rank [0-9]+: MPI_[A-Za-z_]+: {UNREACHABLE}{WHY};"),
    ("ADAPTER_FATAL", "rank [0-9]*: MPI_.*: .* the device of this process has failed")),
    ids=("link", "device"))
def test_failing_link_or_device_ends_the_job(setting, line, traffic):
    job = traffic(ranks=3, **{setting: 300})
    assert job.code not in (0, -1)
    assert job.said(line) > 0


@pytest.mark.waits
def test_memory_that_cannot_be_locked(traffic):
    job = traffic(ADAPTER_MEMLOCK=1100000)
    assert job.code != 0
    assert re.search("cannot register [0-9]+ bytes of memory", job.output)


@pytest.mark.waits
def test_port_that_is_down(traffic):
    job = traffic(ADAPTER_PORT="down", FOMPI_FALLBACK="warn")
    assert job.said("delegated .*no RDMA device.*") == 1


@pytest.mark.waits
def test_port_that_is_down_is_an_error_with_fallback_error(traffic):
    assert traffic(ADAPTER_PORT="down", FOMPI_FALLBACK="error").code != 0


@pytest.mark.waits
def test_devices_of_two_kinds(build, traffic):
    program = with_setting(1, "ADAPTER_LINK=infiniband", build("nodes/nodes_traffic.c"))
    job = traffic(program=program, FOMPI_FALLBACK="warn")
    assert job.said("delegated .*some of its processes have InfiniBand, others RoCE \\[FOMPI-W027\\]$") == 1


@pytest.mark.waits
def test_nodes_that_do_not_reach_each_other(build, traffic, folder):
    (folder / "apart").mkdir()
    program = with_setting(1, f"ADAPTER_DIR={folder}/apart", build("nodes/nodes_traffic.c"))
    job = traffic(program=program, FOMPI_FALLBACK="warn")
    assert job.said("delegated .*a node does not reach another one") == 1
    pattern = "fompi: rank [01]: process [0-9]+ on node .* cannot be reached.*"
    assert job.lines(pattern) >= 2


# --- over TCP -------------------------------------------------------------------------------------

TCP = {"FOMPI_RANKS_PER_NODE": 1, "FOMPI_NET": "tcp", "FOMPI_FALLBACK": "error",
       "FOMPI_NET_TIMEOUT": 2}


@pytest.mark.waits
@pytest.mark.last_mpi_in_gate
@pytest.mark.parametrize("mode", (
    "lock", "fence", "notified", "polled", "puts", "gets", "accumulates", "attaches", "lock child",
    "puts child", "puts stopped", "accumulates stopped"))
def test_killed_rank_over_tcp(mode, build, said_by_survivors):
    """`child`: a child of the rank lives on. `stopped`: it is stopped before, for longer than the
    limit, with full sockets, which alone is no loss."""
    mode, _, how = mode.partition(" ")
    more = {"child": {"LEAVES_A_CHILD": 1}, "stopped": {"STOPS_FIRST": 4}}.get(how, {})
    lines, _ = said_by_survivors(build("robustness/killed.c"), mode, Path, env=TCP | more)
    seconds = "([4-9]|[1-9][0-9])" if how == "stopped" else "[0-9]"
    assert errors(lines, UNREACHABLE + OVER_TCP, seconds) == 2


@pytest.mark.waits
def test_withdrawal_does_not_wait_for_a_killed_rank_over_tcp(build, said_by_survivors):
    lines, _ = said_by_survivors(build("robustness/withdrawn.c"), "meanwhile", Path, env=TCP)
    expect_withdrawn(lines)


@pytest.mark.waits
def test_stopped_rank_is_not_lost(build, passes):
    passes(2, build("robustness/stopped.c"), 6, env=TCP)


@pytest.mark.waits
@pytest.mark.parametrize("who", (-1, 2))
def test_rank_without_descriptors_over_tcp(who, build, passes):
    """All ranks leave the window to the host MPI, and the next one, when there are descriptors
    again, goes over TCP."""
    job = passes(3, build("robustness/descriptors.c"), who,
                 env=TCP | {"OMPI_MCA_osc": "pt2pt", "FOMPI_FALLBACK": "warn", "FOMPI_VERBOSE": 1})
    assert job.said("MPI_Win_create: delegated .*: one of its processes has no file descriptor "
                    "left") == 4
    assert job.said("MPI_Win_[a-z]*: 3 ranks, .* transport: TCP between nodes") == 34


# The other rank has the other processors: Open MPI's ranks spin, and one on the same processor
# would leave nothing of it.
STARVED = """
    [ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 1 ] ||
      exec taskset -c "1-$(($(nproc --all) - 1))" "$0" 6
    for i in 1 2 3; do timeout 8 taskset -c 0 sh -c "while :; do :; done" & done
    exec chrt --idle 0 taskset -c 0 "$0" 6"""


@pytest.mark.alone
@pytest.mark.first_mpi_in_gate
def test_rank_that_hardly_runs_is_not_lost(build, run):
    """3 is the status of traffic in which nothing failed."""
    job = run(2, "sh", "-c", STARVED, build("robustness/endless.c"), env=TCP, seconds=60)
    assert job.code == 3
    assert job.said() == 0
    assert "going" in job.output
