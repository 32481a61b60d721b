# Read by the other scripts (`. common.sh`): where things are, and how a program is started under
# one of the installed MPIs, plain or with libfompi preloaded into its ranks.

top=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
target=${CARGO_TARGET_DIR:-$top/target}
export FOMPI_LIB=${FOMPI_LIB:-$target/release/libfompi.so}

# ldconfig and the like are not in the PATH of ordinary users on Debian.
PATH=$PATH:/usr/sbin:/sbin

# Small machines and containers: more ranks than cores, and Open MPI started by root.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe

# The MPIs to go through: those named in MPIS, or both of Debian's.
mpis=${MPIS:-mpich openmpi}

# mpi_name MPI: its name and version, as people write it.
mpi_name() {
  local said
  said=$("mpirun.$1" --version 2>&1 | tr '\n' ' ')
  case $said in
    *HYDRA*) echo "MPICH $(sed -E 's/.*Version: +([^ ]+).*/\1/' <<<"$said")" ;;
    *) echo "Open MPI $(sed -E 's/[^)]*\) ([^ ]+).*/\1/' <<<"$said")" ;;
  esac
}

# compile MPI source.c program: with the MPI's own compiler.
compile() {
  "mpicc.$1" -O2 -std=gnu11 -Wall -Wextra -Werror "-I$top/c-tests" -o "$3" "$2" -lm
}

# launch plain|fompi MPI SECONDS arguments of mpirun...: ends after SECONDS at the latest.
launch() {
  local layer=$1 mpi=$2 seconds=$3
  shift 3
  if [ "$layer" = fompi ]; then
    timeout -k 5 "$seconds" "$top/scripts/fompirun" --mpi "$mpi" "$@" </dev/null
  else
    timeout -k 5 "$seconds" "mpirun.$mpi" "$@" </dev/null
  fi
}
