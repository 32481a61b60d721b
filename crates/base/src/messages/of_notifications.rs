//! Messages about notified operations.

use super::message::messages;

messages! {
    NO_COUNTER "E137" [Other]
        "invalid notification index {index}: rank {rank} has {counters} counters"
        "A call names a counter that the rank does not have. The class of the error is \
         FOMPI_ERR_RMA_NOTIFICATION."
        "Pass an index from 0 to the number of counters of that rank minus 1: the rank gives the \
         number to FOMPI_Win_set_num_notify, and FOMPI_Win_get_num_notify returns it.";
    NOTIFIED_NOT_PASSIVE "E138" [RmaSync]
        "a notified operation is for passive target epochs only"
        "FOMPI_Put_notify or a similar call is made in an epoch of a fence or a start."
        "Open the epoch by MPI_Win_lock or MPI_Win_lock_all.";
    COUNTERS "E139" [Arg]
        "invalid number of notifications {value}"
        "FOMPI_Win_set_num_notify or FOMPI_Win_wait_any_notify is called with a negative number, \
         or one beyond a limit of the program: mpi_assert_max_num_notify, or the counters of the \
         rank."
        "Pass a number within the limit.";
    COUNTERS_IN_EPOCH "E140" [RmaSync]
        "the number of notifications cannot change while an access epoch is open"
        "FOMPI_Win_set_num_notify is called in an access epoch of the process."
        "Call it before MPI_Win_lock_all, or after MPI_Win_unlock_all.";
    NO_NOTIFICATIONS "E141" [Unsupported]
        "not supported: notifications on a window of the host MPI"
        "The host MPI implements the window, because the window is delegated or libfompi stands \
         aside, and libfompi has no notifications there."
        "FOMPI_VERBOSE=1 prints why.";
    NOTIFICATION_CLASS "E142" [Other]
        "notification index out of range"
        "The text of the error class FOMPI_ERR_RMA_NOTIFICATION."
        "The line of the error has the index and the number of counters.";
}
