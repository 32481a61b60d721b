"""The layers that scripts/bench compares, and the programs that measure them: rma_bench, and one for
coarrays and one for OpenSHMEM, each with the compiler of its MPI."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from programs import BUILD, ROOT

SECTIONS, LAYERS = ROOT / "benches" / "sections", ROOT / "benches" / "layers"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
# Where Debian has OpenCoarrays, and scripts/clients builds OSHMPI, for an MPI.
CAF = "/usr/lib/x86_64-linux-gnu/open-coarrays/{}/bin/caf"
OSHCC = str(TARGET / "clients" / "oshmpi-{}" / "installed" / "bin" / "oshcc")
C_FLAGS = ["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Wno-stringop-overflow"]
# The files of rma_bench that the other programs have, too.
SHARED = ("commands.c", "group.c", "measure.c", "window.c")
WITH_OURS = " with libfompi"
# The key of a series in definitions.toml that each layer runs.
KEY_OF_LAYER = {"plain": "rma", "libfompi": "rma", "messages": "messages", "hand": "hand"}
STANDARD = tuple(KEY_OF_LAYER)
# Layers on one-sided calls of MPI, which are measured only if they are named, each on the MPI alone and
# with libfompi. The compiler of each, and where it comes from.
COMPILERS = {"coarrays": ("caf", CAF, "Debian's packages libcoarrays-...-dev have it"),
             "openshmem": ("oshcc", OSHCC, "`scripts/clients oshmpi SOURCE --mpi ...` builds it")}
NAMED = tuple(COMPILERS)
KEY_OF_LAYER |= {name + end: name for name in NAMED for end in ("", WITH_OURS)}


def is_ours(layer):
    """Whether a layer runs with libfompi."""
    return layer == "libfompi" or layer.endswith(WITH_OURS)


def expanded(names):
    """Layers by the names of the command line: coarrays and openshmem are two each."""
    return [layer for name in names for layer in ([name, name + WITH_OURS] if name in NAMED else [name])]


def compiler(layer, mpi, given):
    """The compiler of coarrays or of OpenSHMEM for an MPI: `given` by the user for it, in its folder, or
    where it usually is."""
    word, usual, origin = COMPILERS[layer]
    path = Path(usual.format(mpi.name if layer == "coarrays" else mpi.label))
    own = Path(mpi.prefix or "") / "bin" / word
    if mpi.prefix and (layer == "coarrays" or own.exists()):
        path = own
    path = Path(given.get(mpi.label, path))
    if not os.access(path, os.X_OK):
        sys.exit(f"bench: no {word} for {mpi.label}: {path} cannot be executed; "
                 f"{origin}, or name it by --{word} MPI=PATH")
    return path


def run(command, mpi):
    answer = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                            stdin=subprocess.DEVNULL, env=mpi.environment())
    if answer.returncode:
        sys.exit(f"bench: {command[0]} fails:\n{answer.stderr}{answer.stdout}")


def built(mpi, name, sources, compile_into):
    """A program of an MPI, compiled if one of `sources` is newer. Not in /tmp, because each simulated
    node has its own. Another run may have the old one in use."""
    program = BUILD / mpi.label / name
    newest = max(path.stat().st_mtime for path in sources)
    if program.exists() and program.stat().st_mtime > newest:
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    fresh = program.with_name(f"{name}.{os.getpid()}")
    compile_into(fresh)
    fresh.replace(program)
    return program


def included(mpi):
    return [f"-I{mpi.prefix}/include"] if mpi.prefix else []


def rma_bench(mpi):
    files = sorted(SECTIONS.glob("*.c"))
    return built(mpi, "rma_bench", [*SECTIONS.iterdir()], lambda fresh: run(
        [mpi.cc, *C_FLAGS, *included(mpi), "-o", fresh, *files, "-ldl", "-lpthread"], mpi))


def sources_of(layer):
    """The sources in C of the program of coarrays or of OpenSHMEM."""
    return [LAYERS / f"{layer}.c", *(SECTIONS / name for name in SHARED)]


def coarray_bench(mpi, caf):
    """The main program is Fortran's, so its compiler links."""
    files, fortran = sources_of("coarrays"), LAYERS / "coarrays.f90"

    def compile_into(fresh):
        with tempfile.TemporaryDirectory(dir=fresh.parent) as work:
            objects = [Path(work) / f"{path.stem}.o" for path in files]
            for path, one in zip(files, objects):
                run([mpi.cc, *C_FLAGS, *included(mpi), "-c", "-o", one, path], mpi)
            run([caf, "-O2", "-Wall", "-J", work, "-o", fresh, fortran, *objects, "-ldl"], mpi)
    return built(mpi, "coarray_bench", [*files, fortran, SECTIONS / "bench.h", caf], compile_into)


def openshmem_bench(mpi, oshcc):
    files = sources_of("openshmem")
    return built(mpi, "openshmem_bench", [*files, SECTIONS / "bench.h", oshcc], lambda fresh: run(
        [oshcc, *C_FLAGS, *included(mpi), "-o", fresh, *files, "-ldl"], mpi))


def program(layer, mpi, given):
    """The program that measures a layer on an MPI; `given`: the user's compilers by the layer and the
    label of the MPI."""
    for name, build in (("coarrays", coarray_bench), ("openshmem", openshmem_bench)):
        if KEY_OF_LAYER[layer] == name:
            return build(mpi, compiler(name, mpi, given.get(name, {})))
    return rma_bench(mpi)
