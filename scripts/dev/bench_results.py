"""What scripts/bench makes of its points: rows of a CSV, tables for people, and the calls that are
slower than what they could be made of."""

import csv
import datetime
import os
import platform
import re
import shutil
import statistics
import subprocess

from bench_jobs import KEY_OF_LAYER, cores, ranks_of, sweep_of, title, window_of
from programs import FOMPIRUN, ROOT

COLUMNS = ("figure place nodes ranks mpi layer measurement parameter value window unit median "
           "least p90 runs rounds verified more").split()


class Results:
    """The points of all rounds, by engine, ranks, kind of window, measurement and value."""

    def __init__(self):
        self.rounds = {}

    def add(self, points):
        for point in points:
            self.rounds.setdefault(point.key, []).append(point)

    def value(self, key, which):
        """The median over the rounds; the least of all for `least`; None without such a point."""
        points = self.rounds.get(key)
        if not points:
            return None
        numbers = [point.number(which) for point in points]
        return min(numbers) if which == "least" else statistics.median(numbers)

    def wrong(self):
        return [key for key, points in self.rounds.items()
                if any(point.pairs["verified"] != "1" for point in points)]

    def row(self, key):
        points = self.rounds[key]
        pairs = points[-1].pairs
        return {"ranks": key[2], "mpi": title(points[0].engine.mpi), "layer": key[1],
                "measurement": key[5], "parameter": pairs["parameter"], "value": key[6],
                "window": pairs["window"], "unit": points[0].unit,
                "median": shown(self.value(key, "median")),
                "least": shown(self.value(key, "least")), "p90": shown(self.value(key, "p90")),
                "runs": sum(int(point.pairs["runs"]) for point in points), "rounds": len(points),
                "verified": int(all(point.pairs["verified"] == "1" for point in points)),
                "more": more_of(points)}


def more_of(points):
    """The further pairs of a point, each the median over the rounds."""
    return " ".join(f"{name}={shown(statistics.median(float(p.more[name]) for p in points))}"
                    for name in points[-1].more)


def shown(number):
    return f"{number:.3f}".rstrip("0").rstrip(".")


def belongs(figure, key, quick):
    """Whether a point is one of the figure's, and by which series."""
    _, layer, ranks, window, asked, _, value = key
    if ranks not in ranks_of(figure, quick) or window != window_of(figure):
        return None
    for series in figure["series"]:
        if series.get(KEY_OF_LAYER[layer]) != asked:
            continue
        values = sweep_of(figure, series, quick)
        if not values or value in values or figure["name"] == "scal-8":
            return series
    return None


def rows(figures, results, place, nodes, quick):
    for figure in figures:
        for key in results.rounds:
            if belongs(figure, key, quick):
                yield {"figure": figure["name"], "place": place, "nodes": nodes} | results.row(key)


def one_line(command):
    """The first line that a command prints; nothing if there is no such command."""
    if shutil.which(command[0]) is None:
        return ""
    answer = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return (answer.stdout.splitlines() or [""])[0].strip()


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        found = re.search(r"model name\s*:\s*(.*)", info.read())
    return found.group(1) if found else platform.machine()


def library_version(library):
    """The version in the library's file: fompirun knows only its own."""
    answer = subprocess.run([FOMPIRUN, "--version"], capture_output=True, text=True,
                            env=os.environ | {"FOMPI_LIB": str(library)})
    found = re.search(r"libfompi version (\S+)", answer.stdout)
    return found.group(1) if found else "unknown"


