//! Messages about calls that are not valid in the current epoch, and about their arguments.

use super::message::messages;

messages! {
    NO_EPOCH "E029" [RmaSync]
        "no access epoch is open: call MPI_Win_fence, MPI_Win_start, MPI_Win_lock or \
         MPI_Win_lock_all first"
        "A call moves data outside of an access epoch."
        "Open an epoch before the call: MPI_Win_lock_all once after the window is made serves most \
         programs. If a fence has MPI_MODE_NOSUCCEED, it opens none.";
    NOT_IN_START_GROUP "E030" [RmaSync]
        "target is not in the group of MPI_Win_start"
        "A call names a target that is not in the group of the access epoch."
        "Add the target to the group, and let it call MPI_Win_post.";
    NOT_LOCKED "E031" [RmaSync]
        "target is not locked"
        "A call names a target that this process has not locked."
        "Call MPI_Win_lock for this target first, or MPI_Win_lock_all for all of them.";
    OTHER_EPOCH "E032" [RmaSync]
        "another access epoch is open"
        "A call would open an access epoch while one of another kind is open."
        "End the open epoch first: MPI_Win_complete, MPI_Win_unlock, MPI_Win_unlock_all, or a \
         fence with MPI_MODE_NOSUCCEED.";
    ACCESS_OPEN "E033" [RmaSync]
        "an access epoch is open"
        "MPI_Win_free comes before the end of an access epoch."
        "End the epoch first: MPI_Win_complete, MPI_Win_unlock or MPI_Win_unlock_all.";
    EXPOSURE_OPEN "E034" [RmaSync]
        "an exposure epoch is open"
        "MPI_Win_fence or MPI_Win_free comes before the end of an exposure epoch."
        "Call MPI_Win_wait first, or MPI_Win_test until it sets its flag.";
    EXPOSURE_OPEN_ALREADY "E035" [RmaSync]
        "an exposure epoch is open already"
        "MPI_Win_post is called twice."
        "End the first exposure epoch by MPI_Win_wait or MPI_Win_test before the next one.";
    FENCE_OPEN "E036" [RmaSync]
        "a fence epoch is open"
        "MPI_Win_post is called in a fence epoch in which data were moved."
        "End the epoch by a fence with MPI_MODE_NOSUCCEED.";
    NO_START "E037" [RmaSync]
        "no MPI_Win_start before it"
        "MPI_Win_complete ends no epoch."
        "Call MPI_Win_start first.";
    NO_POST "E038" [RmaSync]
        "no MPI_Win_post before it"
        "MPI_Win_wait or MPI_Win_test ends no epoch."
        "Call MPI_Win_post first.";
    NO_LOCK_ALL "E039" [RmaSync]
        "no MPI_Win_lock_all before it"
        "MPI_Win_unlock_all ends no epoch."
        "Call MPI_Win_lock_all first. Locks of MPI_Win_lock are released by MPI_Win_unlock.";
    NO_TARGET_LOCKED "E040" [RmaSync]
        "no target is locked"
        "A flush of all targets, or MPI_Win_sync, comes outside of a passive target epoch."
        "Call MPI_Win_lock or MPI_Win_lock_all first. A fence completes the operations of its own \
         epoch without a flush.";
    LOCKED_ALREADY "E041" [RmaSync]
        "target is locked already"
        "A process locks the same target twice."
        "Unlock the target first, or do all accesses under the first lock.";
    REQUEST "E042" [RmaSync]
        "a request is for passive target epochs only"
        "MPI_Rput or a similar call is made in an epoch of a fence or a start, and FOMPI_STRICT is \
         set."
        "Use the call without a request, or open the epoch by a lock.";
    CONFLICT "E164" [RmaConflict]
        "{access} of bytes {first} to {end} of rank {rank} conflicts with {other} that this \
         process has not completed (MPI-4.1 §12.3, §12.7)"
        "With FOMPI_CHECK=conflicts or the info key fompi_conflicts, two accesses of a process use \
         the same bytes in one epoch, and one of them writes. The second number is one past the \
         last byte; bytes count from the base at the target, in a dynamic window from address 0."
        "Complete the first access before the second one: MPI_Win_flush, or the end of the epoch. \
         Or make both accumulates with the same datatype.";
    LOCK_TYPE "E043" [LockType]
        "invalid lock type {value}"
        "The lock type of MPI_Win_lock is neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE."
        "Check the order of the arguments: lock type, rank, assert, window.";
    ASSERT "E044" [Assert]
        "invalid assert {value}"
        "A call is made with an assert that is not for this call."
        "Pass 0, or the MPI_MODE_ constants that the standard lists for the call.";
    GROUP_NULL "E045" [Group]
        "the group is MPI_GROUP_NULL"
        "MPI_Win_post or MPI_Win_start is called with no group."
        "Pass a group of ranks of the window, or MPI_GROUP_EMPTY.";
    GROUP_OUTSIDE "E046" [Group]
        "not all processes of the group are in the window, size of the group {value}"
        "The group of MPI_Win_post or MPI_Win_start has a process that is not in the window's \
         group."
        "Make the group from that of MPI_Win_get_group.";
}
