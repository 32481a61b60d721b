"""README and the pages for users do what they say: each block of code in them has a mark in the
line before it. In a scratch folder, with each installed MPI in front in PATH, and PREFIX replaced:

    <!-- file NAME -->     the block is written to NAME; if it is in examples, it is the same there
    <!-- run -->           each line is run, and has to succeed; `run mpich`: with this MPI only
    <!-- prints -->        what the run before, if it was one, printed has each of these lines, up to
                           a `...`
    <!-- elsewhere -->     needs more than the machine: files, options and variables are looked up
    <!-- text -->          no command

Links have to lead somewhere: of all pages of docs here, of those for users also where
scripts/install puts them. Each script has a row in scripts/README.md and says by --help how it is
used.

usage: /usr/bin/python3 -m pytest tests/test_readme.py

The blocks build on each other: one of them alone may fail, and `-n 2` needs `--dist loadgroup`. SECONDS_MAX is the limit of a command.
"""

import functools
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import programs
from conftest import TOP, call, mpis, version

FOLDERS = ("guide", "concepts", "reference")
LAST = "docs/guide/clusters.md"
SECONDS = int(os.environ.get("SECONDS_MAX", 300))
OURS = r"\bFOMPI_[A-Z_]+\b|\b(?:scripts|benches|docs|include)/[a-z._/-]+[a-z]"
OPTIONS_OF_LAUNCHERS = TOP / "crates" / "cli" / "src" / "run" / "launcher_options.rs"


def pages():
    """The pages for users: README installs into PREFIX, the page on clusters uninstalls."""
    of_docs = sorted(str(path.relative_to(TOP)) for folder in FOLDERS
                     for path in (TOP / "docs" / folder).rglob("*.md"))
    first = "docs/guide/running.md"
    return ["README.md", first, *(page for page in of_docs if page not in (first, LAST)),
            "docs/performance.md", LAST]


def other_pages():
    found = sorted(str(path.relative_to(TOP)) for path in (TOP / "docs").rglob("*.md"))
    found += ["CONTRIBUTING.md", "examples/README.md"]
    return [page for page in found if page not in pages()]


def blocks(page):
    """The blocks of code of a page: the number of the line, the mark, and the text."""
    inside, before, found = False, "", []
    for number, line in enumerate((TOP / page).read_text().splitlines(), 1):
        fence = re.match(r" *```", line)
        if fence or (line.startswith("    ") and not inside):
            if not inside:
                mark = re.fullmatch("<!-- (.*) -->", before)
                found.append(SimpleNamespace(where=f"{page}:{number}", lines=[],
                                             mark=mark[1] if mark else "none"))
            inside, before = bool(fence) and not inside, ""
        elif inside:
            found[-1].lines.append(line)
        else:
            before = line
    return found


# --- names that a text mentions -------------------------------------------------------------------


@functools.cache
def known_variables():
    files = [TOP / "scripts" / "install"]
    for folder in ("src", "crates"):
        files += (TOP / folder).rglob("*.rs")
    return {word for path in files for word in re.findall(r"\bFOMPI_\w+", path.read_text())}


@functools.cache
def is_option(word):
    """Whether fompirun or a launcher that it knows has this option."""
    options = OPTIONS_OF_LAUNCHERS.read_text()
    said = subprocess.run([programs.FOMPIRUN, "--help"], text=True, stdout=subprocess.PIPE)
    return f'"{word[1:]}"' in options or \
        re.search(rf"^ +(-\w, )?{re.escape(word)}\b", said.stdout, re.MULTILINE) is not None


def missing(text):
    """The files, options and variables of ours that a text names, and that do not exist; fompirun
    also has the options of launchers that it knows."""
    for word in sorted(set(re.findall(OURS, text))):
        if word.startswith("FOMPI_"):
            exists = word in known_variables()
        else:
            exists = (TOP / word).exists()
        if not exists:
            yield word
    for line in text.replace("`", "\n").splitlines():
        command = re.search(r".*\bfompirun (.*)", line)
        words = command[1].partition(" ./")[0] if command else ""
        for word in re.findall(r"(?:^| )(--?[a-z]+)", words):
            if not is_option(word):
                yield word


# --- the blocks -----------------------------------------------------------------------------------


@functools.cache
def surroundings(mpi):
    """An MPI's programs under the names that the pages use, and the folder of the sources around
    them. Its end is that of the process."""
    scratch = tempfile.TemporaryDirectory(prefix="tests.")
    folder = Path(scratch.name)
    (folder / ".bin").mkdir()
    (folder / "target" / "release").mkdir(parents=True)
    for name in ("mpicc", "mpicxx", "mpifort", "mpirun", "mpiexec"):
        path = folder / ".bin" / name
        path.write_text(f'#!/bin/sh\nexec {shutil.which(f"{name}.{mpi.name}")} "$@"\n')
        path.chmod(0o755)
    for name in ("scripts", "examples", "include", "fortran"):
        (folder / name).symlink_to(TOP / name)
    (folder / "target" / "release" / "libfompi.so").symlink_to(
        Path(programs.default_library()).resolve())
    for name in ("fompi", "fompirun"):
        (folder / "target" / "release" / name).symlink_to(programs.FOMPIRUN.with_name(name))
    return SimpleNamespace(folder=folder, prefix=folder / "prefix", said="", scratch=scratch)


