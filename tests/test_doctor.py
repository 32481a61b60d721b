"""fompi doctor with one thing broken at a time, in namespaces, control groups and by limits: its first
line names that thing.

usage: /usr/bin/python3 -m pytest tests/test_doctor.py
"""

import json
import os
import re
import subprocess

import pytest

import control_groups
import programs
from conftest import C_TESTS

FOMPI = programs.FOMPIRUN.with_name("fompi")
PORT = "/sys/class/infiniband/mlx5_0/ports/1"
CLASSES = "mount -t tmpfs none /sys/class && "
FILES = ("mkdir {0}/dev && mount --rbind /dev {0}/dev && mount -t tmpfs none /dev && touch /dev/null && "
         "mount --bind {0}/dev/null /dev/null && mkdir /dev/shm && mount --rbind {0}/dev/shm /dev/shm && "
         "mkdir /dev/infiniband && touch /dev/infiniband/uverbs0 && ")
DEVICE = f"{CLASSES}mkdir -p {PORT} && echo '4: ACTIVE' >{PORT}/state && "
KERNEL = "mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && "
INTERFACE = ("ip link set lo up && ip link add own0 type veth peer name other0 && "
             "ip link set other0 up && ip address add 10.9.9.1/24 dev own0 && ip link set own0 up && ")
FILTER = ("ip rule add pref 5 to 10.9.9.1 prohibit && ip rule add pref 10 lookup local && "
          "ip rule delete pref 0 && ")
NO_PTRACE = "setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace "
LISTENER = ("python3 -c 'import os, socket, sys; s = socket.create_server((\"\", 7777)); "
            "s.set_inheritable(True); os.execv(sys.argv[1], sys.argv[1:])' ")

# What breaks it: words in front of the command, or a script that ends with the command, whether that
# has a network namespace of its own; settings; and the beginning of the first line.
SCRIPTS = {
    "Yama": (KERNEL + "echo 2 >/proc/sys/kernel/yama/ptrace_scope && " + NO_PTRACE, False, {},
             r"warning: Yama: kernel.yama.ptrace_scope is 2"),
    "device-file": (DEVICE, False, {}, r"warning: /dev/infiniband: mlx5_0: "),
    "GID": (f"{DEVICE}echo Ethernet >{PORT}/link_layer && mkdir {PORT}/gids && "
            f"echo 0000:0000:0000:0000:0000:0000:0000:0000 >{PORT}/gids/0 && ", False, {},
            r"warning: GID: mlx5_0:1 is active, and its GID table is empty"),
    "memlock": (FILES + DEVICE + "prlimit --memlock=65536 ", False, {},
                r"warning: ulimit -l: a process may lock 64 KiB"),
    "Slingshot": (CLASSES + "mkdir -p /sys/class/cxi/cxi0 && ", False, {},
                  r"warning: network: the host MPI may use Slingshot"),
    "shm": ("mount -t tmpfs -o size=1M none /dev/shm && ", False, {}, r"warning: /dev/shm: 1 MiB are free"),
    "no-proc": ("mount -t tmpfs none /proc && ", False, {"FOMPI_LIB": ""}, r"error: /proc: /proc is not mounted"),
    "GPU": ("mount -t tmpfs none /proc/driver && mkdir /proc/driver/nvidia && "
            "echo 550 >/proc/driver/nvidia/version && ", False, {}, r"note: GPU: "),
    "loopback": ("ip link set lo up && ", True, {}, r"note: network: no interface but loopback"),
    "port": (INTERFACE + LISTENER, True, {"FOMPI_NET_PORTS": "7777-7777"},
             r"error: ports: cannot listen on the ports 7777 to 7777 \(FOMPI_NET_PORTS\) of own0"),
    "firewall": (INTERFACE + FILTER, True, {},
                 r"error: firewall: no connection to 10\.9\.9\.1:[0-9]+ of this node's own own0"),
}
WORDS = {
    "files": (["prlimit", "--nofile=64"], {}, r"warning: ulimit -n: a process may open 64 files"),
    "address-space": (["prlimit", "--as=8589934592"], {}, r"warning: ulimit -v: .* 8192 MiB"),
    "proc": (["unshare", "--pid", "--fork"], {}, r"error: /proc: /proc is that of another PID namespace"),
    "interface": ([], {"FOMPI_NET_INTERFACE": "nope0"},
                  r"error: FOMPI_NET_INTERFACE: no interface nope0 with an address"),
    "variable": ([], {"FOMPI_VERBOS": "1"}, r"error: variable: .*FOMPI_VERBOS\b"),
    "library": ([], {"FOMPI_LIB": "/nowhere/libfompi.so"},
                r"error: libfompi.so: FOMPI_LIB=/nowhere/libfompi.so: no such file"),
    "other-file": ([], {"FOMPI_LIB": str(C_TESTS / "robustness" / "deny.c")},
                   r"error: libfompi.so: FOMPI_LIB=.*/deny.c: the file has no version of libfompi"),
    "disabled": ([], {"FOMPI_DISABLE": "1"},
                 r"error: variable: FOMPI_DISABLE=1 \(from environment\): the host MPI serves all windows"),
    "launcher": ([], {"PATH": "/nowhere"}, r"note: launcher: no mpirun or mpiexec is in PATH or next to fompirun"),
    "file-size": (["prlimit", "--fsize=4096"], {}, r"warning: ulimit -f: .* 4096 bytes"),
}
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces of root")


