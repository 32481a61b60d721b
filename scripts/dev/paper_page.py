"""The page of scripts/paper: HTML with a picture for each panel, from the CSVs of scripts/bench and
of the applications. It needs no network to be read."""

import csv
import html
import re
from pathlib import Path

import paper_plots

STYLE = """
:root { color-scheme: light }
body { font: 17px/1.5 Georgia, serif; max-width: 62rem; margin: 0 auto; padding: 1rem; color: #222 }
h1, h2, h3, th, figcaption, .says b { font-family: system-ui, sans-serif }
h2 { border-bottom: 2px solid #1b6ca8; padding-bottom: .2rem; margin-top: 3rem }
.panels { display: flex; flex-wrap: wrap; gap: 1rem }
.panels figure { flex: 1 1 24rem; max-width: 30rem; margin: 0 }
.panels img { width: 100%; height: auto }
.says { display: grid; grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); gap: 0 2rem }
.says p { margin: .3rem 0 }
.table { overflow-x: auto }
table { border-collapse: collapse; font: 14px/1.4 system-ui, sans-serif }
th, td { padding: .25rem .6rem; text-align: right; white-space: nowrap }
th, td { border-bottom: 1px solid #ddd }
th:first-child, td:first-child { text-align: left }
.slower { color: #a33 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; font-size: 15px }
dt { font-weight: bold } dd { margin: 0; overflow-wrap: anywhere }
@media print { body { max-width: none; font-size: 11pt } h2 { break-before: page }
  h3, .says { break-after: avoid }
  .panels figure { flex-basis: 45%; break-inside: avoid } }
"""


PLACES = {"node": "On one node", "nodes": "Between simulated nodes, over TCP"}


def place_of(path):
    """Where the run of a CSV was, by its name."""
    return "between nodes" if "-nodes" in path.name else "one node"


def escaped(text):
    return html.escape(str(text))


def said(text):
    """A text of paper.toml, in which names stand between backquotes."""
    return re.sub(r"`(.*?)`", r"<code>\1</code>", escaped(text))


def read(path):
    """The head lines and the rows of a CSV; nothing where there is none."""
    if not path.exists():
        return [], []
    lines = path.read_text(encoding="utf-8").splitlines()
    head = [line[2:] for line in lines if line.startswith("# ")]
    return head, list(csv.DictReader(line for line in lines if not line.startswith("#")))


def lines_of(rows, by_ranks):
    """The lines of a panel: (mpi, layer, points)."""
    found = {}
    for row in rows:
        x = row["ranks"] if by_ranks else row["value"]
        found.setdefault((row["mpi"], row["layer"]), []).append((float(x), float(row["median"])))
    return [(mpi, layer, points) for (mpi, layer), points in sorted(found.items())]