def run(line, there):
    """Runs a command of a page; it has to succeed."""
    status, lines = call("bash", "-c", line, cwd=there.folder, seconds=SECONDS,
                         PATH=f"{there.folder}/.bin:{os.environ['PATH']}",
                         FOMPI_LIB=programs.default_library())
    there.said += "".join(f"{said}\n" for said in lines)
    assert status == 0


def check_block(block, mpi):
    there = surroundings(mpi)
    text = "\n".join(block.lines)
    here = re.sub(r"\bPREFIX\b", str(there.prefix), text)
    kind, _, name = block.mark.partition(" ")
    if kind == "file":
        (there.folder / name).write_text(f"{here}\n")
        example = TOP / "examples" / name
        assert not example.exists() or example.read_text() == f"{text}\n"
    elif kind == "run":
        there.said = ""
        for line in here.splitlines():
            run(line, there)
    elif kind == "prints":
        assert [line for line in block.lines if line.removesuffix("...") not in there.said] == []
    if kind in ("file", "elsewhere"):
        assert list(missing(text)) == []


def check_installed_links(page, mpi):
    assert broken_links(surroundings(mpi).prefix / "share" / "doc" / "fompi", page) == []


def check_uninstalled(_, mpi):
    prefix = surroundings(mpi).prefix
    assert not prefix.exists() or list(prefix.rglob("*")) == []


def steps(mpi):
    """What is checked with an MPI, in this order."""
    for page in pages():
        has_run = True
        for block in blocks(page):
            kind, _, name = block.mark.partition(" ")
            if kind == "run":
                has_run = name in ("", mpi.name)
            if kind != "text" and (has_run or kind not in ("run", "prints")):
                yield block.where, check_block, block
        if page == "README.md":  # which has installed it
            for other in pages():
                yield f"installed-{other}", check_installed_links, other
    yield "uninstalled", check_uninstalled, None


def pytest_generate_tests(metafunc):
    if "step" in metafunc.fixturenames:
        found = [mpi for mpi in mpis(metafunc.config) if not mpi.prefix]
        metafunc.parametrize("mpi, step, what", [
            pytest.param(mpi, step, what, id=f"{mpi.name}-{name}", marks=pytest.mark.xdist_group(mpi.name))
            for mpi in found for name, step, what in steps(mpi)])


def test_page(mpi, step, what, library):
    step(what, mpi)


@pytest.mark.parametrize("page", pages())
def test_marks_of_blocks(page):
    marks = {block.mark.partition(" ")[0] for block in blocks(page)}
    assert marks <= {"file", "run", "prints", "elsewhere", "text"}


# --- links, names and versions --------------------------------------------------------------------


def anchors(path):
    """The anchors of the headings of a page."""
    for heading in re.findall(r"^##* (.*)", path.read_text(), re.MULTILINE):
        yield re.sub(r"[.,:?`]", "", heading.lower().replace(" ", "-"))


def broken_links(folder, page):
    """The links of a page that lead to no file, or to no heading of it."""
    found = []
    for link in re.findall(r"\]\(([^)]+)\)", (folder / page).read_text()):
        if not link.startswith("http"):
            name, _, anchor = link.partition("#")
            path = (folder / page).parent / name if name else folder / page
            if not path.exists() or anchor and anchor not in anchors(path):
                found.append(link)
    return found


@pytest.mark.parametrize("page", [*other_pages(), *pages()])
def test_links(page):
    assert broken_links(TOP, page) == []


@pytest.mark.parametrize("page", pages())
def test_names(page):
    words = re.findall("`[^`\n]+`", (TOP / page).read_text())
    assert list(missing("\n".join(words))) == []


def test_newest_version_of_changelog():
    heading = re.search("^## (.*)", (TOP / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    assert re.fullmatch(r"[0-9.]+ \([0-9]{4}-[0-9]{2}-[0-9]{2}\)|Unreleased \([0-9.]+-dev\)",
                        heading)
    assert version() in re.findall("[0-9.]+(?:-dev)?", heading)


def test_version_of_the_archives():
    for page in (LAST, "docs/guide/packages.md"):
        found = re.findall(r"fompi-([0-9.]+(?:-dev)?)(?:-|\n)", (TOP / page).read_text())
        assert found and set(found) == {version()}


# --- scripts --------------------------------------------------------------------------------------

SCRIPTS = sorted(str(path.relative_to(TOP)) for path in (TOP / "scripts").rglob("*")
                 if path.is_file() and os.access(path, os.X_OK))


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_of_script(script):
    status, lines = call(script, "--help", seconds=SECONDS)
    assert status == 0
    names = "|".join(map(re.escape, (script, Path(script).name)))
    assert any(re.match(rf"usage: ({names})\b", line) for line in lines)


@pytest.mark.parametrize("script", SCRIPTS)
def test_row_of_script(script):
    name = script.removeprefix("scripts/")
    assert f"\n| `{name}`" in (TOP / "scripts" / "README.md").read_text()
