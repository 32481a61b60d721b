"""What is measured, as the paper writes it (P_put(s), P_fence(p), ...), and the document that has
the fitted functions. docs/guide/model.md explains it, model.schema.json is its form."""

from dataclasses import dataclass

from fompi_model import fits

FORMAT = "fompi-model 1"

# How the parameters are written, and what one of them is.
UNITS = {"s": "byte", "p": "rank", "k": "neighbour", "": ""}

# The forms that are tried, the paper's first: a later one is taken if it predicts points that it
# has not seen clearly better.
FORMS = {
    "s": [("1", "x")],
    "p": [("log2",), ("1", "log2"), ("1", "x")],
    "k": [("x",), ("1",), ("1", "x")],
    "": [("1",)],
}
KEYS = {"1": "constant_ns", "x": "per_unit_ns", "log2": "per_log2_ns"}


@dataclass(frozen=True)
class Function:
    """A function of the model, and the measurement that it comes from."""
    name: str
    measurement: str
    parameter: str
    meaning: str
    alone: int = 0  # the values up to this one are a range of their own


FUNCTIONS = [
    Function("P_put", "put", "s", "MPI_Put of s bytes, then MPI_Win_flush"),
    Function("P_get", "get", "s", "MPI_Get of s bytes, then MPI_Win_flush"),
    Function("P_issue", "put_rate", "s", "one of many MPI_Put of s bytes before one MPI_Win_flush"),
    Function("P_notify", "notified_put", "s",
             "FOMPI_Put_notify of s bytes and FOMPI_Win_wait_notify at its target, one way"),
    Function("P_flag", "one_way_flag", "s",
             "MPI_Put of s bytes, MPI_Win_flush, MPI_Put of a flag that its target polls, one way"),
    Function("P_acc,sum", "acc_sum", "s",
             "MPI_Accumulate of MPI_SUM on s bytes of 8-byte integers, then MPI_Win_flush", 8),
    Function("P_acc,min", "acc_min", "s",
             "MPI_Accumulate of MPI_MIN on s bytes of 8-byte integers, then MPI_Win_flush", 8),
    Function("P_cas", "cas", "", "MPI_Compare_and_swap of 8 bytes, then MPI_Win_flush"),
    Function("P_fetch", "fetch_and_op", "",
             "MPI_Fetch_and_op of MPI_SUM on 8 bytes, then MPI_Win_flush"),
    Function("P_fence", "fence", "p", "MPI_Win_fence of p ranks"),
    Function("P_post", "post", "k", "MPI_Win_post to k neighbours"),
    Function("P_start", "start", "k", "MPI_Win_start to k neighbours that have posted"),
    Function("P_complete", "complete", "k", "MPI_Win_complete to k neighbours"),
    Function("P_wait", "wait", "k", "MPI_Win_wait for k neighbours that have completed"),
    Function("P_pscw", "pscw", "k",
             "MPI_Win_post, start, complete and wait with k neighbours, waiting for them included"),
    Function("P_lock,excl", "lock_exclusive", "", "MPI_Win_lock, exclusive, of a free target"),
    Function("P_lock,shrd", "lock_shared", "", "MPI_Win_lock, shared, of a free target"),
    Function("P_lock_all", "lock_all", "", "MPI_Win_lock_all"),
    Function("P_unlock,excl", "unlock_exclusive", "", "MPI_Win_unlock of an exclusive lock"),
    Function("P_unlock,shrd", "unlock_shared", "", "MPI_Win_unlock of a shared lock"),
    Function("P_unlock_all", "unlock_all", "", "MPI_Win_unlock_all"),
    Function("P_flush", "flush", "", "MPI_Win_flush without an operation"),
    Function("P_sync", "sync", "", "MPI_Win_sync"),
]


def time_text(ns):
    """A time as the paper has it: 76 ns, 2.9 us, with three digits."""
    for limit, factor, unit in ((1e3, 1, "ns"), (1e6, 1e3, "us"), (1e9, 1e6, "ms")):
        if ns < limit:
            break
    return f"{ns / factor:.3g} {unit}"


def piece_text(terms, parameter):
    """0.16 ns * s + 1 us"""
    written = {"x": f" * {parameter}", "log2": f" * log2({parameter})", "1": ""}
    parts = [time_text(terms[name]) + written[name] for name in ("x", "log2", "1")
             if terms.get(name)]
    return " + ".join(parts) or "0 ns"


def written(piece, parameter):
    """A piece as the document has it."""
    row = {key: piece.terms.get(term, 0.0) for term, key in KEYS.items()}
    return {"low": piece.low, "high": piece.high, **row, "text": piece_text(piece.terms, parameter)}


def read_piece(row):
    terms = {term: row[key] for term, key in KEYS.items() if row[key] > 0}
    return fits.Piece(row["low"], row["high"], terms)


def predict(model, value=1):
    """The time that a model of the document predicts, in ns."""
    return fits.predict([read_piece(row) for row in model["pieces"]], value)


def is_beyond(model, value):
    """Whether a value is outside of what was measured."""
    return not model["pieces"][0]["low"] <= value <= model["pieces"][-1]["high"]


