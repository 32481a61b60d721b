"""fompi selftest on each MPI: it passes on libfompi, alone and under the launcher, and names a call
that is wrong, hangs, or ends the job. Its checks of libfabric run over TCP, and notice a libfabric
that is broken.

Broken calls and an RDMA device are tried on the last MPI: ranks of Open MPI yield the processor while
they wait, those of MPICH do not. With --everything on all.

usage: /usr/bin/python3 -m pytest tests/test_selftest.py
       /usr/bin/python3 -m pytest tests/test_selftest.py --mpi PREFIX
"""

import ctypes
import json
import re
import subprocess
from pathlib import Path

import pytest

import programs
from conftest import C_TESTS, TOP, call, version

FOMPI = programs.FOMPIRUN.with_name("fompi")
WINDOWS = ("MPI_Win_create", "MPI_Win_create over MPI_Alloc_mem", "MPI_Win_allocate",
           "MPI_Win_allocate_shared", "MPI_Win_create_dynamic")
ABIS = {"mpich": "MPICH ABI", "intel": "MPICH ABI", "openmpi": "Open MPI ABI"}
# What every window is checked for, whatever its flavour.
CHECKS = {"creation", "attributes", "fence", "exclusive lock", "put, get", "operations",
          "atomic: one element", "atomic: several elements", "busy target", "free"}
SECONDS = 240
PLUGIN = C_TESTS / "robustness" / "plugin"
PROVIDER = "tcp;ofi_rxm"
# The checks of libfabric over that provider, with the outcomes that each may have.
FABRIC_CHECKS = {
    "write, read, add, swap": {"passed"}, "target computes": {"passed", "observed"},
    "delivered write": {"passed"}, "write, delivered write": {"observed"},
    "write, add": {"observed"}, "write, read": {"observed"}, "adds and loads": {"passed"},
    "stale keys": {"passed"}}


@pytest.fixture
def selftest(mpi):
    """Runs fompi selftest, which starts jobs of an MPI by itself."""
    def run(*words, **env):
        return call(FOMPI, "selftest", "--mpi", mpi.prefix or mpi.name, *words, seconds=SECONDS,
                    FOMPI_LIB=programs.default_library(), **env)
    return run


@pytest.fixture
def broken(mpi, folder):
    """Builds a library with a broken function, to be preloaded."""
    def build(how):
        target = folder / "libbroken.so"
        subprocess.run([mpi.cc, "-shared", "-fPIC", f"-DBROKEN={how}", "-o", target,
                        PLUGIN / "broken_calls.c"], check=True, env=mpi.environment())
        return target
    return build


@pytest.fixture
def fabric(mpi):
    """Runs the checks of libfabric alone, between two ranks on this machine as two nodes."""
    try:
        ctypes.CDLL("libfabric.so.1")
    except OSError as error:
        pytest.skip(f"libfabric: {error}")

    def run(*words, provider=PROVIDER, **env):
        skips = [word for window in WINDOWS for word in ("--skip", window)]
        words = [programs.FOMPIRUN, "--mpi", mpi.prefix or mpi.name, "-n", 2, FOMPI, "selftest",
                 "--libfabric", provider, *skips, *words]
        return call(*words, seconds=SECONDS, FOMPI_LIB=programs.default_library(),
                    FOMPI_RANKS_PER_NODE=1, FOMPI_NET="tcp", **env)
    return run


@pytest.fixture
def broken_fabric(folder):
    """Builds a library that breaks libfabric, to be preloaded."""
    if not Path("/usr/include/rdma/fabric.h").exists():
        pytest.skip("libfabric has no headers here")

    def build(how):
        target = folder / "libbroken.so"
        subprocess.run(["gcc", "-shared", "-fPIC", f"-DBROKEN={how}", "-o", target,
                        PLUGIN / "broken_fabric.c"], check=True)
        return target
    return build


def summary_in(lines):
    """What --json prints, among lines of the launcher."""
    return json.loads("\n".join(lines[lines.index("{"):lines.index("}") + 1]))


def results(summary):
    """The outcomes of all checks, by job, window and check."""
    return {(job["settings"], check["window"], check["check"]): check["outcome"]
            for job in summary["jobs"] for check in job["checks"]}


