//! Messages about memory handles.

use super::message::messages;

messages! {
    MEM_INVALID "E144" [Arg]
        "no memory handle: it is FOMPI_MEM_NULL, or was withdrawn or released, or its window was \
         freed"
        "A call with a memory handle has none that is in use."
        "Pass a handle of FOMPI_Mem_expose, FOMPI_Mem_allocate or FOMPI_Mem_unpack, before it is \
         withdrawn or released and before its window is freed.";
    MEM_UNKNOWN "E145" [Arg]
        "the bytes are no packed memory handle of this window"
        "FOMPI_Mem_unpack has bytes that FOMPI_Mem_pack has not written for a handle of the same \
         window, or some of them are missing or changed. Handles are for processes with the same \
         byte order and width of addresses."
        "Pass all FOMPI_MEM_BYTES bytes unchanged, with the window of the handle.";
    MEM_WITHDRAWN "E146" [RmaRange]
        "the memory of this handle was withdrawn by its owner"
        "An access uses a handle whose owner has called FOMPI_Mem_withdraw or MPI_Win_free."
        "Tell the processes that have the handle before the owner withdraws it.";
    MEM_RANGE "E147" [RmaRange]
        "bytes {first} to {end} are outside of the memory handle: rank {rank} exposes {bytes} \
         bytes by it"
        "The access leaves the memory of the handle. Bytes count from its base, and the second \
         number is one past the last byte."
        "Check the displacement, which is in bytes, the count and the datatype.";
    MEM_NOT_OWNER "E148" [Arg]
        "FOMPI_Mem_withdraw is for the handle of the process that has exposed the memory"
        "The handle is of FOMPI_Mem_unpack."
        "Call FOMPI_Mem_release.";
    MEM_OF_OWNER "E149" [Arg]
        "FOMPI_Mem_release is for a handle of FOMPI_Mem_unpack"
        "The process has exposed the memory by this handle itself."
        "Call FOMPI_Mem_withdraw.";
    MEM_SIZE "E150" [Size]
        "invalid size {value} of memory to expose"
        "The size is negative, or the memory ends beyond the last address."
        "Pass the number of bytes.";
    MEM_NULL "E151" [Arg]
        "null pointer as the memory to expose"
        "FOMPI_Mem_expose has a size but no memory."
        "Pass the address of the memory.";
    MEM_MIXED "E152" [Unsupported]
        "not supported: a handle across memory of MPI_Alloc_mem and other memory"
        "The memory of one handle is in part of MPI_Alloc_mem or FOMPI_Mem_allocate and in part \
         other memory."
        "Expose each part by a handle of its own.";
    MEM_ATTRIBUTES "E153" [Arg]
        "invalid attributes {value} of a transfer"
        "The attributes of a transfer have an unknown bit, or FOMPI_BLOCKING with a request."
        "Add up FOMPI_ORDERED, FOMPI_REMOTE, FOMPI_ATOMIC and FOMPI_BLOCKING.";
    MEM_NOT_ATOMIC "E154" [Unsupported]
        "not supported: FOMPI_ATOMIC for an accumulate"
        "FOMPI_ATOMIC is for puts and gets. Accumulates are atomic for each element in any case."
        "Leave the attribute out.";
    NO_HANDLES "E155" [Unsupported]
        "not supported: a call of fompi_rma.h on a window of the host MPI"
        "The host MPI implements the window, because the window is delegated or libfompi stands \
         aside, and has no memory handles and no such calls."
        "FOMPI_VERBOSE=1 prints why.";
    MEM_KIND "E156" [Arg]
        "invalid kind {value} of a transfer"
        "FOMPI_Xfer has a kind that is none of those of fompi_rma.h."
        "Pass FOMPI_PUT, FOMPI_GET, FOMPI_ACCUMULATE, FOMPI_GET_ACCUMULATE or \
         FOMPI_COMPARE_AND_SWAP.";
    WINDOWS "E157" [Count]
        "invalid number of windows {value}"
        "The number of windows is negative."
        "Pass a number from 0 on.";
    NULL_WINDOWS "E158" [Arg]
        "null pointer as the windows"
        "FOMPI_Win_nflush has a number of windows but no windows."
        "Pass an array of handles.";
    DUPLICATE_EPOCH "E159" [RmaSync]
        "a duplicate of a window has one epoch, from its making to its end"
        "A call would begin or end an epoch of a window of FOMPI_Win_dup or FOMPI_Win_from_mem."
        "Leave the call out, or make it on the window itself.";
    HAS_DUPLICATES "E160" [RmaSync]
        "the window has {value} duplicates, which have to be freed first"
        "MPI_Win_free frees a window while windows that FOMPI_Win_dup or FOMPI_Win_from_mem has \
         made over it are in use."
        "Free these windows first.";
    MEM_NOT_IN_WINDOW "E161" [RmaRange]
        "no memory handle of this rank is in the window"
        "An access on a window of FOMPI_Win_from_mem is to a rank none of whose handles it has."
        "Make the window of handles of all ranks that it is used with.";
    MEMS_DIFFER "E162" [Arg]
        "the memory handles are not of one window, with one at most of each rank"
        "FOMPI_Win_from_mem has no handle, two of one rank, or handles of several windows."
        "Pass handles of one window, at least one and one at most for each rank.";
    HANDLES "E163" [Count]
        "invalid number of memory handles {value}"
        "The number of handles of FOMPI_Win_from_mem is negative."
        "Pass a number from 1 on.";
    SCALED_TYPE "E165" [Type]
        "a scaled accumulate is for MPI_INT, MPI_LONG, MPI_FLOAT, MPI_DOUBLE and the complex types \
         of C of the last two, in memory of the host"
        "FOMPI_Mem_accumulate_scaled has another datatype, or a buffer in memory of a GPU."
        "Scale the elements before the call, and call FOMPI_Mem_accumulate with MPI_SUM.";
    NULL_FACTOR "E166" [Buffer]
        "null pointer as the factor"
        "FOMPI_Mem_accumulate_scaled has no factor."
        "Pass the address of one element of the datatype.";
}
