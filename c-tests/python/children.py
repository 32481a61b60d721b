# Children of Python's multiprocessing, by fork, of a rank whose windows are over a bytearray and an
# array: each child has copies of its own, and the windows of the parent go on.
# MPI-4.1 section 12.2.1.
# ranks: 2 4
# settings: FOMPI_ADOPT=always

import array
import multiprocessing
import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
following, previous = (rank + 1) % size, (rank + size - 1) % size
BYTES, LONGS, TURNS = 300_000, 40_000, 4


def check(holds, what):
    if not holds:
        print(f"children.py: rank {rank} of {size}: {what}", file=sys.stderr, flush=True)
        comm.Abort(1)


def child(memory, numbers, turn, gate, answers):
    """Sees what was there at the fork, whatever its parent and peers store later."""
    gate.wait(50)
    seen = memory == bytes([turn + 1]) * BYTES and set(numbers) == {turn}
    memory[:] = bytes(BYTES)
    for at in range(0, LONGS, 100):
        numbers[at] = -1
    answers.put(seen and not any(memory) and numbers[100] == -1)


def use(context, windows, memory, numbers, turn):
    comm.Barrier()
    memory[:] = bytes([turn + 1]) * BYTES
    numbers[:] = array.array("q", [turn]) * LONGS
    comm.Barrier()
    gate, answers = context.Event(), context.Queue()
    children = [context.Process(target=child, args=(memory, numbers, turn, gate, answers))
                for _ in range(2)]
    for one in children:
        one.start()
    comm.Barrier()
    for win, value in zip(windows, (bytes([90 + rank]) * BYTES,
                                    array.array("q", [1000 + rank]) * LONGS)):
        win.Fence()
        win.Put(value, following)
        win.Fence()
    gate.set()
    for _ in children:
        check(answers.get(timeout=50), "memory of a child")
    for one in children:
        one.join()
        check(one.exitcode == 0, "end of a child")
    check(memory == bytes([90 + previous]) * BYTES, "put to a bytearray")
    check(set(numbers) == {1000 + previous}, "put to an array")


def main():
    context = multiprocessing.get_context("fork")
    memory, numbers = bytearray(BYTES), array.array("q", [0]) * LONGS
    windows = [MPI.Win.Create(memory, 1, comm=comm), MPI.Win.Create(numbers, 8, comm=comm)]
    for turn in range(TURNS):
        use(context, windows, memory, numbers, turn)
    for win in windows:
        win.Free()
    check(memory == bytes([90 + previous]) * BYTES, "a bytearray after its window")


main()
