"""Simulated nodes (scripts/dev/cluster), which have a network between them but no RDMA device. Each
MPI takes them for nodes. Windows go over TCP: in programs about nodes, in Fortran, C++ and Python,
on two nodes, on three, and on four, with one rank or several on a node. Where no device is wanted
the host MPI carries them out, a line says so, and they work. Connections are delayed and cut, by a
proxy and by a link that goes down.

usage: /usr/bin/python3 -m pytest -n 2 tests/test_cluster.py

With --everything all programs of c-tests and fortran-tests.
"""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from conftest import C_TESTS, TOP, Job, built, mpis, settings_of
from node_runs import ABOUT_NODES, OTHER_LANGUAGES, all_programs, by_name, runs
from programs import CLUSTER, FOMPIRUN, default_library

DELEGATED = ("fence_asserts", "lock_exclusive_counter", "win_dynamic", "nodes_traffic")
OVER_TCP = "transport: TCP between nodes"
APART = "delegated .*a node does not reach another one"
SPARE = {"FOMPI_NET_INTERFACE": "spare0"}
TO_SPARE = "10.78.0.0/24"
# The status of endless traffic in which nothing failed.
DONE = 3


@pytest.fixture
def nodes(cluster):
    """Two nodes, and what is done on them."""
    cluster(2)
    return subprocess_on_nodes


def subprocess_on_nodes(node, *words):
    subprocess.run([CLUSTER, "exec", node, "--", *words], check=True, stdin=subprocess.DEVNULL)


def on_all(command):
    """Runs a command of a shell on both nodes: K is the number of a node from 1 on, and O that of
    the other one."""
    for k in (1, 2):
        subprocess_on_nodes(f"node{k - 1}", "sh", "-c", f"K={k}; O={3 - k}\n{command}")


@pytest.fixture
def job(mpi, library, nodes):
    """Runs a command in ranks on two nodes, or until a condition of the job holds."""
    def run_job(*words, ranks=2, options=(), preload=True, until=None, **settings):
        job = run_on_nodes(mpi, library if preload else None, ranks, words, options, settings)
        if until:
            job.wait_until(lambda: until(job))
            job.run.end()
        return job.wait(120)
    return run_job


def run_on_nodes(mpi, library, ranks, words, options=(), settings=()):
    values = dict(settings) | ({"LD_PRELOAD": library} if library else {})
    command = [CLUSTER, "mpirun", "--timeout", 100, "--mpi", mpi.prefix or mpi.name,
               "-n", ranks, *options]
    for name, value in values.items():
        command += ["-x", f"{name}={value}"]
    return Job([str(word) for word in [*command, "--", *words]], settings_of(mpi, {}))


def is_silent(job):
    """Open MPI's launcher says now and then that a child is faster than it."""
    return re.sub(r".*plm:rsh: Warning: setpgid.*\n", "", job.output) == ""


def program(mpi, name):
    return built(mpi, next(C_TESTS.glob(f"*/{name}.c")))


# --- what the nodes are ---------------------------------------------------------------------------


def test_nodes_are_as_they_should(nodes):
    said = subprocess.run([CLUSTER, "check"], stdout=subprocess.PIPE, text=True).stdout.splitlines()
    assert said != [] and [line for line in said if not line.startswith("ok ")] == []


@pytest.mark.parametrize("options", ((), ("--cyclic",)), ids=("blocks", "cyclic"))
def test_topology(options, mpi, job):
    done = job(program(mpi, "topology"), 2, ranks=4, options=options, preload=False)
    assert done.code == 0 and is_silent(done)


def test_nodes_with_own_processors(mpi, job):
    done = job("sh", "-c", "echo runs on $(taskset -pc $$ | sed 's/.*: //')", ranks=4,
               options=("--own-processors",), preload=False)
    used = re.findall(r"runs on (.*)", done.output)
    processors = len(os.sched_getaffinity(0))
    assert done.code == 0 and len(used) == 4
    assert len(set(used)) == (2 if processors >= 2 else 1)
    assert sorted(used.count(line) for line in set(used)) == ([2, 2] if processors >= 2 else [4])


