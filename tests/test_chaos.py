"""The bench for what programs do to their window's pages (tests/chaos), on each MPI: with the
library and without, as root and as a user without privileges.

    CHAOS_SECONDS        of each configuration (5)
    CHAOS_SEED           the seed; by default of the clock, and printed
    CHAOS_MPIS           prefixes of more MPIs, separated by colons
    CHAOS_USERFAULTFD=1  also with vm.unprivileged_userfaultfd=1, which this sets, and sets back
    CHAOS_ALLOCATORS=1   also with each allocator that is installed
    CHAOS_STALL          seconds without a step of any rank after which it has hung (60)
    FOMPI_LIB            the library
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts" / "dev"))
import chaos_runs  # noqa: E402
from chaos_runs import ALLOCATORS, USERFAULTFD, Setting  # noqa: E402
from programs import Mpi, default_library  # noqa: E402

SECONDS = float(os.environ.get("CHAOS_SECONDS", 5))
SEED = int(os.environ.get("CHAOS_SEED", time.time_ns() % 1_000_000_007))
IS_ROOT = os.geteuid() == 0


def mpis():
    found = [Mpi("." + name) for name in ("mpich", "openmpi")]
    found += [Mpi(prefix=path) for path in os.environ.get("CHAOS_MPIS", "").split(":") if path]
    return [mpi for mpi in found if mpi.exec and mpi.cc]


def settings():
    users = [False, True] if IS_ROOT and shutil.which("setpriv") else [False]
    rows = [(None, users[-1], None, None)]
    rows += [(adopt, user, None, None) for adopt in ("auto", "always") for user in users]
    rows += [("never", False, None, None)]
    if os.environ.get("CHAOS_USERFAULTFD") and IS_ROOT and USERFAULTFD.exists():
        rows += [("auto", True, None, True), ("always", True, None, True)]
    if os.environ.get("CHAOS_ALLOCATORS"):
        rows += [("always", users[-1], name, None) for name in ALLOCATORS
                 if chaos_runs.allocator_path(name)]
    for mpi in mpis():
        for adopt, user, allocator, watches in rows:
            yield Setting(mpi, adopt, user, allocator=allocator, library=default_library(),
                          watches=watches)


@pytest.mark.parametrize("setting", list(settings()), ids=Setting.label)
def test_memory_is_what_the_model_says(setting):
    if setting.adopt and not Path(setting.library).exists():
        pytest.fail(f"no library at {setting.library}: cargo build --release makes it")
    outcome = chaos_runs.run(setting, SEED, SECONDS)
    smaller = chaos_runs.minimised(setting, SEED, outcome) if outcome.text else []
    print(f"seed {SEED}: {outcome.rounds} rounds")
    assert not outcome.text, chaos_runs.report(setting, SEED, outcome, smaller)
    assert outcome.rounds > 0, "not one round was run"


def test_there_is_an_mpi():
    assert mpis(), "no MPI found; scripts/install-deps installs two"


def test_the_mutations_fit_the_code():
    chaos = Path(__file__).resolve().parent.parent / "scripts" / "dev" / "chaos"
    subprocess.run([chaos, "--mutations", "--check"], check=True)
