"""libfompi in this process: one-sided MPI (RMA) in front of the MPI.

    import fompi
    from mpi4py import MPI

The import loads libfompi.so, unless fompirun or LD_PRELOAD has loaded it. Modules that are imported
later make their one-sided calls to it. The import starts no MPI. After mpi4py it is too late: then
it fails with an error that says so.

`put_notify`, `wait_notify` and others are notified operations on windows of mpi4py: see
`fompi.notified`. `expose` and `allocate` return memory handles: see `fompi.handles`.

FOMPI_LIB names another library than that of this installation.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from pathlib import Path
from typing import TypedDict

from .handles import (
    ATOMIC,
    BLOCKING,
    ORDERED,
    REMOTE,
    Mem,
    allocate,
    complete,
    complete_collective,
    expose,
    notify,
    register_window,
    unpack,
)
from .notified import (
    accumulate_notify,
    err_rma_notification,
    get_notify,
    get_num_notify,
    notify_value,
    put_notify,
    reset_notify_value,
    set_num_notify,
    wait_any_notify,
    wait_notify,
)

__all__ = [
    "ATOMIC",
    "BLOCKING",
    "Info",
    "Mem",
    "ORDERED",
    "REMOTE",
    "accumulate_notify",
    "allocate",
    "complete",
    "complete_collective",
    "err_rma_notification",
    "expose",
    "get_notify",
    "get_num_notify",
    "info",
    "is_loaded",
    "library",
    "notify",
    "notify_value",
    "put_notify",
    "register_window",
    "reset_notify_value",
    "set_num_notify",
    "unpack",
    "wait_any_notify",
    "wait_notify",
]

_NAME = "libfompi.so"
# Of the C libraries of an MPI, not of those of its Fortran.
_MPI = re.compile(r"lib(mpi|mpich|mpi_abi|mpi_cray|mpi_gnu_\d+|pmpi)\.(\d+\.)?so(\.\d+)*")


class Info(TypedDict):
    """What `info` returns."""

    version: str
    """the version of libfompi"""
    library: str
    """the path of the library that this process has loaded"""
    loaded: str
    """how: `preload` (fompirun or LD_PRELOAD), `import` (this module), or `program` (the program is
    linked with it, or has opened it)"""
    mpi: str | None
    """the path of the MPI library that this process has loaded, or None"""
    is_loaded: bool
    """what `is_loaded()` returns"""


class _Object(ctypes.Structure):
    """The first members of `struct dl_phdr_info`."""

    _fields_ = [("address", ctypes.c_void_p), ("name", ctypes.c_char_p)]


def _objects() -> list[str]:
    """The paths of the shared objects of this process, in the order in which they were loaded."""
    paths: list[str] = []

    def add(at: ctypes._Pointer[_Object], size: int, data: int | None) -> int:
        paths.append(os.fsdecode(at.contents.name or b""))
        return 0

    kind = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.POINTER(_Object), ctypes.c_size_t, ctypes.c_void_p
    )
    ctypes.CDLL(None).dl_iterate_phdr(kind(add), None)
    return paths


def _first(paths: list[str], pattern: re.Pattern[str]) -> int | None:
    """The index of the first path whose file has such a name."""
    found = (at for at, path in enumerate(paths) if pattern.fullmatch(os.path.basename(path)))
    return next(found, None)


def _places() -> tuple[int | None, int | None, list[str]]:
    """Where libfompi and the MPI are in the order of loading, and all paths."""
    paths = _objects()
    return _first(paths, re.compile(re.escape(_NAME))), _first(paths, _MPI), paths


def library() -> str:
    """The path of libfompi.so: that of this installation, or the one that FOMPI_LIB names."""
    named = os.environ.get("FOMPI_LIB")
    if named:
        if not os.path.isfile(named):
            raise FileNotFoundError(f"FOMPI_LIB={named}: no such file")
        return os.path.realpath(named)
    # PREFIX/lib/python3.x/site-packages/fompi/__init__.py
    prefix = Path(__file__).resolve().parents[4]
    path = prefix / "lib" / _NAME
    if not path.is_file():
        raise FileNotFoundError(
            f"no {path}: pip has installed this module without its library (--target does so); "
            "install it into an environment, or name the library by FOMPI_LIB"
        )
    return str(path)


def is_loaded() -> bool:
    """Whether libfompi serves the calls of this process: it was loaded ahead of the MPI."""
    ours, mpi, _ = _places()
    return ours is not None and (mpi is None or ours < mpi)


def info() -> Info:
    """The version and path of libfompi, how it was loaded, and the MPI of this process."""
    ours, mpi, paths = _places()
    assert ours is not None, "the import has loaded it"
    version = _LOADED.fompi_version
    version.restype = ctypes.c_char_p
    return {
        "version": version().decode(),
        "library": os.path.realpath(paths[ours]),
        "loaded": _HOW,
        "mpi": None if mpi is None else os.path.realpath(paths[mpi]),
        "is_loaded": is_loaded(),
    }


def _load() -> tuple[ctypes.CDLL, str]:
    """Loads the library unless this process has it; returns it, and how it was loaded."""
    ours, mpi, paths = _places()
    if ours is not None:
        preloaded = re.split("[: ]", os.environ.get("LD_PRELOAD", ""))
        is_preloaded = _NAME in map(os.path.basename, preloaded)
        # By its name, under which the loader knows it, so that no other file is loaded.
        loaded = ctypes.CDLL(_NAME, mode=ctypes.RTLD_GLOBAL | os.RTLD_NOLOAD)
        return loaded, "preload" if is_preloaded else "program"
    if "mpi4py.MPI" in sys.modules:
        raise ImportError(
            "mpi4py.MPI was imported before fompi, so its calls go to the MPI: import fompi first"
        )
    if mpi is not None:
        raise ImportError(
            f"this process loaded {paths[mpi]} before fompi, so its calls go to that MPI: import "
            "fompi first, or start the program by fompirun"
        )
    try:
        loaded = ctypes.CDLL(library(), mode=ctypes.RTLD_GLOBAL)
        _ = loaded.fompi_version  # FOMPI_LIB may name another library.
        return loaded, "import"
    except (OSError, AttributeError) as error:
        raise ImportError(f"libfompi cannot be loaded: {error}") from error


_LOADED, _HOW = _load()
