"""The rows of docs/conformance: their tests, where they are, and their mutations. For conformance,
which writes the page, and mutants, which runs the tests; conformance --help says what a row is."""

import fnmatch
import functools
import re
import tomllib

import programs
from programs import ROOT

ROWS = ROOT / "docs" / "conformance"
# What cargo-mutants changes, and says which changes the unit tests of the same crate do not notice.
UNIT_MUTANTS = ROOT / ".cargo" / "mutants.toml"


class Wrong(Exception):
    """What is wrong with a row."""


class Program:
    """A test that mpiexec runs: `NAME RANKS` or `NAME MPI RANKS`."""

    def __init__(self, words, per_node=None, settings=None):
        if len(words) not in (2, 3):
            raise Wrong(f"test `{' '.join(words)}`: name, MPI and ranks wanted")
        self.name, self.ranks = words[0], int(words[-1])
        self.per_node, self.settings = per_node, settings or {}
        if per_node is not None and not 0 < per_node < self.ranks:
            raise Wrong(f"{self.name}: {per_node} of {self.ranks} ranks per node are no nodes")
        self.mpi = words[1] if len(words) == 3 else "mpich"
        self.path = programs.sources().get(self.name)
        if self.path is None:
            raise Wrong(f"there is no test {self.name}")
        head = "\n".join(self.path.read_text().splitlines()[:20])
        ranks = re.search(r"^\W*ranks:([ 0-9]*)$", head, re.M)
        if ranks is None or str(self.ranks) not in ranks.group(1).split():
            raise Wrong(f"{self.name} does not run at {self.ranks} ranks")

    @property
    def label(self):
        """All that says how it runs."""
        nodes = [f"{self.per_node} per node"] if self.per_node else []
        settings = [f"{name}={value}" for name, value in sorted(self.settings.items())]
        return " ".join([self.name, self.mpi, str(self.ranks), *nodes, *settings])

    def __str__(self):
        ranks = f"{self.ranks} rank{'s' * (self.ranks > 1)}"
        mpi = {"mpich": "", "openmpi": ", Open MPI"}.get(self.mpi, f", {self.mpi}")
        link = f"../{self.path.relative_to(ROOT)}"
        nodes = f", {self.per_node} per node" if self.per_node else ""
        settings = "".join(f", `{name}={value}`" for name, value in self.settings.items())
        return f"[{self.name}]({link}), {ranks}{mpi}{nodes}{settings}"


class Unit:
    """A test of the unit tests, by its path."""

    per_node = None

    def __init__(self, path):
        self.name = path
        self.crate, self.inner = crate_of(path)
        modules, function = path.split("::")[:-1], path.split("::")[-1]
        self.path = unit_source(modules)
        if self.path is None or not re.search(rf"\bfn {function}\(", self.path.read_text()):
            raise Wrong(f"there is no unit test {path}")

    @property
    def label(self):
        return f"unit {self.name}"

    def __str__(self):
        link = f"../{self.path.relative_to(ROOT)}"
        return f"[{self.name.split('::')[-1]}]({link})"


def source(name):
    """The path of a source by its short name: `base/sync.rs` is crates/base/src/sync.rs, and
    `abi/mod.rs`, as there is no crate of that name, src/abi/mod.rs."""
    crate, _, rest = name.partition("/")
    below = ROOT / "crates" / crate / "src"
    return below / rest if below.is_dir() else ROOT / "src" / name


def short(path):
    """The short name of a source, which `source` undoes."""
    folder, *rest = path.relative_to(ROOT).parts
    return "/".join(rest if folder == "src" else [rest[0], *rest[2:]])


def crate_of(test):
    """The crate of a unit test, and its path there: `base::config::tests::x` is `config::tests::x` of
    fompi-base."""
    first, _, rest = test.partition("::")
    return (f"fompi-{first}", rest) if (ROOT / "crates" / first).is_dir() else ("fompi", test)


def unit_source(modules):
    """The file of a module; `tests` may be a file or stand in that of its parent."""
    for depth in (len(modules), len(modules) - 1):
        stem = source("/".join(modules[:depth]))
        for path in (stem.with_suffix(".rs"), stem / "mod.rs", stem / "lib.rs"):
            if path.exists():
                return path
    return None


def test_of(values):
    words = values["test"].split()
    if words[0] == "unit" and len(words) == 2:
        return Unit(words[1])
    return Program(words, values.get("per_node"), values.get("settings"))


@functools.cache
def source_text(path):
    """The text of a source by its short name."""
    return source(path).read_text()


def item_span(text, name):
    """Where the item `name` begins and ends in a source text: a function, an entry, a type. rustfmt
    has made its last line a bracket as far to the right as its first."""
    entry = rf"^( *){name} P{name} "
    item = (rf"^( *)(?:pub(?:\([a-z: ]+\))? )?(?:const |unsafe |extern \"C\" )*"
            rf"(?:fn|struct|enum|trait|mod|const|static|macro_rules!|impl\b.* for) {name}\b")
    found = re.search(entry, text, re.M) or re.search(item, text, re.M)
    if found is None:
        return None
    start, indent = found.start(), found.group(1)
    line_end = text.find("\n", start)
    if text[start:line_end].rstrip().endswith(";"):
        return start, line_end
    end = re.compile(rf"^{indent}[}})\]]+;?$", re.M).search(text, line_end)
    return start, end.end() if end else len(text)