def environment(settings):
    """The environment with these settings of the library only."""
    values = {name: value for name, value in os.environ.items() if not name.startswith("FOMPI_")}
    return values | {"FOMPI_LIB": programs.default_library()} | settings


def doctor(*before, after=(), **settings):
    """The status and the lines of fompi doctor."""
    answer = subprocess.run([*before, FOMPI, "doctor", *after], env=environment(settings), capture_output=True,
                            text=True, timeout=60)
    # A launcher reports the status of its ranks.
    is_job = any("mpirun" in str(word) for word in before)
    assert answer.stderr == "" or is_job, answer.stderr
    return answer.returncode, answer.stdout.splitlines()


def check(first, status, lines):
    assert re.match(first, lines[0]), lines
    assert status == (0 if first.startswith("note") else 1)
    assert re.fullmatch(r"    remedy: .+", lines[1])
    assert re.fullmatch(r"    see: docs/[a-z/-]+\.md(#[a-z-]+)?", lines[2])


@needs_root
@pytest.mark.parametrize("name", SCRIPTS)
def test_first_line_names_what_a_namespace_lacks(name, folder):
    script, has_network, settings, first = SCRIPTS[name]
    namespaces = ["unshare", "--mount", *(["--net"] if has_network else [])]
    shell = ["sh", "-c", f'{script.replace("{0}", str(folder))}"$0" "$@"']
    check(first, *doctor(*namespaces, *shell, **settings))


@needs_root
def test_info_and_doctor_name_the_same_interface_of_a_fast_network():
    script = CLASSES + "mkdir -p /sys/class/cxi/cxi0 && ip link set lo up && " + "".join(
        f"ip link add {name} type bridge && ip link set {name} up && "
        f"ip address add 10.9.{number}.1/24 dev {name} && "
        for number, name in enumerate(("eth0", "hsn0")))
    inside = ["unshare", "--mount", "--net", "sh", "-c", f'{script}"$0" "$@"']
    status, lines = doctor(*inside)
    at = next(at for at, line in enumerate(lines) if line.startswith("warning: network: "))
    problem, remedy = lines[at].removeprefix("warning: network: "), lines[at + 1].removeprefix("    remedy: ")
    assert (status, remedy) == (1, "FOMPI_NET=tcp FOMPI_NET_INTERFACE=hsn0 selects TCP")
    said = subprocess.run([*inside, FOMPI, "info"], env=environment({}), capture_output=True, text=True, timeout=60)
    assert f"host MPI (why not: {problem}; {remedy})" in said.stdout