@pytest.mark.parametrize("name", ("win_group", *DELEGATED))
def test_windows_that_are_delegated(name, mpi, job):
    done = job(program(mpi, name), ranks=4, FOMPI_FALLBACK="quiet", FOMPI_NET="off")
    assert done.code == 0 and is_silent(done)


@pytest.mark.parametrize("settings, line", (
    ({"FOMPI_VERBOSE": 1}, OVER_TCP), ({"FOMPI_NET": "off"}, "delegated .*and FOMPI_NET=off")),
    ids=("tcp", "off"))
def test_transport_is_said(settings, line, mpi, job):
    assert job(program(mpi, "win_group"), **settings).said(line) > 0


ONLY_NODE_1 = """[ "$(uname -n)" = node0 ] && exec "$1"
mkdir -p /tmp/net && mount --bind /sys/class/net /tmp/net &&
mount -t tmpfs none /sys/class && mkdir -p "/sys/class/$0" /sys/class/net &&
mount --bind /tmp/net /sys/class/net &&
case $0 in */ports/*) echo 4: ACTIVE >"/sys/class/$0/state" ;; esac; exec "$1"
"""


@pytest.mark.parametrize("device, name", (("infiniband/mlx5_0/ports/1", "infiniband"),
                                          ("infiniband/efa_0", "infiniband"), ("cxi/cxi0", "cxi")))
def test_fast_network_of_one_node(device, name, mpi, job):
    """It leaves windows to the host MPI."""
    done = job("unshare", "--mount", "sh", "-c", ONLY_NODE_1, device, program(mpi, "win_group"))
    line = (f"delegated .* that of rank [01] has .*{name}.*; "
            "FOMPI_NET=tcp FOMPI_NET_INTERFACE=eth0 selects TCP")
    assert done.said(line) > 0


def test_net_tcp_wins_over_a_fast_network(mpi, job):
    done = job("unshare", "--mount", "sh", "-c", ONLY_NODE_1, "cxi/cxi0", program(mpi, "win_group"),
               FOMPI_NET="tcp", FOMPI_VERBOSE=1)
    assert done.said(OVER_TCP) > 0


# --- addresses and ports --------------------------------------------------------------------------


@pytest.fixture
def spare_interface(nodes):
    """An interface of each node with an address for which nothing answers."""
    on_all(f"""ip link add spare0 type bridge; ip link set spare0 up
        ip addr add 10.78.0.$K/32 dev spare0; ip route add {TO_SPARE} via 10.77.0.254""")
    nodes("head", "ip", "route", "add", "blackhole", TO_SPARE)
    yield
    on_all(f"""exec 2>/dev/null
        ip addr del "fd77::$K/64" dev eth0; ip link del spare0; ip route del {TO_SPARE}
        for d in all default eth0; do echo 1 >/proc/sys/net/ipv6/conf/$d/disable_ipv6; done""")
    nodes("head", "sh", "-c",
          f"ip route del blackhole {TO_SPARE} || ip route del unreachable {TO_SPARE}")


def test_addresses(mpi, job, nodes, spare_interface):
    """Several of a node, or ones that lead nowhere; IPv6 alone."""
    settings = program(mpi, "settings")
    assert job(settings, **SPARE).said(APART) > 0  # no answer
    nodes("head", "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward; "
          f"ip route replace unreachable {TO_SPARE}; ip route del blackhole {TO_SPARE}; true")
    assert job(settings, **SPARE).said(APART) > 0
    done = job(settings, FOMPI_VERBOSE=1)  # one of two answers
    assert done.said(f"{OVER_TCP} by eth0, 10[.]77[.]0[.]1") > 0
    on_all("""for d in all default eth0 spare0; do
            echo 0 >/proc/sys/net/ipv6/conf/$d/disable_ipv6
        done
        ip addr flush dev spare0; ip addr add "fd77::$K/64" dev eth0 nodad
        ip addr add "fd78::$K/128" dev spare0 nodad; ip route add "fd78::$O/128" via "fd77::$O" """)
    assert job(settings, **SPARE, FOMPI_VERBOSE=1).said(f"{OVER_TCP} by eth0, fd77::1") > 0


