"""Draws a model document as SVG. Run with a Python that has matplotlib:
python3 drawing.py MODEL.json PICTURE.svg"""

import json
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from fompi_model.models import predict, read_piece, time_text  # noqa: E402

# Legible to all.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"]


def curve(model, is_logarithmic):
    """Places along the pieces of a model. Between numbers of ranks that lie in two pieces there is
    no line; between sizes there is one."""
    places = []
    for piece in model["pieces"]:
        if not is_logarithmic and places:
            places.append((math.nan, math.nan))
        low, high = piece["low"], piece["high"]
        for i in range(41):
            share = i / 40
            x = low * (high / low) ** share if is_logarithmic else low + (high - low) * share
            places.append((x, read_piece(piece).at(x)))
    return places


def size_text(size, _):
    for limit, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= limit:
            return f"{size / limit:g} {unit}"
    return f"{size:g}"


def panel(axes, models, title, is_logarithmic, label):
    axes.set_title(title, loc="left", fontsize=11)
    for colour, model in zip(COLOURS, models):
        for used, face in ((True, colour), (False, "none")):
            points = [p for p in model["points"] if p["used"] == used]
            axes.plot([p["value"] for p in points], [p["ns"] for p in points], "o", ms=4,
                      mec=colour, mfc=face, ls="")
        places = curve(model, is_logarithmic)
        axes.plot([x for x, _ in places], [y for _, y in places], color=colour, lw=1.3,
                  label=model["name"])
    if is_logarithmic:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(size_text)
    else:
        axes.locator_params(axis="x", integer=True)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda ns, _: time_text(ns))
    axes.set_xlabel(label)
    axes.grid(True, which="major", color="#dddddd", lw=0.6)
    axes.legend(fontsize=8, frameon=False)


def bars(axes, models):
    axes.set_title("constants", loc="left", fontsize=11)
    names = [model["name"] for model in models][::-1]
    values = [predict(model) for model in models][::-1]
    axes.barh(names, values, color=COLOURS[0], height=0.6)
    for row, value in enumerate(values):
        axes.text(value, row, f" {time_text(value)}", va="center", fontsize=8)
    axes.set_xlim(right=max(values) * 1.25)
    axes.tick_params(axis="y", labelsize=8)
    axes.xaxis.set_major_formatter(lambda ns, _: time_text(ns))
    axes.locator_params(axis="x", nbins=4)


def draw(doc, path):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plot
    # The same document gives the same bytes, and the text stays text.
    plot.rcParams.update({"svg.hashsalt": "fompi-model", "svg.fonttype": "none"})
    places = [w for w in ("one node", "between nodes")
              if any(m["where"] == w for m in doc["models"])]
    figure, grid = plot.subplots(4, len(places), figsize=(7 * len(places), 17), squeeze=False)
    for column, where in enumerate(places):
        models = [m for m in doc["models"] if m["where"] == where]
        parts = (("s", "transfers", True, "bytes"), ("p", "fence", False, "ranks p"),
                 ("k", "post, start, complete, wait", False, "neighbours k"))
        for row, (parameter, title, is_logarithmic, label) in enumerate(parts):
            chosen = [m for m in models if m["parameter"] == parameter]
            if chosen:
                panel(grid[row][column], chosen, f"{where}: {title}", is_logarithmic, label)
            else:
                grid[row][column].set_axis_off()
        chosen = [m for m in models if m["parameter"] == ""]
        if chosen:
            bars(grid[3][column], chosen)
        else:
            grid[3][column].set_axis_off()
    job = doc["job"]
    figure.suptitle(f"{job['layer']} on {job['mpi']}, {job['ranks']} ranks, {job['nodes']} "
                    f"node{'s' * (job['nodes'] > 1)}, {doc['machine']['cores']} cores each\n"
                    f"{doc['machine']['processor']}, {doc['made']['date'][:16]}\n"
                    "filled: fitted points, hollow: new points", fontsize=10)
    figure.tight_layout(rect=(0, 0, 1, 0.98))
    figure.savefig(path, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        draw(json.load(file), sys.argv[2])