@pytest.mark.parametrize("name", WORDS)
def test_first_line_names_what_is_wrong(name):
    before, settings, first = WORDS[name]
    if "unshare" in before and os.geteuid() != 0:
        before = [*before, "--map-root-user"]
    check(first, *doctor(*before, **settings))


def test_a_library_that_the_loader_refuses_is_named(folder):
    (folder / "libfompi.so").write_text("libfompi version 1.2.3")
    first = r"error: libfompi.so: the loader refuses"
    check(first, *doctor(FOMPI_LIB=str(folder / "libfompi.so")))


def test_a_preloaded_library_that_is_not_there_is_named():
    """The loader names it, too."""
    answer = subprocess.run([FOMPI, "doctor"], env=environment({"LD_PRELOAD": "/nowhere/libfompi.so"}),
                            capture_output=True, text=True, timeout=60)
    check(r"error: LD_PRELOAD: /nowhere/libfompi.so: no such file", answer.returncode, answer.stdout.splitlines())


@pytest.mark.parametrize("subcommand", ("info", "doctor"))
def test_the_launcher_of_the_job_is_that_which_has_started_it(subcommand, folder):
    """The program has another MPI than the launcher, although fompirun would choose the right one."""
    program = folder / "app"
    subprocess.run(["mpicc.openmpi", "-o", program, C_TESTS / "installed" / "app.c"], check=True)
    said = subprocess.run(["mpirun.mpich", "-n", "2", FOMPI, subcommand, program], env=environment({}),
                          capture_output=True, text=True, timeout=60).stdout
    start = {"info": "this job: its ranks cannot be asked: ", "doctor": "error: program: "}[subcommand]
    why = "each rank will be alone: the program has the Open MPI ABI, the launcher the MPICH ABI"
    assert f"{start}{why}" in said.splitlines()


@pytest.fixture
def deny(folder):
    """A program that starts another one without a system call."""
    subprocess.run(["gcc", "-O2", "-o", folder / "deny", C_TESTS / "robustness" / "deny.c"], check=True)
    return folder / "deny"


@pytest.mark.parametrize("refused, first", [
    ("memfd_create", r"error: seccomp: the system call memfd_create fails here"),
    ("process_vm_readv", r"warning: seccomp: the system call process_vm_readv fails here"),
])
def test_first_line_names_a_call_that_seccomp_refuses(deny, refused, first):
    check(first, *doctor(deny, f"{refused}=EPERM", "--"))


@needs_root
def test_first_line_names_a_control_group_with_little_memory():
    try:
        with control_groups.limited(64, 1 if control_groups.OLD.is_dir() else 2) as inside:
            check(r"warning: control group: .* 64 MiB of memory", *doctor(*inside))
    except control_groups.Refused as error:
        pytest.skip(str(error))


def test_a_program_that_is_not_there_is_named():
    check(r"error: program: ./nowhere: no such program", *doctor(after=["./nowhere"]))


@pytest.mark.parametrize("launcher", ("mpirun.mpich", "mpirun.openmpi"))
def test_ranks_of_a_node_are_one_finding(launcher):
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    status, lines = doctor(launcher, "-n", "2", "prlimit", "--nofile=64", **root)
    assert status == 1
    assert re.match("warning: ulimit -n: a process may open 64 files", lines[0]), lines
    assert f"1 finding on {os.uname().nodename}" in lines or any("findings on" in line for line in lines)
    assert sum(line.startswith("warning: ulimit -n") for line in lines) == 1


def test_json_has_the_same_findings():
    _, lines = doctor("prlimit", "--nofile=64")
    _, text = doctor("prlimit", "--nofile=64", after=["--json"])
    findings = json.loads("\n".join(text))["findings"]
    assert [f"{one['severity']}: {one['check']}: {one['problem']}" for one in findings] == lines[:-1:3]