def test_too_few_ports(mpi, job):
    done = job(program(mpi, "settings"), ranks=4, FOMPI_NET_PORTS="7000-7000")
    assert done.said("delegated .*a process cannot listen for others") > 0


def test_ports_enough(mpi, job):
    done = job(program(mpi, "settings"), ranks=4, FOMPI_NET_PORTS="7000-7001", FOMPI_VERBOSE=1)
    assert done.said(f"MPI_Win_create: 4 ranks, .* {OVER_TCP} by") > 0


# --- fompi info and fompi doctor ------------------------------------------------------------------

FOMPI = FOMPIRUN.with_name("fompi")
# On the nodes the library is that of the sources, whatever FOMPI_LIB says to this test.
OWN_LIBRARY = {"FOMPI_LIB": default_library()}


def asked(job):
    """What fompi says as JSON, and its other lines."""
    start, end = job.output.index("\n{\n" if not job.output.startswith("{") else "{"), job.output.rindex("}")
    return json.loads(job.output[start:end + 1])


@pytest.mark.parametrize("settings, transport, why_not", (
    ({}, r"TCP between nodes by eth0, 10\.77\.0\.1", None),
    ({"FOMPI_NET": "off"}, "host MPI", r".*FOMPI_NET=off \[FOMPI-W026\]"),
    (SPARE, "host MPI", r".*does not reach another one over the network \[FOMPI-W028\]")),
    ids=("tcp", "off", "apart"))
def test_info_of_a_job(settings, transport, why_not, mpi, job, spare_interface):
    done = job(FOMPI, "info", "--json", ranks=4, preload=False, **OWN_LIBRARY, **settings)
    assert done.code == 0
    said = asked(done)["job"]
    assert (said["why_not"], said["ranks"]) == (None, 4)
    assert [(one["name"], one["ranks"]) for one in said["nodes"]] == [("node0", [0, 1]), ("node1", [2, 3])]
    near = {one["call"]: one["transport"] for node in said["nodes"] for one in node["windows"]}
    assert near["MPI_Win_allocate"] == "shared memory"
    assert near["MPI_Win_create"] in ("shared memory", "process_vm")
    assert [one["call"] for one in said["between_nodes"]] == ["MPI_Win_allocate", "MPI_Win_create"]
    for one in said["between_nodes"]:
        assert re.fullmatch(transport, one["transport"])
        assert why_not is None or any(re.fullmatch(why_not, why) for why in one["why_not"])
    (without,) = said["without_rdma"]
    assert without["ranks"] == [0, 1, 2, 3]


def findings(job):
    """The severities, checks and problems that fompi doctor finds. The nodes are namespaces, which is
    a note."""
    said = asked(job)
    assert said["nodes"] == ["node0", "node1"]
    return [(one["severity"], one["check"], one["problem"], one["remedy"]) for one in said["findings"]
            if one["severity"] != "note"]


def doctor(job, **settings):
    return job(FOMPI, "doctor", "--json", preload=False, **OWN_LIBRARY, **settings)


def test_doctor_of_nodes_that_reach_each_other(job):
    done = doctor(job, ranks=4)
    assert (done.code, findings(done)) == (0, [])


def test_doctor_names_nodes_that_do_not_reach_each_other(job, nodes, spare_interface):
    done = doctor(job, **SPARE)
    assert done.code != 0
    for (*what, problem, remedy), (own, other, address) in zip(
            findings(done), (("node0", "node1", 2), ("node1", "node0", 1)), strict=True):
        assert what == ["error", "connection"] and remedy.startswith("a firewall drops packets")
        assert re.fullmatch(rf"{own} does not reach {other}: 10\.78\.0\.{address}:[0-9]+ does not answer",
                            problem)


