# The one-sided calls through mpi4py: windows, puts, gets, accumulates, locks, fences, requests,
# attributes and names. MPI-4.1 chapter 12.
# ranks: 1 2 4
# between nodes: shared windows are left to the host MPI

import array
import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
following, previous = (rank + 1) % size, (rank + size - 1) % size


def check(holds, what):
    if not holds:
        print(f"smoke.py: rank {rank} of {size}: {what}", file=sys.stderr, flush=True)
        comm.Abort(1)


def integers(*values):
    return array.array("q", values)


def fences(win, memory):
    value, got = integers(100 + rank), integers(-1)
    win.Fence()
    win.Put(value, following)
    win.Fence()
    check(memory[0] == 100 + previous, "put between fences")
    win.Get(got, following)
    win.Fence(MPI.MODE_NOSUCCEED)
    check(got[0] == 100 + rank, "get between fences")


def locks(win, memory):
    one, before = integers(1), integers(-1)
    for _ in range(5):
        win.Lock(0, MPI.LOCK_SHARED)
        win.Fetch_and_op(one, before, 0, 4, MPI.SUM)
        win.Accumulate(one, 0, 4, MPI.SUM)
        win.Unlock(0)
    comm.Barrier()
    win.Lock_all()
    got = integers(-1)
    win.Rget(got, 0, 4).Wait()
    win.Flush_all()
    win.Unlock_all()
    check(got[0] == 10 * size, "rget after counting")
    comm.Barrier()


def post_and_start(win, memory):
    group = win.Get_group()
    to, source = group.Incl([following]), group.Incl([previous])
    win.Post(source)
    win.Start(to)
    win.Put(integers(300 + rank), following, 5)
    win.Complete()
    win.Wait()
    check(memory[5] == 300 + previous, "post and start")
    for each in (group, to, source):
        each.Free()


def attributes(win):
    check(win.Get_attr(MPI.WIN_SIZE) == 128, "size attribute")
    check(win.Get_attr(MPI.WIN_DISP_UNIT) == 8, "unit attribute")
    check(win.flavor == MPI.WIN_FLAVOR_ALLOCATE, "flavour attribute")
    win.Set_name("halo")
    check(win.Get_name() == "halo", "name")
    win.Set_errhandler(MPI.ERRORS_RETURN)
    win.Fence()
    try:
        win.Put(integers(1), size)
        check(False, "a wrong rank raises")
    except MPI.Exception as error:
        check(error.Get_error_class() == MPI.ERR_RANK, "class of a wrong rank")
    win.Fence(MPI.MODE_NOSUCCEED)


def shared_windows():
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    neighbour = (node.rank + 1) % node.size
    win = MPI.Win.Allocate_shared(64, 8, comm=node)
    mine = memoryview(win).cast("B").cast("q")
    mine[7] = 40 + node.rank
    win.Fence()
    buffer, unit = win.Shared_query(neighbour)
    theirs = memoryview(buffer).cast("B").cast("q")
    check(unit == 8 and theirs[7] == 40 + neighbour, "load from a neighbour")
    win.Fence()
    win.Free()
    node.Free()


def main():
    win = MPI.Win.Allocate(128, 8, comm=comm)
    memory = memoryview(win).cast("B").cast("q")
    for i in range(16):
        memory[i] = 0
    comm.Barrier()
    fences(win, memory)
    comm.Barrier()
    locks(win, memory)
    post_and_start(win, memory)
    attributes(win)
    shared_windows()
    win.Free()


main()
