"""A hub and its spokes: rank 0 sleeps until any solver has delivered.

As hub.py, but the hub looks at nothing while the solvers solve. Each spoke (every rank but 0) puts its
solution into the hub's window with a notification on a counter of its own; the hub waits for any of
the counters, adds the solution to its average, and puts the average back with a notification. It needs
libfompi, by fompirun or `python -m fompi`.

usage: hub_notify.py [SOLVES [SECONDS_OF_A_SOLVE]]
"""
import sys
import time
from array import array

import fompi
import mpi4py
mpi4py.rc.threads = False  # Open MPI 4 has no windows between nodes for several threads
from mpi4py import MPI

solves = int(sys.argv[1]) if len(sys.argv) > 1 else 10
solve_seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 0.1
comm = MPI.COMM_WORLD
spokes = comm.size - 1
# The hub: the solution of each spoke. A spoke: the average.
win = MPI.Win.Allocate(comm.size * 8, 8, comm=comm)
mine = memoryview(win.tomemory()).cast("d")
mine[:] = array("d", [0] * comm.size)
# The hub has a counter for each spoke, a spoke one for the answers of the hub.
fompi.set_num_notify(win, spokes if comm.rank == 0 else 1)
win.Lock_all()
comm.Barrier()


def hub():
    began, worked, deliveries = time.process_time(), time.monotonic(), 0
    while deliveries < spokes * solves:
        counter = fompi.wait_any_notify(win, 0, spokes, 1)  # sleeps
        fompi.reset_notify_value(win, counter)
        deliveries += 1
        average = array("d", [sum(mine[1:]) / spokes])
        fompi.put_notify(win, average, counter + 1, 0)
        win.Flush_local(counter + 1)
    used, passed = time.process_time() - began, time.monotonic() - worked
    print(f"deliveries={deliveries} average={average[0]:.4f} processor={used / passed:.1%}")


def spoke():
    for solve in range(1, solves + 1):
        time.sleep(solve_seconds * (0.5 + comm.rank / comm.size))  # the solver
        solution = array("d", [comm.rank * solve / solves])
        fompi.put_notify(win, solution, 0, comm.rank - 1, comm.rank)
        win.Flush_local(0)
        fompi.wait_notify(win, 0, solve)
    assert mine[0] != 0


if spokes > 0:
    hub() if comm.rank == 0 else spoke()
win.Unlock_all()
win.Free()
