"""The runs of programs of c-tests and fortran-tests as tests: which there are, and how one is checked. More
options of pytest for them:

    --largest              at the largest rank counts on all MPIs
    --ranks 1,2            at these counts
    --programs 'A B'       these programs
    --one-mpi              each on one of the MPIs, which a hash of its name chooses
    --ranks-per-node 1,2   with so many ranks on a node
    --network tcp|verbs    by which these nodes are connected; verbs by the software adapter
    --in-vm                this is scripts/dev/rdma-vm, which has an RDMA device
    --build-only           builds the programs

Of several MPIs of one family (MPIS) a program runs on the one that a hash of its name chooses: each of them
has a share of the programs. With --everything or --programs it runs on all.
"""

import zlib

import pytest

import programs
from conftest import mpis
from program_runs import ProgramRun, applies, defect_of, left_out
from programs import OFF_THE_DEVICE, Test, sources

# Of a program on the MPI alone.
TRIES = 6
# On the first MPI, if another one runs the program at more: MPICH's ranks spin, and more of them than
# processors take three times as long as those of Open MPI, which yield.
RANKS_MAX = 3
# An emulated machine is slower.
VM_SETTINGS = OFF_THE_DEVICE | {"CHECK_TIMES": "4"}


def chosen(names):
    unknown = set(names) - set(sources())
    if unknown:
        pytest.fail(f"no such program: {' '.join(sorted(unknown))}", pytrace=False)
    return [Test(path) for name, path in sources().items() if name in names or not names]


def counts_of(test, mpi, found, config, is_plain):
    """The rank counts of a program on an MPI, of those found that it runs on."""
    counts = test.ranks(is_plain)
    if config.getoption("--ranks"):
        counts = [count for count in counts if str(count) in config.getoption("--ranks").split(",")]
    if config.getoption("--everything") or not counts:
        return counts
    if mpi.name != found[0].name or is_plain or config.getoption("--largest"):
        return [max(counts)]
    if any(other.name != mpi.name for other in found):
        counts = [count for count in counts if count <= RANKS_MAX] or [min(counts)]
    return [count for count in counts if count in (1, max(counts))]


def mpis_of(test, config):
    """The MPIs on which a program runs."""
    found = [mpi for mpi in mpis(config) if applies(test, mpi)]
    number = zlib.crc32(test.name.encode())
    if config.getoption("--one-mpi"):
        return [found[number % len(found)]] if found else []
    if config.getoption("--everything") or config.getoption("--programs"):
        return found
    families = {}
    for mpi in found:
        families.setdefault(mpi.name, []).append(mpi)
    return [family[number % len(family)] for family in families.values()]


def runs(config, is_plain):
    """The runs of the chosen programs."""
    per_node = [int(count) for count in config.getoption("--ranks-per-node").split(",")]
    network = config.getoption("--network") if per_node != [0] else ""
    exceptions = left_out(network) if network else ()
    for test in chosen(config.getoption("--programs").split()):
        found = mpis_of(test, config) if test.name not in exceptions else ()
        for mpi in found:
            for ranks in counts_of(test, mpi, found, config, is_plain):
                for each in per_node:
                    if each < ranks:
                        yield ProgramRun(test, mpi, ranks, each, network,
                                         defect_of(test, mpi, ranks, each, is_plain), tries=TRIES)


def parameter(run, marks=()):
    nodes = [f"{run.per_node}-per-node"] if run.per_node else []
    words = [run.mpi.prefix or run.mpi.name, run.test.name, str(run.ranks), *nodes]
    return pytest.param(run, id="-".join(words), marks=marks)


def parametrize(metafunc, is_plain, marks_of=lambda run: ()):
    """Makes a test of each run, which is its parameter `job`."""
    found = [parameter(run, marks_of(run)) for run in runs(metafunc.config, is_plain)]
    if not found:
        pytest.fail("no program runs at these numbers of ranks", pytrace=False)
    metafunc.parametrize("job", found)


def check(job, library, settings, config):
    if config.getoption("--build-only"):
        complaint = programs.build(job.test, job.mpi)[2]
    else:
        complaint = job.complaint(library, settings)
    if complaint:
        pytest.fail(f"{job.label}\n{complaint}", pytrace=False)
