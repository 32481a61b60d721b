"""What the CSVs of benches/record say: the rows that a page may show, of each figure or program the
newest, and the numbers of each application."""

import csv

from bench_results import short

# What a row belongs to: of each, the newest record counts.
PARTS = {"bench": ("figure", "place"), "applications": ("program", "place")}
MESSAGES, PLAIN, OURS = "messages", "plain", "libfompi"


def read(path):
    """The head lines and the rows of a CSV; nothing where there is none."""
    if not path.exists():
        return [], []
    lines = path.read_text(encoding="utf-8").splitlines()
    head = [line[2:] for line in lines if line.startswith("# ")]
    return head, list(csv.DictReader(line for line in lines if not line.startswith("#")))


def rounds_of(row):
    """How many rounds a row is of; a run of a program is a round."""
    return int(row.get("rounds") or row["runs"])


class Record:
    """The rows of the CSVs of a kind in these folders that have enough rounds, each with the file that
    it is from. `left_out`: how many have too few; `heads`: the head of each file that has a row."""

    def __init__(self, kind, folders, rounds_min):
        self.left_out, self.heads, parts = 0, {}, {}
        for folder in sorted(folders):
            for path in sorted(folder.glob(f"{kind}-node*.csv")):
                head, rows = read(path)
                name, found = f"{folder.name}/{path.name}", {}
                for row in rows:
                    if rounds_of(row) >= rounds_min:
                        key = tuple(row[part] for part in PARTS[kind])
                        found.setdefault(key, []).append(row | {"record": name})
                    else:
                        self.left_out += 1
                parts |= found
                self.heads[name] = head
        self.rows = [row for rows in parts.values() for row in rows]
        used = {row["record"] for row in self.rows}
        self.heads = {name: head for name, head in self.heads.items() if name in used}

    def cores(self, row):
        """How many cores the machine of a row had."""
        head = dict(line.split(": ", 1) for line in self.heads[row["record"]] if ": " in line)
        return int(head["machine"].split(" cores")[0].split()[-1])

    def facts(self, name):
        """name of the fact -> what the head of a file says of it, each a line."""
        found = {}
        for line in self.heads[name]:
            fact, _, value = line.partition(": ")
            found.setdefault(fact, []).append(value)
        return found

    def hosts(self):
        """MPI, settings, and the components by kind of window, of each file."""
        return [(name, *host.split("; ")) for name in self.heads
                for host in self.facts(name).get("host", [])]


def lacking(rows):
    """How many points libfompi has for which its MPI alone has none."""
    points = {}
    for row in rows:
        key = tuple(row[part] for part in ("figure", "place", "mpi", "ranks", "measurement", "value"))
        points.setdefault(key, set()).add(row["layer"])
    return sum(OURS in layers and PLAIN not in layers for layers in points.values())


def name_of(application):
    return application.get("name", application["program"])


class Cells:
    """The numbers of an application by place, MPI and ranks."""

    def __init__(self, application, rows):
        self.application, self.found = application, {}
        for row in rows:
            if row["program"] == application["program"] and row["verified"] == "1":
                key = row["place"], row["mpi"], int(row["ranks"])
                self.found.setdefault(key, {})[row["layer"], row["variant"]] = row

    def row(self, key, layer):
        """Of messages the fastest variant, otherwise the one-sided one."""
        variants = self.application["messages"] if layer == MESSAGES else [self.application["onesided"]]
        rows = [row for variant in variants if (row := self.found.get(key, {}).get((layer, variant)))]
        return min(rows, key=lambda row: float(row["seconds"]), default=None)

    def nanoseconds(self, key, layer, which="seconds"):
        row = self.row(key, layer)
        return 1e9 * float(row[which]) if row else None

    def keys(self):
        return sorted(self.found)

    def times(self, key, layer):
        """How many times faster libfompi is than a layer; None without both."""
        ours, other = self.nanoseconds(key, OURS), self.nanoseconds(key, layer)
        return other / ours if ours and other else None

    def lines(self, place):
        """The lines of the picture: a point (ranks, median, p90) for each number of ranks."""
        lines = []
        for layer in (MESSAGES, PLAIN, OURS):
            for mpi in sorted({key[1] for key in self.found if key[0] == place}):
                points = [(key[2], self.nanoseconds(key, layer), self.nanoseconds(key, layer, "p90"))
                          for key in self.keys() if key[:2] == (place, mpi) and self.row(key, layer)]
                lines.append((mpi, layer, points))
        return lines


def shown(nanoseconds):
    return "-" if nanoseconds is None else short(nanoseconds, "ns")
