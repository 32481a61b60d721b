//! Messages about calls that make a window or allocate memory, and about resources.

use super::message::messages;

messages! {
    COMM_NULL "E070" [Comm]
        "the communicator is MPI_COMM_NULL"
        "A call that makes a window has no communicator."
        "Call only on ranks that belong to the communicator.";
    COMM_INTER "E071" [Comm]
        "the communicator is an intercommunicator"
        "A call that makes a window has an intercommunicator."
        "Make an intracommunicator by MPI_Intercomm_merge.";
    SIZE "E072" [Size]
        "invalid size {value}"
        "A call makes a window of negative size."
        "Pass a size of 0 or more, in bytes.";
    SIZE_BEYOND "E073" [Size]
        "size beyond the last address, {value}"
        "The memory of MPI_Win_create extends beyond the address space."
        "Check the base and the size.";
    DISP_UNIT "E074" [Disp]
        "invalid displacement unit {value}"
        "The displacement unit is 0 or negative, or larger than the host MPI accepts."
        "Pass 1 for displacements in bytes, or the size of an element.";
    ALLOC_SIZE "E075" [Arg]
        "invalid size {value}"
        "MPI_Alloc_mem is called with a negative size."
        "Pass a size of 0 or more, in bytes.";
    INSIDE_ALLOCATION "E076" [Base]
        "address {address} is inside an allocation, not at its beginning"
        "MPI_Free_mem is called with an address that MPI_Alloc_mem has not returned."
        "Pass the address that MPI_Alloc_mem has returned.";
    TOO_MANY_WINDOWS "E077" [Other]
        "too many windows at once, limit {value}"
        "A process has more windows than libfompi has places for."
        "Free windows that are not needed, or use one window for several arrays.";
    NO_MEMORY "E078" [NoMem]
        "no memory for {bytes} bytes on this node"
        "The system refuses memory for a window."
        "Request less, or use more nodes. Check the limits of the job (control groups) and \
         `ulimit -v`.";
    TOO_MUCH "E079" [NoMem]
        "{own} requested on this rank, and {of} has {limit}"
        "The node, or the control group of the process, can never hold the requested memory."
        "Request less, use more nodes, or raise the memory limit of the job or container.";
    TOO_MUCH_TOGETHER "E080" [NoMem]
        "{own} requested on this rank, {all} by the ranks of this node together, and {of} has \
         {limit}"
        "The node, or the control group of the ranks, can never hold the requested memory. All \
         ranks get the error."
        "Request less, use more nodes, or raise the memory limit of the job or container.";
    NO_CONTROL_MEMORY "E081" [NoMem]
        "there is no memory for its control words; the next window tries again"
        "The system refuses the memory with which ranks synchronise on the window."
        "Free memory on the node, or raise the memory limit of the job or container.";
    NO_DESCRIPTOR "E082" [Other]
        "one of its processes has no file descriptor left (ulimit -n)"
        "A window of MPI_Win_allocate or MPI_Win_allocate_shared needs a file descriptor on each \
         rank. All ranks get the error."
        "Raise the limit by `ulimit -n`, close files, or free windows.";
    PROCESS_DESCRIPTORS "E083" [Other]
        "{call}: this process has no file descriptor left (ulimit -n)"
        "A system call needs a file descriptor, and the process has reached its limit."
        "Raise the limit by `ulimit -n`, close files, or free windows.";
    NODE_DESCRIPTORS "E084" [Other]
        "{call}: this node has no file descriptor left (fs.file-max)"
        "A system call needs a file descriptor, and the node has reached its limit."
        "Raise fs.file-max by sysctl, or close files.";
    SYSTEM "E085" [Other]
        "{call} failed: {reason}"
        "The system refuses a call that libfompi needs."
        "The manual page of the system call describes the reason.";
    RUNTIME "E086" [Other]
        "{call} failed with error {code}"
        "The run-time library of a GPU cannot copy a buffer."
        "Check the buffer; the manual of the GPU library describes the error code.";
    REGISTRATION_LIMIT "E087" [NoMem]
        "the RDMA device cannot register {bytes} bytes of memory (errno {errno}): locked memory is \
         limited to {limit} bytes (RLIMIT_MEMLOCK); raise it by `ulimit -l`"
        "The device needs locked memory, and the process may not lock that much."
        "Raise the limit by `ulimit -l unlimited`, or in limits.conf and the batch system's \
         configuration, or set FOMPI_NET=tcp.";
    REGISTRATION_FULL "E088" [NoMem]
        "the RDMA device cannot register {bytes} bytes of memory (errno {errno}): locked memory is \
         not limited, so the device or the node has run out of memory"
        "The device needs locked memory, and there is none."
        "Request less, use more nodes, or set FOMPI_NET=tcp.";
    NOT_DELEGATED "E089" [Unsupported]
        "libfompi cannot serve the window: {reason}; FOMPI_FALLBACK=error forbids the host MPI"
        "A window would have to fall back to the host MPI. The reasons are those of the warnings \
         about delegated windows."
        "Remove the reason, or unset FOMPI_FALLBACK.";
    ANOTHER_REFUSES "E090" [Unsupported]
        "not supported: another rank refuses to delegate the window"
        "A window would have to fall back to the host MPI, and another rank has an error of its \
         own."
        "The line of that rank has the cause. Set FOMPI_FALLBACK to the same value on all ranks.";
    CAUSE_ELSEWHERE "E091" [Unsupported]
        "not supported: another rank cannot make a window over many nodes"
        "A rank of another node has failed to make the window."
        "The line of that rank has the cause.";
    REFUSED "E092"
        "{class} on rank {rank}"
        "Another rank fails in a collective step. The class is that of its error."
        "The line of that rank has the cause; often its size, displacement unit or info differs.";
    NO_VERBS "E093" [Other]
        "no usable RDMA device: {reason}"
        "FOMPI_NET=verbs or FOMPI_VERBS_DEVICE asks for an RDMA device, and the rank has none."
        "Remove the reason, or set FOMPI_NET=tcp.";
    NO_LISTENER "E094" [Other]
        "cannot listen for other processes: {reason}"
        "A window over several nodes needs a port at which other processes connect."
        "Check FOMPI_NET_PORTS and FOMPI_NET_INTERFACE.";
    NO_FUNCTION "E095" [Unsupported]
        "not supported: a function that this MPI does not have"
        "The program calls an extension that only other MPIs have."
        "Compile and run the program with the same MPI.";
    NO_PEER "E097" [Unsupported]
        "not supported: a request to another node on a window of one node"
        "A window on one node is treated as one over several nodes, which is an error of libfompi."
        "Report the program and the line that FOMPI_VERBOSE=1 prints for the window.";
    DAMAGED_REGIONS "E098" [Intern]
        "corrupt table of attached memory at the target"
        "The memory in which ranks share their attached regions is overwritten."
        "Find stores outside of the program's own memory, for example by valgrind.";
    DAMAGED_LOCATION "E099" [Intern]
        "corrupt location of memory from its owner"
        "The memory in which ranks share locations is overwritten."
        "Find stores outside of the program's own memory, for example by valgrind.";
    DAMAGED_ANNOUNCEMENT "E100" [Intern]
        "corrupt window announcement from rank 0"
        "The memory in which ranks agree on a window is overwritten."
        "Find stores outside of the program's own memory, for example by valgrind.";
    DAMAGED_POSTS "E101" [Intern]
        "corrupt list of posts at the target"
        "The memory in which MPI_Win_post leaves its posts is overwritten."
        "Find stores outside of the program's own memory, for example by valgrind.";
}
