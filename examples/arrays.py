"""Arrays that workers fetch when they have time: rank 0 has arrays of different shapes.

Rank 0 exposes each array by a memory handle and sends all handles to all workers, as pickled objects. A
worker draws the number of the next array from a counter, gets the array, and adds its sum to the
result. Rank 0 makes no call for that, and withdraws the arrays at the end. It needs numpy and
libfompi, by fompirun or `python -m fompi`.

usage: arrays.py [ARRAYS]
"""
import sys

import fompi
import mpi4py
mpi4py.rc.threads = False  # Open MPI 4 has no windows between nodes for several threads
from mpi4py import MPI
import numpy

comm = MPI.COMM_WORLD
arrays = int(sys.argv[1]) if len(sys.argv) > 1 else 100
win = MPI.Win.Create_dynamic(comm=comm)
fompi.register_window("arrays", win)


def owner():
    own = [numpy.full((1 + i % 5, 10), float(i)) for i in range(arrays)]
    board = fompi.allocate(win, 2, "d")  # the number of the next array, and the result
    board.memory[0], board.memory[1] = 0, 0
    mems = [fompi.expose(win, one) for one in own]
    comm.bcast([board, mems])
    comm.Barrier()  # the workers are done
    total = board.memory[1]
    for mem in [board, *mems]:
        mem.withdraw()
    is_right = comm.size == 1 or total == sum(one.sum() for one in own)
    print(f"arrays={arrays} workers={comm.size - 1} total={total:.0f} verified={is_right:d}")


def worker():
    board, mems = comm.bcast(None)
    drawn = numpy.zeros(1)
    while True:
        board.fetch_and_op(numpy.ones(1), drawn)
        if drawn[0] >= len(mems):
            break
        mem = mems[int(drawn[0])]
        data = numpy.empty(mem.shape, mem.format)
        mem.get(data)
        board.accumulate(numpy.array([data.sum()]), 8, attributes=fompi.REMOTE)
    comm.Barrier()


owner() if comm.rank == 0 else worker()
win.Free()
