"""The unit tests and the tests of jobs under bad conditions that depend on a process's rights or
descriptors, as an ordinary user with 1,024 of these, the limit of most systems. Only root can run
them so; the stages `unit` and `robust` of an ordinary user are already this test.

usage: /usr/bin/python3 -m pytest tests/test_ordinary_user.py

The jobs are those of the last MPI, whose ranks yield; with --everything of all.
"""

import os
import shutil
import subprocess
import tempfile
import textwrap
from pathlib import Path

import pytest

from conftest import mpis
from programs import unit_programs

TOP = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target"))
USER = 65534
DESCRIPTORS = 1024
# Cases that depend on rights: to copy another process's memory, to open its files, to make
# namespaces and setgid programs, to move pages. And those that use up descriptors.
FILES = ("tests/test_lost_ranks.py", "tests/test_rights.py", "tests/test_robust.py")
CASES = "test_rights or killed_rank_is_named or killed_rank_ends or children or move"
# Crates and modules whose unit tests make no system call; they take most of the time of all.
OF_NO_RIGHTS = ("fompi-datatype", "fompi-epoch")
MODULES_OF_NO_RIGHTS = ("transfer::",)
# Of a machine on which other jobs run.
SECONDS_MAX = 1800


def as_user(command, folder, home):
    """Runs a command in a folder as the user; `home` is where he may write."""
    limits = ["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}"]
    rights = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--inh-caps=-all"]
    settings = {"HOME": str(home), "TMPDIR": str(home)}
    return subprocess.run(
        [*limits, *rights, *command],
        cwd=folder,
        env=os.environ | settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=SECONDS_MAX,
    )


@pytest.fixture(scope="module")
def home():
    """A folder of the user, under a path that he may search."""
    if os.geteuid() != 0:
        pytest.skip("the stages unit and robust have run as an ordinary user")
    folder = Path(tempfile.mkdtemp(prefix="ordinary-user-", dir="/tmp"))
    try:
        os.chown(folder, USER, USER)
        answer = as_user(["true"], "/", folder)
        if answer.returncode != 0:
            pytest.skip(f"root cannot become another user: {answer.stdout.strip()}")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def checkout(home):
    """A copy of the sources that belongs to the user, and the library, where he may read it."""
    copy = home / "checkout"
    built = shutil.ignore_patterns(".git", "target", "build")
    shutil.copytree(TOP, copy, symlinks=True, ignore=built)
    (copy / "target/release").mkdir(parents=True)
    library = os.environ.get("FOMPI_LIB", TARGET / "release/libfompi.so")
    shutil.copy(library, copy / "target/release/libfompi.so")
    subprocess.run(["chown", "-R", f"{USER}:{USER}", copy], check=True)
    return copy


def unit_tests():
    """The programs of the unit tests that depend on rights; cargo builds them only if the stage `unit` has
    not."""
    command = ["cargo", "test", "--workspace", "--lib", "--no-run", "--message-format=json"]
    built = subprocess.run(command, cwd=TOP, stdout=subprocess.PIPE, text=True, check=True)
    found = unit_programs(built.stdout)
    assert set(OF_NO_RIGHTS) < set(found)
    return [program for crate, program in found.items() if crate not in OF_NO_RIGHTS]


def test_the_unit_tests_pass(home):
    # They read the sources at the path that they were built at.
    readable = as_user(["test", "-r", TOP / "Cargo.toml"], "/", home)
    if readable.returncode != 0:
        pytest.skip(f"user {USER} may not read {TOP}")
    skipped = [word for part in MODULES_OF_NO_RIGHTS for word in ("--skip", part)]
    for built in unit_tests():
        program = shutil.copy(built, home / "unit-tests")
        answer = as_user([program, *skipped], TOP, home)
        assert answer.returncode == 0, answer.stdout[answer.stdout.rfind("\nfailures:\n") :]


def test_programs_under_bad_conditions_pass(checkout, home, everything, pytestconfig):
    own = ["env", "-u", "FOMPI_LIB", "-u", "CARGO_TARGET_DIR"]
    command = [*own, "/usr/bin/python3", "-m", "pytest", *FILES, "-k", CASES]
    if not everything:
        first = mpis(pytestconfig)[-1]
        command += ["--mpi", first.prefix or first.name]
    # Most wait most of the time.
    for more in (["-n", "8", "-m", "waits"], ["-n", "2", "-m", "not waits and not alone"]):
        answer = as_user([*command, *more], checkout, home)
        print(textwrap.indent(answer.stdout, "    "))
        assert answer.returncode == 0
        assert " passed" in answer.stdout.splitlines()[-1]
