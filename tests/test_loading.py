"""How the library gets into a process: in front of an MPI of a family that is not known, where it
stands aside; and linked with modules that are loaded while the program runs, without preloading.

usage: /usr/bin/python3 -m pytest tests/test_loading.py
"""

import re
import subprocess

import pytest

from conftest import C_TESTS, TOP

UNKNOWN, PLUGIN = C_TESTS / "unknown", C_TESTS / "robustness" / "plugin"
WARNINGS = ["-O2", "-Wall", "-Wextra", "-Werror"]
ASIDE = "names itself `HPE MPT 2.30 .*stands aside"
SIGABRT = 6

# --- an MPI of a family that is not known ---------------------------------------------------------


def compiled(*words):
    subprocess.run([*map(str, words)], check=True)


@pytest.fixture(scope="module")
def unknown(tmp_path_factory):
    """The folder of some MPIs, and of a program that calls every function of one."""
    folder = tmp_path_factory.mktemp("unknown")
    for name, version, *flags in (
            ("mpt", "HPE MPT 2.30  08/04/23 03:51:17", "-DEVERYTHING"),
            ("old", "MPC version 4.2.0"),
            ("layer", "MPItrampoline 5.4.0, wrapping: MPICH Version: 4.2", "-DEVERYTHING"),
            ("mpich", "MPICH Version: 2.0", "-DEVERYTHING")):
        (folder / name).mkdir()
        compiled("cc", *WARNINGS, "-shared", "-fPIC", f'-DVERSION="{version}"', *flags, "-o",
                 folder / name / "libmpi.so", UNKNOWN / "mpi.c")
    compiled("cc", *WARNINGS, "-Wl,-z,lazy", "-o", folder / "calls", UNKNOWN / "calls.c",
             f"-L{folder}/mpt", "-lmpi")
    return folder


def exported(pattern):
    """The exported names that begin like the pattern."""
    names = (TOP / "src" / "abi" / "exported.txt").read_text().split()
    return [name for name in names if re.match(pattern, name)]


def test_all_exported_names_are_called(unknown):
    names = subprocess.run([unknown / "calls", "names"], env={"LD_LIBRARY_PATH": f"{unknown}/mpt"},
                           stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert sorted(names) == exported("(?!fompi_|FOMPI_|(_Fork|dlopen|pthread_create)$)")


@pytest.mark.first_mpi
@pytest.mark.parametrize("name, mode, env, lines", (
    ("mpt", "all", {}, (ASIDE,)), ("mpt", "all", {"PMI_RANK": 1}, ()),
    ("mpt", "all", {"FOMPI_FALLBACK": "quiet"}, ()),
    ("mpt", "refused", {"FOMPI_FALLBACK": "error"}, (ASIDE,)),
    ("mpt", "all", {"FOMPI_DISABLE": 1, "FOMPI_FALLBACK": "error"}, ()),
    ("layer", "all", {}, ("stands aside",)),
    ("mpich", "all", {}, ("MPICH Version: 2.0`, has no PMPI_Initialized; .*stands aside",))),
    ids=("every-call-as-it-was", "rank-1-is-silent", "quiet-is-silent", "error-makes-no-window",
         "disabled-is-silent", "layer-over-MPICH", "MPICH-that-lacks-functions"))
def test_unknown_mpi(name, mode, env, lines, unknown, library, passes):
    job = passes(0, unknown / "calls", mode, preload=None,
                 env=env | {"LD_LIBRARY_PATH": unknown / name, "LD_PRELOAD": library})
    assert [job.said(line) for line in lines] == [1] * len(lines)
    assert mode == "refused" or job.said() == len(lines)


@pytest.mark.first_mpi
def test_functions_of_the_library_raise_an_error_on_their_window(unknown, library, passes):
    job = passes(0, unknown / "calls", "own", preload=None,
                 env={"LD_LIBRARY_PATH": unknown / "mpt", "LD_PRELOAD": library})
    assert [name for name in exported("FOMPI_|fompi_.*_$") if job.lines(name) != 1] == []


def test_module_of_fortran_binds_each_function_of_the_library():
    module = (TOP / "fortran" / "fompi.f90").read_text()
    assert [name for name in exported("fompi_.*_$") if f'"{name}"' not in module] == []


@pytest.mark.first_mpi
def test_function_that_the_mpi_does_not_have_ends_the_program(unknown, library, run):
    job = run(0, unknown / "calls", "one", preload=None,
              env={"LD_LIBRARY_PATH": unknown / "old", "LD_PRELOAD": library})
    assert job.code == -SIGABRT
    assert job.said(r"MPI_Put: the MPI that all calls go to has no such function \[FOMPI-E114\]$") == 1


# --- modules --------------------------------------------------------------------------------------


@pytest.fixture
def plugin(mpi, library, folder):
    """Compiles a program or a module, which is linked with the library if it is named so."""
    (folder / "libfompi.so").symlink_to(library)

    def compile_one(source, name, *flags):
        if name == "module":
            flags = [*flags, f"-L{folder}", "-lfompi", f"-Wl,-rpath,{folder}"]
        shared = ["-shared", "-fPIC"] if source == "module" else []
        compiled(mpi.cc, *WARNINGS, "-std=gnu11", "-pthread", *shared, "-o", folder / name,
                 PLUGIN / f"{source}.c", *flags)
        return folder / name

    return compile_one


@pytest.fixture
def library_of_mpi(plugin):
    """The file name of the MPI's library."""
    program = plugin("host", "host")
    lines = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True).stdout
    return re.search(r"^\s*(libmpi\S*) => /", lines, re.MULTILINE)[1]


