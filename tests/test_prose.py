"""The prose of README, of docs and of comments: spelling (codespell), general faults of style (proselint),
and those of the twelve rules of docs/style.md that a machine can check. Code is left out.
src/tidy/prose.rs has phrases that no comment of Rust or C may have.

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
           *(TOP / name for name in ("CONTRIBUTING.md", "examples/README.md", "benches/README.md",
                                   "benches/fairness.md"))]
# The pages for developers, which have names of files in long lists.
MORE = [TOP / "CONTRIBUTING.md", TOP / "benches/fairness.md", *(TOP / name / "README.md" for name in
                                   ("benches", "c-tests", "c-tests/adapter", "examples", "scripts"))]
# Where comments, and the sentences of conformance rows, have none of the words of COMMENT_RULES.
COMMENTED = [path for path in sorted(TOP / name for name in subprocess.run(
    ["git", "ls-files", "crates", "src", "benches", "c-tests", "docs/conformance", "examples", "fortran-tests"],
    cwd=TOP, capture_output=True, text=True, check=False).stdout.split())
    if path.suffix in (".rs", ".c", ".h", ".cpp", ".toml", ".f90", ".f", ".inc")
    and "generated" not in path.parts and path.is_file()]
NOT_YET = ("src/tidy/", "c-tests/robustness/lost.c")
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
COMMENT_RULES = [
    (r"roads?", "1: transport"),
    (r"MPI underneath", "1: host MPI"),
    (r"(?:quick calls?|quick paths?)", "1: fast path"),
    (r"looks? (?:at most|for|before)", "1: spins, searches, checks"),
    (r"of which", "3: a clause of its own"),
    (r"(?:who|whoever) (?:waits?|has|holds?|asks?)", "3: the name of the actor"),
    (r"alike", "5: equal, identical, in the same way"),
    (r"likewise", "5: also, as for ..."),
    (r"besides?", "5: next to, also, in addition"),
]


def comments(path):
    """The comments of a source, each in its line, without names in backticks."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        found = re.finditer(r'^(?:rule|because|note|title) = (?:"""(.*?)"""|"(.*?)")$', text,
                            flags=re.DOTALL | re.MULTILINE)
    elif path.suffix in (".f90", ".f", ".inc"):
        found = re.finditer(r"(?:^\s*|\s)!(.*)$()", text, flags=re.MULTILINE)
    else:
        found = re.finditer(r"(?<![:\"'])//([^\n]*)|/\*(.*?)\*/", text, flags=re.DOTALL)
    lines = [""] * (text.count("\n") + 1)
    for match in found:
        first = text.count("\n", 0, match.start())
        for number, line in enumerate((match[1] or match[2] or "").split("\n"), first):
            lines[number] += re.sub(r"^\s*\*|`[^`]*`", "", line)
    return "\n".join(lines)


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


def words_of(text, rules):
    """The places of a text that have a word of these rules: (line, what)."""
    found = []
    for pattern, instead in rules:
        for match in re.finditer(rf"\b{pattern}\b", text, flags=re.IGNORECASE):
            line = text.count("\n", 0, match.start()) + 1
            found.append((line, f"{match[0]!r}: rule {instead}"))
    return found


def faults(text):
    """The places of a text that break a rule: (line, what)."""
    found = words_of(text, RULES)
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


@pytest.mark.parametrize("path", MORE, ids=name)
def test_words(path):
    found = [f"{name(path)}:{line}: {what}" for line, what in words_of(prose(path), RULES)]
    assert not found, "\n".join(found)


def test_comments():
    assert len(COMMENTED) > 600 or not (TOP / ".git").exists()
    found = [f"{name(path)}:{line}: {what}" for path in COMMENTED
             if not name(path).startswith(NOT_YET)
             for line, what in words_of(comments(path), COMMENT_RULES)]
    assert not found, "\n".join(found)


def test_a_comment_is_read(tmp_path):
    for file, text in (("a.rs", "let road = 1; // the road\n/// `road`\n"), ("a.f90", "road = 1 ! a road\n"),
                       ("a.c", "// one\nint road; /* a\n * road */\n"),
                       ("a.toml", 'from = "road"\nrule = """\n A road."""\nwhere = "road"\n')):
        (tmp_path / file).write_text(text, encoding="utf-8")
        assert len(words_of(comments(tmp_path / file), COMMENT_RULES)) == 1, file


def test_a_fault_is_found():
    for text in ("A road.", "By the\nMPI underneath.", "Or else.", "Likewise.", "word " * 46 + "."):
        assert faults(text), text
    for text in ("Broad words.", "Elsewhere.", "One two. " * 40, "- word\n" * 50):
        assert not faults(text), text


def test_readme_is_short():
    assert len((TOP / "README.md").read_text(encoding="utf-8").splitlines()) <= 200
