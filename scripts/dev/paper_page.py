"""The page of scripts/paper: HTML with a picture for each panel, from the CSVs of scripts/bench and
of the applications. It needs no network to be read."""

import html
import re
from pathlib import Path

import paper_plots
from bench_layers import KEY_OF_LAYER
from bench_results import of_more

STYLE = """
:root { color-scheme: light }
body { font: 17px/1.5 Georgia, serif; max-width: 62rem; margin: 0 auto; padding: 1rem; color: #222 }
h1, h2, h3, th, figcaption, .says b { font-family: system-ui, sans-serif }
h2 { border-bottom: 2px solid #1b6ca8; padding-bottom: .2rem; margin-top: 3rem }
.panels { display: flex; flex-wrap: wrap; gap: 1rem }
.panels figure { flex: 1 1 24rem; max-width: 30rem; margin: 0 }
.panels img { width: 100%; height: auto }
figcaption { font-size: 14px }
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


def escaped(text):
    return html.escape(str(text))


def said(text):
    """A text of paper.toml, in which names stand between backquotes."""
    return re.sub(r"`(.*?)`", r"<code>\1</code>", escaped(text))


def lines_of(rows, by_ranks, share):
    """The lines of a panel: (mpi, layer, points), with the median and the 90th percentile of a point, or
    a pair of `more`, which has none."""
    found = {}
    for row in rows:
        x = float(row["ranks"] if by_ranks else row["value"])
        y = (of_more(row, share), None) if share else (float(row["median"]), float(row["p90"]))
        found.setdefault((row["mpi"], row["layer"]), []).append((x, *y))
    return [(mpi, layer, points) for (mpi, layer), points in sorted(found.items())]


def ways_of(figure, rows):
    """The lines of a picture of all series, (way, style, points), from the rows of an MPI: each layer in
    the order of `together`."""
    lines = []
    for layer in figure["together"]:
        key = KEY_OF_LAYER[layer]
        for series in figure["series"]:
            if key in series:
                points = [(float(row["value"]), float(row["median"]), float(row["p90"])) for row in rows
                          if row["layer"] == layer and row["measurement"] == series[key]]
                way = series["way"] if key == "rma" else figure["ways"][layer]
                lines.append((way, paper_plots.way_style(len(lines), layer), points))
    return lines


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
        styled = [(paper_plots.engine_name(mpi, layer), paper_plots.style(mpis, mpi, layer), points)
                  for mpi, layer, points in lines]
        return self.saved(name, title, x_name, y_name, unit, [(title, styled)])

    def saved(self, name, title, x_name, y_name, unit, parts, caption=""):
        """The parts of a panel, one below the other, as a figure element."""
        path = self.folder / f"{name}.svg"
        if self.selected is not None and name not in self.selected:
            return ""
        if not paper_plots.panel(path, x_name, y_name, unit, parts):
            return ""
        self.drawn.add(name)
        caption = caption and f"<figcaption>{escaped(caption)}</figcaption>"
        return (f'<figure><img src="{path.name}" alt="{escaped(title)}" loading="lazy">{caption}'
                "</figure>\n")

    def together(self, figure, rows, place):
        """The picture of all series of a figure at one place for each number of ranks: a part for each
        MPI, in which a line is a way to do the same. What is done by hand is of no MPI."""
        drawn = ""
        for ranks in sorted({int(row["ranks"]) for row in rows}):
            parts = [(mpi, ways_of(figure, [row for row in rows if int(row["ranks"]) == ranks and
                                            (row["mpi"] == mpi or row["layer"] == "hand")]))
                     for mpi in sorted({row["mpi"] for row in rows})]
            caption = (f"{figure['title']}. One-sided ways with libfompi, {ranks} ranks, "
                       f"{' and '.join(mpi for mpi, _ in parts)}.")
            drawn += self.saved(f"{figure['name']}-{place}-together-{ranks}", figure["title"],
                                figure["parameter"], "median", rows[0]["unit"], parts, caption)
        return drawn

    def panels_of(self, figure, rows, place):
        """The panels of a figure at one place: one for each series and number of ranks."""
        mpis = sorted({row["mpi"] for row in rows})
        by_ranks = figure["parameter"] == "ranks" or len(figure.get("full", [])) == 1
        drawn = self.together(figure, rows, place) if "together" in figure and rows else ""
        for series in figure["series"]:
            mine = [row for row in rows if row["measurement"] in series.values()]
            groups = [None] if by_ranks else sorted({int(row["ranks"]) for row in mine})
            for ranks in groups:
                part = [row for row in mine if ranks is None or int(row["ranks"]) == ranks]
                if not part:
                    continue
                title = series["rma"].replace("_", " ") + (f", {ranks} ranks" if ranks else "")
                name = f"{figure['name']}-{place}-{series['rma']}-{ranks or 'ranks'}"
                share = figure.get("shown")
                drawn += self.picture(name, title, "ranks" if by_ranks else figure["parameter"],
                                      share or "median", "" if share else part[0]["unit"],
                                      lines_of(part, by_ranks, share), mpis)
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

    def records(self, records):
        """What was measured on, and with which settings of the MPIs: from the heads of the CSVs."""
        names = ["date", "machine", "kernel", "libfompi", "load"]
        self.add("<h2>Records</h2>\n")
        self.table(["record", *names], [[name, *(", ".join(record.facts(name).get(fact, ["-"]))
                                                for fact in names)]
                                       for record in records for name in record.heads])
        self.add("<p>The settings of the host MPIs, in all layers, and the component that carried the "
                 "one-sided calls of each kind of window, as the MPI itself says:</p>\n")
        self.table(["record", "MPI", "settings", "components"],
                   [[name, mpi, settings, "; ".join(components)]
                    for record in records for name, mpi, settings, *components in record.hosts()])

    def violations(self, found):
        """The calls of libfompi that are slower than what they could be made of."""
        self.add("<h2>Self-consistent performance</h2>\n<p>A call should not be slower than what "
                 "it could be made of (foMPI, section 2.1), and should overlap as much as the other "
                 "layers. With a core for each rank, these calls of libfompi do not:</p>\n")
        columns = {"text": "rule", "place": "place", "ranks": "ranks", "mpi": "MPI",
                   "window": "window", "parameter": "parameter", "value": "value", "own": "libfompi",
                   "than": "compared with", "times": "times slower"}
        self.table(list(columns.values()), [[row[name] for name in columns] for row in found
                                            if row["layer"] == "libfompi"])

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