def test_doctor_names_a_firewall_between_two_nodes(job, nodes):
    rule = ("pref", "5", "ipproto", "tcp", "dport", "7000-7001", "to", "10.77.0.2", "prohibit")
    nodes("node0", "ip", "rule", "add", *rule)
    try:
        done = doctor(job, FOMPI_NET_PORTS="7000-7001")
    finally:
        nodes("node0", "ip", "rule", "del", *rule)
    ((*what, problem, remedy),) = findings(done)
    assert what == ["error", "connection"] and remedy.startswith("a firewall rejects connections")
    assert re.match(r"node0 does not reach node1: 10\.77\.0\.2:700[01]: Permission denied", problem)


def test_doctor_names_a_rank_without_a_port(job):
    found = findings(doctor(job, ranks=4, FOMPI_NET_PORTS="7000-7000"))
    ranks = [re.match(r"rank ([0-3]) on node([01]) cannot listen", problem) for _, _, problem, _ in found]
    ranks = [(int(rank[1]) // 2, int(rank[2])) for rank in ranks if rank]
    assert ranks == [(0, 0), (1, 1)]


def test_doctor_names_nodes_with_other_libraries(job):
    command = """[ "$(uname -n)" = node0 ] || {
        cp "$FOMPI_LIB" /tmp/libfompi.so && echo other >>/tmp/libfompi.so && export FOMPI_LIB=/tmp/libfompi.so
    }; exec "$0" doctor --json"""
    done = job("sh", "-c", command, FOMPI, preload=False, **OWN_LIBRARY)
    (found,) = findings(done)
    assert found[:2] == ("error", "libfompi.so")
    assert re.fullmatch(r"the nodes have different files: .* on node0; .* on node1", found[2])


def test_doctor_names_the_node_without_the_library(job):
    command = '[ "$(uname -n)" = node1 ] && export FOMPI_LIB=/nowhere; exec "$0" doctor --json'
    done = job("sh", "-c", command, FOMPI, preload=False, **OWN_LIBRARY)
    (found,) = findings(done)
    assert found[2] == "FOMPI_LIB=/nowhere: no such file [FOMPI-E117] (on node1)"


# --- containers and settings ----------------------------------------------------------------------

# In namespaces of its own each; and one of another user.
OWN = """exec unshare --pid --fork --mount --ipc --uts sh -c "mount -t tmpfs none /dev/shm
mount -t proc proc /proc; exec \\"\\$0\\"" "$0"
"""
USER = """[ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 1 ] &&
exec setpriv --reuid 65534 --clear-groups --inh-caps=-all "$0"
exec "$0"
"""


@pytest.mark.left_out(lambda params: params["how"] == USER and params["mpi"].name == "openmpi")
@pytest.mark.parametrize("how", (OWN, USER), ids=("namespaces", "user"))
def test_ranks_that_may_not_open_each_others_files(how, mpi, run_plain, library, folder):
    """They share memory, but windows over memory of the program go over TCP. Open MPI takes no rank
    of another user."""
    if os.geteuid() != 0:
        pytest.skip("namespaces and other users need root")
    preload = library
    if mpi.name == "mpich":
        fix = folder / "mpich_finalize.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", fix,
                        C_TESTS / "cluster" / "mpich_finalize.c", "-ldl", "-lpthread"], check=True)
        folder.chmod(0o755)
        preload = f"{fix}:{library}"
    job = run_plain(3, "env", f"LD_PRELOAD={preload}", "sh", "-c", how, program(mpi, "settings"),
                    env={"MPIR_CVAR_NOLOCAL": 1, "UCX_TLS": "tcp,self", "OMPI_MCA_btl": "tcp,self",
                         "OMPI_MCA_pml": "ob1", "FOMPI_VERBOSE": 1})
    assert job.code == 0
    assert job.lines(".*MPI_Win_allocate: 3 ranks, .* transport: shared memory.*") == 1
    assert job.lines(f".*MPI_Win_create: 3 ranks, .* {OVER_TCP} .*, because.*") == 1


@pytest.fixture
def on_node(mpi, job):
    """Four ranks, two to a node, of which those of a node have one more setting."""
    def run_job(node, setting, **options):
        command = '[ "$(uname -n)" = "$0" ] && export "$1"\nexec "$2"'
        return job("sh", "-c", command, node, setting, program(mpi, "differs"), ranks=4, **options)
    return run_job


