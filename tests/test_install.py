"""scripts/install on each of Debian's MPIs: programs that are linked with the installed library use
its functions, however they were linked, or a line says why they do not.

usage: /usr/bin/python3 -m pytest tests/test_install.py
"""

import os
import re
import shutil
import subprocess
from glob import glob
from pathlib import Path
from types import SimpleNamespace

import pytest

from conftest import C_TESTS, TOP, call, version

INSTALL = TOP / "scripts" / "install"
# What the first installation has built, with its programs.
BUILT = Path(os.environ.get("CARGO_TARGET_DIR") or TOP / "target") / "install/release/libfompi.so"
USER = C_TESTS / "installed"
FIRST = ("bash", "sed", "mkdir", "dirname", "realpath")
TRANSPORT = "^fompi: MPI_Win_allocate: 2 ranks, .* transport: "
GOT = ["rank 0 got 1", "rank 1 got 0"]
STATIC = """
int MPI_Win_free(int *win);
int PMPI_Comm_size(int comm, int *size) { return comm + (size != 0); }
int main(void) { int win = 0x20000000; return MPI_Win_free(&win); }
"""
# Defines nothing: the windows are made by the user's own library.
CALLER = "int run(int, char **); int main(int c, char **v) { return run(c, v); }\n"


def worked(*words, **options):
    status, lines = call(*words, **options)
    assert status == 0
    return [line for line in lines if line and not line.startswith("OMPI")]


def has(pattern, lines):
    return any(re.search(pattern, line) for line in lines)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of an installation, which was made elsewhere, and where it was made."""
    folder = tmp_path_factory.mktemp("installed")
    stage, prefix = folder / "stage", folder / "prefix"
    worked(INSTALL, "/opt/fompi", DESTDIR=stage, seconds=1800)
    shutil.move(stage / "opt" / "fompi", prefix)
    return SimpleNamespace(stage=stage, prefix=prefix, folder=folder)


@pytest.fixture
def prefix(installed):
    return installed.prefix


# --- what is installed ----------------------------------------------------------------------------


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_destdir_leaves_nothing_elsewhere(installed):
    assert files_in(installed.stage) == []


def test_manifest_lists_all_files(prefix):
    manifest = (prefix / "share" / "doc" / "fompi" / "manifest").read_text().split("\n")
    assert sorted(filter(None, manifest)) == files_in(prefix)


def test_no_path_of_this_machine(prefix, installed):
    home = os.environ["HOME"]
    for text in (str(TOP), f"{home}/", str(installed.folder), os.environ.get("CARGO_HOME", home)):
        assert [name for name in files_in(prefix)
                if text.encode() in (prefix / name).read_bytes()] == []


def test_name_of_the_library(prefix):
    for name in ("libfompi", "libfompi_next"):
        lines = worked("readelf", "-d", prefix / "lib" / f"{name}.so")
        assert has(rf"SONAME.*\[{name}\.so\]", lines)


def test_version_of_pkg_config(prefix):
    assert worked("pkg-config", "--modversion", prefix / "lib/pkgconfig/fompi.pc") == [version()]


def test_pages_and_completions(prefix):
    share = prefix / "share"
    for name in ("man/man1/fompi.1", "man/man1/fompirun.1", "bash-completion/completions/fompirun",
                 "zsh/site-functions/_fompi", "fish/vendor_completions.d/fompi.fish"):
        assert (share / name).stat().st_size > 0


def test_install_of_a_library_without_programs(folder):
    (folder / "libfompi.so").write_text("")
    status, lines = call(INSTALL, folder / "none", FOMPI_LIB=folder / "libfompi.so")
    assert status == 1 and has("^install: no fompi next to .*/libfompi.so", lines)


def test_library_has_no_symbols_but_the_exported_ones(prefix):
    """As packages want it; exceptions of the program still pass through its frames."""
    sections = "\n".join(worked("readelf", "-W", "-S", prefix / "lib" / "libfompi.so"))
    assert ".dynsym" in sections and ".eh_frame" in sections
    assert ".symtab" not in sections and ".debug" not in sections


def test_install_without_a_prefix():
    assert call(INSTALL)[0] == 2


def test_install_where_one_may_not_write():
    status, lines = call(INSTALL, TOP / "README.md" / "opt")
    assert status == 1 and has("^install: no right to write to .*DESTDIR", lines)


def test_install_without_cargo(folder):
    for name in FIRST:
        (folder / name).symlink_to(shutil.which(name))
    status, lines = call(INSTALL, folder / "none", PATH=folder)
    assert status == 1 and has("^install: no cargo in PATH .*: install Rust", lines)


def test_install_with_an_old_rust(folder):
    (folder / "cargo").write_text("#!/bin/sh\necho cargo 1.65.0\n")
    (folder / "cargo").chmod(0o755)
    status, lines = call(INSTALL, folder / "none", PATH=f"{folder}:{os.environ['PATH']}")
    assert status == 1 and has("^install: Rust 1.65.0 is too old: install 1", lines)


# --- programs that are linked with it -------------------------------------------------------------


def checked(prefix, program, **env):
    """What fompirun --check says of a program: its exit status, and the text."""
    status, lines = call(prefix / "bin" / "fompirun", "--check", program,
                         **{"LD_LIBRARY_PATH": prefix / "lib", **env})
    return status, " ".join(lines)


def uses(mpi, prefix, program):
    """The program, started by the MPI's launcher, runs on the library."""
    lines = worked(mpi.exec, "-n", 2, program, FOMPI_VERBOSE=1)
    assert has(TRANSPORT, lines)
    assert sorted(line for line in lines if not line.startswith("fompi")) == GOT
    bindings = call("ldd", "-r", program, LD_DEBUG="bindings")[1]
    for name in ("MPI_Win_allocate", "MPI_Win_fence", "MPI_Put", "MPI_Win_free"):
        assert has(rf" to .*/libfompi\.so .*`P?{name}'", bindings)
    assert checked(prefix, program) == (0, f"fompirun: {program} uses libfompi")


