# Memory handles through the Python module `fompi`, on dynamic windows of mpi4py: arrays that are exposed
# and allocated, transfers, pickled handles, the ends of handles, and errors. The plain MPI has none.
# ranks: 1 2 4

import array
import ctypes
import gc
import pathlib
import pickle
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python" / "src"))

from mpi4py import MPI  # noqa: E402

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
following, previous = (rank + 1) % size, (rank + size - 1) % size


def check(holds, what):
    if not holds:
        print(f"handles.py: rank {rank} of {size}: {what}", file=sys.stderr, flush=True)
        comm.Abort(1)


def raises(error_class, call, *arguments):
    try:
        call(*arguments)
    except MPI.Exception as error:
        return error.Get_error_class() == error_class
    return False


def refuses(kind, call, *arguments):
    """Without a call of the library."""
    try:
        call(*arguments)
    except kind:
        return True
    return False


def received(mem):
    """The handle of the following rank: each rank sends its own to the previous one."""
    return comm.sendrecv(mem, dest=previous, source=following)


def transfers(fompi, win, mem, numbers):
    """On longs whose values are 0 to 9."""
    data, got, words = array.array("q", [100 + rank, 7]), array.array("q", [0]), fompi.REMOTE
    theirs = received(mem)
    check((theirs.rank, theirs.nbytes, theirs.is_own) == (following, 80, False), "what it says")
    check((theirs.format, tuple(theirs.shape), theirs.memory) == ("q", (10,), None), "elements")
    comm.Barrier()
    theirs.put(data, attributes=words)
    theirs.put([data, 1, MPI.INT64_T], 64, words)
    theirs.accumulate(data, 16, attributes=words)
    theirs.accumulate(array.array("q", [3]), 24, MPI.PROD, words | fompi.ORDERED)
    comm.Barrier()
    check(list(numbers[:4]) == [100 + previous, 7, 102 + previous, 30], "puts and accumulates")
    check(numbers[8] == 100 + previous and numbers[9] == 9, "a part of a buffer")
    theirs.get(got, 32)
    check(got[0] == 4, "get")
    theirs.get(got, 40, 0)
    fompi.complete(win, following)
    check(got[0] == 5, "get until a completion")
    comm.Barrier()
    theirs.fetch_and_op(array.array("q", [1]), got, 48)
    check(got[0] == 6, "fetch_and_op")
    theirs.fetch_and_op(array.array("q", [0]), got, 48, MPI.NO_OP)
    check(got[0] == 7, "fetch_and_op of no operation")
    for before in (7, 9):
        theirs.compare_and_swap(array.array("q", [9]), array.array("q", [7]), got, 48)
        check(got[0] == before, "compare_and_swap")
    fompi.set_num_notify(win, 1)
    theirs.put(got, 56, fompi.notify(0))
    fompi.wait_notify(win, 0, 1)
    check(numbers[7] == 9, "a notified put")
    theirs.put(array.array("q", [rank]), 72, 0)
    fompi.complete_collective(win)
    check(numbers[9] == previous, "a put until a completion of all")
    theirs.release()
    check(not theirs and refuses(ValueError, theirs.get, got), "a handle that was released")


def exposed_and_allocated(fompi, win):
    numbers = array.array("q", range(10))
    with fompi.expose(win, numbers) as mem:
        check(mem and mem.is_own and mem.rank == rank, "own")
        transfers(fompi, win, mem, numbers)
        check(refuses(BufferError, numbers.append, 1), "memory that is exposed stays in its place")
        comm.Barrier()
    check(not mem and mem.memory is None, "the end of a with statement")
    numbers.append(1)
    mem = fompi.allocate(win, 10, "q")
    numbers = mem.memory
    for at in range(10):
        numbers[at] = at
    transfers(fompi, win, mem, numbers)
    comm.Barrier()
    mem.withdraw()
    gc.collect()
    check(numbers[9] == previous, "an array keeps memory that was withdrawn")


def pickles(fompi, win):
    """What is pickled says which window it means; without that window there is no handle."""
    numbers, got = array.array("d", [rank, 2.5]), array.array("d", [0])
    mem, other = fompi.expose(win, numbers), MPI.Win.Create_dynamic(comm=comm)
    stored = comm.sendrecv(pickle.dumps([mem, "more"]), dest=previous, source=following)
    theirs, again = pickle.loads(stored)[0], pickle.loads(stored)[0]
    theirs.get(got)
    check(got[0] == following, "a handle of a pickle")
    further = received(pickle.loads(pickle.dumps(again)))
    further.get(got)
    check(further.rank == (following + 1) % size == got[0], "a handle that was sent on")
    with fompi.unpack(win, theirs.pack(), "d", [2]) as packed:
        packed.get(got, 8)
    check(got[0] == 2.5 and tuple(packed.shape) == (2,) and not packed, "128 bytes")
    with fompi.expose(other, numbers) as nameless:
        check(refuses(pickle.PicklingError, pickle.dumps, nameless), "a window without a key")
        fompi.register_window("here", other)
        stored = pickle.dumps(nameless)
        check(pickle.loads(stored).nbytes == 16, "a handle of the own memory")
        fompi.register_window("here", win)
        check(raises(MPI.ERR_ARG, pickle.loads, stored), "another window of the key")
        fompi.register_window("here", other)
        comm.Barrier()
    other.Free()
    check(not nameless and refuses(pickle.UnpicklingError, pickle.loads, stored), "a freed window")
    comm.Barrier()
    mem.withdraw()
    del theirs, again, further


