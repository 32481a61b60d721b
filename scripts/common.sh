# Shared by the other scripts (`. common.sh`): paths, how to start a program under one of the
# installed MPIs, plain or with libfompi preloaded into its ranks, and how to count checks. Every
# script that reads it has --help.

# usage: prints the comment at the head of the script.
usage() { sed -n '2,${/^#/!q;s/^# \{0,1\}//p}' "$0"; }
case ${1:-} in
  --help | -h) usage; exit 0 ;;
esac

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

# compile MPI source.c program [more.c]...: with the MPI's own compiler.
compile() {
  "mpicc.$1" -O2 -std=gnu11 -Wall -Wextra -Werror "-I$top/c-tests" -o "$3" "$2" "${@:4}" -lm
}

# launch plain|fompi MPI SECONDS arguments of mpirun...: ends after SECONDS at the latest.
launch() {
  local layer=$1 mpi=$2 seconds=$3
  shift 3
  if [ "$layer" = fompi ]; then
    timeout -k 5 "$seconds" "$target/release/fompirun" --mpi "$mpi" "$@" </dev/null
  else
    timeout -k 5 "$seconds" "mpirun.$mpi" "$@" </dev/null
  fi
}

# flags_without_paths: RUSTFLAGS under which no path of this machine is in what cargo builds.
flags_without_paths() {
  local home=${CARGO_HOME:-$HOME/.cargo} flags registry
  flags="${RUSTFLAGS:-} --remap-path-prefix=$top=fompi --remap-path-prefix=$home=cargo"
  for registry in "$home"/registry/src/*; do
    flags+=" --remap-path-prefix=$registry=crates"
  done
  echo "$flags"
}

# rust_that_lacks: what is wrong with the Rust in PATH; nothing if it is new enough. An older cargo fails
# at the manifest, with words that do not say so, or in a crate, after minutes.
rust_that_lacks() {
  local wanted rust
  wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$top/Cargo.toml")
  if ! command -v cargo >/dev/null; then
    echo "no cargo in PATH (sudo has one of its own): install Rust $wanted or newer, see https://rustup.rs"
    return
  fi
  rust=$(cargo --version | cut -d' ' -f2)
  [ "$(printf '%s\n' "$wanted" "$rust" | sort -V | head -n 1)" = "$wanted" ] ||
    echo "Rust $rust is too old: install $wanted or newer, see https://rustup.rs"
}

# need_library: ends the script where there is no library to test.
need_library() {
  [ -f "$FOMPI_LIB" ] && return
  echo "${0##*/}: $FOMPI_LIB not found; run \`cargo build --release\`, or correct FOMPI_LIB" >&2
  exit 2
}

# verdict STATUS WHAT [FILE | - TEXT]: a check, which has passed if STATUS is 0; else WHAT and the
# file or text say what was wrong. Those of jobs in the background count, too: they are lines in the
# folder `work`.
verdict() {
  if [ "$1" -eq 0 ]; then
    echo passed >>"$work/verdicts"
    ! ${verbose:-false} || { echo "ok   $2" && shown "${@:3}"; }
  else
    echo failed >>"$work/verdicts"
    # At once, so that jobs side by side do not mix their lines.
    { echo "FAIL $2" && shown "${@:3}" | head -n 20; } | cat
  fi
}
shown() {
  case ${1:-} in
    '') ;;
    -) sed 's/^/     /' <<<"$2" ;;
    *) sed 's/^/     /' "$1" ;;
  esac
}

# skip WHAT REASON: checks that cannot be made here.
skip() {
  echo skipped >>"$work/verdicts"
  echo "skipped: $1: $2"
}

# same WHAT EXPECTED GOT
same() {
  [ "$2" = "$3" ]
  verdict $? "$1: expected <$2>, got <$3>"
}

# counted FILE: "passed failed skipped" as the output of a script says: its last line of `N passed,
# N failed`, with `, N skipped` or without, or the sum of cargo's lines or of pytest's, which shows what
# other programs said before; nothing if it says none of them.
counted() {
  awk '
    /^test result: / { cargo = 1; passed += $4; failed += $6 }
    /^=+ [0-9]+ [a-z]+(, [0-9]+ [a-z]+)* in [0-9.]+s/ {
      cargo = 1; said = ""; split("", of)
      for (at = 2; $at != "in"; at += 2) of[substr($(at + 1), 1, 4)] = $at
      passed += of["pass"]; failed += of["fail"] + of["erro"]; skipped += of["skip"]
    }
    match($0, /[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?/) {
      said = substr($0, RSTART, RLENGTH)
    }
    END {
      if (said != "") { split(said, word, " "); print word[1], word[3], word[5] + 0 }
      else if (cargo) { print passed, failed, skipped + 0 }
    }' "$1"
}

# tally STATUS WHAT FILE: counts the checks of a script that ended with STATUS and whose output is in
# FILE. That it failed without a number, or checked nothing, is one that failed.
tally() {
  local good bad
  read -r good bad _ <<<"$(counted "$3")"
  : "${good:=0}" "${bad:=0}"
  if [ "$bad" -eq 0 ] && [ "$1" -ne 0 -o "$good" -eq 0 ]; then
    verdict 1 "$2: exit status $1, $good passed"
  fi
  for ((; good > 0; good--)); do echo passed; done >>"$work/verdicts"
  for ((; bad > 0; bad--)); do echo failed; done >>"$work/verdicts"
}

# conclude: the last line of a test, and its status.
conclude() {
  local failed skipped
  touch "$work/verdicts"
  failed=$(grep -c failed "$work/verdicts") skipped=$(grep -c skipped "$work/verdicts")
  [ "$skipped" -eq 0 ] && skipped='' || skipped=", $skipped skipped"
  echo "$(grep -c passed "$work/verdicts") passed, $failed failed$skipped"
  [ "$failed" -eq 0 ]
}
