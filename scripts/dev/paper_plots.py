"""The plots of scripts/paper, by matplotlib: a file of SVG for each panel. A panel shows one
measurement or application with a line for each engine, or one task with a line for each measurement
that does it."""

import math
import re
import statistics

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib import ticker

plt.rcParams.update({"svg.fonttype": "none", "font.size": 12, "font.family": "sans-serif",
                     "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
                     "grid.color": "#dddddd", "svg.hashsalt": "fompi", "legend.fontsize": 10})

# A colour for each MPI, a line for each layer; what is done by hand is black. Coarrays and OpenSHMEM have
# a mark each, which is filled with libfompi.
COLOURS = ["#1b6ca8", "#c8553d", "#4f772d", "#7b2d8b", "#b8860b", "#444444"]
LINES = {"libfompi": ("-", "o"), "plain": ("--", "s"), "messages": (":", "^"), "hand": ("-.", "x"),
         "coarrays": ("--", "D"), "coarrays with libfompi": ("-", "D"),
         "openshmem": ("--", "P"), "openshmem with libfompi": ("-", "P")}
UNITS = {"ns": (("ns", 1), ("µs", 1e3), ("ms", 1e6), ("s", 1e9))}


def engine_name(mpi, layer):
    return "by hand" if layer == "hand" else f"{mpi}, {layer}"


def style(mpis, mpi, layer):
    line, mark = LINES.get(layer, ("-", "."))
    colour = "black" if layer == "hand" else COLOURS[mpis.index(mpi) % len(COLOURS)]
    open_mark = {"markerfacecolor": "white"} if layer in ("coarrays", "openshmem") else {}
    return {"linestyle": line, "marker": mark, "color": colour, "markersize": 4.5, "linewidth": 1.6,
            **open_mark}


def way_style(index, layer):
    """The style of a way in a picture of several, whose lines are those of the layers."""
    colour = "black" if layer == "hand" else COLOURS[index % len(COLOURS)]
    return {"linestyle": LINES[layer][0], "marker": "osD^xPv"[index % 7], "color": colour,
            "markersize": 4.5, "linewidth": 1.6}


def scaled(unit, values):
    """The values in a unit that people read, and its name."""
    divided = 1
    for name, factor in UNITS.get(unit, ((unit, 1),)):
        if statistics.median(values) >= factor:
            unit, divided = name, factor
    return unit, divided


def bytes_name(value, _=None):
    for factor, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= factor:
            return f"{value / factor:g} {name}"
    return f"{value:g} B"


def number_name(value, _=None):
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def shorten(path):
    """Leaves out of an SVG what nobody sees: more than half of its bytes. Two digits of a point are enough."""
    text = re.sub(r"(\d\.\d\d)\d+", r"\1", path.read_text(encoding="utf-8"))
    text = re.sub(r"'DejaVu Sans'.*?sans-serif", "sans-serif", text)
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    path.write_text(re.sub(r"\n\s*", "\n", text), encoding="utf-8")


def drawn(axes, unit, x_name, y_name, lines):
    """Draws lines, each (label, style, points), into axes whose values are all of a unit."""
    values = [point[1] for _, _, points in lines for point in points]
    is_share = not unit
    shown_unit, divided = scaled(unit, values)
    for label, how, points in lines:
        points = sorted(points, key=lambda point: point[0])
        if points:
            axes.plot([x for x, _, _ in points], [y / divided for _, y, _ in points], label=label, **how)
            # One path for all whiskers of a line, which is short as SVG.
            ends = [end for x, y, p90 in points if p90 for end in ((x, y), (x, p90), (x, math.nan))]
            axes.plot([x for x, _ in ends], [y / divided for _, y in ends], color=how["color"],
                      linewidth=0.8)
    xs = sorted({point[0] for _, _, points in lines for point in points})
    if len(xs) > 1 and min(xs) > 0:
        axes.set_xscale("log", base=2 if x_name in ("bytes", "ranks") else 10)
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(
        bytes_name if x_name == "bytes" else number_name))
    if len(xs) <= 6:
        axes.set_xticks(xs)
        axes.xaxis.set_minor_locator(ticker.NullLocator())
    if not is_share and max(values) / min(values) > 8:
        axes.set_yscale("log")
        if max(values) / min(values) < 200:  # powers of ten alone would be one or two
            axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_minor_locator(ticker.NullLocator())
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(number_name))
    axes.set_xlabel(x_name)
    axes.set_ylabel(f"{y_name} ({shown_unit})" if shown_unit else y_name)


def panel(path, x_name, y_name, unit, parts):
    """Draws parts below each other, each (title, lines), where a line is (label, style, points), and a
    point (x, y, p90 or None), which a whisker reaches. No part below two points in all. Returns
    whether anything was drawn."""
    is_share = not unit  # of something, from 0 to 1
    parts = [(title, [(label, how, [point for point in points if point[1] > 0 or is_share])
                      for label, how, points in lines]) for title, lines in parts]
    parts = [(title, lines) for title, lines in parts
             if sum(len(points) for _, _, points in lines) >= 2]
    if not parts:
        return False
    figure, all_axes = plt.subplots(len(parts), figsize=(5.2, 3.9 * len(parts)), squeeze=False)
    labels = {}
    for axes, (title, lines) in zip(all_axes[:, 0], parts):
        drawn(axes, unit, x_name, y_name, lines)
        axes.set_title(title, fontsize=12, loc="left", fontweight="bold")
        labels |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels())}
    if len(parts) > 1:
        figure.tight_layout()
    figure.legend(labels.values(), labels.keys(), loc="upper center", ncol=2, frameon=False,
                  bbox_to_anchor=(0.5, 0.0))
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    shorten(path)
    return True
