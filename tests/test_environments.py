"""Programs of c-tests in the environments that machines, containers and batch systems give them: in
none of them may the library be worse than the MPI alone. An environment that cannot be made is
skipped, with the system's reason; so is a program that the MPI alone does not pass there either.

usage: /usr/bin/python3 -m pytest -n 2 tests/test_environments.py

With --everything an environment that this machine does not let a test make is made in a virtual
machine (scripts/dev/rdma-vm). Refused process_vm calls are in test_rights.py: there MPICH 4.0 alone
stays in MPI_Finalize now and then.
"""

import contextlib
import os
import subprocess
import xml.etree.ElementTree
from pathlib import Path

import pytest

import control_groups
from conftest import TOP
from control_groups import Refused
from node_runs import program
from program_runs import ProgramRun
from programs import BUILD, OFF_THE_DEVICE

IN_VM = bool(os.environ.get("ENVIRONMENTS_IN_VM"))
# None of these asks for more than both MPIs give: some environments leave the windows to them.
PROGRAMS = (
    "put_get_types", "fence_asserts", "lock_exclusion", "lock_exclusive_counter", "pscw_groups",
    "accumulate_ops", "win_allocate_sizes", "win_allocate_many", "alloc_mem", "alloc_mem_many",
    "created_memory_kinds", "created_disp_units", "dynamic_memory_kinds", "dynamic_linked_list",
    "large_transfer")
# An emulated machine needs many seconds for each of them, and two at once take no less. UCX leaves
# the RDMA device alone that it has: its buffers for it would fill the control group.
VM_PROGRAMS = ("created_memory_kinds", "alloc_mem", "win_allocate_sizes")
VM_SETTINGS = OFF_THE_DEVICE | {"CHECK_TIMES": "4"}
VM_SECONDS = 900  # boot included; minutes on a quiet machine
MIB = 300
PIDS = 400
CONTROLLERS = control_groups.ROOT / "cgroup.controllers"
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
AS_USER = ["env", "HOME=/tmp", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
           "--inh-caps=-all"]


# --- what is put in front of a command to run it in each ------------------------------------------


def cgroup_v1():
    return control_groups.limited(MIB, 1)


def cgroup_v2():
    if IN_VM and not CONTROLLERS.exists():
        subprocess.run(["mount", "-t", "cgroup2", "none", control_groups.ROOT])
    return control_groups.limited(MIB, 2)


def command(*words):
    return contextlib.nullcontext([str(word) for word in words])


def small_shm():
    return command("unshare", "--mount", "sh", "-c",
                   'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$0" "$@"')


@contextlib.contextmanager
def few_pids():
    """Process numbers are used again soon, by all programs in the namespace. The limit is that of a
    namespace since Linux 6.14; before, that of the machine, which gets its own back."""
    limit = Path("/proc/sys/kernel/pid_max")
    before = limit.read_text()
    holder = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
         f"echo {PIDS} >{limit} && echo ready && exec sleep infinity"], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        said = holder.stdout.readline().strip()
        if said != "ready":
            raise Refused(said)
        children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()
        yield ["nsenter", "--target", children[0], "--pid", "--mount"]
    finally:
        holder.kill()
        holder.wait()
        if limit.read_text() != before:
            limit.write_text(before)


def address():
    return command("sh", "-c", 'ulimit -v 3145728 && exec "$0" "$@"')


def descriptors():
    return command("sh", "-c", 'ulimit -n 64 && exec "$0" "$@"')


def user():
    return command(*AS_USER)


def denied(call):
    def enter():
        (BUILD / "deny").parent.mkdir(exist_ok=True)
        deny = BUILD / f"deny.{os.getpid()}"
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-o", deny,
                        TOP / "c-tests" / "robustness" / "deny.c"], check=True)
        deny.rename(BUILD / "deny")
        return command(BUILD / "deny", f"{call}=ENOSYS", "--")
    return enter


@contextlib.contextmanager
def of_machine(settings, prefix=()):
    """With settings of the whole machine, which is a virtual one."""
    before = [(Path(path), Path(path).read_text()) for path, _ in settings]
    for path, value in settings:
        Path(path).write_text(value)
    yield list(prefix)
    for path, value in before:
        path.write_text(value)


