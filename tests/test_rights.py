"""Ranks that may not do what ranks of one user on one machine may: they may not copy each other's
memory, are in containers of their own, have no descriptors left, or more rights than their user.

usage: /usr/bin/python3 -m pytest tests/test_rights.py
"""

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import programs
from conftest import C_TESTS, DIED, built, errors, settings_of

SHARED = ".* shared memory"
TCP = "transport: TCP .*, because its processes may not"
# In the windows that Open MPI 4.1.4 makes by default it tries for ever where nothing may be copied.
DELEGATED = {"OMPI_MCA_osc": "pt2pt", "FOMPI_ADOPT": "never"}


# --- memory that may not be copied ----------------------------------------------------------------


@pytest.fixture
def denied(build, run):
    """Runs ranks that are refused process_vm calls; they must end with status 0."""
    def run_job(ranks, words, code=0, **settings):
        job = run(ranks, build("robustness/denied.c"), *words.split(), env=DELEGATED | settings,
                  seconds=100)
        assert job.code == code
        return job
    return run_job


@pytest.mark.waits
@pytest.mark.parametrize("who", ("-1", "0", "1 writev"))
def test_windows_without_copies_go_over_tcp(who, denied):
    job = denied(3, f"delegated {who}", FOMPI_NET="auto", FOMPI_VERBOSE=1, FOMPI_FALLBACK="error")
    assert job.said(f"MPI_Win_create: 3 ranks, .*{TCP}") == 10
    assert job.said(f"MPI_Win_create_dynamic: 3 ranks, .*{TCP}") == 10
    assert job.said(f"MPI_Win_create: 3 ranks, {SHARED}") == 10
    assert job.said("delegated") == job.said("adopted") == 0


@pytest.mark.waits
def test_new_communicator_takes_tcp(denied):
    job = denied(2, "late", FOMPI_NET="auto", FOMPI_VERBOSE=1, FOMPI_FALLBACK="error")
    assert job.said(f"MPI_Win_create: 2 ranks, .*{TCP}") == 1


@pytest.mark.waits
@pytest.mark.parametrize("who", ("-1", "0", "1", "0 readv", "1 writev"))
def test_delegation_is_said_once(who, denied):
    job = denied(3, f"delegated {who}", FOMPI_NET="off", FOMPI_FALLBACK="warn")
    assert job.said() == 1
    assert job.said("delegated .* may not copy each other's memory") == 1


@pytest.mark.waits
def test_only_windows_that_need_copies_are_delegated(denied):
    job = denied(2, "delegated 1", FOMPI_NET="off", FOMPI_VERBOSE=1, FOMPI_FALLBACK="warn")
    assert job.said("MPI_Win_create: delegated") == 10
    assert job.said("MPI_Win_create_dynamic: delegated") == 10
    assert job.said(f"MPI_Win_create: 2 ranks, {SHARED}") == 10
    assert job.said("MPI_Win_allocate: 2 ranks") == 10


@pytest.mark.waits
@pytest.mark.parametrize("words", ("refused 1", "refused"))
def test_windows_are_refused_with_fallback_error(words, denied):
    denied(3, words, FOMPI_NET="off", FOMPI_FALLBACK="error")


@pytest.mark.waits
def test_refusal_of_one_rank_is_no_delegation(denied):
    assert denied(3, "differing", FOMPI_NET="off").said() == 0


@pytest.mark.waits
def test_new_communicator_asks_anew(denied):
    denied(3, "late", FOMPI_NET="off", FOMPI_FALLBACK="warn")
    job = denied(2, "late 1", FOMPI_NET="off", FOMPI_FALLBACK="warn")
    assert job.said("MPI_Win_create: delegated") == 1


@pytest.mark.waits
def test_access_that_is_forbidden_later(build, run):
    job = run(3, build("robustness/denied.c"), "fatal", 1, env=DELEGATED | {"FOMPI_NET": "off"},
              seconds=60)
    assert job.code not in (0, -1)
    assert job.said("MPI_Win_flush: process_vm_writev: permission denied for rank 2") == 1


