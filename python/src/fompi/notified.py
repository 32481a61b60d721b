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
import operator
from typing import TYPE_CHECKING, Any

from ._calls import (
    Memory,
    c_count,
    c_int,
    call,
    datatype_of,
    function,
    handle_of,
    memory_of,
    mpi_module,
)

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


def _target(spec: TargetSpec | None, origin: Memory) -> tuple[int, int, MPI.Datatype]:
    """Displacement, count and datatype at the target: by default 0, and those of the origin."""
    given = () if spec is None else spec
    words: list[Any] = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(words) > 3:
        raise ValueError("a displacement or (displacement, count, datatype) is wanted")
    disp = operator.index(words[0]) if words else 0
    count = operator.index(words[1]) if len(words) > 1 else origin.number
    return disp, count, datatype_of(words[2]) if len(words) > 2 else origin.datatype


def _transfer(
    name: str,
    win: MPI.Win,
    memory: Memory,
    rank: int,
    index: int,
    target: TargetSpec | None,
    *op: ctypes.c_size_t,
) -> None:
    disp, count, datatype = _target(target, memory)
    call(
        name,
        ctypes.c_void_p(memory.address),
        c_count(memory.number),
        handle_of(memory.datatype, "Datatype"),
        c_int(rank),
        c_count(disp),
        c_count(count),
        handle_of(datatype, "Datatype"),
        *op,
        c_int(index),
        handle_of(win, "Win"),
    )


def put_notify(
    win: MPI.Win, origin: BufSpec, target_rank: int, index: int, target: TargetSpec | None = None
) -> None:
    """Puts data as `Win.Put` does, and adds 1 to a counter of the target behind them."""
    _transfer("FOMPI_Put_notify_c", win, memory_of(origin, False), target_rank, index, target)


def get_notify(
    win: MPI.Win, origin: BufSpec, target_rank: int, index: int, target: TargetSpec | None = None
) -> None:
    """Gets data as `Win.Get` does, and adds 1 to a counter of the target when they have been read."""
    _transfer("FOMPI_Get_notify_c", win, memory_of(origin, True), target_rank, index, target)


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
    handle = handle_of(mpi_module().SUM if op is None else op, "Op")
    memory = memory_of(origin, False)
    _transfer("FOMPI_Accumulate_notify_c", win, memory, target_rank, index, target, handle)


def set_num_notify(win: MPI.Win, number: int, info: MPI.Info | None = None) -> None:
    """Gives this process counters 0 to `number` - 1, all 0. Collective, outside of epochs; each
    process has a number of its own."""
    given = handle_of(mpi_module().INFO_NULL if info is None else info, "Info")
    call("FOMPI_Win_set_num_notify", handle_of(win, "Win"), given, c_int(number))


def get_num_notify(win: MPI.Win, rank: int) -> int:
    """The number of counters of a process."""
    number = ctypes.c_int()
    call("FOMPI_Win_get_num_notify", handle_of(win, "Win"), c_int(rank), ctypes.byref(number))
    return number.value


def err_rma_notification() -> int:
    """The error class of an index that a process does not have."""
    return int(function("fompi_err_rma_notification")())


def notify_value(win: MPI.Win, index: int) -> int:
    """The value of a counter of this process. What was counted may be read."""
    value = ctypes.c_int64()
    call("FOMPI_Win_get_notify_value", handle_of(win, "Win"), c_int(index), ctypes.byref(value))
    return value.value


def reset_notify_value(win: MPI.Win, index: int) -> int:
    """Sets a counter of this process to 0, and returns its value before. Loses no notification."""
    value = ctypes.c_int64()
    call("FOMPI_Win_reset_notify_value", handle_of(win, "Win"), c_int(index), ctypes.byref(value))
    return value.value


def wait_notify(win: MPI.Win, index: int, threshold: int) -> None:
    """Waits until a counter of this process has reached a threshold: first it spins for a short
    while, then it sleeps."""
    call("FOMPI_Win_wait_notify", handle_of(win, "Win"), c_int(index), c_count(threshold))


def wait_any_notify(win: MPI.Win, first: int, number: int, threshold: int) -> int:
    """Waits until one of the counters `first` to `first` + `number` - 1 of this process has reached
    a threshold, and returns its index: the lowest one, if there are several."""
    index = ctypes.c_int()
    call(
        "FOMPI_Win_wait_any_notify",
        handle_of(win, "Win"),
        c_int(first),
        c_int(number),
        c_count(threshold),
        ctypes.byref(index),
    )
    return index.value
