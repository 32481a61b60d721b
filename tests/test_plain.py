"""The programs of c-tests and fortran-tests on the MPIs alone, held against c-tests/host-defects: what they
expect of the library is what MPI says.

usage: /usr/bin/python3 -m pytest -n 2 tests/test_plain.py -k lock_fairness

Each program that has changed since the commit that scripts/dev/tested.toml names runs at its largest rank
count; with --everything all programs at all counts. tests/program_tests.py has more options.
"""

import functools

import pytest

import changed
from program_runs import HOST_DEFECTS, defects
from program_tests import check, parametrize


@functools.cache
def old_defects():
    return [] if changed.base().missing else defects(changed.base().text(HOST_DEFECTS))


def marks_of(run):
    """Skips a run that would end as at the commit."""
    if changed.run_has_changed(run, old_defects()):
        return ()
    return [pytest.mark.skip(f"nothing that it depends on has changed since {changed.base()}")]


def pytest_generate_tests(metafunc):
    everything = metafunc.config.getoption("--everything")
    parametrize(metafunc, True, (lambda run: ()) if everything else marks_of)


def test_program_on_the_mpi_alone(job, pytestconfig):
    check(job, None, {}, pytestconfig)
