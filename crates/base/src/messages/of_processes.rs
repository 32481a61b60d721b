//! Messages about lost processes, ranks that differ, and the host MPI.

use super::message::messages;

messages! {
    DIED "E102" [Other]
        "rank {rank} (process {pid}) died"
        "A process has ended without MPI_Finalize while a call needs it."
        "Find out why it died: its own output, the system's log (out of memory), a core file.";
    LOST "E103" [Other]
        "{process} cannot be reached: {cause}"
        "A process on another node has died, or its link has failed. The first rank of a node \
         serves all ranks there, so the line may name that rank."
        "Check the node and the network. Over TCP, FOMPI_NET_TIMEOUT sets the time after which a \
         silent node counts as lost.";
    UNANSWERED "E104" [Other]
        "{process} did not respond (the next operation retries): {cause}"
        "A process on another node does not accept the first connection."
        "Allow TCP between the nodes (FOMPI_NET_PORTS for firewalls), or choose the network by \
         FOMPI_NET_INTERFACE.";
    LOST_CLASS "E105" [Other]
        "a process of the window died or cannot be reached"
        "The text of the error class that libfompi adds for lost processes. MPI_Error_string \
         returns it to threads that did not get the error."
        "The thread that got the error can ask for its reason.";
    NO_LIBRARY "E106" [Other]
        "some ranks are without this libfompi.so: start all ranks with it, as fompirun does"
        "A collective call meets ranks that run on the host MPI alone."
        "Preload libfompi.so on all ranks: fompirun, or LD_PRELOAD with an option of mpirun that \
         exports it.";
    BUILD_DIFFERS "E107" [Other]
        "libfompi.so is build {there} on rank {rank}, {here} here: start all ranks with the same \
         file"
        "Ranks have loaded different builds of libfompi."
        "Install the same file on all nodes, and check LD_PRELOAD, FOMPI_LIB and LD_LIBRARY_PATH.";
    SETTING_DIFFERS "E108" [Other]
        "{name} is {there} on rank {rank}, {here} here: start all ranks with the same value"
        "A variable that must be equal on all ranks differs."
        "Export the variable to all ranks by the option of mpirun or srun, not by a shell on one \
         node.";
    DIFFER_CLASS "E109" [Other]
        "ranks disagree on a setting that must be identical"
        "The text of the error class that libfompi adds for ranks that differ. MPI_Error_string \
         returns it to threads that did not get the error."
        "The thread that got the error can ask for its reason.";
    HOST_ERROR "E110"
        "error code {code} of the host MPI"
        "The host MPI returns an error from a call that libfompi passes on to it. The line has the \
         text of the host MPI, if it has one."
        "The documentation of the host MPI describes the error.";
    CALLED_HANDLER "E111"
        "MPI_Win_call_errhandler: error code {code}"
        "The program calls the error handler of a window itself, and the handler is fatal."
        "The program decides about this error.";
    NO_MPI "E112"
        "no MPI library is loaded in this process; where an MPI is linked statically into the \
         program, libfompi cannot be used: link the shared one"
        "An MPI function is called in a program without a shared MPI library. The process aborts."
        "Link the program with the shared library of its MPI.";
    CALLED_UNSERVED "E113"
        "{why}, but libfompi was called"
        "A function of libfompi is called although it does not serve this MPI. The process aborts."
        "Remove the reason that the line names, or start the program without libfompi.";
    NO_SUCH_FUNCTION "E114"
        "{call}: the MPI that all calls go to has no such function"
        "The program calls a function that its MPI lacks. The process aborts."
        "Compile and run the program with the same MPI.";
    UNSERVED_MPI "E115"
        "libfompi cannot serve this MPI, and FOMPI_FALLBACK=error forbids its own windows: unset \
         FOMPI_FALLBACK to use them"
        "A window is made in a program whose MPI libfompi does not serve."
        "Unset FOMPI_FALLBACK, or use MPICH, Open MPI or another supported MPI.";
    INTERNAL "E116"
        "internal error of libfompi at {place}: the process aborts"
        "A check inside libfompi fails, which is an error of libfompi or damaged memory. The line \
         above names the check."
        "Report both lines, the MPI and its version. FOMPI_DISABLE=1 on all ranks passes all calls \
         to the host MPI.";
}
