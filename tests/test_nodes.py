"""Windows over many nodes on one machine, where FOMPI_RANKS_PER_NODE makes nodes of ranks. Over
TCP, on the loopback interface: the programs in C whose calls reach other nodes, on two nodes of two
ranks, those that do not run at four ranks on nodes of one; those about nodes on more, at up to 20
ranks. Over the software adapter: what depends on a device whose requests are late and overtake each
other, which are the programs about nodes and those that docs/conformance/16-nodes.toml names.
Between network namespaces, and in other languages: test_cluster.py.

One rule chooses the MPI: up to three ranks run on MPICH, more on Open MPI. There a rank that waits in
the MPI yields the processor; on MPICH it spins, and four ranks on two processors take ten times as long.

usage: /usr/bin/python3 -m pytest -n 2 tests/test_nodes.py

With --everything all programs in all languages over both, on both MPIs, and ten million puts under
way.
"""

import re

from conftest import mpis
from node_runs import (ABOUT_NODES, STRANGERS, all_programs, by_name, names_in, runs, program)
from programs import ROOT

# Programs about what a rank does by itself (the arguments of calls, its own memory, the attributes
# of windows): the stage ctests runs them on one node. And those that make many windows or types,
# which take ten seconds and more between nodes.
ALONE = [*names_in("c-tests/errors/*.c", "c-tests/gpu/*.c", "c-tests/memory/*.c",
                   "c-tests/tools/*.c", "c-tests/windows/*.c",
                   "c-tests/created/created_adopted_*.c"),
         "created_again_and_again", "created_alignments", "even_blocks", "threads_free_and_allocate",
         "threads_many_windows", "created_threads_windows"]
# Where the processor changes the words of its own node; these two count what the device does.
COUNTING = ("nodes_costs", "nodes_memory")


def in_rows():
    """The programs that the conformance rows about nodes name."""
    text = (ROOT / "docs" / "conformance" / "16-nodes.toml").read_text()
    found = re.findall(r'^test = "([a-z_]+) .*', text, re.MULTILINE)
    return sorted(set(found) - {STRANGERS, "unit"})


def runs_at(name, ranks):
    return ranks in program(name).ranks(False)


def in_gate(mpich, openmpi, at_four, not_at_four):
    alone = set(ALONE) - set(in_rows())
    of_nodes = lambda names: [name for name in names if name not in alone
                              and program(name).path.suffix == ".c"]
    fewer = [name for name in {*ABOUT_NODES, *in_rows()} if name in not_at_four]
    yield from runs(openmpi, "tcp", [2], [4], of_nodes(at_four))
    yield from runs(mpich, "tcp", [1], [2, 3], of_nodes(not_at_four))
    yield from runs(openmpi, "tcp", [1], [12], of_nodes(not_at_four))
    # At 8 ranks test_cluster.py runs them.
    yield from runs(mpich, "tcp", [1], [2], ABOUT_NODES)
    yield from runs(openmpi, "tcp", [4], [20], ABOUT_NODES)
    yield from runs(openmpi, "verbs", [2], [4], sorted({*ABOUT_NODES, *in_rows()}))
    yield from runs(mpich, "verbs", [1], [2, 3], sorted(fewer))
    yield from runs(openmpi, "verbs", [4], [20], ABOUT_NODES)
    yield from runs(openmpi, "verbs", [8], [32], ["nodes_memory"])


def at_night(both, mpich, not_at_four):
    for network in ("tcp", "verbs"):
        yield from runs(both, network, [2], [4], all_programs())
        yield from runs(both, network, [1], [2, 3, 12], not_at_four)
        yield from runs(both, network, [1, 4], [2, 8, 20], ABOUT_NODES)
    yield from runs(mpich, "verbs", [2, 8], [32], ["nodes_memory"])
    # Ten million puts under way.
    yield from runs(mpich, "verbs", [1], [2], ["nodes_many_puts"], FOMPI_TEST_LARGE="1")


def on_special_devices(mpich, openmpi):
    # Devices that keep less order than a reliable connection.
    for order in ("waw", "none"):
        for mpis, ranks in ((mpich, 2), (openmpi, 4)):
            yield from runs(mpis, "verbs", [1], [ranks],
                            ["nodes_accumulate_order", "nodes_accumulate_overlap", "nodes_accumulates",
                             "lock_exclusive_counter"], ADAPTER_ORDER=order)
    names = [name for name in ABOUT_NODES if name not in COUNTING]
    yield from runs(openmpi, "verbs", [2], [4],
                    [*names, "accumulate_stress", "created_accumulate_stress"],
                    ADAPTER_ATOMIC="glob")


def pytest_generate_tests(metafunc):
    both = mpis(metafunc.config)
    mpich, openmpi = by_name(both, "mpich"), by_name(both, "openmpi")
    names = [name for name in all_programs() if name != STRANGERS]
    at_four = [name for name in names if runs_at(name, 4)]
    not_at_four = [name for name in names if not runs_at(name, 4)]
    found = list(at_night(both, mpich, not_at_four) if metafunc.config.getoption("--everything")
                 else in_gate(mpich, openmpi, at_four, not_at_four))
    metafunc.parametrize("job, nodes, env", [*found, *on_special_devices(mpich, openmpi)])


def test_program(job, nodes, env, program_passes):
    program_passes(job, env)
