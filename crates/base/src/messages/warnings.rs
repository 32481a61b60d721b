//! Warnings: lines after which the program continues.

use super::message::messages;

messages! {
    MISSPELLED_VARIABLE "W001"
        "unknown variable {name}: did you mean {nearest}?"
        "The environment has a FOMPI_ variable that libfompi does not read."
        "Correct or unset the variable.";
    UNKNOWN_VARIABLE "W002"
        "unknown variable {name}; the known ones are {names}"
        "The environment has a FOMPI_ variable that libfompi does not read."
        "Correct or unset the variable.";
    VALUE_IGNORED "W003"
        "{name}={value} is ignored: it can be {values}"
        "A variable has a value that libfompi does not know. The default value applies."
        "Set one of the values that the line lists.";
    PRIVILEGED "W004"
        "{name} is ignored: this program has more rights than the user that started it (setuid, \
         for example)"
        "A variable that names a file to load is set for a program with rights of another user."
        "Unset the variable, or install the file where the system finds it.";
    BEHIND "W005"
        "{name} comes before libfompi.so in this program, so its own one-sided functions are used: \
         link -lfompi before the MPI, or start the program with fompirun"
        "The program is linked with libfompi after its MPI."
        "Put -lfompi before the MPI in the link command, or preload libfompi.so.";
    BOUND "W006"
        "{caller} was loaded before libfompi.so, so its one-sided calls go to {name}: load \
         libfompi.so first, or start the program with fompirun"
        "A program or a module such as mpi4py was bound to its MPI before libfompi was loaded."
        "Preload libfompi.so, or load it before the module.";
    STANDS_ASIDE "W007"
        "{why}; libfompi stands aside: all calls go to that MPI"
        "This MPI is not one that libfompi serves, or the program calls it before libfompi."
        "Remove the reason that the line names, or set FOMPI_DISABLE=1, which prints no line.";
    LONE_RANK "W008"
        "the launcher started {processes} processes, but MPI_COMM_WORLD has one rank: the launcher \
         belongs to another MPI than the program{name}; start it with the launcher of that MPI \
         (fompirun --mpi ...)"
        "Each process is a job of its own, because mpirun is that of another MPI."
        "Name the launcher: fompirun --mpi, or the whole path of mpirun.";
    NOT_LOADED "W009"
        "rank {rank} has waited {seconds} s in {call}: libfompi is not loaded in {without}; start \
         all ranks with the library, as fompirun does"
        "Ranks without libfompi do not take part in the creation of a window. The rank continues \
         to wait."
        "Preload libfompi.so on all ranks: fompirun, or an option of mpirun that exports \
         LD_PRELOAD.";
    NOT_LOADED_AND_LATE "W010"
        "rank {rank} has waited {seconds} s in {call} for {with}, and libfompi is not loaded in \
         {without}; start all ranks with the library, as fompirun does"
        "Some ranks have not made a collective call yet, and others are without libfompi."
        "Preload libfompi.so on all ranks first.";
    LATE "W011"
        "rank {rank} has waited {seconds} s in {call} for {with}: libfompi is loaded there, but \
         {call} was not called yet on this communicator"
        "Some ranks have not made a collective call yet, or make it in another order."
        "Find out where these ranks are, for example by a debugger. All ranks of a communicator \
         must make its collective calls in the same order.";
    NOT_ON_ALL_NODES "W012"
        "rank {rank} has waited {seconds} s in {call}, {here}: is libfompi loaded on all other \
         nodes? If not, start all ranks with the library, as fompirun does"
        "All ranks of this node wait in a collective call for ranks of other nodes."
        "Check that libfompi.so exists on all nodes, and that LD_PRELOAD reaches them.";
    ALL_WAIT "W013"
        "rank {rank} has waited {seconds} s in {call}, as have all other ranks, which make windows \
         of other communicators"
        "All ranks make a window, but of different communicators."
        "Make windows of overlapping communicators in the same order on all ranks.";
    OTHER_JOBS "W014"
        "rank {rank} has waited {seconds} s in {call} for other ranks, some of which were started \
         by MPI_Comm_spawn or are connected to this job: they may not have made this call yet, or \
         run without libfompi"
        "A collective call waits for processes that libfompi cannot find on this node."
        "Start the other processes with libfompi, too, and check that they make the call.";
    UNKNOWN_RANKS "W015"
        "rank {rank} has waited {seconds} s in {call} for other ranks: they may not have made this \
         call yet, or run without libfompi; then start all ranks with the library, as fompirun \
         does"
        "A collective call waits, and the launcher does not tell which processes are ranks."
        "Check that all ranks make the call, and that LD_PRELOAD reaches them.";
    WITHOUT_LIBRARY "W016"
        "libfompi is not loaded in {without}; start all ranks with the library, as fompirun does"
        "A collective call has met ranks that run on the host MPI alone. The call fails."
        "Preload libfompi.so on all ranks.";
    WAITS "W017"
        "rank {rank} (process {pid}) has waited {seconds} s in {call}, {window}{whom}"
        "With FOMPI_VERBOSE=2, a rank waits long in a call on a window. It continues to wait."
        "Find out where the named ranks are, for example by a debugger.";
    WAITS_COLLECTIVELY "W018"
        "rank {rank} has waited {seconds} s in {call}{window} for {whom}"
        "With FOMPI_VERBOSE, a rank waits long in a call that makes or frees a window."
        "Find out where the named ranks are. All ranks of the window must make the call.";
    DEADLOCK "W019"
        "rank {rank} (process {pid}) has waited {seconds} s in {call}, {window}{whom}, held by \
         this process: a deadlock{unless}"
        "Processes wait for locks of each other, so none of them continues."
        "Lock several targets in the same order on all ranks, or use MPI_Win_lock_all, whose \
         epochs exclude only exclusive locks.";
    CARRIED_REQUEST "W020"
        "{call}: a request outside of a passive target epoch (MPI-4.1 §12.3.5) is carried out as \
         MPIs do; FOMPI_STRICT=1 makes it an error"
        "MPI_Rput or a similar call is made in an epoch of a fence or a start."
        "Use the call without a request, or open the epoch by a lock.";
    CARRIED_PAIR "W021"
        "{call}: an operation that does not go with the type (MPI-4.1 §6.9.2) is carried out as \
         MPIs do; FOMPI_STRICT=1 makes it an error"
        "An accumulate is called with an operation that the standard does not define for the \
         datatype."
        "Use an operation that the standard lists for the kind of datatype.";
    NETS_DIFFER "W022"
        "FOMPI_NET is {there} on rank {rank}, {here} on rank 0: all ranks use {all}"
        "Ranks have different values of FOMPI_NET."
        "Export FOMPI_NET with the same value to all ranks.";
    NO_TRANSPORT "W023"
        "{call}: delegated to the host MPI: its processes share no memory, and there is no other \
         transport"
        "The ranks of one node cannot share memory, and no network connects them."
        "In containers, start all ranks of a node in one network namespace.";
    NO_DEVICE "W024"
        "{call}: delegated to the host MPI: its processes are on several nodes, and one has no \
         RDMA device ({cause})"
        "FOMPI_NET=verbs is set, and a rank has no usable device."
        "Remove the cause, or set FOMPI_NET=tcp.";
    FAST_NETWORK "W025"
        "{call}: delegated to the host MPI: its processes are on several nodes, and that of rank \
         {rank} has {network}, which the MPI may use; {settings} selects TCP ({cause})"
        "A node has a fast network that libfompi cannot drive, such as Slingshot or EFA. The host \
         MPI may be faster there than TCP."
        "Set the variables that the line names, with the interface of that rank's node, and \
         measure whether TCP is faster.";
    NET_OFF "W026"
        "{call}: delegated to the host MPI: its processes share no memory, and FOMPI_NET=off"
        "FOMPI_NET=off forbids windows over several nodes."
        "Unset FOMPI_NET.";
    LINKS_DIFFER "W027"
        "{call}: delegated to the host MPI: some of its processes have InfiniBand, others RoCE"
        "The RDMA devices of the ranks do not reach each other."
        "Select devices of one kind by FOMPI_VERBS_DEVICE, or set FOMPI_NET=tcp.";
    NO_CONTACT "W028"
        "{call}: delegated to the host MPI: a node does not reach another one over the network"
        "The first connection between two nodes fails. Another line has the cause."
        "Allow TCP between the nodes (FOMPI_NET_PORTS for firewalls), or choose the network by \
         FOMPI_NET_INTERFACE.";
    CANNOT_LISTEN "W029"
        "{call}: delegated to the host MPI: a process cannot listen for others (FOMPI_NET_PORTS, \
         FOMPI_NET_INTERFACE)"
        "A rank finds no port at which other nodes can connect. Another line has the cause."
        "Give FOMPI_NET_PORTS at least as many ports as a node has ranks, and FOMPI_NET_INTERFACE \
         an interface that all nodes have.";
    TOO_MANY_RANKS "W030"
        "{call}: delegated to the host MPI: it has more than 40,329 processes, the most that a \
         lock word can count"
        "The communicator of the window is too large."
        "Make windows of smaller communicators.";
    UNREGISTERED "W031"
        "{call}: delegated to the host MPI: the RDMA device cannot register all of its memory: a \
         part may not be written; FOMPI_NET=tcp registers nothing"
        "The memory of MPI_Win_create has read-only pages."
        "Expose writable memory only, or set FOMPI_NET=tcp.";
    TOO_LARGE "W032"
        "{call}: delegated to the host MPI: a node has less memory than the RDMA device would have \
         to lock for it; FOMPI_NET=tcp locks none"
        "The window needs more locked memory than a node has."
        "Set FOMPI_NET=tcp, or use more nodes.";
    APART "W033"
        "{call}: delegated to the host MPI: its processes are on several nodes"
        "MPI_Win_allocate_shared is called for ranks of several nodes."
        "Split the communicator by MPI_Comm_split_type with MPI_COMM_TYPE_SHARED.";
    DENIED "W034"
        "{call}: delegated to the host MPI: its processes may not copy each other's memory \
         (process_vm_readv and writev)"
        "The system forbids access to memory of other processes, which MPI_Win_create needs."
        "Set kernel.yama.ptrace_scope=0, start containers with --cap-add SYS_PTRACE, or use \
         MPI_Win_allocate.";
    DESCRIPTORS "W035"
        "{call}: delegated to the host MPI: one of its processes has no file descriptor left \
         (ulimit -n); the next window tries again"
        "A window needs file descriptors, and a rank has reached its limit."
        "Raise the limit by `ulimit -n`, close files, or free windows.";
    MEMORY "W036"
        "{call}: delegated to the host MPI: there is no memory for its control words; the next \
         window tries again"
        "The system refuses the memory with which ranks synchronise on the window."
        "Free memory on the node, or raise the memory limit of the job or container.";
    GPU "W037"
        "{call}: delegated to the host MPI: it is over memory of a GPU, or a GPU run-time library \
         is loaded that cannot identify its memory"
        "MPI_Win_create is called with memory of a GPU, or with memory that may be of a GPU."
        "Use MPI_Win_allocate for host memory. The host MPI serves memory of GPUs if it supports \
         them.";
    OF_FOMPIRUN "W038"
        "{name} is ignored: fompirun reads it from the environment alone"
        "A configuration file sets a variable of fompirun."
        "Set the variable in the environment of fompirun.";
    FILE_IGNORED "W039"
        "{path} is ignored: {why}"
        "A configuration file cannot be read, or a program with rights of another user does not \
         trust it."
        "Remove the reason that the line names, or the file.";
    LINE_IGNORED "W040"
        "{source}: `{text}` is ignored: a line is FOMPI_NAME=value"
        "A line of a configuration file is neither a value nor a comment."
        "Correct the line, or begin it with #.";
}
