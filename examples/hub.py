"""A hub and its spokes: rank 0 reads what the solvers have found, while they solve.

Progressive hedging, as codes for stochastic optimization do it: each spoke (every rank but 0) has a
scenario, and a solver that runs for a while and calls nothing of MPI. The hub reads all solutions
many times a second, and writes their average, and a price of the difference, to each spoke. The
solver here only burns time; what it minimizes, (x - wish)^2, has a formula.

usage: hub.py [SECONDS [SECONDS_OF_A_SOLVE]]
"""
import sys
import time
from array import array

import mpi4py
mpi4py.rc.threads = False  # Open MPI 4 has no windows between nodes for several threads
from mpi4py import MPI

SOLVES, X, AVERAGE, PRICE, STOP, WORDS = range(6)  # each window; the hub writes the last three words
RHO = 1.0
seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 4
solve_seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 0.25
comm = MPI.COMM_WORLD
win = MPI.Win.Allocate(WORDS * 8, 8, comm=comm)
mine = memoryview(win.tomemory()).cast("d")
mine[:] = array("d", [0] * WORDS)
comm.Barrier()


def hub():
    spokes, prices, seen = range(1, comm.size), [0.0] * comm.size, [0.0] * comm.size
    waits, end, stop = [], time.monotonic() + seconds, False
    while not stop:
        stop, solutions = time.monotonic() >= end, {}
        for spoke in spokes:
            got, before = array("d", [0, 0]), time.monotonic()
            win.Lock(spoke, MPI.LOCK_SHARED)
            win.Get(got, spoke, SOLVES)
            win.Unlock(spoke)
            waits.append(time.monotonic() - before)
            solutions[spoke] = got
        average = sum(x for _, x in solutions.values()) / len(spokes)
        for spoke, (solves, x) in solutions.items():
            prices[spoke] += RHO * (x - average) if solves > seen[spoke] else 0
            seen[spoke] = solves
            win.Lock(spoke, MPI.LOCK_EXCLUSIVE)
            win.Put(array("d", [average, prices[spoke], stop]), spoke, AVERAGE)
            win.Unlock(spoke)
        time.sleep(0.01)
    waits.sort()
    print(f"reads={len(waits)} median={waits[len(waits) // 2]:.9f} longest={waits[-1]:.9f}",
          f"solves={sum(seen):.0f} average={average:.4f}")


def spoke():
    wish = float(comm.rank)
    average, price, stop = 0.0, 0.0, 0.0
    while not stop:
        solved_at = time.monotonic() + solve_seconds
        while time.monotonic() < solved_at:  # the solver
            pass
        win.Lock(comm.rank, MPI.LOCK_EXCLUSIVE)
        mine[SOLVES] += 1
        mine[X] = (2 * wish - price + RHO * average) / (2 + RHO)
        average, price, stop = mine[AVERAGE:]
        win.Unlock(comm.rank)


hub() if comm.rank == 0 else spoke()
win.Free()
