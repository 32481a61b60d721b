"""The programs of c-tests and fortran-tests as tests between nodes, and how one is run."""

import functools

import pytest

from program_runs import ProgramRun, applies, defect_of, left_out
from programs import ROOT, Test, sources

# What strangers do has a stage of its own.
STRANGERS = "nodes_strangers"


def names_in(*folders):
    """The programs of these folders of c-tests, or of these whole patterns."""
    return [path.stem for folder in folders for path in sorted(ROOT.glob(folder))]


ABOUT_NODES = [*(name for name in names_in("c-tests/nodes/*.c") if name != STRANGERS),
               "passive_target", "created_passive_target", "dynamic_passive_target", "pscw_groups"]
OTHER_LANGUAGES = names_in("fortran-tests/*.f90", "c-tests/cxx/*.cpp", "c-tests/python/*.py")


@functools.cache
def program(name):
    return Test(sources()[name])


def all_programs():
    return list(sources())


def runs(mpis, network, per_node, ranks, names, nodes=0, **env):
    """Parameters of tests: the runs of programs at these numbers of ranks, and of them on a node;
    on a cluster that has so many nodes; with more settings."""
    skipped = left_out(network)
    for mpi in mpis:
        for name in names:
            test = program(name)
            if name in skipped or not applies(test, mpi):
                continue
            for count in set(test.ranks(False)).intersection(ranks):
                for each in per_node:
                    if each < count and (not nodes or count <= each * nodes):
                        words = [network, f"{nodes}x{each}" if nodes else f"{each}-per-node",
                                 mpi.prefix or mpi.name, name, str(count), *env.values()]
                        run = ProgramRun(test, mpi, count, each, network,
                                         defect_of(test, mpi, count, each))
                        yield pytest.param(run, nodes, env, id="-".join(words))


def by_name(mpis, name):
    """The MPIs of a name among those that are to be tested."""
    return [mpi for mpi in mpis if mpi.name == name]