def test_all_passes_on_each_transport(mpi, selftest):
    status, lines = selftest("--json")
    assert status == 0
    summary = summary_in(lines)
    assert summary["failed"] == 0 and summary["passed"] > 150
    assert set(summary["transports"]) == {"shared memory", "process_vm", "TCP between nodes"}
    found = results(summary)
    for job in summary["jobs"]:
        assert (job["abi"], job["ranks"]) == (ABIS[mpi.name], 4)
        for window in WINDOWS:
            passed = {check for settings, where, check in found
                      if (settings, where) == (job["settings"], window)
                      and found[settings, where, check] == "passed"}
            # A busy target needs a second rank.
            alone = {"busy target"} if job["nodes"] > 1 and window == WINDOWS[3] else set()
            assert CHECKS - alone <= passed
    (tcp,) = (job for job in summary["jobs"] if "FOMPI_NET=tcp" in job["settings"])
    assert tcp["nodes"] == 2
    operations = {"put", "get", "accumulate", "fetch-and-op", "compare-and-swap",
                  "lock-put-unlock", "fence"}
    for job in summary["jobs"]:
        assert {speed["operation"] for speed in job["speeds"]} == operations
        assert all(0 < speed["least"] <= speed["median"] for speed in job["speeds"])
    assert summary["line"].startswith(f"fompi selftest: libfompi {version()}; {ABIS[mpi.name]}; ")
    assert any(why.startswith("libfabric: ") for why in summary["left_out"])


@pytest.mark.last_mpi_in_gate
def test_rdma_where_there_is_a_device(selftest, folder, adapter):
    status, lines = selftest(FOMPI_VERBS_LIBRARY=adapter, ADAPTER_DIR=folder)
    assert status == 0 and re.search("transports: .*, verbs between nodes; ", lines[-1])


def test_as_a_program_of_the_launcher(mpi):
    """No library is preloaded: the program loads libfompi ahead of the launcher's MPI."""
    words = mpi.command(2, [], [str(FOMPI), "selftest"])
    status, lines = call(*words, seconds=SECONDS, FOMPI_LIB=programs.default_library())
    assert status == 0
    (line,) = (line for line in lines if line.startswith("fompi selftest: "))
    number = r"\d+[.]\d+" if mpi.version == "5" else re.escape(mpi.version)
    assert re.search(number, line) and re.search("; 2 ranks, nodes: 1; .* 0 failed$", line)
    rows = [line.split() for line in lines]
    assert ["busy", "target", *["passed"] * 5] in rows
    assert "not tested: libfabric: ranks on two nodes are needed" in lines


def test_under_fompirun(mpi):
    words = [programs.FOMPIRUN, "--mpi", mpi.prefix or mpi.name, "-n", 2, FOMPI, "selftest"]
    status, lines = call(*words, seconds=SECONDS, FOMPI_LIB=programs.default_library())
    assert status == 0 and not any("static MPI" in line for line in lines)
    assert sum(line.endswith(" 0 failed") for line in lines) == 1


def test_window_of_the_host_mpi_is_a_failure(mpi):
    """Rank 0 alone ends with status 1: a launcher that sees another rank fail ends it too early."""
    rank = 'status=0; "$0" selftest --limit 10 || status=$?; echo "status $status"; exit $status'
    words = [programs.FOMPIRUN, "--mpi", mpi.prefix or mpi.name, "-n", 2, "sh", "-c", rank, FOMPI]
    status, lines = call(*words, seconds=SECONDS, FOMPI_LIB=programs.default_library(),
                         FOMPI_RANKS_PER_NODE=1, FOMPI_NET="off", OMPI_MCA_osc="^ucx")
    assert status == 1
    assert any(re.match("FAILED: MPI_Win_create on rank 0: expected a window of libfompi, got one "
                        "of the host MPI", line) for line in lines)
    assert lines.count("status 1") == 1


def first(lines):
    """The first line that is not of the launcher or of another program."""
    return next(line for line in lines if line.startswith(("FAILED", "HANGS", "MPI: ")))


def went_on(lines):
    """Whether the other checks of each job passed: one a job did not."""
    passed, failed = map(int, re.search(r"(\d+) passed, (\d+) failed$", lines[-1]).groups())
    return passed > 150 and 2 <= failed <= 3


