"""The prose of README and of docs: spelling (codespell), general faults of style (proselint), and those of
the twelve rules of docs/style.md that a machine can check. Code is left out. Other texts, such as
comments: src/tidy/prose.rs.

usage: /usr/bin/python3 -m pytest tests/test_prose.py
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
FOLDERS = ("guide", "concepts", "reference", "internals")
PAGES = [TOP / "README.md", TOP / "docs" / "README.md", TOP / "docs" / "performance.md",
         *sorted(path for folder in FOLDERS for path in (TOP / "docs" / folder).glob("*.md"))]
SPELLED = [*PAGES, *sorted((TOP / "docs" / "decisions").glob("*.md")), TOP / "docs" / "style.md",
           *(TOP / name for name in ("CONTRIBUTING.md", "examples/README.md", "benches/README.md"))]
# Names of Rust, Fortran and C that are no misspellings.
NAMES = "crate,inout,get's,nd,ser"
# Checks of proselint for printed texts, and one for which the paper's title is a fault.
LEFT_OUT = ("typography", "cliches", "misc.but", "garner.phrasal_adjectives")
WORDS_MAX = 45
RULES = [  # a pattern, and what to write: by the number of the rule
    (r"roads?", "1: transport"),
    (r"MPI underneath", "1: host MPI"),
    (r"quick (?:call|path)s?", "1: fast call, fast path"),
    (r"looks? (?:at most|for|before)", "1: spins, checks, reads"),
    (r"(?<!front )of which", "3: a clause of its own"),
    (r"who (?:waits?|has|holds?|asks?)", "3: the name of the actor"),
    (r"(?<!thing )(?<!all )else", "5: otherwise"),
    (r"likewise", "5: also"),
    (r"so it is", "5: also"),
    (r"besides?", "5: next to, also, in addition"),
    (r"no longer", "9: no history"),
    (r"used to be", "9: no history"),
]


def prose(path):
    """The lines of a page without code, addresses of links and comments."""
    text = re.sub(r"^ *```.*?^ *```|<!--.*?-->", lambda found: "\n" * found[0].count("\n"),
                  path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^    .*", "", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]*`", "X", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def name(path):
    return str(path.relative_to(TOP))


def need(tool):
    found = shutil.which(tool)
    if not found:
        pytest.skip(f"no {tool}: scripts/install-deps installs it")
    return found


def test_spelling():
    said = subprocess.run([need("codespell"), "--ignore-words-list", NAMES, *SPELLED],
                          capture_output=True, text=True, check=False)
    assert not said.stdout, said.stdout


def test_proselint(tmp_path):
    files = {tmp_path / name(path).replace("/", "."): path for path in PAGES}
    for file, path in files.items():
        file.write_text(prose(path), encoding="utf-8")
    said = subprocess.run([need("proselint"), *files], capture_output=True, text=True, check=False)
    found = [line for line in said.stdout.splitlines()
             if not line.split(": ")[1].startswith(LEFT_OUT)]
    assert not found, "\n".join(found)


def faults(text):
    """The places of a text that break a rule: (line, what)."""
    found = []
    for pattern, instead in RULES:
        for match in re.finditer(rf"\b{pattern}\b", text, flags=re.IGNORECASE):
            line = text.count("\n", 0, match.start()) + 1
            found.append((line, f"{match[0]!r}: rule {instead}"))
    for match in re.finditer(r"(?:[^\n|.!?:;]|[.:](?!\s)|\n(?![\n|#-]|\s*[-0-9]))+", text):
        words = len(re.findall(r"[A-Za-z0-9]\S*", match[0]))
        if words > WORDS_MAX:
            line = text.count("\n", 0, match.start()) + 1
            found.append((line, f"rule 2: a sentence of {words} words"))
    return found


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_rules(path):
    found = [f"{name(path)}:{line}: {what}" for line, what in faults(prose(path))]
    assert not found, "\n".join(found)


def test_a_fault_is_found():
    for text in ("A road.", "By the\nMPI underneath.", "Or else.", "Likewise.", "word " * 46 + "."):
        assert faults(text), text
    for text in ("Broad words.", "Elsewhere.", "One two. " * 40, "- word\n" * 50):
        assert not faults(text), text


def test_readme_is_short():
    assert len((TOP / "README.md").read_text(encoding="utf-8").splitlines()) <= 200
