"""libfompi_next.so: notified operations under the names of the MPI Forum's proposal, for programs that
are linked with these names. With `fompirun --mpi-next` they are there and work; without it, no
process has one. And the module of Fortran, which has them under names of libfompi.

usage: /usr/bin/python3 -m pytest tests/test_next.py
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import programs
from conftest import C_TESTS, TOP, call
from programs import FOMPIRUN

NEXT_HEADER = TOP / "include" / "fompi_mpi_next.h"
HAS = "rank {} has {} names"


@pytest.fixture
def next_library(library):
    return Path(library).with_name("libfompi_next.so")


@pytest.fixture
def program(mpi, folder):
    """Linked with the MPI alone."""
    target = folder / "next"
    subprocess.run([mpi.cc, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", target,
                    C_TESTS / "installed" / "next.c"], check=True, env=mpi.environment())
    return target


def fompirun(mpi, program, *options, ranks=3, **values):
    environment = {**mpi.environment(), "FOMPI_LIB": programs.default_library(), **values}
    # More ranks than cores.
    environment["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
    return call(FOMPIRUN, *options, "--mpi", mpi.exec, "-n", ranks, program, **environment)


def of_ranks(lines):
    return sorted(line for line in lines if line.startswith("rank "))


def names():
    """Those that the header maps: MPI_ and PMPI_ functions."""
    found = re.findall(r"^#define (P?MPI_[A-Z][a-z]\w+) FOMPI_", NEXT_HEADER.read_text(), re.MULTILINE)
    return sorted(found)


# On one node, and between what libfompi takes for nodes.
@pytest.mark.parametrize("values", ({}, {"FOMPI_RANKS_PER_NODE": "1", "FOMPI_NET": "tcp"}),
                         ids=("node", "nodes"))
def test_names_are_there_and_work(values, mpi, program):
    status, lines = fompirun(mpi, program, "--mpi-next", **values)
    assert of_ranks(lines) == sorted([HAS.format(rank, 40) for rank in range(3)] +
                                     [f"rank {rank} is right" for rank in range(3)])
    assert status == 0


def test_no_name_is_there_without_the_option(mpi, program):
    status, lines = fompirun(mpi, program)
    assert (status, of_ranks(lines)) == (0, [HAS.format(rank, 0) for rank in range(3)])


def test_entries_are_those_of_the_header(next_library):
    """The library exports them, those of Fortran, and nothing else."""
    said = subprocess.run(["nm", "-D", "--defined-only", next_library], stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    exported = sorted(line.split()[-1] for line in said.splitlines())
    of_c = [name for name in exported if not name.endswith("_")]
    assert of_c == names() and len(of_c) == 40
    of_fortran = {f"{name.lower()}_" for name in names() if not name.endswith("_c")}
    assert {name for name in exported if name.endswith("_")} <= of_fortran


def test_library_has_a_name(next_library):
    said = subprocess.run(["readelf", "-d", next_library], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    assert re.search(r"SONAME.*\[libfompi_next\.so\]", said)
    assert not re.search("NEEDED.*(mpi|fompi)", said)


def test_without_libfompi(mpi, program, next_library):
    """A line says what is missing, and the job ends."""
    status, said = programs.run(mpi.command(2, [next_library], [str(program)]), mpi.environment(), 60)
    assert status != 0
    assert re.search("^libfompi_next.so: FOMPI_Win_set_num_notify: no library has this function; "
                     "start the program with `fompirun --mpi-next`", said, re.MULTILINE)


def test_option_where_the_library_is_not_there(folder, library):
    shutil.copy(library, folder / "libfompi.so")
    status, lines = call(FOMPIRUN, "--mpi-next", "-n", 1, "true", FOMPI_LIB=folder / "libfompi.so")
    assert (status, lines) == (2, [f"fompirun: --mpi-next: no libfompi_next.so in {folder}, where "
                                   "libfompi.so is [FOMPI-E143]"])


def test_order_of_the_libraries(library, next_library):
    """A profiler sees the calls first, and libfompi gets them last."""
    _, lines = call(FOMPIRUN, "--mpi-next", "--print", "-n", 1, "true", FOMPI_LIB=library,
                    LD_PRELOAD="/opt/profiler.so")
    assert f"/opt/profiler.so:{next_library}:{library}" in lines[-1]


# --- Fortran --------------------------------------------------------------------------------------


@pytest.fixture
def fortran(mpi, folder):
    """Compiles the program of Fortran with one kind of handles, and links it."""
    if not mpi.fc:
        pytest.skip("an MPI without Fortran")
    flags = [*programs.fortran_flags(mpi), "-cpp", "-fallow-argument-mismatch", "-J", folder]

    def build(binding, *linked, name="notified"):
        target = folder / f"{name}.{binding}"
        subprocess.run([mpi.fc, *flags, f"-D{binding}", "-o", target,
                        C_TESTS / "installed" / f"{name}.F90", *linked],
                       check=True, env=mpi.environment())
        return target

    def compile_module():
        subprocess.run([mpi.fc, *flags, "-Wall", "-Werror", "-c", "-o", folder / "fompi.o",
                        TOP / "fortran" / "fompi.f90"], check=True, env=mpi.environment())
        return folder / "fompi.o"

    build.module = compile_module
    return build


@pytest.mark.parametrize("name", ("notified", "handles"))
@pytest.mark.parametrize("binding", ("F08", "MODULE", "MPIF"))
def test_module_of_fortran(name, binding, mpi, fortran, library):
    module = fortran.module()
    program = fortran(binding, module, f"-Wl,--no-as-needed,{library}", name=name)
    status, lines = fompirun(mpi, program)
    assert (status, of_ranks(lines)) == (0, [f"rank {rank} is right" for rank in range(3)])


def test_names_in_fortran(mpi, fortran, next_library):
    """The library in the link command stands for an MPI of the future."""
    program = fortran("NEXT", next_library)
    status, lines = fompirun(mpi, program, "--mpi-next")
    assert (status, of_ranks(lines)) == (0, [f"rank {rank} is right" for rank in range(3)])
