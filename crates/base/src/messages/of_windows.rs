//! Messages about windows, their attributes and handlers, attached regions and memory that cannot
//! be accessed.

use super::message::messages;

messages! {
    WIN_NULL "E047" [Win]
        "the window is MPI_WIN_NULL"
        "A call is made with no window, for example because MPI_Win_free has set the handle to \
         MPI_WIN_NULL."
        "Pass a window that is not freed.";
    WIN_INVALID "E048" [Win]
        "freed or invalid window handle"
        "A call is made with a copy of the handle of a freed window, or with a number that is no \
         handle."
        "Pass a window that is not freed, and check the order of the arguments.";
    WIN_DYNAMIC "E049" [RmaFlavor]
        "the window is dynamic"
        "MPI_Win_shared_query, or an extension for windows of fixed memory, is called with a \
         dynamic window."
        "Use a window of MPI_Win_allocate_shared or MPI_Win_allocate.";
    WIN_NOT_DYNAMIC "E050" [RmaFlavor]
        "the window is not dynamic"
        "MPI_Win_attach or MPI_Win_detach is called with a window that is not dynamic."
        "Make the window by MPI_Win_create_dynamic.";
    NULL_OUTPUT "E051" [Arg]
        "null pointer for an output argument"
        "A call is made with a null pointer for a result."
        "Pass the address of a variable.";
    NULL_NAME "E052" [Arg]
        "null pointer as the name"
        "MPI_Win_set_name is called with a null pointer."
        "Pass a string; an empty one removes the name.";
    NULL_ERRHANDLER "E053" [Arg]
        "null pointer for the error handler"
        "MPI_Win_create_errhandler or MPI_Errhandler_free is called with a null pointer."
        "Pass a function, and the address of a handle.";
    ERRHANDLER "E054" [Arg]
        "invalid error handler"
        "MPI_Win_set_errhandler is called with a handler that is freed, or not one for windows."
        "Pass MPI_ERRORS_RETURN, MPI_ERRORS_ARE_FATAL, or a handler of MPI_Win_create_errhandler.";
    NULL_KEYVAL "E055" [Arg]
        "null pointer for the argument keyval"
        "MPI_Win_create_keyval or MPI_Win_free_keyval is called with a null pointer."
        "Pass the address of an integer.";
    KEYVAL "E056" [Keyval]
        "invalid keyval {value}"
        "A call on attributes is made with a keyval that is freed, or not one for windows."
        "Pass a keyval of MPI_Win_create_keyval.";
    INFO "E057" [Info]
        "invalid info handle"
        "The argument is no info object, or a freed one."
        "Pass MPI_INFO_NULL, or an object of MPI_Info_create.";
    REGION_SIZE "E058" [Size]
        "invalid region size {value}"
        "MPI_Win_attach is called with a negative size."
        "Pass a size of 0 or more, in bytes.";
    REGION_BEYOND "E059" [RmaAttach]
        "memory beyond the last address, size {value}"
        "The region of MPI_Win_attach extends beyond the address space."
        "Check the base and the size.";
    REGION_NULL "E060" [Buffer]
        "null pointer as the base of a region"
        "MPI_Win_attach is called with a size but no memory."
        "Pass the address of the memory.";
    REGION_OVERLAP "E061" [RmaAttach]
        "{bytes} bytes at {base} overlap the region of {attached_bytes} bytes at {attached_base}, \
         which is attached"
        "A part of the memory, or all of it, is attached already."
        "Detach the first region, or attach only the memory next to it.";
    REGION_NOT_ATTACHED "E062" [RmaAttach]
        "no region at {base} is attached"
        "MPI_Win_detach is called with an address at which no attached region begins."
        "Pass the base that was passed to MPI_Win_attach.";
    NOT_IN_REGION "E063" [RmaRange]
        "address {address} of rank {rank} is not attached: the access has {bytes} bytes at {first}"
        "An access to a dynamic window touches memory that the target has not attached."
        "Attach the memory first, and get its address by MPI_Get_address at the target.";
    REGION_OF_GPU "E064" [RmaAttach]
        "a region in memory of a GPU, which only the host MPI may access (FOMPI_DISABLE=1)"
        "MPI_Win_attach is called with memory of a GPU."
        "Attach host memory, or set FOMPI_DISABLE=1 on all ranks if the host MPI supports GPUs.";
    REGION_MIXED "E065" [Unsupported]
        "not supported: one transfer across memory of MPI_Alloc_mem and other memory"
        "One transfer on a dynamic window spans memory of MPI_Alloc_mem and adjacent other memory."
        "Split the transfer where the memory of MPI_Alloc_mem ends.";
    FAULT "E066" [RmaRange]
        "address {address} of rank {rank} cannot be read or written"
        "The target has unmapped the page since it made the window, or made it read-only."
        "Keep the memory of a window mapped and writable until the window is freed.";
    ORIGIN_FAULT "E067" [Buffer]
        "address {address} of the origin cannot be read or written"
        "A buffer of the call extends beyond the memory of the process, or is read-only."
        "Check the address, the count and the datatype of the buffer.";
    NO_ACCESS "E068" [RmaRange]
        "{process} has an inaccessible page in the accessed range, or has withdrawn the memory"
        "A target on another node has unmapped a page of its window, or made it read-only; or it \
         has withdrawn the memory handle of the access."
        "Keep the memory of a window mapped and writable until the window is freed. Tell the \
         processes that have a handle before its memory is withdrawn.";
    FORBIDDEN "E069" [RmaShared]
        "{call}: permission denied for rank {rank} (process {pid}): allow ptrace between ranks \
         (kernel.yama.ptrace_scope=0, or SYS_PTRACE in containers), or use MPI_Win_allocate"
        "The system does not let a rank access the memory of another one that MPI_Win_create \
         exposes."
        "Set kernel.yama.ptrace_scope=0, start containers with --cap-add SYS_PTRACE, or use \
         MPI_Win_allocate, which needs no permission.";
}
