"""Notified operations (issue 59 of the MPI Forum) for windows of mpi4py.

    fompi.set_num_notify(win, 2)                # collective, outside of epochs
    win.Lock_all()
    fompi.put_notify(win, data, target_rank, 0) # adds 1 to counter 0 of the target, behind the data
    fompi.wait_notify(win, 0, 1)                # sleeps until the own counter 0 has reached 1

Buffers and targets are given as to `Win.Put` of mpi4py: an object with contiguous memory, such as
an array of numpy or of `array`, or `[buffer, count]`, `[buffer, datatype]` or `[buffer, count,
datatype]`; a target is None, a displacement, or `(displacement, count, datatype)`. A buffer is in
use until a flush, as that of `Win.Put` is: keep it in a variable. An error of the window is an
`MPI.Exception`. Waits let other threads of Python run; a signal such as that of Ctrl-C is handled
when the wait ends.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

if TYPE_CHECKING:
    from mpi4py import MPI
    from mpi4py.typing import BufSpec, TargetSpec

__all__ = [
    "accumulate_notify",
    "err_rma_notification",
    "get_notify",
    "get_num_notify",
    "notify_value",
    "put_notify",
    "reset_notify_value",
    "set_num_notify",
    "wait_any_notify",
    "wait_notify",
]


class _Memory(NamedTuple):
    """A buffer as MPI has it."""

    address: int
    number: int
    datatype: MPI.Datatype


def _mpi() -> Any:
    """The module mpi4py.MPI, which the program has imported: there is a window."""
    from mpi4py import MPI

    return MPI


def _number(kind: Any, number: SupportsIndex) -> Any:
    """A number as an argument of this type of ctypes, which would cut off the bits beyond it."""
    given = kind(operator.index(number))
    if given.value != operator.index(number):
        raise OverflowError(f"{number} has too many bits for a {kind.__name__}")
    return given


_int = functools.partial(_number, ctypes.c_int)
_count = functools.partial(_number, ctypes.c_int64)


def _handle(thing: Any, kind: str) -> ctypes.c_size_t:
    """The handle of an object of mpi4py of this class, as wide as a register."""
    mpi = _mpi()
    if not isinstance(thing, getattr(mpi, kind)):
        raise TypeError(f"an MPI.{kind} is wanted, not {thing!r}")
    word = {4: ctypes.c_uint32, 8: ctypes.c_uint64}[mpi._sizeof(thing)]
    return ctypes.c_size_t(word.from_address(mpi._addressof(thing)).value)


@functools.lru_cache(maxsize=None)
def _function(name: str) -> Any:
    """A function of the library, if that serves this process."""
    from . import _LOADED, is_loaded

    if not is_loaded():
        raise RuntimeError(
            "libfompi was loaded after the MPI, so windows have no notified operations: import "
            "fompi first, or start the program by fompirun"
        )
    return getattr(_LOADED, name)


def _call(name: str, *arguments: Any) -> None:
    """Calls a function of the library without the interpreter's lock; raises its error."""
    code = _function(name)(*arguments)
    if code != 0:
        raise _mpi().Exception(code)


def _datatype(what: Any) -> MPI.Datatype:
    """The datatype of mpi4py, or that of a format of the buffer protocol."""
    mpi = _mpi()
    if not isinstance(what, str):
        datatype: MPI.Datatype = what
        return datatype
    known: dict[str, MPI.Datatype] = mpi._typedict
    # A format of the buffer protocol may name the order of bytes of this machine.
    code = what.lstrip("@=<" if sys.byteorder == "little" else "@=>")
    if code not in known:
        raise TypeError(f"no MPI datatype for {what!r}: give [buffer, count, datatype]")
    return known[code]