def test_own_functions_where_the_mpi_comes_first(plugin, folder, library_of_mpi, run_plain):
    """Linked behind the MPI: the class is that of the MPI, and the program goes on."""
    program = plugin("behind", "behind", "-Wl,--no-as-needed", f"-l:{library_of_mpi}",
                     f"-L{folder}", "-lfompi", f"-Wl,-rpath,{folder}")
    job = run_plain(2, program)
    assert job.code == 0
    assert job.said("libmpi.* comes before libfompi.so .* stands aside") == 1


def makes_itself_global(mpi):
    """Open MPI makes its functions the program's own (RTLD_GLOBAL) when it starts."""
    return mpi.name == "openmpi"


def test_module_beside_a_running_mpi(mpi, plugin, run_plain):
    deep = 0 if makes_itself_global(mpi) else 1
    job = run_plain(2, plugin("host", "host"), plugin("module", "module"), deep)
    assert job.code == 0
    assert job.said("libmpi.* comes before libfompi.so .* stands aside") == deep


def loader(source, folder):
    """A program that is linked with no MPI."""
    compiled("gcc", *WARNINGS, "-pthread", "-o", folder / source, PLUGIN / f"{source}.c")
    return folder / source


def test_module_that_is_unloaded_before_mpi_ends(mpi, plugin, folder, library_of_mpi, run_plain):
    job = run_plain(2, loader("loader", folder), plugin("module", "module"), library_of_mpi,
                    env={"FOMPI_VERBOSE": 1})
    assert job.code == 0
    if makes_itself_global(mpi):
        assert job.said("libmpi.*comes.before.libfompi.so.*stands.aside") == 1
    else:
        assert job.said("MPI_Win_allocate:.*shared.memory") == 2


def test_library_that_is_loaded_late(mpi, plugin, folder, library, library_of_mpi, run_plain):
    """As by a program in Python that imports mpi4py, and opens libfompi then."""
    job = run_plain(2, loader("late", folder), plugin("module", "before"), library_of_mpi, library,
                    env={"FOMPI_VERBOSE": 1})
    late = "before was loaded before libfompi.so, so its one-sided calls go to libmpi"
    assert job.code == 0
    assert job.said("libmpi.* comes before libfompi.so" if makes_itself_global(mpi) else late) == 1
    assert job.said("libfompi .* is loaded in front") == 0
