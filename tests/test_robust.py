"""Jobs under bad conditions: thousands of windows, more ranks than cores, no memory, wrong calls,
threads, signals, children of fork. The programs are in c-tests/robustness.

usage: /usr/bin/python3 -m pytest tests/test_robust.py
"""

import contextlib
import shutil
from pathlib import Path

import pytest

import control_groups

QUIET = {"FOMPI_NET": "off", "FOMPI_FALLBACK": "quiet", "OMPI_MCA_osc": "pt2pt"}


def with_ranks(*counts):
    return pytest.mark.parametrize("ranks", counts)


# --- many windows, ranks and threads --------------------------------------------------------------


def pairs(*rows):
    """Each row with the number of ranks in front, and the words of its command."""
    return [pytest.param(int(row.split()[0]), row.split()[1:], id=row.replace(" ", "-"))
            for row in rows]


# 2,200 windows are more than MPICH has communicators.
MANY = pairs("4 alive 500 allocated", "4 alive 500 created", "4 alive 500 dynamic",
             "2 orphans 300 allocated", "2 orphans 300 created", "2 orphans 300 dynamic",
             "2 row 2200 allocated", "2 row 500 created", "2 row 500 dynamic", "2 comms 2200",
             "2 comms 300 created")
MORE = pairs(*(f"{ranks} row {count} {flavor}" for ranks, count in ((1, 3000), (2, 3000), (4, 500))
               for flavor in ("allocated", "created", "dynamic")), "1 comms 3000")


@pytest.mark.parametrize("ranks, words", MANY)
def test_many_windows(ranks, words, build, passes):
    passes(ranks, build("robustness/many.c"), *words)


@pytest.mark.nightly
@pytest.mark.parametrize("ranks, words", MORE)
def test_more_windows(ranks, words, build, passes):
    passes(ranks, build("robustness/many.c"), *words)


@pytest.mark.alone
@pytest.mark.parametrize("ranks, rounds", ((2, 200), (8, 100), (16, 30), (64, 5)))
def test_more_ranks_than_cores(ranks, rounds, build, passes):
    passes(ranks, build("robustness/crowd.c"), rounds)


@with_ranks(4, 8)
def test_threads(ranks, build, passes):
    passes(ranks, build("robustness/threads.c"))


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.alone
@with_ranks(1, 4)
def test_memory_runs_out(ranks, build, passes):
    passes(ranks, build("robustness/memory.c"))


@pytest.mark.alone
def test_untouched_memory(build, passes):
    passes(2, build("robustness/untouched.c"))


@pytest.mark.alone
@pytest.mark.nightly
def test_costs_of_memory(build, run, run_plain):
    """Shows what costs more than a tenth more than without the library; judges none of it."""
    program = build("../benches/memory.c")
    costs = []
    for job in (run_plain(2, program), run(2, program)):
        assert job.code == 0
        rows = (line.split() for line in job.output.splitlines())
        costs.append({row[0]: float(row[1]) for row in rows if len(row) > 1})
    plain, ours = costs
    assert set(plain) == set(ours) != set()
    for what in sorted(ours):
        if 0 < plain[what] < ours[what] / 1.1:
            print(f"{what} takes {ours[what]:.2f} us, without libfompi {plain[what]:.2f}")


@pytest.fixture
def in_group_of_300_mib():
    """In a group inside of the one with the limit, where groups are of version 1."""
    is_old = control_groups.OLD.is_dir()
    with contextlib.ExitStack() as stack:
        try:
            group = control_groups.limited(300, 1 if is_old else 2, inside=is_old)
            yield stack.enter_context(group)
        except control_groups.Refused as refused:
            pytest.skip(str(refused))


@pytest.mark.alone
@with_ranks(1, 2, 4)
def test_limit_of_a_control_group(ranks, build, passes, in_group_of_300_mib):
    passes(ranks, build("robustness/cgroup_limit.c"), 300, in_front=in_group_of_300_mib, seconds=100)