def of_few_values(points, parameter, cores):
    """Fits p or k, which have few values: (pieces, pairs of new points). Each point is
    predicted from the others. More ranks than cores may be a range of their own, because a waiting
    rank has to give up its core there."""
    choices = [(names, []) for names in FORMS[parameter]]
    if parameter == "p":
        choices += [(names, [cores]) for names in FORMS[parameter]]
    above = sum(x > cores for x, _ in points) if parameter == "p" else len(points)
    choices = [(names, limits) for names, limits in choices if len(names) == 1 or above > 2]
    best = None
    for names, limits in choices:
        pairs = [(y, predicted) for _, y, predicted in fits.leave_one_out(points, names, limits)]
        pieces, error = fits.fit_ranges(points, names, limits), fits.errors(pairs)
        if not pieces:
            continue
        of_all = fits.errors([(y, fits.predict(pieces, x)) for x, y in points])
        worse = of_all["median"] + (error["median"] if error else 0.5)
        if best is None or worse < 0.8 * best[0] - 0.01:
            best = (worse, pieces, pairs)
    return best[1], best[2]


def of_many_sizes(used, new, alone):
    """Fits s. A single element may take another way than several, and is one point only."""
    first = [point for point in used if point[0] <= alone]
    rest = [point for point in used if point[0] > alone]
    pieces = [fits.fit_piece(first, FORMS[""][0])] if first else []
    pieces += fits.fit_pieces(rest, FORMS["s"][0])
    return pieces, [(y, fits.predict(pieces, x)) for x, y in new]


def of_constant(used, new):
    piece = fits.fit_piece([(1, y) for _, y in used], FORMS[""][0])
    return [piece], [(y, piece.at(1)) for _, y in new]


def fitted(function, where, points, cores):
    """The model of one function, or None if its points do not determine one. A point is a
    dictionary with value, ns and used."""
    points = sorted((p for p in points if p["ns"] > 0), key=lambda p: p["value"])
    used = [(p["value"], p["ns"]) for p in points if p["used"]]
    new = [(p["value"], p["ns"]) for p in points if not p["used"]]
    if not used:
        return None
    if function.parameter == "s":
        pieces, pairs = of_many_sizes(used, new, function.alone)
    elif function.parameter == "":
        pieces, pairs = of_constant(used, new)
    else:
        used += new
        pieces, pairs = of_few_values(sorted(used), function.parameter, cores)
        points = [{**p, "used": True} for p in points]
    return {
        "name": function.name, "where": where, "parameter": function.parameter,
        "unit": UNITS[function.parameter], "meaning": function.meaning,
        "pieces": [written(piece, function.parameter) for piece in pieces],
        "fit": fits.errors([(y, fits.predict(pieces, x)) for x, y in used]),
        "new_points": fits.errors(pairs),
        "points": points,
    }


def document(measured, about):
    """The document of all models. `measured` is a list of points, each with measurement, where,
    value, ns, least_ns, p90_ns, runs and used; `about` has machine, job and made."""
    models = []
    for where in ("one node", "between nodes"):
        for function in FUNCTIONS:
            points = [{key: value for key, value in point.items()
                       if key not in ("measurement", "where")} for point in measured
                      if point["measurement"] == function.measurement and point["where"] == where]
            model = fitted(function, where, points, about["machine"]["cores"]) if points else None
            if model:
                models.append(model)
    return {"format": FORMAT, **about, "models": models}


def find(doc, name, where):
    """A model of the document, or None."""
    for model in doc["models"]:
        if model["name"] == name and model["where"] == where:
            return model
    return None


def checked(doc, points):
    """Pairs of measured and predicted times of points, by (where, function)."""
    names = {function.measurement: function.name for function in FUNCTIONS}
    found = {}
    for point in points:
        model = find(doc, names.get(point["measurement"]), point["where"])
        if model is not None and (model["parameter"] == "" or not is_beyond(model, point["value"])):
            pairs = found.setdefault((point["where"], model["name"]), [])
            pairs.append((point["ns"], predict(model, point["value"])))
    return found


def check_table(found):
    lines = [f"{'where':<14}{'function':<15}{'points':>7}{'median':>9}{'largest':>9}"]
    for (where, name), pairs in found.items():
        error = fits.errors(pairs)
        lines.append(f"{where:<14}{name:<15}{error['count']:>7}{100 * error['median']:>7.1f} %"
                     f"{100 * error['largest']:>7.1f} %")
    return "\n".join(lines)


def table(doc):
    """The models as lines of text."""
    lines = []
    for model in doc["models"]:
        name = model["name"] + (f"({model['parameter']})" if model["parameter"] else "")
        for i, piece in enumerate(model["pieces"]):
            span = ""
            if model["parameter"]:
                span = f"{model['parameter']} = {piece['low']:g} to {piece['high']:g}"
            error = ""
            if i == 0:
                new = model["new_points"]
                error = (f"{100 * new['median']:.1f} % ({100 * new['largest']:.0f} %) of "
                         f"{new['count']}" if new else "no new points")
            lines.append((model["where"] if i == 0 else "", name if i == 0 else "",
                          piece["text"], span, error))
    head = ("where", "function", "model", "range", "error on new points: median (largest)")
    widths = [max(len(row[i]) for row in [head, *lines]) for i in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
                     for row in [head, *lines])