def _memory(spec: BufSpec, is_written: bool) -> _Memory:
    """The memory that a buffer or a list with one stands for."""
    mpi = _mpi()
    words: list[Any] = list(spec) if isinstance(spec, (list, tuple)) else [spec]
    if len(words) == 2:
        words.insert(1 if isinstance(words[1], (str, mpi.Datatype)) else 2, None)
    if len(words) not in (1, 3):
        raise ValueError("a buffer or [buffer, count, datatype] is wanted, or a part of that")
    buffer, count, what = words if len(words) == 3 else (words[0], None, None)
    if buffer is mpi.BOTTOM and count is not None and what is not None:
        return _Memory(0, operator.index(count), _datatype(what))
    numbers = memoryview(buffer)
    if not numbers.contiguous:
        raise BufferError("the memory of the buffer is not contiguous")
    kind = getattr(mpi, "buffer", None) or mpi.memory
    view = kind.frombuffer(buffer, readonly=not is_written)
    datatype = _datatype(numbers.format if what is None else what)
    if count is not None:
        return _Memory(view.address, operator.index(count), datatype)
    extent = datatype.Get_extent()[1]
    if extent <= 0 or view.nbytes % extent != 0:
        raise ValueError(f"{view.nbytes} bytes are no whole number of the datatype's {extent}")
    return _Memory(view.address, view.nbytes // extent, datatype)


def _target(spec: TargetSpec | None, origin: _Memory) -> tuple[int, int, MPI.Datatype]:
    """Displacement, count and datatype at the target: by default 0, and those of the origin."""
    given = () if spec is None else spec
    words: list[Any] = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(words) > 3:
        raise ValueError("a displacement or (displacement, count, datatype) is wanted")
    disp = operator.index(words[0]) if words else 0
    count = operator.index(words[1]) if len(words) > 1 else origin.number
    return disp, count, _datatype(words[2]) if len(words) > 2 else origin.datatype


def _transfer(
    name: str,
    win: MPI.Win,
    memory: _Memory,
    rank: int,
    index: int,
    target: TargetSpec | None,
    *op: ctypes.c_size_t,
) -> None:
    disp, count, datatype = _target(target, memory)
    _call(
        name,
        ctypes.c_void_p(memory.address),
        _count(memory.number),
        _handle(memory.datatype, "Datatype"),
        _int(rank),
        _count(disp),
        _count(count),
        _handle(datatype, "Datatype"),
        *op,
        _int(index),
        _handle(win, "Win"),
    )


def put_notify(
    win: MPI.Win, origin: BufSpec, target_rank: int, index: int, target: TargetSpec | None = None
) -> None:
    """Puts data as `Win.Put` does, and adds 1 to a counter of the target behind them."""
    _transfer("FOMPI_Put_notify_c", win, _memory(origin, False), target_rank, index, target)


def get_notify(
    win: MPI.Win, origin: BufSpec, target_rank: int, index: int, target: TargetSpec | None = None
) -> None:
    """Gets data as `Win.Get` does, and adds 1 to a counter of the target when they have been read."""
    _transfer("FOMPI_Get_notify_c", win, _memory(origin, True), target_rank, index, target)


def accumulate_notify(
    win: MPI.Win,
    origin: BufSpec,
    target_rank: int,
    index: int,
    target: TargetSpec | None = None,
    op: MPI.Op | None = None,
) -> None:
    """Combines data as `Win.Accumulate` does, by MPI.SUM if no operation is given, and adds 1 to a
    counter of the target behind them."""
    handle = _handle(_mpi().SUM if op is None else op, "Op")
    memory = _memory(origin, False)
    _transfer("FOMPI_Accumulate_notify_c", win, memory, target_rank, index, target, handle)


def set_num_notify(win: MPI.Win, number: int, info: MPI.Info | None = None) -> None:
    """Gives this process counters 0 to `number` - 1, all 0. Collective, outside of epochs; each
    process has a number of its own."""
    given = _handle(_mpi().INFO_NULL if info is None else info, "Info")
    _call("FOMPI_Win_set_num_notify", _handle(win, "Win"), given, _int(number))


def get_num_notify(win: MPI.Win, rank: int) -> int:
    """The number of counters of a process."""
    number = ctypes.c_int()
    _call("FOMPI_Win_get_num_notify", _handle(win, "Win"), _int(rank), ctypes.byref(number))
    return number.value


def err_rma_notification() -> int:
    """The error class of an index that a process does not have."""
    return int(_function("fompi_err_rma_notification")())


def notify_value(win: MPI.Win, index: int) -> int:
    """The value of a counter of this process. What was counted may be read."""
    value = ctypes.c_int64()
    _call("FOMPI_Win_get_notify_value", _handle(win, "Win"), _int(index), ctypes.byref(value))
    return value.value


def reset_notify_value(win: MPI.Win, index: int) -> int:
    """Sets a counter of this process to 0, and returns its value before. Loses no notification."""
    value = ctypes.c_int64()
    _call("FOMPI_Win_reset_notify_value", _handle(win, "Win"), _int(index), ctypes.byref(value))
    return value.value


def wait_notify(win: MPI.Win, index: int, threshold: int) -> None:
    """Waits until a counter of this process has reached a threshold: first it spins for a short
    while, then it sleeps."""
    _call("FOMPI_Win_wait_notify", _handle(win, "Win"), _int(index), _count(threshold))


def wait_any_notify(win: MPI.Win, first: int, number: int, threshold: int) -> int:
    """Waits until one of the counters `first` to `first` + `number` - 1 of this process has reached
    a threshold, and returns its index: the lowest one, if there are several."""
    index = ctypes.c_int()
    _call(
        "FOMPI_Win_wait_any_notify",
        _handle(win, "Win"),
        _int(first),
        _int(number),
        _count(threshold),
        ctypes.byref(index),
    )
    return index.value
