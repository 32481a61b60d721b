"""First contact between processes over TCP while strangers call at their ports:
c-tests/nodes/nodes_strangers.c says what kinds there are, and what must hold. As nodes of one rank
and of two, listening at all addresses and at those of one interface; and over the software adapter,
where the stream of a first contact ends with it.

usage: /usr/bin/python3 -m pytest -n 2 tests/test_strangers.py
"""

from conftest import mpis
from node_runs import STRANGERS, by_name, runs


def pytest_generate_tests(metafunc):
    both = mpis(metafunc.config)
    metafunc.parametrize("job, nodes, env", [
        *runs(both, "tcp", [1, 2], [2, 6], [STRANGERS]),
        *runs(both, "tcp", [1], [2], [STRANGERS], FOMPI_NET_INTERFACE="lo"),
        *runs(by_name(both, "mpich"), "verbs", [2], [6], [STRANGERS])])


def test_first_contact(job, nodes, env, program_passes):
    program_passes(job, env)
