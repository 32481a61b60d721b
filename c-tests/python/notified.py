# Notified operations through the Python module `fompi`, on windows of mpi4py: data, counters, waits,
# errors, and other threads of Python that run while one waits. The plain MPI has none.
# ranks: 1 2 4

import array
import ctypes
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python" / "src"))

from mpi4py import MPI  # noqa: E402

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
following, previous = (rank + 1) % size, (rank + size - 1) % size


def check(holds, what):
    if not holds:
        print(f"notified.py: rank {rank} of {size}: {what}", file=sys.stderr, flush=True)
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


def operations(fompi, win, memory):
    data, got = array.array("q", [100 + rank, 7]), array.array("q", [0, 0])
    fompi.put_notify(win, data, following, 0)
    fompi.put_notify(win, [data, 1, MPI.INT64_T], following, 0, (4, 1, MPI.INT64_T))
    fompi.accumulate_notify(win, data, following, 1, 2)
    fompi.accumulate_notify(win, array.array("q", [3]), following, 1, 2, MPI.PROD)
    fompi.wait_notify(win, 0, 2)
    fompi.wait_notify(win, 1, 2)
    check(list(memory[:2]) == [100 + previous, 7] and memory[4] == 100 + previous, "puts")
    check(memory[2] in ((1 + 100 + previous) * 3, 3 + 100 + previous), "accumulates in some order")
    check(memory[3] == 8, "the second number of an accumulate")
    fompi.get_notify(win, got, following, 2, 5)
    win.Flush(following)
    check(list(got) == [5, 6], "get")
    fompi.wait_notify(win, 2, 1)
    check(fompi.wait_any_notify(win, 0, 3, 1) == 0, "the lowest counter")
    check(fompi.notify_value(win, 1) == 2, "value")
    check(fompi.reset_notify_value(win, 1) == 2, "value before a reset")
    check(fompi.notify_value(win, 1) == 0, "value after a reset")
    check(fompi.get_num_notify(win, following) == 3 + following, "number of another rank")


def numbers_of_numpy(fompi, win, memory):
    try:
        import numpy
    except ImportError:
        return
    data, got = numpy.full(3, 2.5 + rank), numpy.zeros(3)
    fompi.put_notify(win, data, following, 0, 8)
    fompi.wait_notify(win, 0, 3)
    check(list(memory[8:11].cast("B").cast("d")) == [2.5 + previous] * 3, "numbers of numpy")
    fompi.get_notify(win, got[1:2], following, 2, 8)
    win.Flush(following)
    check(list(got) == [0, 2.5 + rank, 0], "a part of an array")
    for wrong in (numpy.zeros((4, 4))[:, 0], numpy.zeros(2, "S3"), "text"):
        try:
            fompi.put_notify(win, wrong, following, 0)
            check(False, "a wrong buffer is refused")
        except (BufferError, TypeError, ValueError):
            pass


def forms_of_buffers(fompi, win, memory):
    """As those of Win.Put."""
    data = array.array("q", [rank, 9])
    absolute = MPI.INT64_T.Create_hindexed([1], [MPI.Get_address(data)]).Commit()
    count = fompi.notify_value(win, 0)
    for origin, target in (([data, 1], 12), ([data, None, MPI.INT64_T], (12, 2)),
                           ((data, MPI.INT64_T), [12]), ([MPI.BOTTOM, 1, absolute], (12, 1, "q"))):
        memory[12] = -1
        comm.Barrier()
        fompi.put_notify(win, origin, following, 0, target)
        win.Flush(following)
        count += 1
        fompi.wait_notify(win, 0, count)
        check(memory[12] == previous, f"{origin} {target}")
        comm.Barrier()
    fompi.get_notify(win, [data, 0], following, 2, ())
    win.Flush(following)
    absolute.Free()


def numbers_with_too_many_bits(fompi, win):
    one, much = array.array("q", [1]), 2**32
    check(refuses(OverflowError, fompi.put_notify, win, one, following, much), "index")
    check(refuses(OverflowError, fompi.put_notify, win, one, much + following, 0), "rank")
    check(refuses(OverflowError, fompi.wait_notify, win, 0, much**2), "threshold")
    check(refuses(OverflowError, fompi.put_notify, win, one, following, 0, much**2), "displacement")
    check(refuses(TypeError, fompi.put_notify, win, one, following, 0, 0.5), "no integer")
    check(refuses(TypeError, fompi.put_notify, win, [one, 1, MPI.INFO_NULL], following, 0), "info")
    check(refuses(TypeError, fompi.notify_value, comm, 0), "communicator")


def errors(fompi, win):
    wrong_index = 100
    number = fompi.err_rma_notification()
    one = array.array("q", [1])
    check(raises(number, fompi.put_notify, win, one, following, wrong_index), "index at a target")
    check(raises(number, fompi.notify_value, win, -1), "own index")
    check(raises(MPI.ERR_RANK, fompi.put_notify, win, one, size, 0), "rank")
    check(raises(MPI.ERR_ARG, fompi.wait_any_notify, win, 0, 0, 1), "number of counters")


def others_run_while_one_waits(fompi, win):
    """A thread counts while the first one waits for a notification that comes late."""
    before, counted, ends = fompi.notify_value(win, 0), [0], threading.Event()

    def count():
        while not ends.is_set():
            counted[0] += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    comm.Barrier()
    if rank == size - 1:
        time.sleep(0.3)
    at = counted[0]
    if size > 1:
        # Along the ring, from the rank that is late.
        if rank != size - 1:
            fompi.wait_notify(win, 0, before + 1)
            check(counted[0] > at, "another thread runs during a wait")
        if following != size - 1:
            fompi.put_notify(win, array.array("q", []), following, 0, (0, 0, MPI.INT64_T))
    ends.set()
    counter.join()


def main(fompi):
    win = MPI.Win.Allocate(128, 8, comm=comm)
    memory = memoryview(win.tomemory()).cast("B").cast("q")
    for i in range(16):
        memory[i] = i if i > 4 else 1
    fompi.set_num_notify(win, 3 + rank)
    check(fompi.get_num_notify(win, rank) == 3 + rank, "number")
    win.Lock_all()
    comm.Barrier()
    operations(fompi, win, memory)
    comm.Barrier()
    numbers_of_numpy(fompi, win, memory)
    comm.Barrier()
    forms_of_buffers(fompi, win, memory)
    numbers_with_too_many_bits(fompi, win)
    errors(fompi, win)
    comm.Barrier()
    others_run_while_one_waits(fompi, win)
    win.Unlock_all()
    win.Free()


if hasattr(ctypes.CDLL(None), "FOMPI_Put_notify"):
    import fompi

    main(fompi)
