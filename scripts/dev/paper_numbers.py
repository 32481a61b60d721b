"""What the applications' CSVs of scripts/paper say: a number for each application, place, MPI,
number of ranks, layer and variant."""

from bench_results import short

HIGHER_IS_BETTER = {"rate"}


def number(row, compared):
    """What is compared, of a row: seconds, or another pair of the result."""
    if compared == "seconds":
        return float(row["seconds"])
    pairs = dict(word.split("=", 1) for word in row["more"].split() if "=" in word)
    return float(pairs.get(compared, "nan"))


def times(better, other, compared):
    """How many times better the first number is than the second one."""
    if better is None or other is None or not better or not other:
        return None
    return better / other if compared in HIGHER_IS_BETTER else other / better


def shown(value, compared):
    if value is None:
        return "-"
    if compared != "seconds":
        return f"{value:,.0f}/s"
    return short(1e9 * value, "ns")


class Cells:
    """The numbers of an application by place, MPI and ranks."""

    def __init__(self, application, rows):
        self.application, self.found = application, {}
        for row in rows:
            if row["program"] == application["program"] and row["verified"] == "1":
                key = row["place"], row["mpi"], int(row["ranks"])
                self.found.setdefault(key, {})[row["layer"], row["variant"]] = row

    def value(self, key, layer, kind):
        row = self.found[key].get((layer, self.application[kind]))
        return None if row is None else number(row, self.application["compared"])

    def keys(self):
        return sorted(self.found)

    def lines(self, place, kinds):
        """The lines of the picture: a point for each number of ranks."""
        lines = []
        for layer, kind, name in kinds:
            for mpi in sorted({key[1] for key in self.found if key[0] == place}):
                # Times in nanoseconds, as those of scripts/bench.
                factor = 1e9 if self.application["compared"] == "seconds" else 1
                points = [(key[2], factor * self.value(key, layer, kind)) for key in self.keys()
                          if key[:2] == (place, mpi) and self.value(key, layer, kind)]
                lines.append((mpi, name, points))
        return lines
