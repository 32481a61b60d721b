"""fompirun on each of Debian's MPIs: what reaches the ranks, which launcher it takes, what
it refuses and why; and the line of the library where each rank is alone.

usage: /usr/bin/python3 -m pytest tests/test_fompirun.py
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import programs
from conftest import C_TESTS, TOP, call
from programs import FOMPIRUN

SHOW = "echo $LD_PRELOAD"
OTHER = {"mpich": "openmpi", "openmpi": "mpich"}
ALONE = (r"fompi: the launcher started 2 processes, but MPI_COMM_WORLD has one rank: "
         r".* \(libmpi.*\).* \[FOMPI-W008\]")
# Starts its argument on rank 0.
RANK = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  int rank, status = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) status = system(argv[1]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return status != 0;
}
"""


@pytest.fixture(autouse=True)
def only_debians(request):
    if "mpi" in request.fixturenames and request.getfixturevalue("mpi").prefix:
        pytest.skip("an MPI of Debian is meant")


def fompirun(*words, **options):
    return call(FOMPIRUN, *words, **{"FOMPI_LIB": programs.default_library()} | options)


def launcher_of(*words, **options):
    """The launcher that fompirun takes."""
    _, lines = fompirun("--print", *words, **options)
    return lines[-1].split()[0]


def refused(pattern, *words, **options):
    """fompirun ends with status 2, and one line that says why, with the code of its message."""
    status, lines = fompirun(*words, **options)
    assert status == 2
    expected = rf"fompirun: .*{pattern}.* \[FOMPI-E[0-9]{{3}}\]"
    assert sum(bool(re.fullmatch(expected, line)) for line in lines) == 1


@pytest.fixture
def program(mpi, folder):
    """A program of an installation's user, built with the MPI."""
    return compiled(mpi.name, folder)


def compiled(name, folder, *flags, text=None):
    source = C_TESTS / "installed" / "app.c"
    if text:
        source = folder / "rank.c"
        source.write_text(text)
    target = folder / f"{source.stem}{len(flags)}.{name}"
    subprocess.run([f"mpicc.{name}", *flags, "-o", target, source], check=True)
    return target


def path_with(name, folder):
    """A PATH with an MPI's launcher as mpirun."""
    at = folder / f"path.{name}"
    at.mkdir(exist_ok=True)
    (at / "mpirun").unlink(missing_ok=True)
    (at / "mpirun").symlink_to(shutil.which(f"mpirun.{name}"))
    return f"{at}:{os.environ['PATH']}"


# --- what reaches the ranks -----------------------------------------------------------------------


def test_all_ranks_have_the_library(mpi, library):
    answer = fompirun("--mpi", mpi.name, "-n", 2, "sh", "-c", SHOW)
    assert answer == (0, [str(library)] * 2)


def test_ranks_of_a_second_program_have_it(mpi, library):
    show = ["sh", "-c", SHOW]
    answer = fompirun("--mpi", mpi.name, "-n", 1, *show, ":", "-n", 1, *show)
    assert answer == (0, [str(library)] * 2)


def test_preloaded_profiler_stays_in_front(mpi, library):
    known = subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, text=True).stdout
    other = re.search(r"^\s*libm\.so\.6 .* (\S+)$", known, re.MULTILINE)[1]
    _, lines = fompirun("--mpi", mpi.name, "-n", 1, "sh", "-c", SHOW, LD_PRELOAD=other)
    assert lines == [f"{other}:{library}"]


def test_settings_reach_the_ranks_and_arguments_stay_whole(mpi):
    show = ["sh", "-c", 'echo $FOMPI_VERBOSE "$1"']
    _, lines = fompirun("--mpi", mpi.name, "-n", 1, *show, "x", "a b", FOMPI_VERBOSE="1")
    assert lines == ["1 a b"]


def test_exit_status_is_that_of_the_ranks(mpi):
    assert fompirun("--mpi", mpi.name, "-n", 1, "sh", "-c", "exit 7")[0] == 7


def test_path_is_as_good_as_a_name(mpi, library):
    launcher = shutil.which(f"mpirun.{mpi.name}")
    assert fompirun("--mpi", launcher, "-n", 1, "sh", "-c", SHOW) == (0, [str(library)])


def test_program_with_address_sanitizer(mpi, folder):
    checked = compiled(mpi.name, folder, "-fsanitize=address")
    _, lines = fompirun("--mpi", mpi.name, "-n", 2, checked, ASAN_OPTIONS="detect_leaks=0")
    assert sorted(lines) == ["rank 0 got 1", "rank 1 got 0"]


