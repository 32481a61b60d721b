"""Memory handles (fompi_rma.h) for arrays of Python, by dynamic windows of mpi4py.

    win = MPI.Win.Create_dynamic(comm=comm)     # collective
    fompi.register_window("blocks", win)        # for pickle; each process, under the same key
    with fompi.expose(win, array) as mem:       # local: an array of numpy, or any buffer
        comm.send(mem, 1)                       # a pickled handle
        ...                                     # rank 1: mem = comm.recv(); mem.get(part, 8 * first)

Buffers are given as to `Win.Put` of mpi4py; displacements are in bytes from the begin of the memory.
Transfers need no epoch. By default a call returns when its buffers may be used again and results
have arrived (BLOCKING); with 0 as the attributes this is so behind `complete`: keep the buffers until
then. An error of the library is an `MPI.Exception`. Other threads of Python run during a call.
"""

from __future__ import annotations

import ctypes
import math
import operator
import pickle
import sys
import weakref
from typing import TYPE_CHECKING, Any, Dict, Hashable, Sequence, Set, Tuple

from ._calls import Memory, c_count, c_int, call, datatype_of, handle_of, memory_of, mpi_module

if TYPE_CHECKING:
    from mpi4py import MPI
    from mpi4py.typing import BufSpec

__all__ = [
    "ATOMIC",
    "BLOCKING",
    "Mem",
    "ORDERED",
    "REMOTE",
    "allocate",
    "complete",
    "complete_collective",
    "expose",
    "notify",
    "register_window",
    "unpack",
]

ORDERED = 1
"""It takes effect behind all earlier transfers of this process to the same rank, by handles of the
window or on the window itself."""
REMOTE = 2
"""It is complete at the target when the call returns."""
ATOMIC = 4
"""A put or get is exclusive, as a whole, with others that have this attribute, and with accumulates
of several elements, on memory of the same rank and window."""
BLOCKING = 8
"""It is complete when the call returns: buffers may be used again, and results have arrived."""

_BYTES = 128
_ALL_RANKS = -3
# Formats of the buffer protocol that numpy has by other names.
_COMPLEX = {"Zf": "F", "Zd": "D", "Zg": "G"}

# The windows of `register_window`.
_registered: Dict[Hashable, MPI.Win] = {}
# By windows: the handles whose memory is exposed, so that it lives as long.
_exposed: Dict[int, Tuple[MPI.Win, Set[Mem]]] = {}


def notify(index: int) -> int:
    """The attribute by which a transfer adds 1 to a counter of its target behind its data, as
    `put_notify` does."""
    return 16 | index << 8