def test_setting_of_one_node(on_node):
    done = on_node("node1", "FOMPI_DISABLE=1")
    what = "MPI_Win_allocate: FOMPI_DISABLE is"
    remedy = r"start all ranks with the same value \[FOMPI-E108\]"
    assert done.lines(f"rank [01]: {what} 1 on rank 2, not set here: {remedy}") == 2
    assert done.lines(f"rank [23]: {what} not set on rank 0, 1 here: {remedy}") == 2


def test_library_is_missing_on_one_node(on_node, library):
    """None of its ranks can say so. On Open MPI the answer of its own MPI is found."""
    remedy = r"start all ranks with .* \[FOMPI-(W012|E106)\]"
    waits = ("fompi: rank 0 has waited 5 s in MPI_Win_allocate, as have all 2 ranks of its node: "
             rf"is libfompi loaded on all other nodes\? If not, {remedy}")
    without = f"rank [01]: MPI_Win_allocate: some ranks are without this libfompi.so: {remedy}"
    done = on_node("node0", f"LD_PRELOAD={library}", preload=False, FOMPI_VERBOSE=2,
                   until=lambda job: job.lines(f"{waits}|{without}"))
    assert done.lines(f"{waits}|{without}") > 0


# --- programs -------------------------------------------------------------------------------------


def program_runs(both, everything):
    mpich, openmpi = by_name(both, "mpich"), by_name(both, "openmpi")
    if everything:
        yield from runs(both, "cluster", [2], [4], all_programs(), nodes=2)
        yield from runs(both, "cluster", [1], [2], all_programs(), nodes=2)
        yield from runs(both, "cluster", [3], [8, 12], [*ABOUT_NODES, "accumulate_stress"], nodes=4)
        yield from runs(both, "cluster", [8], [20, 32], ABOUT_NODES, nodes=4)
        return
    # Those about nodes run at 2 ranks of MPICH in test_nodes.py, on the loopback interface; its ranks
    # spin, so that more of them take long. Of a program in another language it is enough that it
    # reaches the other node.
    yield from runs(openmpi, "cluster", [2], [4], [*ABOUT_NODES, *OTHER_LANGUAGES], nodes=2)
    yield from runs(mpich, "cluster", [1], [2], OTHER_LANGUAGES, nodes=2)
    yield from runs(openmpi, "cluster", [3], [8], ABOUT_NODES, nodes=3)
    yield from runs(openmpi, "cluster", [2], [8], ABOUT_NODES, nodes=4)


def pytest_generate_tests(metafunc):
    found = mpis(metafunc.config)
    if metafunc.function is test_program:
        everything = metafunc.config.getoption("--everything")
        metafunc.parametrize("job, nodes, env", list(program_runs(found, everything)))
    elif "mpi" in metafunc.fixturenames:
        proxied = metafunc.definition.get_closest_marker("proxied") is not None
        if proxied and not metafunc.config.getoption("--everything"):
            found = by_name(found, "mpich")
        metafunc.parametrize("mpi", found, ids=[mpi.prefix or mpi.name for mpi in found])


def test_program(job, nodes, env, program_passes, cluster):
    cluster(nodes)
    program_passes(job, env)


# --- connections that are delayed and cut ---------------------------------------------------------

LOST = r"rank [01] \(process [0-9]+ on node node[01]\) cannot be reached: "
# Neither success nor the limit of time.
ENDS = (0, DONE, -1, 124, 137)
PROXY = TOP / "scripts" / "dev" / "net-proxy"


def wait_until(condition, seconds=15):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)


@pytest.fixture
def endless(mpi):
    return program(mpi, "endless")