# --- containers -----------------------------------------------------------------------------------

# With users of their own; and with processes, too. A process that is the first of its namespace
# ignores its own signals.
AS_USERS = "unshare --user --map-current-user"
FIRST = """sh -c '"$0" "$@"; exit $?'"""
CONTAINERS = {"users": AS_USERS, "processes": f"{AS_USERS} --pid --fork --kill-child {FIRST}",
              "proc": f"{AS_USERS} --pid --fork --kill-child --mount-proc {FIRST}"}
# The shares of the launchers and MPIs in what the namespaces take away: UCX opens shared memory by
# /proc; Open MPI 4 copies it by process_vm.
CONTAINED = {"UCX_POSIX_USE_PROC_LINK": "n", "OMPI_MCA_btl": "tcp,self", "OMPI_MCA_pml": "ob1",
             "FOMPI_FALLBACK": "error", "FOMPI_VERBOSE": 1, "FOMPI_ADOPT": "never"}


# Alone, Open MPI 4 ends by a signal in namespaces of processes.
in_containers = pytest.mark.left_out(lambda params: params["mpi"].name == "openmpi"
                                     and params["contained"] != "users")


def in_container(how, program, folder):
    """A command that runs a program in a container of its own."""
    path = folder / program.name
    path.write_text(f'#!/bin/sh\nexec {CONTAINERS[how]} {program} "$@"\n')
    path.chmod(0o755)
    return path


@functools.cache
def refusal(mpi, how):
    """Why the MPI alone carries no messages between such containers, or nothing."""
    answer = subprocess.run([*AS_USERS.split(), "true"], capture_output=True, text=True)
    if answer.returncode != 0:
        return answer.stderr.splitlines()[0]
    with tempfile.TemporaryDirectory() as folder:
        program = in_container(how, built(mpi, "robustness/containers.c"), Path(folder))
        command = mpi.command(4, [], [str(program), "messages"])
        code, said = programs.run(command, settings_of(mpi, CONTAINED), 60)
    return code and f"the MPI alone carries no messages (status {code}): {said[:80]}"


@pytest.fixture(params=CONTAINERS)
def contained(request, mpi, folder):
    """Makes of a program a command that runs it in a container of its own."""
    why = refusal(mpi, request.param)
    if why:
        pytest.skip(why)
    return lambda program: in_container(request.param, program, folder)


@in_containers
@pytest.mark.waits
def test_windows_of_containers(contained, build, passes):
    job = passes(4, contained(build("robustness/containers.c")), env=CONTAINED)
    assert job.said(f"MPI_Win_allocate: 4 ranks, {SHARED}") == 7
    assert job.said(f"MPI_Win_allocate_shared: 4 ranks, {SHARED}") == 3
    assert job.said(f"MPI_Win_create: 4 ranks, {SHARED}") == 43
    assert job.said(f"MPI_Win_create: [24] ranks, .*{TCP}") == 11
    assert job.said(f"MPI_Win_create_dynamic: 4 ranks, .*{TCP}") == 3
    assert job.said("delegated") == job.said("adopted") == 0


@in_containers
@pytest.mark.waits
def test_pages_that_move_in_containers(contained, build, passes):
    job = passes(2, contained(build("robustness/containers.c")),
                 env=CONTAINED | {"FOMPI_ADOPT": "auto"})
    assert job.said("delegated") == 0


@in_containers
@pytest.mark.waits
@pytest.mark.parametrize("mode", ("lock", "fence", "create", "dynamic"))
def test_killed_rank_in_a_container(mode, contained, build, said_by_survivors):
    lines, _ = said_by_survivors(contained(build("robustness/killed.c")), mode, Path, env=CONTAINED)
    assert errors(lines, DIED) == 2