LINKER = ("--as-needed", "--no-as-needed")
LANGUAGES = {"c": ("cc", "app.c", []), "c++": ("cxx", "app.c", ["-x", "c++"]),
             "fortran": ("fc", "app.f90", [])}
of_any_language = pytest.mark.parametrize("language", LANGUAGES)
of_any_linker = pytest.mark.parametrize("linker", LINKER)


@pytest.fixture
def compiled(mpi, folder):
    """Compiles a program in a language."""
    def compile_one(language, in_front, behind):
        compiler, source, flags = LANGUAGES[language]
        flags = flags + (["-J", folder] if language == "fortran" else [])
        worked(getattr(mpi, compiler), "-o", folder / "app", *flags, *in_front, USER / source,
               *(["-x", "none"] if "-x" in flags else []), *behind)
        return folder / "app"
    return compile_one


@of_any_language
@of_any_linker
def test_flags_of_readme(language, linker, mpi, prefix, compiled):
    """Where the linker leaves out what seems to be unneeded, and where it does not."""
    flags = [f"-Wl,{linker}", f"-L{prefix}/lib", "-Wl,--no-as-needed", "-lfompi",
             f"-Wl,-rpath,{prefix}/lib"]
    uses(mpi, prefix, compiled(language, [], flags))


@of_any_language
@of_any_linker
def test_flags_of_pkg_config(language, linker, mpi, prefix, compiled):
    (flags,) = worked("pkg-config", "--cflags", "--libs", "fompi",
                      PKG_CONFIG_PATH=prefix / "lib" / "pkgconfig")
    uses(mpi, prefix, compiled(language, [f"-Wl,{linker}", *flags.split()], []))


def test_library_of_the_users_own(mpi, prefix, folder):
    """It makes the windows; the program knows nothing of libfompi."""
    linked = [f"-L{prefix}/lib", "-Wl,--no-as-needed", "-lfompi"]
    worked(mpi.cc, "-shared", "-fPIC", "-Dmain=run", "-o", folder / "libown.so", USER / "app.c",
           *linked, f"-Wl,-rpath,{prefix}/lib")
    (folder / "caller.c").write_text(CALLER)
    worked(mpi.cc, "-o", folder / "app", folder / "caller.c", *linked, f"-L{folder}", "-lown",
           f"-Wl,-rpath,{prefix}/lib:{folder}")
    uses(mpi, prefix, folder / "app")


def test_library_that_is_not_found(mpi, prefix, folder):
    worked(mpi.cc, "-o", folder / "app", USER / "app.c", f"-L{prefix}/lib", "-lfompi")
    status, said = checked(prefix, folder / "app", LD_LIBRARY_PATH="")
    assert status == 1
    assert re.search(r" does not start: not found: libfompi\.so\. LD_LIBRARY_PATH", said)


# --- CMake ----------------------------------------------------------------------------------------


@pytest.fixture
def cmake(mpi, prefix, folder):
    """Configures a project; returns the exit status, the lines, and the folder."""
    def configure(project, *more):
        build = folder / "build"
        options = [f"MPI_C_COMPILER={mpi.cc}", f"CMAKE_PREFIX_PATH={prefix}",
                   f"MPIEXEC_EXECUTABLE={mpi.exec}", *more]
        return *call("cmake", "-S", project, "-B", build, *(f"-D{option}" for option in options),
                     seconds=300), build
    return configure


