from array import array
from mpi4py import MPI

comm = MPI.COMM_WORLD
win = MPI.Win.Allocate(4, 4, comm=comm)
win.Fence()
win.Put(array("i", [comm.rank]), (comm.rank + 1) % comm.size)
win.Fence()
print("rank", comm.rank, "got", memoryview(win.tomemory()).cast("i")[0])
win.Free()