class Mem:
    """A handle of memory that one process has exposed: `expose` and `allocate` return it to the
    owner, `unpack` and pickle to others.

    A `with` statement withdraws the memory at its end, or forgets the handle if this process is not
    the owner. Without it, the memory stays exposed until `withdraw` or the end of the window, and
    the buffer is kept as long. A handle is true until one of these.
    """

    def __init__(
        self,
        win: MPI.Win,
        at: ctypes.c_void_p,
        memory: memoryview | None,
        format: str,
        shape: Sequence[int] | None,
    ) -> None:
        rank, size = ctypes.c_int(), ctypes.c_ssize_t()
        call("FOMPI_Mem_query", at, ctypes.byref(rank), ctypes.byref(size), None)
        self._at = at
        self.win = win
        """its window"""
        self.rank = rank.value
        """the owner, in the group of the window"""
        self.nbytes = size.value
        """the bytes of the memory"""
        self.is_own = memory is not None
        """whether this process has exposed the memory by this handle"""
        self.memory = memory
        """the owner's memory while it is exposed, else None: `numpy.asarray(mem.memory)`"""
        self.format = _COMPLEX.get(format, format)
        """the type of an element, as numpy and mpi4py name it"""
        if shape is None:
            shape = [size.value // datatype_of(format).Get_extent()[1]]
        self.shape = tuple(shape)
        """the elements in each dimension: `numpy.empty(mem.shape, mem.format)` has room for them"""

    def __bool__(self) -> bool:
        return self._at.value is not None and bool(self.win)

    def __repr__(self) -> str:
        state = f"of rank {self.rank}" if self else "ended"
        return f"<fompi.Mem {state}: {self.nbytes} bytes, format {self.format!r}, shape {self.shape}>"

    def __enter__(self) -> Mem:
        return self

    def __exit__(self, *exception: object) -> None:
        if self:
            self.withdraw() if self.is_own else self.release()

    def __del__(self) -> None:
        # An owner's handle is in `_exposed` while it is in use.
        if not sys.is_finalizing() and hasattr(self, "is_own") and self and not self.is_own:
            self.release()

    def __reduce__(self) -> Tuple[Any, ...]:
        for key, win in _registered.items():
            if win and win == self.win:
                return _unpickled, (key, self.pack(), self.format, self.shape)
        raise pickle.PicklingError("a handle whose window has no key of fompi.register_window")

    def _handle(self) -> ctypes.c_void_p:
        if not self:
            raise ValueError("the memory handle has ended")
        return self._at

    def _end(self, name: str) -> None:
        call(name, ctypes.byref(self._handle()))
        if self.is_own:
            _exposed[handle_of(self.win, "Win").value][1].discard(self)
        self.memory = None

    def _transfer(self, name: str, memory: Memory, disp: int, *words: Any) -> None:
        call(
            name,
            ctypes.c_void_p(memory.address),
            c_count(memory.number),
            handle_of(memory.datatype, "Datatype"),
            self._handle(),
            c_count(disp),
            *words,
        )

    def _element(self, name: str, buffers: Sequence[BufSpec], disp: int, *words: Any) -> None:
        """A call for one element; the last buffer is the result."""
        found = [memory_of(one, at == len(buffers) - 1) for at, one in enumerate(buffers)]
        if any(one.number != 1 or one.datatype != found[0].datatype for one in found):
            raise ValueError("buffers of one element of the same datatype are wanted")
        addresses = [ctypes.c_void_p(one.address) for one in found]
        datatype = handle_of(found[0].datatype, "Datatype")
        call(name, *addresses, datatype, self._handle(), c_count(disp), *words)

    def pack(self) -> bytes:
        """128 bytes that stand for the handle in all processes of the window: see `unpack`."""
        packed = ctypes.create_string_buffer(_BYTES)
        call("FOMPI_Mem_pack", self._handle(), packed)
        return packed.raw

    def put(self, origin: BufSpec, disp: int = 0, attributes: int = BLOCKING) -> None:
        """Puts data into the memory."""
        self._transfer("FOMPI_Mem_put", memory_of(origin, False), disp, c_int(attributes))

    def get(self, origin: BufSpec, disp: int = 0, attributes: int = BLOCKING) -> None:
        """Gets data from the memory into a buffer."""
        self._transfer("FOMPI_Mem_get", memory_of(origin, True), disp, c_int(attributes))

    def accumulate(
        self, origin: BufSpec, disp: int = 0, op: MPI.Op | None = None, attributes: int = BLOCKING
    ) -> None:
        """Combines data with those in the memory, by MPI.SUM if no operation is given. Atomic for
        each element."""
        words = _operation(op), c_int(attributes)
        self._transfer("FOMPI_Mem_accumulate", memory_of(origin, False), disp, *words)

    def fetch_and_op(
        self,
        origin: BufSpec,
        result: BufSpec,
        disp: int = 0,
        op: MPI.Op | None = None,
        attributes: int = BLOCKING,
    ) -> None:
        """Stores an element of the memory in `result`, and combines it with that of `origin`, by
        MPI.SUM if no operation is given. Atomic."""
        words = _operation(op), c_int(attributes)
        self._element("FOMPI_Mem_fetch_and_op", (origin, result), disp, *words)

    def compare_and_swap(
        self,
        origin: BufSpec,
        compare: BufSpec,
        result: BufSpec,
        disp: int = 0,
        attributes: int = BLOCKING,
    ) -> None:
        """Stores an element of the memory in `result`, and replaces it by that of `origin` if it
        equals that of `compare`. Atomic."""
        buffers = origin, compare, result
        self._element("FOMPI_Mem_compare_and_swap", buffers, disp, c_int(attributes))

    def withdraw(self) -> None:
        """Ends the exposure, at the owner: when this returns, no access of another process touches
        the memory, and a later one is an MPI.Exception of class MPI.ERR_RMA_RANGE."""
        self._end("FOMPI_Mem_withdraw")

    def release(self) -> None:
        """Forgets the handle, in a process that is not the owner."""
        self._end("FOMPI_Mem_release")


def _operation(op: MPI.Op | None) -> ctypes.c_size_t:
    return handle_of(mpi_module().SUM if op is None else op, "Op")


def _own(win: MPI.Win, at: ctypes.c_void_p, memory: memoryview) -> Mem:
    """The handle of memory that this process has just exposed."""
    for handle in [handle for handle, (other, _) in _exposed.items() if not other]:
        del _exposed[handle]
    mem = Mem(win, at, memory, memory.format, memory.shape)
    _exposed.setdefault(handle_of(win, "Win").value, (win, set()))[1].add(mem)
    return mem


def expose(win: MPI.Win, buffer: Any) -> Mem:
    """Exposes the memory of a buffer that may be written, such as an array of numpy, to the other
    processes of a window of MPI.Win.Create_dynamic. Local. The memory need not be attached."""
    memory = memoryview(buffer)
    if memory.readonly:
        raise BufferError("the buffer may not be written")
    found, at = memory_of([memory, memory.nbytes, mpi_module().BYTE], True), ctypes.c_void_p()
    base, size = ctypes.c_void_p(found.address), c_count(memory.nbytes)
    info = handle_of(mpi_module().INFO_NULL, "Info")
    call("FOMPI_Mem_expose", base, size, info, handle_of(win, "Win"), ctypes.byref(at))
    return _own(win, at, memory)


def _free(address: int) -> None:
    if not mpi_module().Is_finalized():
        call("MPI_Free_mem", ctypes.c_void_p(address))


def allocate(win: MPI.Win, shape: int | Sequence[int], format: str = "B") -> Mem:
    """Allocates memory that processes of the node map, and exposes it as `expose` does: `memory`
    of the handle has this shape, and elements of this format of the buffer protocol ("d": double).
    It is freed when it is withdrawn and no array is over it any more."""
    lengths = [operator.index(n) for n in ([shape] if isinstance(shape, int) else shape)]
    element: Any = memoryview(bytes(16))
    nbytes = element.cast(format).itemsize * math.prod(lengths)
    if min(lengths, default=1) < 1:
        raise ValueError(f"{shape!r} is no shape of one element or more")
    base, at = ctypes.c_void_p(), ctypes.c_void_p()
    info = handle_of(mpi_module().INFO_NULL, "Info")
    words = ctypes.byref(base), ctypes.byref(at)
    call("FOMPI_Mem_allocate", c_count(nbytes), info, handle_of(win, "Win"), *words)
    assert base.value is not None, "the call has succeeded"
    memory = (ctypes.c_char * nbytes).from_address(base.value)
    weakref.finalize(memory, _free, base.value).atexit = False
    elements: Any = memoryview(memory).cast("B")
    return _own(win, at, elements.cast(format, lengths))


def unpack(
    win: MPI.Win, packed: bytes, format: str = "B", shape: Sequence[int] | None = None
) -> Mem:
    """The handle that `Mem.pack` has packed in a process of the window. Bytes that no process of the
    window has packed are an MPI.Exception of class MPI.ERR_ARG. `format` and `shape` describe the
    elements; nothing checks them."""
    given, at = bytes(packed), ctypes.c_void_p()
    if len(given) != _BYTES:
        raise ValueError(f"a packed handle has {_BYTES} bytes, not {len(given)}")
    call("FOMPI_Mem_unpack", ctypes.c_char_p(given), handle_of(win, "Win"), ctypes.byref(at))
    return Mem(win, at, None, format, shape)


def register_window(key: Hashable, win: MPI.Win) -> None:
    """Gives a window a key by which pickled handles of it find it, until it is freed: in each
    process, under the same key. To pickle a handle of a window without a key is a PicklingError, to
    unpickle one in a process in which no window has its key an UnpicklingError."""
    handle_of(win, "Win")
    _registered[key] = win


def _unpickled(key: Hashable, packed: bytes, format: str, shape: Sequence[int]) -> Mem:
    win = _registered.get(key)
    if not win:
        raise pickle.UnpicklingError(
            f"a handle of the window {key!r}: fompi.register_window has no window of this key here"
        )
    return unpack(win, packed, format, shape)


def complete(win: MPI.Win, rank: int | None = None) -> None:
    """Waits until all operations of this process on a rank of the window, or on all, are done at the
    target: those by handles, and those on the window. No epoch is needed. Between nodes, accesses to
    memory that was withdrawn are an MPI.Exception of class MPI.ERR_RMA_RANGE here."""
    call("FOMPI_Complete", c_int(_ALL_RANKS if rank is None else rank), handle_of(win, "Win"))


def complete_collective(win: MPI.Win) -> None:
    """Waits in all processes of the window until the operations of all are done at the targets."""
    call("FOMPI_Complete_collective", handle_of(win, "Win"))
