"""The programs of examples/, built with each MPI, by the lines of their `runs` files: on the MPI
alone, with the library on one node, and with it between two simulated nodes (scripts/dev/cluster),
or on the loopback interface where namespaces are not permitted. A run has passed if it ends with 0,
each of its results is verified, and it has one.

usage: /usr/bin/python3 -m pytest -n 2 tests/test_examples.py

On the MPI alone only with --everything: there a run says nothing about the library. So are more than
three ranks on MPICH, which spin and take three times as long as those of Open MPI.
"""

import functools
import re
import subprocess

import pytest

import programs
from conftest import call, mpis, namespaces_refused
from programs import BUILD, ROOT

EXAMPLES = ROOT / "examples"
SECONDS = 60
# Programs that need the library.
NOT_PLAIN = ("shmem_signal", "coarray_event", "shmem_histogram", "global_array", "taskqueue")
RESULT = re.compile(r"^example=\S+ variant=\S+ .*\bverified=([01])\b", re.MULTILINE)
TRANSPORTS = (pytest.param("plain", marks=pytest.mark.nightly), "node", "nodes")


def runs():
    """The lines of the `runs` files: the number of ranks, and the words of the command."""
    for path in sorted(EXAMPLES.glob("*/runs")):
        for line in path.read_text().splitlines():
            words = line.split("#")[0].split()
            if words:
                name = "-".join([path.parent.name, *words])
                yield pytest.param(int(words[0]), words[1:], id=name)


@functools.cache
def built(mpi):
    """The folder of the programs."""
    out = BUILD / mpi.label / "examples"
    with programs.locked(out):
        status, _ = call("make", "-s", "-C", EXAMPLES, f"MPICC={mpi.cc}", f"MPIFC={mpi.fc}",
                         f"OUT={out}", seconds=600, **mpi.environment())
    assert status == 0
    return out


def on_transport(mpi, transport, ranks, program, library, cluster):
    """The command line and the environment of a run."""
    ours = {"FOMPI_FALLBACK": "error"}
    values = mpi.environment()
    if transport == "plain":
        # The osc/rdma of Open MPI 4.1.4 fails in MPI_Compare_and_swap on one node.
        is_old = mpi.name == "openmpi" and mpi.version.startswith("4.")
        more = {"OMPI_MCA_osc": "^rdma"} if is_old else {}
        return mpi.command(ranks, [], program), values | more
    if transport == "nodes":
        ours |= {"FOMPI_NET": "tcp"}
        if not namespaces_refused():
            cluster(2)
            per_node = (ranks + 1) // 2
            return mpi.cluster_command(ranks, per_node, [library], program, ours, SECONDS), values
        ours |= {"FOMPI_RANKS_PER_NODE": "1"}
    return mpi.command(ranks, [library], program), values | ours


@pytest.mark.left_out_in_gate(lambda params: params["mpi"].name == "mpich" and params["ranks"] > 3)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("ranks, words", runs())
def test_example(transport, ranks, words, mpi, library, request):
    name, *arguments = words
    if transport == "plain" and name in NOT_PLAIN:
        pytest.skip(f"{name} needs the library")
    program = built(mpi) / name
    if not program.exists():
        pytest.skip(f"{name} was not built with {mpi.label}")
    command, values = on_transport(mpi, transport, ranks, [str(program), *arguments], library,
                                   request.getfixturevalue("cluster"))
    code, said = programs.run(command, values, SECONDS + 20)
    print(said)
    assert code == 0
    assert "cannot be preloaded" not in said
    assert set(RESULT.findall(said)) == {"1"}