# --- which launcher -------------------------------------------------------------------------------


def test_first_mpirun_in_path():
    assert launcher_of("-n", 1, "true") == shutil.which("mpirun")


def test_launcher_of_the_program(mpi, program):
    assert Path(launcher_of("-n", 1, program)).resolve() == \
        Path(shutil.which(f"mpirun.{mpi.name}")).resolve()


def test_launcher_of_another_mpi_is_refused(mpi, program):
    refused(f"is linked with libmpi.*: use --mpi {mpi.name}", "--mpi", OTHER[mpi.name], "-n", 1,
            program)


def own_mpich(folder):
    """A folder of an MPI with MPICH's library and a launcher next to it; and a program of it."""
    program = compiled("mpich", folder)
    lines = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True).stdout
    library = re.search(r"libmpi\S* => (\S+)", lines)[1]
    (folder / "own" / "lib").mkdir(parents=True)
    (folder / "own" / "bin").mkdir()
    shutil.copy(library, folder / "own" / "lib")
    script(folder / "own" / "bin" / "mpirun", "echo HYDRA")
    return folder / "own", program


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("first, is_intels, expected", (
    # Those of one family are not all equal.
    ("openmpi", False, "own/bin"), ("mpich", False, "path.mpich"), ("mpich", True, "own/bin")),
    ids=("next-to-the-library", "first-of-the-family", "not-for-Intel-MPI"))
def test_launcher_of_the_family(first, is_intels, expected, folder):
    own, program = own_mpich(folder)
    (library,) = (own / "lib").iterdir()
    if is_intels:
        library.write_bytes(library.read_bytes() + b"Intel(R) MPI Library")
    assert launcher_of("-n", 1, program, LD_LIBRARY_PATH=f"{own}/lib",
                       PATH=path_with(first, folder)) == f"{folder}/{expected}/mpirun"