def test_find_package(mpi, prefix, cmake):
    status, _, build = cmake(USER)
    assert status == 0
    worked("cmake", "--build", build, seconds=300)
    uses(mpi, prefix, build / "app")


def test_find_package_of_a_newer_one(mpi, cmake):
    status, lines, _ = cmake(USER, "WANTED=99")
    assert status != 0 and has("considered but not accepted", lines)


def test_ctest(mpi, cmake):
    tests = "lock_modes;win_allocate_sizes;put_get_types;errors_synchronisation"
    status, _, build = cmake(C_TESTS, f"FOMPI_TESTS={tests}")
    assert status == 0
    worked("cmake", "--build", build, seconds=300)
    assert has("100% tests passed, 0 tests failed out of 4",
               worked("ctest", "--test-dir", build, seconds=300))


# --- other folders for the library ----------------------------------------------------------------

MULTIARCH = f"lib/{os.uname().machine}-linux-gnu"


@pytest.fixture(scope="module", params=("lib64", MULTIARCH))
def laid_out(request, installed):
    """An installation, moved, with the library in another folder of it, and that folder's name."""
    name = request.param.replace("/", "-")
    stage, prefix = installed.folder / f"stage-{name}", installed.folder / name
    worked(INSTALL, f"--libdir=/opt/fompi/{request.param}", "/opt/fompi", DESTDIR=stage,
           FOMPI_LIB=BUILT)
    shutil.move(stage / "opt" / "fompi", prefix)
    return SimpleNamespace(prefix=prefix, libdir=request.param)


def test_libdir_of_the_environment(installed, folder):
    worked(INSTALL, folder, LIBDIR="lib64", FOMPI_LIB=BUILT)
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.so")) == \
        ["lib64/libfompi.so", "lib64/libfompi_next.so"]


@pytest.mark.parametrize("libdir", ("../lib", "/lib", ".", "lib/../x", "lib 64"))
def test_libdir_outside_of_the_prefix(libdir, folder):
    status, lines = call(INSTALL, "--libdir", libdir, folder / "none")
    assert status == 2 and has("^install: --libdir .*: a folder below PREFIX is wanted", lines)


def test_manifest_of_another_folder(laid_out):
    test_manifest_lists_all_files(laid_out.prefix)
    assert f"{laid_out.libdir}/libfompi.so" in files_in(laid_out.prefix)


@pytest.mark.first_mpi_in_gate
def test_flags_of_pkg_config_of_another_folder(laid_out, mpi, compiled):
    (flags,) = worked("pkg-config", "--cflags", "--libs", "fompi",
                      PKG_CONFIG_PATH=laid_out.prefix / laid_out.libdir / "pkgconfig")
    program = compiled("c", flags.split(), [])
    uses(mpi, laid_out.prefix, program)
    assert worked(laid_out.prefix / "bin/fompirun", "--mpi", mpi.name, "-n", 2, program)


@pytest.mark.first_mpi_in_gate
def test_find_package_in_another_folder(laid_out, mpi, cmake):
    """CMake does not search lib64 on Debian by itself."""
    place = laid_out.prefix / laid_out.libdir / "cmake" / "fompi"
    where = f"CMAKE_PREFIX_PATH={laid_out.prefix}"
    if laid_out.libdir == "lib64":
        where = f"fompi_DIR={place}"
    status, _, build = cmake(USER, where)
    assert status == 0
    assert has(f"^fompi_DIR:[A-Z]+={place}$", (build / "CMakeCache.txt").read_text().splitlines())
    worked("cmake", "--build", build, seconds=300)
    uses(mpi, laid_out.prefix, build / "app")


def test_prefix_of_the_system(installed, folder):
    """Programs that are linked with it need no run path, and get none."""
    worked(INSTALL, "--libdir", MULTIARCH, "/usr", DESTDIR=folder,
           FOMPI_LIB=BUILT)
    (flags,) = worked("pkg-config", "--libs", folder / "usr" / MULTIARCH / "pkgconfig/fompi.pc")
    assert "-lfompi" in flags and "rpath" not in flags


# --- module files ---------------------------------------------------------------------------------

SHOW = """
for name in PATH LD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH; do
  echo "$name ${!name%%:*}"
done"""