def arrays_of_numpy(fompi, win):
    try:
        import numpy
    except ImportError:
        return
    mine = numpy.arange(6.0).reshape(2, 3) + 10 * rank
    with fompi.expose(win, mine + 1j) as mem:
        theirs = received(mem)
        check(numpy.empty(theirs.shape, theirs.format).dtype == complex, "complex numbers")
        comm.Barrier()
    with fompi.expose(win, mine) as mem:
        theirs = received(mem)
        copy = numpy.empty(theirs.shape, theirs.format)
        theirs.get(copy)
        check((copy == numpy.arange(6.0).reshape(2, 3) + 10 * following).all(), "an array")
        comm.Barrier()
    records = numpy.zeros(2, "i8,f8")
    with fompi.expose(win, records) as mem:
        received(mem).put(array.array("q", [7]), 16, fompi.REMOTE)
        comm.Barrier()
        check(records[1][0] == 7, "records, which MPI has no datatype for")
    with fompi.allocate(win, (2, 3), "d") as mem:
        mine = numpy.asarray(mem.memory)
        mine[:] = rank
        theirs = received(mem)
        comm.Barrier()
        theirs.accumulate(copy[1], 24, attributes=fompi.REMOTE)
        comm.Barrier()
    added = numpy.arange(3.0, 6.0) + 10 * rank + rank
    check((mine == [[rank] * 3, list(added)]).all(), "a row of an array")
    check(refuses(BufferError, fompi.expose, win, numpy.zeros((4, 4))[:, 0]), "no contiguous memory")


def withdrawn(fompi, win):
    """An access behind the withdrawal is an error, and others go on."""
    first, second = array.array("q", [1]), array.array("q", [2])
    got = array.array("q", [0])
    one, two = fompi.expose(win, first), fompi.expose(win, second)
    theirs, other = received(one), received(two)
    stored = theirs.pack()
    comm.Barrier()
    one.withdraw()
    comm.Barrier()

    def access(mem):
        mem.get(got)
        fompi.complete(win)

    check(raises(MPI.ERR_RMA_RANGE, access, theirs), "an access to memory that was withdrawn")
    check(raises(MPI.ERR_RMA_RANGE, access, fompi.unpack(win, stored)), "a replayed handle")
    access(other)
    check(got[0] == 2, "memory that is still exposed")
    check(raises(MPI.ERR_ARG, other.withdraw) and other, "withdrawn by another process")
    check(raises(MPI.ERR_ARG, two.release) and two, "released by the owner")
    check(refuses(ValueError, one.withdraw), "withdrawn twice")
    comm.Barrier()
    two.withdraw()


def errors(fompi, win):
    numbers, two = array.array("q", [0]), array.array("q", [0, 0])
    window = MPI.Win.Create(numbers, comm=comm)
    check(raises(MPI.ERR_RMA_FLAVOR, fompi.expose, window, numbers), "another flavour")
    window.Free()
    check(refuses(BufferError, fompi.expose, win, b"text"), "memory that is not to be written")
    check(refuses(TypeError, fompi.expose, comm, numbers), "a communicator")
    check(refuses(ValueError, fompi.unpack, win, bytes(127)), "too few bytes")
    check(raises(MPI.ERR_ARG, fompi.unpack, win, bytes(128)), "no handle")
    for shape, form in ((0, "d"), ((2, -1), "d"), (4, "none")):
        check(refuses(ValueError, fompi.allocate, win, shape, form), f"{shape} {form}")
    with fompi.expose(win, numbers) as mem:
        check(raises(MPI.ERR_RMA_RANGE, mem.get, numbers, 8), "bytes outside")
        check(refuses(OverflowError, mem.get, numbers, 2**64), "a displacement")
        check(refuses(OverflowError, mem.put, numbers, 0, fompi.notify(2**32)), "a counter")
        check(refuses(ValueError, mem.fetch_and_op, two, numbers), "two elements")
        check(refuses(ValueError, mem.fetch_and_op, array.array("i", [0]), numbers), "two types")
        check(refuses(BufferError, mem.compare_and_swap, numbers, numbers, b"8 bytes."), "result")


def main(fompi):
    win = MPI.Win.Create_dynamic(comm=comm)
    fompi.register_window("numbers", win)
    exposed_and_allocated(fompi, win)
    pickles(fompi, win)
    arrays_of_numpy(fompi, win)
    withdrawn(fompi, win)
    errors(fompi, win)
    kept = fompi.expose(win, bytearray(100))
    comm.Barrier()
    win.Free()
    check(not kept, "a handle ends with its window")


if hasattr(ctypes.CDLL(None), "FOMPI_Mem_put"):
    import fompi

    main(fompi)