class Page:
    """The page as it grows, and the folder that its pictures go to. `selected`: the names of the
    pictures that it has, or None for all."""

    def __init__(self, folder, definitions, texts, selected=None):
        self.folder, self.definitions, self.texts = folder, definitions, texts
        self.selected, self.parts, self.drawn = selected, [], set()
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.svg"):
            old.unlink()

    def add(self, text):
        self.parts.append(text)

    def picture(self, name, title, x_name, y_name, unit, lines, mpis):
        """A panel as a figure element; empty if there is nothing to draw."""
        path = self.folder / f"{name}.svg"
        if self.selected is not None and name not in self.selected:
            return ""
        if not paper_plots.panel(path, title, x_name, y_name, unit, lines, mpis):
            return ""
        self.drawn.add(name)
        return (f'<figure><img src="{path.name}" alt="{escaped(title)}" loading="lazy">'
                "</figure>\n")

    def panels_of(self, figure, rows, place):
        """The panels of a figure at one place: one for each series and number of ranks."""
        mpis = sorted({row["mpi"] for row in rows})
        by_ranks = figure["parameter"] == "ranks" or len(figure.get("full", [])) == 1
        drawn = ""
        for series in figure["series"]:
            mine = [row for row in rows if row["measurement"] in series.values()]
            groups = [None] if by_ranks else sorted({int(row["ranks"]) for row in mine})
            for ranks in groups:
                part = [row for row in mine if ranks is None or int(row["ranks"]) == ranks]
                if not part:
                    continue
                title = series["rma"].replace("_", " ") + (f", {ranks} ranks" if ranks else "")
                name = f"{figure['name']}-{place}-{series['rma']}-{ranks or 'ranks'}"
                drawn += self.picture(name, title, "ranks" if by_ranks else figure["parameter"],
                                      "median", part[0]["unit"], lines_of(part, by_ranks), mpis)
        return drawn

    def figure(self, name, rows):
        """A figure as text; empty if none of its pictures is selected."""
        figure = next(f for f in self.definitions["figure"] if f["name"] == name)
        text = self.texts["figure"].get(name, {})
        mine = [row for row in rows if row["figure"] == name]
        places = ""
        for place, where in PLACES.items():
            at = [row for row in mine if row["place"] == place]
            drawn = self.panels_of(figure, at, place)
            if drawn:
                places += f"<p><b>{where}</b></p>\n<div class=panels>\n{drawn}</div>\n"
            elif place in figure["place"] and self.selected is None:
                places += f"<p>{where}: not measured in this run.</p>\n"
        if not places:
            return ""
        paper = (f"<b>The paper</b> ({escaped(figure['paper'])}): {said(text['paper'])}"
                 if "paper" in text else f"<b>{escaped(figure['paper'].capitalize())}.</b>")
        return (f"<h3>{escaped(figure['title'])}</h3>\n"
                f"<div class=says><p>{paper}</p><p><b>Here:</b> "
                f"{said(text.get('differs', ''))}</p></div>\n{places}")

    def sections(self, rows):
        for section in self.texts["section"]:
            text = "".join(self.figure(name, rows) for name in section["figures"])
            if text:
                self.add(f"<h2>{escaped(section['title'])}</h2>\n{text}")

    def machine(self, heads):
        """What was measured on, from the heads of the CSVs by what they have: first what all runs
        share, then a line for each run."""
        runs = {}
        for what, head in heads:
            facts = {}
            for line in head:
                name, _, value = line.partition(": ")
                facts.setdefault(name, []).append(value)
            runs.setdefault(tuple((name, ", ".join(values)) for name, values in facts.items()),
                            []).append(what)
        shared = [fact for fact in next(iter(runs), ()) if all(fact in run for run in runs)]
        self.add("<dl>\n")
        for name, value in shared:
            self.fact(name, escaped(value))
        for run, whats in runs.items():
            own = dict(fact for fact in run if fact not in shared)
            command = own.pop("command", "")
            text = "; ".join(f"{escaped(name)} {escaped(value)}" for name, value in own.items())
            self.fact(", ".join(whats), text + (f"<br><code>{escaped(command)}</code>" * bool(command)))
        self.add("</dl>\n")

    def fact(self, name, value):
        self.add(f"<dt>{escaped(name)}</dt><dd>{value}</dd>\n")

    def violations(self, rows):
        """The calls of libfompi that are slower than what they could be made of."""
        ours = [row for row in rows if row["layer"] == "libfompi"]
        self.add("<h2>Self-consistent performance</h2>\n<p>A call should not be slower than what "
                 "it could be made of (foMPI, section 2.1). These calls of libfompi were:</p>\n")
        columns = {"rule": "rule", "place": "place", "ranks": "ranks", "mpi": "MPI",
                   "window": "window", "parameter": "parameter", "value": "value",
                   "times": "times slower"}
        self.table(list(columns.values()), [[row[name] for name in columns] for row in ours])

    def table(self, columns, lines):
        if not lines:
            self.add("<p>None.</p>\n")
            return
        head = "".join(f"<th>{escaped(column)}</th>" for column in columns)
        self.add(f"<div class=table><table>\n<tr>{head}</tr>\n")
        for line in lines:
            cells = (cell if str(cell).startswith("<td") else f"<td>{escaped(cell)}</td>"
                     for cell in line)
            self.add(f"<tr>{''.join(cells)}</tr>\n")
        self.add("</table></div>\n")

    def write(self, title):
        head = (f"<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
                f'<meta name=viewport content="width=device-width, initial-scale=1">\n'
                f"<title>{escaped(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n")
        path = Path(self.folder) / "index.html"
        path.write_text(head + "".join(self.parts) + "</body>\n</html>\n", encoding="utf-8")
        return path