@pytest.mark.last_mpi_in_gate
def test_wrong_result_is_named_and_other_checks_go_on(selftest, broken):
    status, lines = selftest(LD_PRELOAD=broken(1))
    assert status == 1
    assert re.match(r"FAILED: MPI_Compare_and_swap on rank \d: expected \d+, got \d+ "
                    r"\(check atomic: one element, MPI_Win_create, ", first(lines))
    failed, passed = (int(re.search(rf"(\d+) {what}", lines[-1])[1]) for what in ("failed", "passed"))
    assert failed >= 10 and passed > 150


@pytest.mark.last_mpi_in_gate
def test_call_that_hangs_is_named_for_each_transport(selftest, broken):
    status, lines = selftest("--limit", 3, LD_PRELOAD=broken(2))
    assert status == 1
    assert re.match(r"HANGS: MPI_Win_flush_local_all on rank 1: expected an end of the call, got "
                    r"none in 3 s \(check lock_all, flush, sync, MPI_Win_create, ", first(lines))
    assert sum(line.startswith("HANGS: MPI_Win_flush_local_all on rank 1") for line in lines) >= 2
    assert any(line.startswith("not tested: more of `lock_all, flush, sync`") for line in lines)
    assert went_on(lines)


@pytest.mark.last_mpi_in_gate
def test_check_that_ends_the_job_is_named(selftest, broken):
    status, lines = selftest(LD_PRELOAD=broken(3))
    assert status == 1
    assert re.match(r"FAILED: the job on rank 0: expected a report, got .*"
                    r"\(check lock_all, flush, sync, MPI_Win_create", first(lines))
    assert went_on(lines)


def test_checks_that_cannot_run(selftest):
    status, lines = selftest("--library", "/nowhere/libmpi.so")
    assert status == 2
    assert any("no MPI library can be opened; name it with --library: /nowhere/" in line
               for line in lines)
    status, lines = call(FOMPI, "selftest", "--mpi", "nosuch")
    assert status == 2 and any("mpirun.nosuch" in line for line in lines)


@pytest.mark.nightly
def test_libfabric(fabric):
    status, lines = fabric("--json")
    summary = summary_in(lines)
    (job,) = summary["jobs"]
    found = {check["check"]: check["outcome"] for check in job["checks"]}
    assert set(found) == set(FABRIC_CHECKS)
    assert all(found[check] in outcomes for check, outcomes in FABRIC_CHECKS.items()), found
    assert status == 0 and job["libfabric"]["provider"] == PROVIDER
    assert re.search(rf"; libfabric \d+[.]\d+: {PROVIDER}; ", summary["line"])


def test_libfabric_without_the_provider(fabric):
    status, lines = fabric(provider="nosuch")
    assert status == 0
    assert "not tested: libfabric: provider nosuch: fi_getinfo: No data available" in lines


@pytest.mark.nightly
@pytest.mark.parametrize("how, failure, check", [
    (1, "fi_fetch_atomic on rank 0: ", "write, read, add, swap"),
    (2, "an access with a stale key on rank 0: expected an error, got success", "stale keys"),
    (3, "fi_write on rank 1: ", "write, add"),
    (4, "an access with a stale key on rank 0: expected an error, got no completion in 5 s",
     "stale keys")])
def test_broken_libfabric_is_named(fabric, broken_fabric, how, failure, check):
    status, lines = fabric("--limit", 8, LD_PRELOAD=broken_fabric(how))
    assert status == 1
    failures = [line for line in lines if line.startswith("FAILED: ")]
    assert any(line.startswith(f"FAILED: {failure}") and f"(check {check}, libfabric)" in line
               for line in failures), failures
    assert any(re.match(f"FAILED +{check} ", line) for line in lines)


@pytest.mark.nightly
def test_libfabric_is_checked_by_keys_of_the_checks(fabric, broken_fabric):
    """A provider's own keys may live on in its cache."""
    status, lines = fabric("--limit", 8, LD_PRELOAD=broken_fabric(5))
    assert status == 0 and any(re.match("passed +stale keys ", line) for line in lines)


def test_page_shows_the_checks_that_run(selftest):
    """The rows of the page's output are those of this program."""
    page = (TOP / "docs" / "guide" / "selftest.md").read_text()
    _, lines = selftest("-n", 2)
    names = {line.split("  ")[0] for line in lines if re.search("  (passed|-)", line)}
    shown = {line.split("  ")[0] for line in page.splitlines() if re.search("  (passed|-)", line)}
    assert names == shown