def strict_memory():
    return of_machine([("/proc/sys/vm/overcommit_ratio", "90"),
                       ("/proc/sys/vm/overcommit_memory", "2")])


def yama():
    if YAMA.read_text().strip() == "1":
        return user()
    return of_machine([(YAMA, "1")], AS_USER)


ENVIRONMENTS = {
    "cgroup-v1": cgroup_v1, "cgroup-v2": cgroup_v2, "small-shm": small_shm, "few-pids": few_pids,
    "address": address, "descriptors": descriptors, "user": user,
    "no-memfd": denied("memfd_create"), "no-pidfd": denied("pidfd_open"),
    "strict-memory": strict_memory, "yama": yama}


def is_missing(name):
    """Whether this machine does not let a test make an environment."""
    return not IN_VM and {
        "cgroup-v1": not control_groups.OLD.is_dir(),
        "cgroup-v2": not CONTROLLERS.exists() or "memory" not in CONTROLLERS.read_text(),
        "strict-memory": True,
        "yama": not YAMA.exists() or YAMA.read_text().strip() != "1",
    }.get(name, False)


NOT_HERE = [name for name in ENVIRONMENTS if is_missing(name)]

# --- what is run there ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def entered():
    """What is put in front of a command to run it in an environment, which lasts as long as the
    tests of the file; or why it cannot be made."""
    with contextlib.ExitStack() as stack:
        made = {}

        def enter(name):
            if name not in made:
                try:
                    made[name] = stack.enter_context(ENVIRONMENTS[name]()), None
                    answer = subprocess.run([*made[name][0], "true"], text=True,
                                            capture_output=True)
                    if answer.returncode != 0:
                        made[name] = None, (answer.stderr.splitlines() or ["it ends"])[-1]
                except Refused as error:
                    made[name] = None, str(error)
            return made[name]

        yield enter


@pytest.mark.parametrize("environment", [name for name in ENVIRONMENTS if name not in NOT_HERE])
@pytest.mark.parametrize("name", VM_PROGRAMS if IN_VM else PROGRAMS)
def test_program(environment, name, mpi, library, entered):
    inside, why = entered(environment)
    if why:
        pytest.skip(why)
    run = ProgramRun(program(name), mpi, 2, tries=2)
    settings = VM_SETTINGS if IN_VM else {}
    complaint = run.complaint(library, settings, inside)
    if complaint:
        alone = run.complaint(None, settings, inside)
        if alone:
            pytest.skip(f"the MPI alone fails, too: {alone.strip().splitlines()[0]}")
        pytest.fail(f"{run.label}, which the MPI alone passes\n{complaint}", pytrace=False)


@pytest.fixture(scope="module")
def virtual_machine():
    """The tests of the environments that cannot be made here, run in a virtual machine: for each
    id, whether it has passed; or why there is none."""
    results = BUILD / "environments.xml"
    results.unlink(missing_ok=True)
    answer = subprocess.run(
        [TOP / "scripts" / "dev" / "rdma-vm", "run", "--append", "lsm=yama", "--mem", "3G", "--rw",
         BUILD, "--timeout", str(VM_SECONDS), "--", "/usr/bin/python3", "-m", "pytest", __file__,
         "-p", "no:cacheprovider", f"--junitxml={results}", "-k", " or ".join(NOT_HERE)], cwd=TOP,
        env=os.environ | {"ENVIRONMENTS_IN_VM": "1"}, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(answer.stdout)
    if not results.exists() or answer.returncode == 124:
        return None, f"{answer.returncode}: {answer.stdout.splitlines()[-1:]}"
    cases = xml.etree.ElementTree.parse(results).iter("testcase")
    return {case.get("name"): case.find("failure") is None and case.find("error") is None
            for case in cases}, None


@pytest.mark.parametrize("environment", NOT_HERE)
def test_environment_of_a_virtual_machine(environment, everything, request):
    if not everything:
        pytest.skip("it cannot be made here, and in a virtual machine only with --everything")
    found, why = request.getfixturevalue("virtual_machine")
    if why:
        assert not why.startswith("124"), "the virtual machine has not ended in time"
        pytest.skip(f"no virtual machine: {why}")
    of_this = {name: passed for name, passed in found.items() if f"-{environment}-" in f"-{name}-"}
    print(of_this)
    assert of_this and all(of_this.values())
