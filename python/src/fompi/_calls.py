"""Calls of the library with objects of mpi4py, for `fompi.notified` and `fompi.handles`."""

from __future__ import annotations

import ctypes
import functools
import operator
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

if TYPE_CHECKING:
    from mpi4py import MPI
    from mpi4py.typing import BufSpec


class Memory(NamedTuple):
    """A buffer as MPI has it."""

    address: int
    number: int
    datatype: MPI.Datatype


def mpi_module() -> Any:
    """The module mpi4py.MPI, which the program has imported: there is a window."""
    from mpi4py import MPI

    return MPI


def _number(kind: Any, number: SupportsIndex) -> Any:
    """A number as an argument of this type of ctypes, which would cut off the bits beyond it."""
    given = kind(operator.index(number))
    if given.value != operator.index(number):
        raise OverflowError(f"{number} has too many bits for a {kind.__name__}")
    return given


c_int = functools.partial(_number, ctypes.c_int)
c_count = functools.partial(_number, ctypes.c_int64)


def handle_of(thing: Any, kind: str) -> ctypes.c_size_t:
    """The handle of an object of mpi4py of this class, as wide as a register."""
    mpi = mpi_module()
    if not isinstance(thing, getattr(mpi, kind)):
        raise TypeError(f"an MPI.{kind} is wanted, not {thing!r}")
    word = {4: ctypes.c_uint32, 8: ctypes.c_uint64}[mpi._sizeof(thing)]
    return ctypes.c_size_t(word.from_address(mpi._addressof(thing)).value)


@functools.lru_cache(maxsize=None)
def function(name: str) -> Any:
    """A function of the library, if that serves this process."""
    from . import _LOADED, is_loaded

    if not is_loaded():
        raise RuntimeError(
            "libfompi was loaded after the MPI, so windows have no calls of its own: import "
            "fompi first, or start the program by fompirun"
        )
    return getattr(_LOADED, name)


def call(name: str, *arguments: Any) -> None:
    """Calls a function of the library without the interpreter's lock; raises its error."""
    code = function(name)(*arguments)
    if code != 0:
        raise mpi_module().Exception(code)


def datatype_of(what: Any) -> MPI.Datatype:
    """The datatype of mpi4py, or that of a format of the buffer protocol."""
    mpi = mpi_module()
    if not isinstance(what, str):
        datatype: MPI.Datatype = what
        return datatype
    known: dict[str, MPI.Datatype] = mpi._typedict
    # A format of the buffer protocol may name the order of bytes of this machine.
    code = what.lstrip("@=<" if sys.byteorder == "little" else "@=>")
    if code not in known:
        raise TypeError(f"no MPI datatype for {what!r}: give [buffer, count, datatype]")
    return known[code]


def memory_of(spec: BufSpec, is_written: bool) -> Memory:
    """The memory that a buffer or a list with one stands for."""
    mpi = mpi_module()
    words: list[Any] = list(spec) if isinstance(spec, (list, tuple)) else [spec]
    if len(words) == 2:
        words.insert(1 if isinstance(words[1], (str, mpi.Datatype)) else 2, None)
    if len(words) not in (1, 3):
        raise ValueError("a buffer or [buffer, count, datatype] is wanted, or a part of that")
    buffer, count, what = words if len(words) == 3 else (words[0], None, None)
    if buffer is mpi.BOTTOM and count is not None and what is not None:
        return Memory(0, operator.index(count), datatype_of(what))
    numbers = memoryview(buffer)
    if not numbers.contiguous:
        raise BufferError("the memory of the buffer is not contiguous")
    kind = getattr(mpi, "buffer", None) or mpi.memory
    view = kind.frombuffer(buffer, readonly=not is_written)
    datatype = datatype_of(numbers.format if what is None else what)
    if count is not None:
        return Memory(view.address, operator.index(count), datatype)
    extent = datatype.Get_extent()[1]
    if extent <= 0 or view.nbytes % extent != 0:
        raise ValueError(f"{view.nbytes} bytes are no whole number of the datatype's {extent}")
    return Memory(view.address, view.nbytes // extent, datatype)