@pytest.mark.parametrize("is_link", (False, True), ids=("file", "link"))
def test_module(is_link, laid_out, folder):
    """Environment Modules load it; its folders are those of the tree, also by a link to the file.
    Debian has no Lmod next to them: tests/test_packages.py loads the module by Lmod."""
    prefix, modules = laid_out.prefix, laid_out.prefix / "share" / "modulefiles"
    if is_link:
        modules = folder
        (folder / "fompi").mkdir()
        (folder / "fompi" / version()).symlink_to(
            prefix / "share" / "modulefiles" / "fompi" / version())
    (system,) = glob("/usr/lib/*/modulecmd.tcl")
    lines = worked("tclsh", system, "bash", "load", f"fompi/{version()}", MODULEPATH=modules,
                   LD_LIBRARY_PATH="", CMAKE_PREFIX_PATH="", PKG_CONFIG_PATH="")
    shown = "\n".join(lines) + SHOW
    set_to = dict(line.split(" ", 1) for line in worked("bash", "-c", shown, MODULEPATH=modules)
                  if " " in line)
    assert set_to == {"PATH": f"{prefix}/bin", "LD_LIBRARY_PATH": f"{prefix}/{laid_out.libdir}",
                      "PKG_CONFIG_PATH": f"{prefix}/{laid_out.libdir}/pkgconfig",
                      "CMAKE_PREFIX_PATH": f"{prefix}"}


# --- programs that are not linked with it, or wrongly ---------------------------------------------


def test_fompirun_of_the_prefix(mpi, prefix, folder):
    """Without being linked, from another folder."""
    worked(mpi.cc, "-o", folder / "app", USER / "app.c")
    assert has(TRANSPORT, worked(prefix / "bin/fompirun", "--mpi", mpi.name, "-n", 2, folder / "app",
                            cwd=folder, FOMPI_VERBOSE=1))
    status, said = checked(prefix, folder / "app")
    assert status == 1
    assert re.search(" is not linked with libfompi: start it with fompirun", said)
    assert worked(prefix / "bin/fompi", "info")[0] == \
        f"libfompi: {version()} ({prefix}/lib/libfompi.so)"


def test_fompi_model_of_the_prefix(mpi, prefix, folder):
    """With its own sources, and the library of the prefix."""
    model = prefix / "bin" / "fompi-model"
    lines = worked(model, "-n", 2, "--mpi", mpi.name, "--quick", "--seconds", "0.001", "--no-svg",
                   cwd=folder, seconds=300, XDG_CACHE_HOME=folder / "cache")
    assert has(r"^one node +P_put\(s\)", lines)
    assert '"layer": "libfompi' in (folder / "fompi-model.json").read_text()
    assert has("^lock or lock_all for 100 targets: lock_all",
               worked(model, "ask", "lock-or-lock-all", "--targets", 100, cwd=folder))
    assert list(prefix.rglob("*.pyc")) == []


@pytest.fixture
def behind(mpi, prefix, folder):
    """Links a program with the library behind the MPI."""
    def link(source):
        worked(mpi.cc, "-o", folder / "plain", USER / "app.c")
        library = re.search(r"libmpi\S* => (/\S+)", "\n".join(worked("ldd", folder / "plain")))[1]
        worked(mpi.cc, "-o", folder / "app", USER / source, f"-I{prefix}/include",
               "-Wl,--no-as-needed", library, f"-L{prefix}/lib", "-lfompi")
        return folder / "app"
    return link


def test_program_that_is_linked_behind_the_mpi(mpi, prefix, behind):
    """It runs on the MPI; --check and the library say why."""
    program = behind("app.c")
    lines = worked(mpi.exec, "-n", 2, program, LD_LIBRARY_PATH=prefix / "lib", FOMPI_VERBOSE=1)
    assert has(r"^fompi: libmpi.* comes before libfompi\.so .* link -l.* \[FOMPI-W005\]$", lines)
    assert sorted(line for line in lines if not line.startswith("fompi")) == GOT
    status, said = checked(prefix, program)
    assert status == 1
    assert re.search("does not use libfompi, which comes after libmpi", said)
    fompirun = [prefix / "bin" / "fompirun", "--mpi", mpi.name]
    assert has(TRANSPORT, worked(*fompirun, "-n", 2, program, FOMPI_VERBOSE=1))


def test_what_the_mpi_lacks(mpi, prefix, behind):
    program = behind("more.c")
    assert has(r"^fompi: libmpi.* comes before .*stands aside.* \[FOMPI-W007\]$",
               call(mpi.exec, "-n", 1, program, LD_LIBRARY_PATH=prefix / "lib")[1])
    assert worked(prefix / "bin/fompirun", "--mpi", mpi.name, "-n", 1, program) == \
        [f"libfompi {version()} for libfompi {version()}"]


def test_static_mpi(prefix, folder):
    """A static MPI, as libfompi finds it: the program has its functions, and no shared one."""
    (folder / "static.c").write_text(STATIC)
    worked("gcc", "-o", folder / "static", folder / "static.c", f"-L{prefix}/lib", "-lfompi")
    assert has(r"^fompi: no MPI library is loaded .* statically.* \[FOMPI-E112\]$",
               call(folder / "static", LD_LIBRARY_PATH=prefix / "lib")[1])
    status, said = checked(prefix, folder / "static")
    assert status == 1
    assert "linked with no shared MPI" in said