@pytest.mark.parametrize("nodes", ({}, {"FOMPI_RANKS_PER_NODE": 1, "FOMPI_NET": "tcp"}))
def test_two_jobs(nodes, mpi, build, start, folder):
    """Of two launchers of Open MPI 4, which find each other by ompi-server. On MPICH MPI_Open_port fails, and
    jobs of Open MPI 5 need a runtime that is started ahead of them."""
    server = shutil.which("ompi-server", path=str(Path(mpi.exec).parent))
    if mpi.name != "openmpi" or not mpi.version.startswith("4.") or server is None:
        pytest.skip("Open MPI 4 is needed, with ompi-server")
    program, address = build("robustness/two_jobs.c"), folder / "server"
    meeting = start(0, server, "--no-daemonize", "-r", address, preload=None)
    meeting.wait_until(lambda: address.exists() and address.read_text().endswith("\n"), 20)
    options = ("--ompi-server", f"file:{address}")
    jobs = [start(2, program, how, folder / "port", options=options, env=nodes)
            for how in ("accept", "connect")]
    assert [job.wait(60).code for job in jobs] == [0, 0]


# --- wrong calls, and errors ----------------------------------------------------------------------


@pytest.mark.parametrize("ranks, seed, calls", ((1, 1, 20000), (3, 2, 20000), (4, 3, 5000)))
def test_random_calls(ranks, seed, calls, build, passes):
    passes(ranks, build("robustness/fuzz.c"), seed, calls)


STRICT = {"FOMPI_STRICT": 1, "FOMPI_FALLBACK": "error"}


@with_ranks(1, 2, 3)
def test_wrong_calls(ranks, build, passes):
    """10,000 calls on each rank. Windows that the library does not make itself are left out."""
    passes(ranks, build("robustness/wrong_calls.c"), f"{ranks}1", 10000, env=STRICT)


@pytest.mark.nightly
@with_ranks(1, 2, 3)
@pytest.mark.parametrize("seed", (2, 3, 4))
def test_more_wrong_calls(ranks, seed, build, passes):
    passes(ranks, build("robustness/wrong_calls.c"), f"{ranks}{seed}", 10000, env=STRICT)


CARRIED = r"MPI_Rput: .* is carried out as MPIs do; .* \[FOMPI-W020\]$"


def test_wrong_call_that_is_carried_out_is_said_once(build, passes):
    job = passes(2, build("requests/requests_in_active_epochs.c"), env={"FOMPI_FALLBACK": "warn"})
    assert job.said(CARRIED) == job.said() == 1


def test_fallback_quiet_says_nothing_of_it(build, passes):
    job = passes(2, build("requests/requests_in_active_epochs.c"), env={"FOMPI_FALLBACK": "quiet"})
    assert job.said() == 0


def test_strict_makes_it_an_error(build, run):
    job = run(2, build("requests/requests_in_active_epochs.c"), env={"FOMPI_STRICT": 1})
    assert job.code not in (0, -1)
    assert job.said(CARRIED) == 0


# Programs of all kinds of accesses and epochs, without conflicts of one process.
FREE_OF_CONFLICTS = (
    "transfers/derived_random.c",
    "transfers/many_blocks.c",
    "transfers/put_get_types.c",
    "accumulate/accumulate_mixed_operations.c",
    "accumulate/accumulate_order.c",
    "passive/lock_several_targets.c",
    "passive/passive_target.c",
    "active/pscw_groups.c",
    "handles/handles_transfers.c",
)


@pytest.mark.parametrize("program", FREE_OF_CONFLICTS)
def test_no_conflict_is_found_where_there_is_none(program, build, passes):
    passes(2, build(program), env={"FOMPI_CHECK": "conflicts"})


@with_ranks(1, 3)
def test_error_handlers(ranks, build, passes):
    passes(ranks, build("robustness/handlers.c"))


def test_doors_of_one_rank(build, passes):
    passes(1, build("robustness/doors.c"))


def test_doors_with_files(build, passes, folder):
    passes(3, build("robustness/doors.c"), folder / "io")


@pytest.mark.parametrize("source", ("doors_f08.f90", "doors_mpif.f"))
def test_doors_of_fortran(source, build, passes):
    passes(2, build(f"robustness/{source}"))


# --- settings, signals, children ------------------------------------------------------------------


@pytest.mark.parametrize("command", ("ls", "bash -c :", "python3 -c pass", "LAUNCHER --version",
                                     "LAUNCHER -n 2 true"))
