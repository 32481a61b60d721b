"""What scripts/dev/programs.py asks of an MPI, as each process of a run of tests does.

usage: /usr/bin/python3 -m pytest tests/test_programs.py
"""

import programs
from program_runs import applies


def test_questions_to_an_mpi_write_no_file(tmp_path, monkeypatch, pytestconfig):
    """Processes that collect the same tests at once would write it while others read it."""
    monkeypatch.setattr(programs, "BUILD", tmp_path)
    programs.compiles.cache_clear()
    for mpi in programs.installed(pytestconfig.getoption("--mpi")):
        assert mpi.standard >= 3
        assert any(applies(programs.Test(path), mpi) for path in programs.sources().values()
                   if path.suffix == ".f90")
    assert not list(tmp_path.iterdir())
