"""fompi env and fompi info on each of Debian's MPIs, configuration files with a real program, and
the manual pages and completions.

usage: /usr/bin/python3 -m pytest tests/test_fompi.py
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import programs
from conftest import C_TESTS, TOP, call, version

FOMPI = programs.FOMPIRUN.with_name("fompi")
MODULE = "MPI.cpython-3-none.so"
# What a Python is asked by, answered without one.
PYTHON = "#!/bin/sh\nprintf '%s\\n' '{}'\n"


@pytest.fixture(autouse=True)
def only_debians(request):
    if "mpi" in request.fixturenames and request.getfixturevalue("mpi").prefix:
        pytest.skip("an MPI of Debian is meant")


def fompi(*words, **options):
    return call(FOMPI, *words, **{"FOMPI_LIB": programs.default_library()} | options)


def answer(*words, **options):
    """What fompi says as JSON."""
    status, lines = fompi(*words, "--json", **options)
    assert status == 0
    return json.loads("\n".join(lines[lines.index("{"):]))


def variable(name, **options):
    (found,) = (one for one in answer("env", **options)["variables"] if one["name"] == name)
    return found


@pytest.fixture
def installation(folder, library):
    """An installation with the library and a configuration file: a function that writes it."""
    for name in ("lib", "etc"):
        (folder / name).mkdir()
    own = folder / "lib" / "libfompi.so"
    shutil.copy(library, own)

    def write(*lines):
        (folder / "etc" / "fompi.conf").write_text("".join(f"{line}\n" for line in lines))
        return own
    return write


@pytest.fixture
def program(mpi, folder):
    target = folder / "app"
    subprocess.run([mpi.cc, "-o", target, C_TESTS / "installed" / "app.c"], check=True)
    return target


# --- configuration files --------------------------------------------------------------------------


def windows(mpi, library, program, **options):
    """The lines of the library in a job of two ranks that makes a window."""
    words = mpi.command(2, [library], [str(program)])
    _, lines = call(*words, **options)
    assert sorted(line for line in lines if line.startswith("rank")) == \
        ["rank 0 got 1", "rank 1 got 0"]
    return [line for line in lines if line.startswith("fompi: ")]


def test_file_sets_what_the_environment_does_not(mpi, installation, program):
    own = installation("# lines about windows", "FOMPI_VERBOSE=1")
    assert any("transport: " in line for line in windows(mpi, own, program))
    assert windows(mpi, own, program, FOMPI_VERBOSE="0") == []


def test_malformed_file_gives_one_warning_a_line(mpi, installation, program):
    own = installation("FOMPI_VERBOSE 1", "FOMPI_NET=udp", "FOMPI_VERBOS=1")
    path = own.parent.parent / "etc" / "fompi.conf"
    lines = windows(mpi, own, program)
    expected = ("1: `FOMPI_VERBOSE 1` is ignored: a line is FOMPI_NAME=value",
                "2: FOMPI_NET=udp is ignored: it can be auto, verbs, tcp or off",
                "3: unknown variable FOMPI_VERBOS: did you mean FOMPI_VERBOSE? ")
    assert len(lines) == 3
    for line, text in zip(lines, expected):
        assert line.startswith(f"fompi: {path}:{text}")


def test_privileged_program_reads_files_of_root_alone(mpi, installation, folder):
    if os.geteuid() or os.statvfs(folder).f_flag & os.ST_NOSUID:
        pytest.skip("a setuid program of root is needed")
    own = installation("FOMPI_VERBOSE=1", "FOMPI_VERBS_LIBRARY=/x.so")
    path = folder / "etc" / "fompi.conf"
    subprocess.run([mpi.cc, "-o", folder / "app", C_TESTS / "installed" / "app.c",
                    f"-L{own.parent}", "-Wl,--no-as-needed", "-lfompi",
                    f"-Wl,-rpath,{own.parent}"], check=True)
    (folder / "app").chmod(0o4755)
    folder.chmod(0o755)

    def said(mode):
        path.chmod(mode)
        _, lines = call("setpriv", "--reuid", 65534, "--regid", 65534, "--clear-groups",
                        folder / "app", cwd=folder, HOME=folder)
        assert "rank 0 got 0" in lines
        return [line for line in lines if line.startswith("fompi: ")]
    safe, unsafe = said(0o644), said(0o666)
    assert any("transport: " in line for line in safe)
    assert sum(line.startswith(f"fompi: {path}:2: FOMPI_VERBS_LIBRARY is ignored") for line in safe) == 1
    assert unsafe == [f"fompi: {path} is ignored: this program is privileged, and users other than "
                      "root can change it [FOMPI-W039]"]


# --- fompi env ------------------------------------------------------------------------------------


def test_env_says_where_a_value_comes_from(installation):
    own = installation("", "FOMPI_NET=tcp", "FOMPI_STRICT=1")
    path = str(own.parent.parent / "etc" / "fompi.conf")
    named = {"FOMPI_LIB": own, "FOMPI_STRICT": "0"}
    net, strict = variable("FOMPI_NET", **named), variable("FOMPI_STRICT", **named)
    assert (net["value"], net["source"]) == ("tcp", {"kind": "file", "path": path, "line": 2})
    assert (strict["value"], strict["source"]) == ("0", {"kind": "environment"})
    adopt = variable("FOMPI_ADOPT", **named)
    assert (adopt["value"], adopt["source"]) == ("auto", {"kind": "default"})
    assert {"path": path, "exists": True} in answer("env", **named)["files"]
    assert f"FOMPI_NET=tcp (from {path}:2)" in fompi("env", **named)[1]


def test_env_lists_all_variables_of_the_page():
    page = (TOP / "docs" / "reference" / "environment.md").read_text()
    names = {one["name"] for one in answer("env")["variables"]}
    assert names == set(re.findall(r"^\| `(FOMPI_\w+)`", page, re.MULTILINE))


def test_env_names_a_misspelled_variable():
    status, lines = fompi("env", FOMPI_NTE="tcp")
    assert status == 0
    assert any(re.search("unknown variable FOMPI_NTE: did you mean FOMPI_NET[?]", line)
               for line in lines)
    assert len(answer("env", FOMPI_NTE="tcp")["warnings"]) == 1


def test_explain_prints_cause_and_remedy():
    status, lines = fompi("explain", "[FOMPI-E001]")
    assert status == 0 and re.match("FOMPI-E001: target rank .* is invalid", lines[0])
    assert lines[-1].startswith("    remedy: ")
    assert answer("explain", "e001")["class"] == "MPI_ERR_RANK"
    assert answer("explain", "E124")["text"].startswith("{program} is linked with {mpi}, but {launcher}")
    status, lines = fompi("explain", "FOMPI-E999")
    assert status == 2 and lines[0].startswith("fompi: no message has the code FOMPI-E999; ")


# --- fompi info -----------------------------------------------------------------------------------

ABIS = {"mpich": "MPICH ABI", "openmpi": "Open MPI ABI"}


def test_info_of_a_program(mpi, program):
    said = answer("info", program)["program"]
    assert said["kind"] == "program"
    assert said["mpi"]["abi"] == ABIS[mpi.name] and Path(said["mpi"]["library"]).exists()
    assert Path(said["launcher"]["path"]).resolve() == Path(mpi.exec).resolve() or \
        mpi.name in said["launcher"]["path"]
    assert (said["layer"]["with_fompirun"], said["layer"]["alone"]) == ("libfompi", "host MPI")


def test_info_of_a_linked_and_of_a_preloaded_program(mpi, folder, library, program):
    linked = folder / "linked"
    subprocess.run([mpi.cc, "-o", linked, C_TESTS / "installed" / "app.c", f"-L{library.parent}",
                    "-Wl,--no-as-needed", "-lfompi", f"-Wl,-rpath,{library.parent}"], check=True)
    assert answer("info", linked)["program"]["layer"]["alone"] == "libfompi"
    said = answer("info", program, LD_PRELOAD=str(library))
    assert said["libfompi"]["preloaded"] and said["program"]["layer"]["alone"] == "libfompi"


def test_info_of_a_launcher(mpi):
    said = answer("info", shutil.which(f"mpirun.{mpi.name}"))["program"]
    assert (said["kind"], said["mpi"]["abi"]) == ("launcher", ABIS[mpi.name])
    assert re.search("[0-9][.][0-9]", said["launcher"]["version"])


def python(folder, said, launcher=None):
    """A Python that answers so; with a launcher of this kind next to it."""
    path = folder / "bin" / "python3"
    path.parent.mkdir()
    path.write_text(PYTHON.replace("{}", json.dumps(said)))
    path.chmod(0o755)
    if launcher:
        (path.parent / "mpirun").write_text(f"#!/bin/sh\necho {launcher}\n")
        (path.parent / "mpirun").chmod(0o755)
    return path


def test_info_of_a_python_with_another_launcher(folder):
    said = {"file": f"/x/{MODULE}", "version": "4.1.2", "library": "/x/libmpi.so.12.1"}
    program = answer("info", python(folder, said, "Open MPI 5"))["program"]
    assert (program["kind"], program["mpi"]["abi"]) == ("python", "MPICH ABI")
    assert program["launcher"]["path"] == f"{folder}/bin/mpirun"
    assert re.match("each rank will be alone: .* MPICH ABI, .* Open MPI ABI",
                    program["launcher"]["why_not"])


def test_info_asks_a_launcher_that_is_a_script_of_its_own_installation(folder):
    """As fompirun would start it: its companion comes first in PATH."""
    said = {"file": f"/x/{MODULE}", "version": "4.1.2", "library": "/x/libmpi.so.12.1"}
    path = python(folder, said)
    (path.parent / "mpirun").write_text("#!/bin/sh\nexec mpiexec.hydra --version\n")
    (path.parent / "mpiexec.hydra").write_text("#!/bin/sh\necho 'HYDRA 98.7'\n")
    for name in ("mpirun", "mpiexec.hydra"):
        (path.parent / name).chmod(0o755)
    assert answer("info", path)["program"]["launcher"]["version"] == "HYDRA 98.7"


def test_info_of_a_python_with_intel_mpi_under_a_name_without_version(folder):
    library = folder / "libmpi.so"
    library.write_bytes(b"\x7fELF Intel(R) MPI Library 2021")
    said = {"file": f"/x/{MODULE}", "version": "4.1.2", "library": str(library)}
    assert answer("info", python(folder, said, "HYDRA"))["program"]["mpi"]["abi"] == "MPICH ABI"


def test_info_of_a_python_without_mpi4py(folder):
    path = python(folder, {})
    assert answer("info", path)["program"]["mpi"]["why_not"] == f"{path} has no mpi4py"


@pytest.mark.parametrize("line, interpreter, why", (
    ("#!{}/named/python3", "{}/named/python3", "the first line of the script names it"),
    ("#!/usr/bin/env -S python3 -u", "{}/bin/python3", "the first line of the script names it"),
    ("#!/usr/bin/env python3.nosuch", "python3.nosuch", "the first line of the script names it"),
    ("import mpi4py", "{}/bin/python3",
     "the script names none, and this is the python3 of PATH")))
def test_info_of_a_script_asks_its_interpreter(folder, line, interpreter, why):
    script = folder / "app.py"
    script.write_text(f"{line.replace('{}', str(folder))}\n")
    first = python(folder, {"file": f"/first/{MODULE}", "version": "4.1.2"})
    named = folder / "named" / "python3"
    named.parent.mkdir()
    named.write_text(first.read_text().replace("/first/", "/named/"))
    named.chmod(0o755)
    expected = interpreter.replace("{}", str(folder))
    path = f"{first.parent}:{os.environ['PATH']}"
    program = answer("info", script, PATH=path)["program"]
    assert program["kind"] == "python"
    assert program["interpreter"] == {"path": expected, "why": why}
    if expected.startswith("/"):
        asked = "named" if "/named/" in expected else "first"
        assert program["mpi"]["why"] == f"mpi4py 4.1.2 has /{asked}/{MODULE}"
    else:
        assert program["mpi"]["why_not"].startswith(f"{expected}: No such file")
    _, lines = fompi("info", script, PATH=path)
    assert f"    interpreter: {expected}, because {why}" in lines
    assert answer("info", first)["program"]["interpreter"] is None


def test_info_of_a_real_python_without_mpi4py(folder):
    real = folder / "python3"
    real.write_text('#!/bin/sh\nexec /usr/bin/python3 -I -S "$@"\n')  # without site-packages
    real.chmod(0o755)
    assert answer("info", real)["program"]["mpi"]["why_not"] == f"{real} has no mpi4py"


def test_info_of_a_real_python():
    real = Path("/usr/bin/python3")
    asked = subprocess.run([real, "-c", "import mpi4py; print(mpi4py.__version__)"], text=True,
                           capture_output=True, check=False)
    if asked.returncode:
        pytest.skip(f"no mpi4py in {real}: scripts/install-deps installs it")
    said = answer("info", real)["program"]
    assert said["mpi"]["abi"] in ABIS.values() and Path(said["mpi"]["library"]).exists()
    assert said["mpi"]["why"].startswith(f"mpi4py {asked.stdout.strip()} has /")


def test_info_of_the_machine():
    facts = answer("info")["machine"]
    page = (TOP / "docs" / "reference" / "fompi.md").read_text()
    assert [one["name"] for one in facts if f"`{one['name']}`" not in page] == []
    (kernel,) = (one["value"] for one in facts if one["name"] == "kernel")
    assert kernel == os.uname().release
    assert any(one["name"] == "interface" and " 127.0.0.1" in one["value"] and one["why_not"]
               for one in facts)


@pytest.mark.parametrize("net, transport, why_not", (
    ("off", "host MPI", "FOMPI_NET=off"), ("tcp", "TCP", None)))
def test_info_says_the_transport_between_nodes(net, transport, why_not):
    facts = {one["name"]: one for one in answer("info", FOMPI_NET=net)["machine"]}
    between = facts["windows over several nodes like this one"]
    assert (between["value"], between["why_not"]) == (transport, why_not)


def test_info_in_words(program):
    status, lines = fompi("info", program, FOMPI_ADOPT="never")
    assert status == 0
    assert lines[0].startswith(f"libfompi: {version()} (")
    assert f"{program}: a program" in lines
    assert "    adopted memory: no (why not: FOMPI_ADOPT=never)" in lines


def test_info_of_what_is_not_there():
    assert fompi("info", "/no/app") == (2, ["fompi: /no/app: no such program [FOMPI-E127]"])


# --- fompi info in a job --------------------------------------------------------------------------


def in_job(mpi, ranks, *words, **options):
    status, lines = call(mpi.exec, "-n", ranks, FOMPI, "info", *words,
                         **{"FOMPI_LIB": programs.default_library()} | options)
    assert status == 0
    return lines


@pytest.mark.parametrize("preloaded", (False, True), ids=("plain", "preloaded"))
def test_info_of_a_job(preloaded, mpi, library):
    options = {"LD_PRELOAD": str(library)} if preloaded else {}
    said = json.loads("\n".join(in_job(mpi, 3, "--json", **options)))
    assert said["libfompi"]["preloaded"] == preloaded
    job = said["job"]
    (node,) = job["nodes"]
    assert (job["why_not"], job["abi"], node["ranks"]) == (None, ABIS[mpi.name], [0, 1, 2])
    windows = {one["call"]: one["transport"] for one in node["windows"]}
    assert windows["MPI_Win_allocate"] == "shared memory"
    assert windows["MPI_Win_create"] in ("shared memory", "process_vm")
    assert (job["between_nodes"], job["without_rdma"]) == ([], [])


def test_info_of_a_job_says_why_memory_is_copied(mpi):
    lines = in_job(mpi, 2, FOMPI_ADOPT="never")
    expected = "        windows of MPI_Win_create: process_vm (why not another: FOMPI_ADOPT=never)"
    assert expected in lines
    assert lines.count("libfompi: " + lines[0].removeprefix("libfompi: ")) == 1


@pytest.mark.parametrize("words", ((), ("mpirun.mpich", "-n", "2")), ids=("alone", "job"))
@pytest.mark.parametrize("subcommand", ("info", "doctor"))
def test_a_misspelled_variable_is_named_once(subcommand, words):
    _, lines = call(*words, FOMPI, subcommand, FOMPI_NTE="tcp", FOMPI_LIB=programs.default_library())
    assert sum("FOMPI_NTE" in line for line in lines) == 1, lines


@pytest.mark.nightly
def test_a_rank_that_is_not_connected_ends_with_the_rest_of_the_report():
    """Rank 1 does not start MPI, so that rank 0 waits for it in MPI_Init."""
    script = '[ $PMI_RANK = 0 ] && exec "$0" "$1" --json; sleep 70'
    jobs = {name: subprocess.Popen(["mpirun.mpich", "-n", "2", "sh", "-c", script, FOMPI, name],
                                   env=os.environ | {"FOMPI_LIB": str(programs.default_library())},
                                   stdout=subprocess.PIPE, text=True)
            for name in ("info", "doctor")}
    said = {name: json.JSONDecoder().raw_decode(job.communicate(timeout=100)[0])[0]
            for name, job in jobs.items()}
    why = "the MPI has not connected the ranks in 60 s"
    assert (said["info"]["job"]["why_not"], said["info"]["machine"][0]["name"]) == (why, "kernel")
    (finding,) = (one for one in said["doctor"]["findings"] if one["check"] == "host MPI")
    assert finding["problem"] == f"the ranks cannot exchange what they find: {why}"


def test_info_of_a_job_on_simulated_nodes(mpi):
    lines = in_job(mpi, 4, FOMPI_RANKS_PER_NODE="2", FOMPI_NET="tcp")
    node = os.uname().nodename
    at = [lines.index(f"    ranks {ranks} on {node}") for ranks in ("0-1", "2-3")]
    assert at[0] < at[1] < lines.index("    between nodes")
    assert any(re.match("        windows of MPI_Win_allocate: TCP between nodes by ", line) for line in lines)
    assert "        no RDMA on ranks 0-3: FOMPI_NET=tcp" in lines


def test_info_of_a_job_of_another_mpi(mpi, folder, program):
    """The program names the MPI, not the launcher."""
    said = json.loads("\n".join(in_job(mpi, 2, "--json", program)))
    assert said["job"]["mpi_library"] == said["program"]["mpi"]["library"]


# --- pages and names ------------------------------------------------------------------------------


def test_run_is_fompirun():
    words = ("--print", "-n", 1, "true")
    status, lines = fompi("run", *words)
    assert (status, lines) == call(programs.FOMPIRUN, *words, FOMPI_LIB=programs.default_library())
    assert status == 0 and "LD_PRELOAD" in lines[-1]


def test_manual_pages_and_completions(folder):
    assert fompi("pages", folder)[0] == 0
    pages = {path.name for path in (folder / "man" / "man1").iterdir()}
    assert {"fompi.1", "fompirun.1", "fompi-env.1", "fompi-info.1"} <= pages
    assert "\\-\\-mpi" in (folder / "man" / "man1" / "fompirun.1").read_text()
    for name in ("fompi", "fompirun"):
        for path in (f"zsh/site-functions/_{name}", f"fish/vendor_completions.d/{name}.fish",
                     f"bash-completion/completions/{name}"):
            assert name in (folder / path).read_text()


def test_bash_completes_options(folder):
    fompi("pages", folder)
    ask = (f". {folder}/bash-completion/completions/fompirun; COMP_WORDS=(fompirun --pr)"
           "; COMP_CWORD=1; _fompirun fompirun --pr fompirun; echo \"${COMPREPLY[@]}\"")
    assert call("bash", "-c", ask) == (0, ["--print"])
