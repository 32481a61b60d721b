"""What a host MPI ran with: its settings, and the component that carried its one-sided calls, as its
own verbose output names it. A line for each goes into the head of a CSV."""

import re
import shlex
import subprocess

from bench_jobs import command, environment_of, title

# By these an MPI says which component it chose.
VERBOSE = {"openmpi": {"OMPI_MCA_osc_base_verbose": "100"},
           "mpich": {"MPIR_CVAR_DEBUG_SUMMARY": "1", "UCX_LOG_LEVEL": "info"}}
WINDOWS = ("allocate", "create", "dynamic")
SECONDS = 60
# Options of a launcher that say where it starts ranks, not how they run.
PLACING = re.compile(r"^(plm|oob_tcp_if|orte_|prte_)|_if_include$")
OURS = re.compile(r"^(FOMPI_|LD_|PATH$|HOSTNAME$|TMPDIR$)")


def of_openmpi(text):
    """osc/COMPONENT, and the BTL by which osc/rdma reaches the other rank."""
    chosen = sorted(set(re.findall(r"select: component (\w+) selected", text)))
    btl = sorted(set(re.findall(r"rank 0 found btl for peer 1 \((\w+),", text)))
    return ", ".join(f"osc/{name}" for name in chosen) + (f" over btl/{btl[0]}" if btl else "")


def of_mpich(text):
    """The device with its network module, and the transports that UCX or libfabric chose."""
    ucx = re.findall(r"(?:intra|inter)-node cfg#\d+ .*?(rma(?:_am)?\(.*?\))", text)
    ofi = re.findall(r"libfabric provider: (\S+)", text)
    if ucx:
        return f"ch4:ucx, {ucx[0]}"
    if ofi:
        return f"ch4:ofi, provider {ofi[0].rstrip(',')}"
    return "ch4:ucx" if "UCX netmod" in text else ""


READERS = {"openmpi": of_openmpi, "mpich": of_mpich}


def component(mpi, program, window, nodes, settings):
    """What an MPI says of a window of this kind; empty if it says nothing."""
    words = [str(program), "put", "--values", "8", "--runs", "3", "--seconds", "0.001", "--window", window]
    values = environment_of(mpi, "", nodes, settings) | VERBOSE.get(mpi.name, {})
    words = ["timeout", str(SECONDS), *command(mpi, "plain", "", nodes, 2, words, SECONDS)]
    run = subprocess.run(words, env=values, text=True, errors="replace", capture_output=True,
                         stdin=subprocess.DEVNULL, check=False)
    return READERS.get(mpi.name, lambda _: "")(run.stdout + run.stderr)


def settings_shown(mpi, nodes, settings):
    """The variables and options of a run, as a command line has them."""
    values = environment_of(mpi, "", nodes, settings)
    shown = {name: value for name, value in values.items()
             if re.match(r"(OMPI|UCX|FI|MPIR|I_MPI)_", name) and "RUN_AS_ROOT" not in name
             and name != "I_MPI_ROOT"}
    words = command(mpi, "plain", "", nodes, 2, ["true"], SECONDS)
    if nodes:
        words = [words[0], words[1], "--verbose", *words[2:]]
        said = subprocess.run(words, env=values, text=True, capture_output=True, check=False,
                              stdin=subprocess.DEVNULL).stderr
        line = next((line[1:] for line in said.splitlines() if line.startswith("+")), "")
        words = shlex.split(line)
        pairs = (word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
        shown |= {name: value for name, value in pairs if not OURS.match(name)}
    for at, word in enumerate(words):
        if word == "--mca" and not PLACING.search(words[at + 1]):
            shown[f"OMPI_MCA_{words[at + 1]}"] = words[at + 2]
        if word in ("--bind-to", "-bind-to"):
            shown["bind-to"] = words[at + 1]
    return " ".join(f"{name}={value}" for name, value in sorted(shown.items()))


def lines(mpis, programs, nodes, settings):
    """The lines of a CSV's head: `host: MPI; SETTINGS; KIND OF WINDOW: COMPONENT, ...`."""
    found = []
    for mpi in mpis:
        parts = [f"{window}: {component(mpi, programs[mpi.label], window, nodes, settings) or 'it says nothing'}"
                 for window in WINDOWS]
        found.append(f"host: {title(mpi)}; {settings_shown(mpi, nodes, settings)}; {'; '.join(parts)}")
    return found
