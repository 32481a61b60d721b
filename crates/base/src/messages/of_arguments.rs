//! Messages about wrong arguments of calls that move data.

use super::message::messages;

messages! {
    TARGET_RANK "E001" [Rank]
        "target rank {rank} is invalid: the window has {size} ranks"
        "A call names a target outside of the window's group."
        "Pass a rank from 0 to the number of ranks minus 1, or MPI_PROC_NULL. Ranks count in the \
         group of the window, which may be smaller than MPI_COMM_WORLD.";
    OUTSIDE_WINDOW "E002" [RmaRange]
        "bytes {first} to {end} are outside of the window: rank {rank} exposes {bytes} bytes"
        "The access leaves the memory that the target exposes. Bytes count from the base of the \
         window at the target, and the second number is one past the last byte."
        "Check the displacement, the target count and the datatype. The target multiplies the \
         displacement by its own displacement unit.";
    TARGET_DISP "E003" [Disp]
        "invalid target displacement {value}"
        "A displacement is negative."
        "Pass a displacement of 0 or more, in units of the target's displacement unit.";
    TARGET_COUNT "E004" [Count]
        "invalid target count {value}"
        "A count is negative."
        "Pass a count of 0 or more.";
    ORIGIN_COUNT "E005" [Count]
        "invalid origin count {value}"
        "A count is negative."
        "Pass a count of 0 or more.";
    RESULT_COUNT "E006" [Count]
        "invalid result count {value}"
        "A count is negative."
        "Pass a count of 0 or more.";
    DATA_TOO_LARGE "E007" [Count]
        "the data are too large: {count} items of {item_bytes} bytes exceed 2^63 - 1 bytes"
        "The count times the size of the datatype exceeds the address space."
        "Check the count and the datatype.";
    SPAN_TOO_LARGE "E008" [Count]
        "{count} items of this datatype span more than 2^63 - 1 bytes"
        "The count times the extent of the datatype exceeds the address space."
        "Check the count and the extent of the datatype.";
    TRUNCATED "E009" [Truncate]
        "data of {bytes} bytes do not fit into a buffer of {room} bytes"
        "A call sends more bytes of data than the receiving side has room for."
        "Make counts and datatypes of origin and target describe the same number of bytes.";
    NULL_ORIGIN "E010" [Buffer]
        "null pointer as the origin address"
        "A call that moves data is made with no origin buffer."
        "Pass a buffer, or a count of 0.";
    NULL_RESULT "E011" [Buffer]
        "null pointer as the result address"
        "A call that returns data is made with no result buffer."
        "Pass a buffer, or a count of 0.";
    NULL_COMPARE "E012" [Buffer]
        "null pointer as the compare address"
        "MPI_Compare_and_swap is called with no value to compare with."
        "Pass the address of the value.";
    TYPE_NULL "E013" [Type]
        "the datatype is MPI_DATATYPE_NULL"
        "A call is made with no datatype, for example because the datatype was freed."
        "Pass a committed datatype.";
    TYPE_HANDLE "E014" [Type]
        "invalid datatype handle"
        "The argument is no handle of a datatype."
        "Pass a committed datatype. In C, check the order of the arguments.";
    TYPE_UNCOMMITTED "E015" [Type]
        "datatype is invalid or not committed"
        "The host MPI refuses the datatype for communication."
        "Call MPI_Type_commit before the first use of the datatype.";
    TYPE_TOO_LARGE "E016" [Type]
        "the datatype is too large: an offset, its extent or its size exceeds 2^63 - 1 bytes"
        "The type map of the datatype exceeds the address space."
        "Check the counts, strides and displacements of the calls that made the datatype.";
    TYPES_DIFFER "E017" [Type]
        "origin and target have elements of different types"
        "The datatypes of an accumulate have different basic elements at origin and target."
        "Use the same basic datatype on both sides.";
    TYPE_NOT_PREDEFINED "E018" [Type]
        "the datatype is not predefined"
        "MPI_Fetch_and_op or MPI_Compare_and_swap is called with a derived datatype."
        "Pass a predefined datatype, or call MPI_Get_accumulate.";
    TYPE_NOT_COMPARABLE "E019" [Type]
        "the datatype cannot be compared"
        "MPI_Compare_and_swap is called with a datatype other than an integer, a logical, a byte \
         or MPI_CHARACTER."
        "Use an integer of the same size.";
    TYPE_DISPLACEMENT "E020" [Type]
        "datatype with too large a displacement {value}"
        "A displacement of a derived datatype times its unit exceeds 64 bits."
        "Check the displacements of the calls that made the datatype.";
    TYPE_COMBINER "E021" [Type]
        "datatype of unknown combiner {value}"
        "The host MPI made the datatype by a constructor that libfompi does not know."
        "Make the datatype by another constructor, or report the MPI and its version.";
    TYPE_SIZE "E022" [Type]
        "unsupported predefined datatype of size {value}"
        "A predefined datatype has a size that libfompi does not know."
        "Use another predefined datatype, or report the MPI and its version.";
    TYPE_UNKNOWN "E023" [Type]
        "invalid datatype {value}"
        "The handle belongs to no datatype that libfompi knows."
        "Pass a committed datatype. If it is predefined, report the MPI and its version.";
    TYPE_LEVELS "E024" [Unsupported]
        "not supported: a datatype of more than 200 levels"
        "A derived datatype consists of datatypes that are nested 200 times."
        "Make an equal datatype with fewer levels, for example by MPI_Type_indexed.";
    TYPE_ARGUMENTS "E025" [Intern]
        "datatype with arguments missing or wrong"
        "The host MPI describes a datatype differently from the standard."
        "Report the datatype, the MPI and its version.";
    OP_NOT_PREDEFINED "E026" [Op]
        "the operation is not predefined"
        "An accumulate is called with an operation of MPI_Op_create, or with none."
        "Use a predefined operation. For others, get, compute and put under an exclusive lock.";
    OP_WITHOUT_RESULT "E027" [Op]
        "MPI_NO_OP without a result"
        "MPI_Accumulate is called with MPI_NO_OP, and so would neither change nor return anything."
        "Call MPI_Get_accumulate or MPI_Fetch_and_op to read atomically.";
    OP_UNDEFINED "E028" [Op]
        "the operation is not defined for the datatype"
        "The standard does not define the operation for this kind of element (MPI-4.1 §6.9.2)."
        "Use an operation of the datatype's kind: for example, MPI_BAND goes with integers, and \
         MPI_MINLOC with pairs.";
}
