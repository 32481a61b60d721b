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

from bench_jobs import FOMPIRUN, KEY_OF_LAYER, cores, ranks_of, sweep_of, title, window_of
from programs import ROOT

COLUMNS = ("figure place nodes ranks mpi layer measurement parameter value window unit median "
           "least p90 runs rounds verified more").split()
VIOLATION_COLUMNS = ("rule place nodes ranks mpi layer window parameter value unit median least "
                     "than_median than_least times").split()


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


def head(mpis, library, command, load):
    """The lines in front of a CSV, without the marks of a comment."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return [f"date: {now}", f"command: {command}",
            f"machine: {processor()}, {len(os.sched_getaffinity(0))} processors, {cores()} cores",
            f"kernel: {platform.system()} {platform.release()}",
            *(f"mpi: {title(mpi)}" for mpi in mpis),
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
    """The comparisons of the rules with the points."""

    def __init__(self, rules, tolerance, results):
        self.rules, self.tolerance, self.results = rules, tolerance, results
        self.compared = 0
        self.by_name = {}
        for key in results.rounds:
            self.by_name[key[:4] + key[5:]] = key

    def find(self):
        """(rule, key of the call, how many times slower) of each violation."""
        found = []
        for rule in self.rules:
            for name, key in self.by_name.items():
                if name[4] != rule["call"] or name[1] not in ("plain", "libfompi"):
                    continue
                if "values" in rule and name[5] not in rule["values"]:
                    continue
                limits = self.limits(rule, name)
                if limits is None:
                    continue
                self.compared += 1
                times = [self.results.value(key, which) / limit if limit else 1
                         for which, limit in zip(("median", "least"), limits)]
                if min(times) > 1 + self.tolerance:
                    found.append((rule, key, limits, times[0]))
        return found

    def limits(self, rule, name):
        """The median and the least time of what the call could be made of; None if a part of it
        was not measured."""
        mpi, layer, ranks, window, _, value = name
        if "layer" in rule:
            layer, window = rule["layer"], "allocate"
        half = rule.get("half", False)
        if half and value % 2:
            return None
        keys = [self.by_name.get((mpi, layer, ranks, window, part, value // 2 if half else value))
                for part in rule["than"]]
        if None in keys:
            return None
        return [sum(self.results.value(key, which) for key in keys) * (2 if half else 1)
                for which in ("median", "least")]


def violation_rows(found, results, place, nodes):
    for rule, key, limits, times in found:
        row = results.row(key)
        yield {"rule": rule["name"], "place": place, "nodes": nodes, "times": f"{times:.2f}",
               "than_median": shown(limits[0]), "than_least": shown(limits[1]),
               **{name: row[name] for name in ("ranks", "mpi", "layer", "window", "parameter",
                                               "value", "unit", "median", "least")}}


def violation_lines(found, results):
    """A line for each rule and engine that violates it."""
    groups = {}
    for rule, key, _, times in found:
        row = results.row(key)
        groups.setdefault((rule["text"], row["mpi"], row["layer"]), []).append((times, row))
    lines, text = [], None
    for (rule, mpi, layer), members in groups.items():
        if rule != text:
            lines.append(f"  {rule}, but:")
            text = rule
        times, worst = max(members, key=lambda m: m[0])
        lines.append(f"    {mpi}, {layer}: up to {times:.2f} times "
                     f"({short(float(worst['median']), 'ns')} at {worst['parameter']} "
                     f"{worst['value']}, {worst['ranks']} ranks), at {len(members)} points")
    return lines