def prefix(folder, launcher=None, at="lib"):
    """An installation with fompirun, a library, and a launcher of a family that says so."""
    for name in ("bin", at):
        (folder / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(FOMPIRUN, folder / "bin" / "fompirun")
    (folder / at / "libfompi.so").write_text("libfompi version 1.2.3")
    if launcher:
        script(folder / "bin" / "mpirun", f"echo {launcher}")
    return folder


def printed(prefix, *words, **options):
    """The command that the fompirun of an installation prints."""
    status, lines = call(prefix / "bin" / "fompirun", "--print", *words, **options)
    assert status == 0
    return lines[-1]


@pytest.mark.parametrize("at", ("lib", "lib64", f"lib/{os.uname().machine}-linux-gnu", "bin"))
def test_library_of_the_installation(at, folder):
    own = prefix(folder / "own", at=at)
    assert f"{own}/{at}/libfompi.so" in printed(own, "-n", 1, "true")
    _, lines = call(own / "bin" / "fompirun", "--version")
    assert lines[0] == f"libfompi version 1.2.3 ({own}/{at}/libfompi.so)"


def test_launcher_next_to_fompirun_comes_first(folder):
    own, other = prefix(folder / "own", "HYDRA"), script(folder / "other" / "mpirun", "echo HYDRA")
    path = f"{other.parent}:{os.environ['PATH']}"
    assert printed(own, "-n", 1, "true", PATH=path).startswith(f"{own}/bin/mpirun ")


def test_launcher_of_the_program_wins_over_the_one_next_to_fompirun(mpi, program, folder):
    own = prefix(folder / "own", "HYDRA" if mpi.name == "openmpi" else "Open MPI")
    words = printed(own, "-n", 1, program).split()
    assert Path(words[0]).resolve() == Path(shutil.which(f"mpirun.{mpi.name}")).resolve()


@pytest.mark.parametrize("kind", ("python", "script", "env"))
def test_launcher_next_to_the_python(kind, folder):
    venv = folder / "venv" / "bin"
    script(venv / "mpirun", "echo HYDRA")
    (venv / "python3").symlink_to("/usr/bin/python3")
    (folder / "app").write_text(f"#!{venv}/python3 -u\n" if kind == "script" else
                                "#!/usr/bin/env python3\n")
    (folder / "app").chmod(0o755)
    words = [venv / "python3", "app.py"] if kind == "python" else [folder / "app"]
    first = path_with("openmpi", folder).partition(":")[0]
    path = f"{first}:{venv}:{os.environ['PATH']}"
    assert launcher_of("-n", 1, *words, PATH=path) == f"{venv}/mpirun"


def test_launcher_of_the_mpi_that_mpi4py_takes(mpi, folder):
    """A Python that names that MPI, with the launcher of the other one first in PATH."""
    library = {"mpich": "libmpi.so.12.1", "openmpi": "libmpi.so.40.1"}[mpi.name]
    said = json.dumps({"file": "/x/MPI.so", "version": "4.1.2", "library": f"/x/{library}"})
    python = script(folder / "bin" / "python3", f"echo '{said}'")
    path = path_with(OTHER[mpi.name], folder)
    found = Path(launcher_of("-n", 1, python, "app.py", PATH=path))
    assert found.resolve() == Path(shutil.which(f"mpirun.{mpi.name}")).resolve()
    named = launcher_of("--mpi", OTHER[mpi.name], "-n", 1, python, "app.py", PATH=path)
    assert named == shutil.which(f"mpirun.{OTHER[mpi.name]}")


def test_path_decides_for_a_python_of_the_system(folder):
    """Debian's mpi4py is for Open MPI."""
    path = path_with("openmpi", folder)
    launcher = launcher_of("-n", 1, "/usr/bin/python3", "app.py", PATH=path)
    assert launcher == f"{folder}/path.openmpi/mpirun"


def test_launcher_for_a_python_without_mpi4py(folder):
    python = script(folder / "bin" / "python3", "exit 1")
    path = path_with("openmpi", folder)
    assert launcher_of("-n", 1, python, "app.py", PATH=path) == f"{folder}/path.openmpi/mpirun"


# --- what it refuses ------------------------------------------------------------------------------


@pytest.mark.parametrize("words, pattern", (
    ("--mpi nosuch -n 1 true", "in PATH"), ("--mpi /no/mpirun -n 1 true", "no such program"),
    (f"--mpi {shutil.which('true')} -n 1 true", "launcher"), ("--mpi", "needs"),
    ("-n 1", "no program is named"), ("-n 1 ./nosuch", "./nosuch: no such program"),
    ("-n 1 nosuch", "nosuch: no such program in PATH or in this folder"),
    ("-wdir /tmp -n 1 nosuch", "nosuch: no such program in PATH or in /tmp"),
    (f"-n 1 {TOP}", "is a folder"),
    (f"-n 1 {TOP}/examples/put.c", r"is a source: compile it \(mpicc .*/put.c -o .*/put\)"),
    (f"-n 1 {TOP}/README.md", "may not be executed"),
    ("-n 1 --mpi x true", "--mpi is an option of fompirun"),
    ("--pirnt -n 1 true", "--pirnt is an unknown option; did you mean --print[?]"),
    ("--mip=mpich -n 1 true", "--mip is an unknown option; did you mean --mpi[?]")), ids=(
        "MPI", "launcher", "family", "no-name", "no-program", "program", "program-in-PATH",
        "program-in-folder", "folder", "source", "text", "order", "misspelled",
        "misspelled-with-value"))
def test_what_is_refused(words, pattern):
    refused(pattern, *words.split())


@pytest.mark.parametrize("words", ((), ("--print",), ("--mpi", "mpich")), ids=" ".join)
def test_usage_without_a_program(words):
    status, lines = fompirun(*words)
    assert status == 2 and lines[0].startswith("usage: fompirun")


def test_reader_that_has_read_enough():
    ask = "{ $0 --help; echo $? >&2; } | true"
    assert call("bash", "-c", ask, FOMPIRUN) == (0, ["0"])


def test_library_that_is_not_there():
    refused("no such file", "-n", 1, "true", FOMPI_LIB="/no/lib")
    refused("has no version of libfompi", "-n", 1, "true", FOMPI_LIB="/etc/hosts")


def test_mpich_does_not_search_the_folder(folder):
    script(folder / "only-here", "echo ran")
    refused("only-here: no such program in PATH; .* as ./only-here", "--mpi", "mpich", "-n", 1,
            "only-here", cwd=folder)
    shutil.move(compiled("mpich", folder), folder / "linked")
    refused("linked: no such program in PATH; .* as ./linked", "-n", 1, "linked", cwd=folder,
            PATH=path_with("openmpi", folder))


def test_open_mpi_searches_the_folder(folder):
    script(folder / "only-here", "echo ran")
    assert fompirun("--mpi", "openmpi", "-n", 1, "only-here", cwd=folder) == (0, ["ran"])


def test_program_by_its_folder(mpi, folder):
    script(folder / "only-here", "echo ran")
    assert fompirun("--mpi", mpi.name, "-n", 1, "./only-here", cwd=folder) == (0, ["ran"])


@pytest.mark.parametrize("option", ("-configfile", "--app"))
def test_file_that_names_the_programs(option, folder):
    (folder / "programs").write_text("-n 1 true\n")
    assert fompirun("--print", option, folder / "programs")[0] == 0


def test_static_mpi_is_said_once(folder):
    source = folder / "static.c"
    source.write_text("int MPI_Win_create;\nint main(void) { return 0; }\n")
    subprocess.run(["gcc", "-static", "-Wl,--export-dynamic", "-o", folder / "static", source],
                   check=True)
    status, lines = fompirun("-n", 1, folder / "static")
    assert status == 0
    assert sum(bool(re.match(r"fompirun: .* has a static MPI.* \[FOMPI-W041\]", line)) for line in lines) == 1


@pytest.mark.parametrize("words", ((), ("true",)), ids=("with-windows", "without"))
def test_misspelled_variable_is_named_once(words, mpi, folder):
    rank = compiled(mpi.name, folder, text=RANK if words else None)
    status, lines = fompirun("-n", 2, rank, *words, FOMPI_VERBOS="1")
    expected = "fompi: unknown variable FOMPI_VERBOS: did you mean FOMPI_VERBOSE? [FOMPI-W001]"
    assert status == 0 and [line for line in lines if "VERBOS" in line] == [expected]


# --- ranks that are alone -------------------------------------------------------------------------


def alone(lines):
    return sum(bool(re.fullmatch(ALONE, line)) for line in lines)


def test_script_hides_the_program_of_another_mpi(mpi, program):
    """A script shows fompirun no MPI: each rank is alone, and one line says so."""
    other, words = OTHER[mpi.name], ("-n", 2, "sh", "-c", program)
    assert alone(fompirun("--mpi", other, *words)[1]) == 1
    assert alone(fompirun("--mpi", other, *words, FOMPI_FALLBACK="quiet")[1]) == 0
    assert alone(fompirun("--mpi", mpi.name, *words)[1]) == 0


def test_two_programs_are_not_alone(mpi, program):
    assert alone(fompirun("--mpi", mpi.name, "-n", 1, program, ":", "-n", 1, program)[1]) == 0


def test_tool_that_a_rank_of_another_mpi_starts(mpi, program, folder):
    other = OTHER[mpi.name]
    rank = compiled(other, folder, text=RANK)
    _, lines = fompirun("--mpi", other, "-n", 2, rank, f"sh -c {program}")
    assert lines == ["rank 0 got 0"]


def test_script_of_a_slurm_job(library, program):
    _, lines = call(program, LD_PRELOAD=str(library), SLURM_NTASKS="2", SLURM_PROCID="0")
    assert lines == ["rank 0 got 0"]


@pytest.mark.parametrize("rank", (0, 1))
def test_srun_that_does_not_know_the_mpi(rank, library, program):
    _, lines = call(program, LD_PRELOAD=str(library), SLURM_STEP_NUM_TASKS="2",
                    SLURM_PROCID=str(rank))
    assert alone(lines) == 1 - rank


# --- what it says of itself -----------------------------------------------------------------------


def test_version_names_the_launchers(mpi):
    _, lines = fompirun("--mpi", mpi.name, "--version")
    assert sum(bool(re.search(f"mpirun.{mpi.name}: .*[0-9][.][0-9]", line)) for line in lines) == 1


def test_version_of_a_launcher_that_says_more_slowly(folder):
    launcher = script(folder / "mpirun", "echo HYDRA 1.2\nsleep 0.3\necho more\nexec sleep 0")
    status, lines = fompirun("--mpi", launcher, "--version")
    assert (status, lines[-1]) == (0, f"{launcher}: HYDRA 1.2")


@pytest.mark.parametrize("option", ("--version", "--help"))
def test_version_of_the_library(option):
    header = (TOP / "include" / "fompi.h").read_text()
    version = re.search('^#define FOMPI_VERSION "(.*)"', header, re.MULTILINE)[1]
    _, lines = fompirun(option)
    assert sum(line.startswith(f"libfompi version {version} ") for line in lines) == 1


def test_help():
    assert fompirun("--help")[1][0].startswith("usage: fompirun")
