//! Errors and warnings of `fompirun`, and of `fompi` where it needs the library or a program.

super::message::messages! {
    FOMPI_LIB_ABSENT "E117"
        "FOMPI_LIB={path}: no such file"
        "FOMPI_LIB names a library that does not exist."
        "Correct FOMPI_LIB, or unset it to use the library of the installation.";
    LIBRARY_ABSENT "E118"
        "no libfompi.so in {folder}, or in ../lib, ../lib64 or {multiarch} next to it; build it \
         with `cargo build --release` or name it with FOMPI_LIB"
        "The program fompirun or fompi is not in an installation."
        "Use the program of the installation, or name the library with FOMPI_LIB.";
    PRELOAD_PATH "E119"
        "{path}: LD_PRELOAD cannot name a path with a blank or a colon"
        "The loader separates the libraries that it preloads by blanks and colons."
        "Install the library in a folder without these characters, or name a link to it with \
         FOMPI_LIB.";
    LAUNCHER_ABSENT "E120"
        "--mpi {name}: {why}"
        "The launcher that --mpi names does not exist."
        "Name the launcher by its path, or the folder of its MPI.";
    NO_LAUNCHER "E121"
        "no mpirun in PATH; name one with --mpi"
        "PATH has neither mpirun nor mpiexec."
        "Load the module of the MPI, or name its launcher with --mpi.";
    LAUNCHER_UNKNOWN "E122"
        "{launcher} is neither MPICH's, Intel MPI's nor Open MPI's launcher; start the ranks as \
         `... env LD_PRELOAD={library} program` instead"
        "The way in which this launcher sets variables for the ranks is unknown."
        "Start the ranks by the launcher itself, with LD_PRELOAD as the line says.";
    LAUNCHER_OF_INTEL "E123"
        "{program} is linked with Intel MPI, but {launcher} is MPICH's: name Intel's with --mpi"
        "MPICH's launcher starts programs of Intel MPI, but many ranks crash."
        "Name the launcher of Intel MPI with --mpi.";
    LAUNCHER_DIFFERS "E124"
        "{program} is linked with {mpi}, but {launcher} is {owner}: {remedy}"
        "Each rank would be alone, because the launcher belongs to another MPI."
        "Name the launcher of the program's MPI with --mpi.";
    LAUNCHER_FAILS "E125"
        "{launcher}: {cause}"
        "The system does not start the launcher."
        "Correct the cause, or name another launcher with --mpi.";
    NO_PROGRAM "E126"
        "no program is named; see fompirun --help"
        "The command line has options only."
        "Name the program after the options of the launcher.";
    PROGRAM_ABSENT "E127"
        "{program}: no such program{searched}"
        "The program does not exist."
        "Correct the name, or give the path of the program.";
    PROGRAM_NOT_IN_PATH "E128"
        "{program}: no such program in PATH; name the one in this folder as ./{program}"
        "MPICH's launcher searches programs in PATH only."
        "Name the program with ./ in front.";
    PROGRAM_IS_FOLDER "E129"
        "{program} is a folder"
        "A folder is named in place of a program."
        "Name the program in it.";
    NOT_EXECUTABLE "E130"
        "{program} may not be executed: {remedy}"
        "The file is not executable."
        "Start it by its interpreter, or make it executable by chmod +x if it is a program.";
    PROGRAM_IS_SOURCE "E131"
        "{program} is a source: compile it ({compiler} {program} -o {target}) and start {target}"
        "The source of a program is named in place of the program."
        "Compile the source.";
    OPTION_LATE "E132"
        "{option} is an option of fompirun, and has to come before those of the launcher"
        "An option of fompirun comes after one of the launcher."
        "Put the options of fompirun first.";
    OPTION_UNKNOWN "E133"
        "{option} is an unknown option; did you mean --{nearest}?"
        "The option is similar to one of fompirun, and is not a known option of a launcher."
        "Correct the option.";
    OPTION_VALUE "E134"
        "{option} needs {value}"
        "An option of fompirun has no value, or too many words follow it."
        "Give the option the value that the line names.";
    COMMAND_LINE "E135"
        "invalid command line: {why}"
        "The arguments cannot be parsed, or cannot be printed as one command."
        "Compare the command with `fompirun --help`.";
    FOMPI_LIB_OTHER "E136"
        "FOMPI_LIB={path}: the file has no version of libfompi"
        "FOMPI_LIB names a file that is no libfompi.so."
        "Correct FOMPI_LIB, or unset it to use the library of the installation.";
    NEXT_ABSENT "E143"
        "--mpi-next: no libfompi_next.so in {folder}, where libfompi.so is"
        "The installation or the build has the library without libfompi_next.so."
        "Reinstall libfompi, or set FOMPI_LIB to the libfompi.so of a complete installation.";
    STATIC_MPI "W041"
        "{program} has a static MPI: libfompi cannot be used, and its own one-sided layer runs"
        "No library can come before an MPI that is part of the program."
        "Link the program with the shared library of its MPI.";
}