@pytest.mark.proxied
def test_link_that_is_cut_in_traffic(mpi, library, nodes, cluster, endless):
    """A rank names the rank that it cannot reach, and the cause; the job ends."""
    settings = {"FOMPI_NET": "tcp", "FOMPI_NET_TIMEOUT": 3, "FOMPI_FALLBACK": "error"}
    job = run_on_nodes(mpi, library, 2, [endless, 15], (), settings)
    job.wait_until(lambda: job.output.count("going") == 2)
    nodes("node1", "ip", "link", "set", "eth0", "down")
    job.wait(60)
    cluster(0)
    assert job.code not in ENDS
    text = f"{LOST}its node has acknowledged nothing for 3 s"
    assert job.said(f"rank [01]: MPI_[A-Za-z_]+: {text}") > 0


@pytest.fixture
def through(mpi, job, nodes, cluster, folder):
    """Runs a job whose connections over TCP go through a proxy; what it passed is in `passed`."""
    on_all("""ip link add spare0 type bridge; ip link set spare0 up
        ip addr add "10.78.0.$K/32" dev spare0; ip addr add "10.78.0.$O/32" dev lo""")
    name, log = os.environ["CLUSTER_NAME"], folder / "proxy"
    state = os.environ.get("CLUSTER_STATE") or Path(
        os.environ.get("CLUSTER_RUN", "/run/fompi-cluster"), name)

    def run_job(how, *words, **options):
        with log.open("w") as file:
            proxy = subprocess.Popen([CLUSTER, "exec", "head", "--", PROXY, state, "7000-7007",
                                      *how.split()], stdin=subprocess.DEVNULL, stdout=file,
                                     stderr=subprocess.STDOUT)
        wait_until(lambda: "ready" in log.read_text())
        try:
            done = job(*words, **SPARE, FOMPI_NET="tcp", FOMPI_NET_PORTS="7000-7007",
                       FOMPI_NET_TIMEOUT=3, **options)
        finally:
            proxy.terminate()
            proxy.wait()
        wait_until(lambda: "connections" in log.read_text())
        done.passed = log.read_text().splitlines()[-1]
        print("net-proxy:", done.passed)
        return done

    yield run_job
    on_all('ip link del spare0; ip addr del "10.78.0.$O/32" dev lo')


@pytest.mark.proxied
@pytest.mark.parametrize("name, ranks", (("nodes_accumulate_order", 2), ("nodes_traffic", 4)))
def test_proxy_that_delays(name, ranks, mpi, through):
    """What it delays arrives, and in the order of the calls."""
    done = through("late", program(mpi, name), ranks=ranks, CHECK_RANKS_PER_NODE=ranks // 2,
                   FOMPI_FALLBACK="error")
    assert done.code == 0 and is_silent(done)
    assert int(done.passed.split()[2]) > 50000


@pytest.mark.proxied
@pytest.mark.parametrize("kind", ("close", "reset", "there", "back"))
def test_proxy_that_cuts_traffic(kind, through, endless):
    """A rank names the other one and the cause, and the job ends."""
    done = through(f"{kind} 100000", endless, 20, FOMPI_FALLBACK="error")
    assert done.code not in ENDS
    assert done.said(f"rank [01]: MPI_[A-Za-z_]+: {LOST}it has (closed|reset) the connection") > 0


@pytest.mark.proxied
def test_proxy_that_passes_nothing_for_longer_than_the_limit(through, endless):
    """Silence that is acknowledged is no loss."""
    done = through("stall 100000 4", endless, 6, FOMPI_FALLBACK="error")
    assert done.code == DONE and done.said() == 0
    assert done.passed.endswith(" bytes, 2 times")


# The greeting has 48 bytes, the question behind it 64. Once the target has proved that it is the
# right one, the origin tries for a minute.
@pytest.mark.proxied
@pytest.mark.parametrize("how", ("close 20", "there 60", "back 48", *(
    pytest.param(how, marks=pytest.mark.nightly) for how in ("close 112", "reset 60", "back 112"))))
def test_proxy_that_cuts_the_first_contact(how, through, endless):
    """All ranks leave the window to the host MPI."""
    done = through(how, endless, 1)
    assert done.code == DONE
    assert done.said(APART) == 1


@pytest.mark.proxied
def test_window_that_is_refused_after_a_cut(through, endless):
    done = through("close 20", endless, 1, FOMPI_FALLBACK="error")
    assert done.code not in ENDS and done.said() > 0