class Place:
    """A source by its short name and an item in it: `window/create/mod.rs wish`."""

    def __init__(self, named):
        words = named.split(None, 1)
        self.file, self.item = words[0], words[1] if len(words) == 2 else None
        if not source(self.file).is_file():
            raise Wrong(f"there is no {self.file}")
        text = source_text(self.file)
        self.span = (0, len(text)) if self.item is None else item_span(text, self.item)
        if self.span is None:
            raise Wrong(f"{self.file} has no {self.item}")

    def __str__(self):
        link = f"[{self.file}](../{source(self.file).relative_to(ROOT)})"
        return f"{link} `{self.item}`" if self.item else link


class Mutation:
    """A text that stands once in a place, and what it becomes under a name."""

    def __init__(self, name, place, near, old, new):
        self.name, self.place, self.old, self.new = name, place, old, new
        first, last = place.span
        text = source_text(place.file)
        for part in [near, old] if near else [old]:
            count = text.count(part, first, last)
            if count != 1:
                raise Wrong(f"`{part}` stands {count} times in {place.file} {place.item or ''}")
            first = text.index(part, first, last)
            last = first + len(part)
        self.start = first

    def __str__(self):
        return f"`{self.name}`"


class Row:
    """A function or a rule with its test and its mutation. `mutant`: the name of the mutation, or None if
    those of cargo-mutants take its place."""

    def __init__(self, values, function=False):
        self.values, self.function = values, function
        self.section = values["section"]
        self.test = test_of(values)
        self.mutations = []
        if function:
            self.rule = values["name"]
            self.where = Place(values.get("where") or entry_place(self.rule))
            self.mutant = values.get("mutant", self.rule)
        else:
            self.rule, self.where = values["rule"], Place(values["where"])
            self.mutant = values.get("mutant")
            if self.mutant is None and ("from" in values or not self.has_unit_mutants()):
                raise KeyError("mutant")
        place = self.where
        changes = ([values] if "from" in values else []) + values.get("also", [])
        for change in changes:
            place = Place(change["in"]) if "in" in change else place
            self.mutations.append(Mutation(self.mutant, place, change.get("near"),
                                           change["from"], change["to"]))

    def has_unit_mutants(self):
        """Whether cargo-mutants changes the code of the rule and runs its test."""
        crate = self.where.file.partition("/")[0]
        return (isinstance(self.test, Unit) and self.test.crate == f"fompi-{crate}"
                and is_changed_by_unit_mutants(source(self.where.file)))


def is_changed_by_unit_mutants(path):
    name, of = str(path.relative_to(ROOT)), tomllib.loads(UNIT_MUTANTS.read_text())
    matches = lambda globs: any(fnmatch.fnmatch(name, glob) for glob in globs)
    return matches(of["examine_globs"]) and not matches(of["exclude_globs"])


def entry_place(name):
    """Where the entry of a function is."""
    for path in sorted((ROOT / "src" / "abi").glob("*.rs")):
        text = path.read_text()
        if re.search(rf"^    {name} P{name} ", text, re.M):
            return f"abi/{path.name} {name}"
    raise Wrong(f"{name} has no entry")


class Table:
    """A file of rows."""

    def __init__(self, path):
        self.path, self.rows, self.wrong = path, [], []
        values = tomllib.loads(path.read_text())
        self.title, self.note = values["title"], values.get("note", "")
        self.different = values.get("different", [])
        for function in values.get("functions", []):
            self.add(function, True)
        for rule in values.get("rule", []):
            self.add(rule, False)

    def add(self, values, function):
        name = values.get("name") or values.get("rule", "a rule without a text")
        try:
            self.rows.append(Row(values, function))
        except KeyError as missing:
            self.wrong.append(f"{self.path.name}: {name}: no {missing}")
        except (Wrong, ValueError) as why:
            self.wrong.append(f"{self.path.name}: {name}: {why}")


def tables():
    return [Table(path) for path in sorted(ROWS.glob("*.toml"))]


def all_mutations(rows):
    """The mutations by name; what is wrong with their names."""
    found, wrong = {}, []
    for row in rows:
        if not row.mutations:
            continue
        known = found.setdefault(row.mutant, row.mutations)
        if known is not row.mutations:
            wrong.append(f"two mutations are called {row.mutant}")
    for row in rows:
        is_known = row.mutant is None or row.mutant.startswith("MPI_") or row.mutant in found
        if not row.mutations and not is_known:
            wrong.append(f"{row.rule}: there is no mutation {row.mutant}")
    return found, wrong