@in_containers
@pytest.mark.waits
def test_rank_in_a_container_that_is_killed_in_puts(contained, build, said_by_survivors):
    lines, _ = said_by_survivors(contained(build("robustness/killed.c")), "puts", Path,
                                 env=CONTAINED)
    assert errors(lines, r"rank 2 \(process [0-9]+ .*") == 2


@in_containers
@pytest.mark.waits
def test_strangers_at_the_sockets_of_containers(contained, build, passes):
    """Strangers get nothing, and hurt nobody."""
    program = build("robustness/containers.c")
    values = {name: value for name, value in os.environ.items() if not name.startswith("FOMPI_")}
    strangers = programs.Run([program, "strangers", "6"], values)
    passes(3, contained(program), env=CONTAINED)
    code, said = strangers.wait(60)
    assert code == 0, said


# --- descriptors ----------------------------------------------------------------------------------

NO_DESCRIPTORS = DELEGATED | {"FOMPI_FALLBACK": "warn", "FOMPI_VERBOSE": 1}


@pytest.mark.parametrize("who", (-1, 0, 2))
def test_windows_without_descriptors_are_delegated(who, build, passes):
    """No descriptors left when a window is made: on all ranks, or on one."""
    job = passes(3, build("robustness/descriptors.c"), who, env=NO_DESCRIPTORS)
    assert job.said("MPI_Win_create: delegated .*: one of its processes has no file descriptor "
                    "left") == 4
    assert job.said(f"MPI_Win_allocate: {SHARED}") == 1
    assert job.said("MPI_Win_create: .* process_vm") == 33


@pytest.mark.parametrize("flavor", ("allocated", "created"))
def test_many_windows_with_few_descriptors(flavor, build, passes):
    job = passes(8, "sh", "-c", 'ulimit -n 64; exec "$0" "$@"', build("robustness/many.c"), "alive",
                 60, flavor, env=NO_DESCRIPTORS)
    assert job.said("delegated") == 0
    assert job.said(".*transport:") == 180


# --- more rights than the user has ----------------------------------------------------------------


@pytest.fixture
def other_group(folder):
    """A group that a program may be given."""
    groups = [65534] if os.geteuid() == 0 else set(os.getgroups()) - {os.getgid()}
    mount = subprocess.run(["findmnt", "-no", "OPTIONS", "-T", folder], text=True,
                           stdout=subprocess.PIPE)
    if not groups or "nosuid" in mount.stdout.strip().split(","):
        pytest.skip(f"no other group, or no setgid programs in {folder}")
    return list(groups)[0]


# Open MPI starts no such programs.
@pytest.mark.left_out(lambda params: params["mpi"].name == "openmpi")
@pytest.mark.parametrize("privileged", (False, True), ids=("ordinary", "privileged"))
def test_library_of_a_variable(privileged, mpi, library, run_plain, folder, other_group):
    """A program with more rights than the user that starts it loads no library that an environment
    variable names; others do."""
    loaded, chosen, program = folder / "loaded", folder / "chosen.so", folder / "program"
    (folder / "libfompi.so").symlink_to(library)
    source = folder / "chosen.c"
    source.write_text("#include <fcntl.h>\n__attribute__((constructor)) static void f(void) "
                      f'{{ creat("{loaded}", 0600); }}\n')
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", chosen, source], check=True)
    subprocess.run([mpi.cc, "-O2", "-o", program, C_TESTS / "robustness" / "settings.c",
                    f"-L{folder}", "-lfompi", f"-Wl,-rpath,{folder}"], check=True)
    if privileged:
        shutil.chown(program, group=other_group)
        program.chmod(0o2755)
    job = run_plain(2, program, env={"FOMPI_RANKS_PER_NODE": 1, "FOMPI_FALLBACK": "quiet",
                                     "FOMPI_VERBS_LIBRARY": chosen})
    assert job.code == 0
    assert loaded.exists() is not privileged
    assert not privileged or job.said("FOMPI_VERBS_LIBRARY is ignored") == 1
