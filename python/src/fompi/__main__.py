"""Programs that know nothing of libfompi, with libfompi loaded.

usage: python -m fompi PROGRAM.py [ARGUMENTS]     runs a program
       python -m fompi -m MODULE [ARGUMENTS]      runs a module
       python -m fompi -c CODE [ARGUMENTS]        runs code
       python -m fompi --info                     prints what fompi.info() returns, as JSON
       python -m fompi --enable-pth               loads libfompi in each Python of this environment
       python -m fompi --disable-pth              does so no more

--enable-pth writes fompi.pth next to the module. It serves programs that are not to be edited, and
engines of ipyparallel, which import mpi4py before any code of the user. Each start of this Python
then takes some milliseconds more. `pip uninstall fompi` removes the file. After an upgrade, enable
it again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import runpy
import sys
from importlib import metadata
from pathlib import Path

import fompi

PTH = "fompi.pth"
TEXT = "import fompi\n"


def _record() -> Path:
    """The list of files by which pip uninstalls this module."""
    try:
        files = metadata.distribution("fompi").files or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "RECORD" and (path := Path(str(file.locate()))).is_file():
            return path
    sys.exit("fompi: a .pth file needs a module that pip has installed, and can uninstall with it")


def _rows(record: Path) -> list[str]:
    """The rows of a list of files, without that of the .pth file."""
    rows = record.read_text(encoding="utf-8").splitlines()
    return [row for row in rows if not row.startswith(f"{PTH},")]


def enable() -> None:
    """Writes the .pth file, and its row in the list of files."""
    record = _record()
    path = record.parents[1] / PTH
    digest = base64.urlsafe_b64encode(hashlib.sha256(TEXT.encode()).digest()).decode().rstrip("=")
    rows = [*_rows(record), f"{PTH},sha256={digest},{len(TEXT)}"]
    # The row first: a row without a file does no harm, a file without a row stays.
    record.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    path.write_text(TEXT, encoding="utf-8")
    print(f"fompi: each start of this Python loads libfompi, by {path}")


def disable() -> None:
    """Removes the .pth file, and its row."""
    record = _record()
    path = record.parents[1] / PTH
    path.unlink(missing_ok=True)
    record.write_text("".join(f"{row}\n" for row in _rows(record)), encoding="utf-8")
    print(f"fompi: no {path}: programs load libfompi by fompirun, or import it")


def run(words: list[str]) -> None:
    """Runs a program, a module or code as Python would, with its arguments."""
    if words[0] == "-m" and len(words) > 1:
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c" and len(words) > 1:
        sys.argv = ["-c", *words[2:]]
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
    elif words[0].startswith("-"):
        sys.exit(f"fompi: invalid option {words[0]}; python -m fompi --help lists all")
    elif not Path(words[0]).exists():
        sys.exit(f"fompi: {words[0]}: no such program")
    else:
        sys.argv = words
        # `python -m` has put the working folder first; a program expects its own.
        sys.path[0] = str(Path(words[0]).resolve().parent)
        runpy.run_path(words[0], run_name="__main__")


def main() -> None:
    """Does what the command line says."""
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if words else 2)
    if words == ["--info"]:
        print(json.dumps(fompi.info(), indent=2))
    elif words == ["--enable-pth"]:
        enable()
    elif words == ["--disable-pth"]:
        disable()
    else:
        run(words)


main()