def head(mpis, library, command, load, hosts=()):
    """The lines in front of a CSV, without the marks of a comment; `hosts`: those of host_layers."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return [f"date: {now}", f"command: {command}",
            f"machine: {processor()}, {len(os.sched_getaffinity(0))} processors, {cores()} cores",
            f"kernel: {platform.system()} {platform.release()}",
            *(f"mpi: {title(mpi)}" for mpi in mpis), *hosts,
            f"libfompi: {library_version(library)}, commit "
            f"{one_line(['git', 'rev-parse', '--short', 'HEAD']) or 'unknown'}",
            f"load: {load:.1f} before, {os.getloadavg()[0]:.1f} after"]


def write(path, columns, lines, table):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {line}\n" for line in lines)
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


def engine_columns(results):
    """The engines that have points, as (mpi label, layer)."""
    order = list(KEY_OF_LAYER)
    return sorted({key[:2] for key in results.rounds}, key=lambda e: (order.index(e[1]), e[0]))


def figure_table(figure, results, quick):
    """The lines of a figure: a row for each measurement, number of ranks and value, a column for
    each engine. What messages and hands do stands in the row of the series that they belong to."""
    cells, units = {}, {}
    for key in results.rounds:
        series = belongs(figure, key, quick)
        if series is None:
            continue
        name = key[5] if KEY_OF_LAYER[key[1]] == "rma" else series["rma"]
        for other in figure["series"]:
            same = other is series or other.get(KEY_OF_LAYER[key[1]]) == key[4]
            row = other["rma"] if KEY_OF_LAYER[key[1]] != "rma" else name
            if same:
                cells.setdefault((row, key[2], key[6]), {})[key[:2]] = results.value(key, "median")
                units[row] = results.rounds[key][0].unit
    if not cells:
        return []
    engines = [e for e in engine_columns(results) if any(e in row for row in cells.values())]
    titles = [f"{layer}" if layer == "hand" else f"{mpi} {layer}" for mpi, layer in engines]
    widths = [max(12, len(name) + 2) for name in titles]
    lines = [f"{figure['name']}: {figure['title']} ({figure['paper']})",
             f"  {'':26}{'ranks':>6}{figure['parameter']:>11}" +
             "".join(f"{name:>{width}}" for name, width in zip(titles, widths))]
    for (name, ranks, value), row in sorted(cells.items(), key=lambda c: (c[0][1], 0)):
        numbers = (short(row.get(engine), units[name]) for engine in engines)
        lines.append(f"  {name:26}{ranks:>6}{value:>11}" +
                     "".join(f"{n:>{width}}" for n, width in zip(numbers, widths)))
    return lines


def short(number, unit):
    if number is None:
        return "-"
    if unit != "ns":
        return f"{number:.0f} B"
    for name, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {name}"
    return f"{number:.3g} ns"


class Violations:
    """The comparisons of the rules with the rows of a CSV, or of several: only rows of one record are
    compared, and none of more ranks than cores; `cores`: those of the machine of a row."""

    def __init__(self, rules, tolerance, table, cores):
        self.rules, self.tolerance = rules, tolerance
        self.compared = 0
        # What needs no window is compared with calls on any.
        self.by_name = {self.name(row) + (("allocate" if row["window"] == "none" else row["window"]),): row
                        for row in table if int(row["ranks"]) <= cores(row)}

    @staticmethod
    def name(row):
        return tuple(row.get(part) for part in ("record", "place", "mpi", "layer", "measurement")) + \
            (int(row["ranks"]), int(row["value"]))

    def find(self):
        """The rows of violations: the call, what it is compared with, and how many times slower."""
        found = []
        for rule in self.rules:
            for name, row in self.by_name.items():
                if row["measurement"] != rule["call"] or row["layer"] not in ("plain", "libfompi"):
                    continue
                if "values" in rule and name[6] not in rule["values"]:
                    continue
                violation = (self.share if "share" in rule else self.slower)(rule, name, row)
                found += [{"rule": rule["name"], "text": rule["text"], **row, **violation}] if violation else []
        return found

    def other(self, name, layer, measurement, value, window):
        """The row of another call of the same MPI at the same number of ranks."""
        return self.by_name.get((*name[:3], layer, measurement, name[5], value, window))

    def slower(self, rule, name, row):
        layer, window = row["layer"], name[7]
        if "layer" in rule:
            layer, window = rule["layer"], "allocate"
        half = rule.get("half", False)
        if half and name[6] % 2:
            return None
        parts = [self.other(name, layer, part, name[6] // 2 if half else name[6], window)
                 for part in rule["than"]]
        if None in parts:
            return None
        self.compared += 1
        limits = [sum(float(part[which]) for part in parts) * (2 if half else 1)
                  for which in ("median", "least")]
        times = [float(row[which]) / limit if limit else 1
                 for which, limit in zip(("median", "least"), limits)]
        if min(times) <= 1 + self.tolerance:
            return None
        return {"than": short(limits[0], row["unit"]), "own": short(float(row["median"]), row["unit"]),
                "times": f"{times[0]:.2f}"}

    def share(self, rule, name, row):
        """Of libfompi alone: below the largest share of the other layers of the same run."""
        others = [other for layer in rule["layers"] for part in rule["than"]
                  if (other := self.other(name, layer, part, name[6], name[7]))]
        if row["layer"] != "libfompi" or not others:
            return None
        self.compared += 1
        own, most = of_more(row, rule["share"]), max(of_more(other, rule["share"]) for other in others)
        return {"own": f"{own:.2f}", "than": f"{most:.2f}", "times": "-"} if own < most else None


def of_more(row, name):
    """A further pair of a row, as a number."""
    return float(dict(pair.split("=", 1) for pair in row["more"].split()).get(name, "nan"))


def violation_lines(found):
    """A line for each rule and engine that violates it."""
    groups = {}
    for row in found:
        groups.setdefault((row["text"], row["mpi"], row["layer"]), []).append(row)
    lines, text = [], None
    for (rule, mpi, layer), members in groups.items():
        if rule != text:
            lines.append(f"  {rule}, but:")
            text = rule
        worst = max(members, key=lambda row: float(row["times"].replace("-", "0")))
        lines.append(f"    {mpi}, {layer}: {worst['own']} against {worst['than']} at {worst['parameter']} "
                     f"{worst['value']}, {worst['ranks']} ranks; at {len(members)} points")
    return lines