def test_preloaded_into_other_programs(command, mpi, library, passes):
    job = passes(0, *command.replace("LAUNCHER", mpi.exec).split(), env={"LD_PRELOAD": library})
    assert job.said() == 0


def test_one_warning_for_each_setting_that_is_not_understood(build, passes):
    job = passes(2, build("robustness/settings.c"),
                 env={"FOMPI_NONSENSE": 1, "FOMPI_FALLBACK": "maybe"})
    assert job.said(r"FOMPI_NONSENSE.* \[FOMPI-W00[12]\]$") == 1
    assert job.said(r"FOMPI_FALLBACK=.* \[FOMPI-W003\]$") == 1


def test_one_line_for_each_window(build, passes):
    job = passes(2, build("robustness/settings.c"), env={"FOMPI_VERBOSE": 1})
    assert job.said("MPI_Win_allocate: 2 ranks, .* shared memory") == 1


def test_disable_leaves_everything_to_the_mpi(build, passes):
    job = passes(2, build("robustness/settings.c"), env={"FOMPI_DISABLE": 1, "FOMPI_VERBOSE": 1})
    assert job.said() == job.said("is loaded in front of .*, and FOMPI_DISABLE stops it$")


def test_fallback_error_refuses_no_window_of_the_library(build, passes):
    passes(2, build("robustness/settings.c"), env={"FOMPI_FALLBACK": "error"})


def test_fallback_quiet_says_nothing(build, passes):
    assert passes(2, build("robustness/denied.c"), "delegated", env=QUIET).said() == 0


@pytest.mark.waits
@pytest.mark.parametrize("how", ("restart", "interrupt"))
def test_signals_all_the_time(how, build, passes):
    """The handlers restart system calls, or do not."""
    passes(2, build("robustness/signals.c"), how, env={"FOMPI_FALLBACK": "error"})


@pytest.mark.waits
@pytest.mark.parametrize("how", ("restart", "interrupt"))
def test_signals_between_nodes(how, build, passes, on_adapter):
    passes(2, build("robustness/signals.c"), how, env=on_adapter | {"FOMPI_FALLBACK": "error"})


FORKS = ("own", "shared", "created", "sparse", "ends", "programs")


@pytest.mark.parametrize("what", FORKS)
def test_children_of_fork(what, build, passes):
    passes(2, build("robustness/forks.c"), what)


@pytest.mark.parametrize("what", FORKS)
def test_children_of_fork_on_the_mpi_alone(what, build, run_plain):
    assert run_plain(2, build("robustness/forks.c"), what).code == 0


@pytest.mark.parametrize("words", ("generations", "threads 100"))
def test_children_of_children_and_of_threads(words, build, passes):
    passes(2, build("robustness/forks.c"), *words.split())


# --- pages that move ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, adopt", [
    *((kind, "auto") for kind in ("created", "thread", "forked", "child", "discarded", "shared",
                                  "empty", "huge")), ("created", "always")])
def test_first_move_of_pages_of_a_process(kind, adopt, build, passes):
    passes(2, build("robustness/moves.c"), kind, env={"FOMPI_ADOPT": adopt})


def test_messages_from_memory_that_moves(build, passes):
    """UCX remembers memory by its address. Debian's Open MPI uses it only if told so. Large messages
    go by cma. The small ones avoid tcp: over it MPI_Finalize of UCX 1.13 hangs at times, without the
    library, too (https://github.com/openucx/ucx/issues/8738)."""
    passes(2, build("created/created_adopted_sends.c"),
           env={"FOMPI_ADOPT": "always", "UCX_TLS": "cma,self,posix,sysv",
                "OMPI_MCA_pml": "ucx", "OMPI_MCA_opal_common_ucx_tls": "any",
                "OMPI_MCA_opal_common_ucx_devices": "any"})


# --- withdrawals of memory -------------------------------------------------------------------------


@pytest.mark.parametrize("rank", ("", "@0", "@1"))
def test_withdrawal_where_the_system_refuses_barriers(rank, build, passes):
    """To all, to the owner, and to one rank that accesses the memory: accesses have fences then."""
    passes(3, build("robustness/deny.c"), f"membarrier=EPERM{rank}", "--",
           build("handles/handles_withdraw_race.c"))
