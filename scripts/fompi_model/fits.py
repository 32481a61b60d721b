"""Fits measured times by a few terms of one parameter: lines in pieces, multiples, constants.

All fits are least squares of the relative error, because a user asks how many percent a prediction
is off, at 8 bytes as well as at 4 MiB. A point that is far from the others counts less (Huber's
weights), so that one disturbed measurement does not turn a line. No coefficient is negative.
"""

import math
from dataclasses import dataclass

TERMS = {
    "1": lambda x: 1.0,
    "x": lambda x: float(x),
    "log2": lambda x: math.log2(x),
}

# A disturbance below this share is not worth another piece, and no reason to trust a point less.
FLOOR = 0.02
PIECES_MAX = 7
POINTS_MIN = 3
ROUNDS_MAX = 25


@dataclass
class Piece:
    """Coefficients by term, for values of the parameter from `low` to `high`."""
    low: float
    high: float
    terms: dict

    def at(self, x):
        return sum(factor * TERMS[term](x) for term, factor in self.terms.items())


def relative(predicted, measured):
    return abs(predicted - measured) / measured


def solve(rows, weights):
    """Weighted least squares of (prediction - y) / y for one or two terms; None if the points do
    not determine the coefficients. A row has each term divided by y."""
    if len(rows[0]) == 1:
        square = sum(w * r * r for w, (r,) in zip(weights, rows))
        return [sum(w * r for w, (r,) in zip(weights, rows)) / square] if square > 0 else None
    a = b = d = e = f = 0.0
    for w, (r, q) in zip(weights, rows):
        wr, wq = w * r, w * q
        a, b, d, e, f = a + wr * r, b + wr * q, d + wq * q, e + wr, f + wq
    determinant = a * d - b * b
    if determinant <= 1e-12 * a * d:
        return None
    return [(e * d - f * b) / determinant, (a * f - b * e) / determinant]


def loss(points, terms):
    """Huber's loss of the relative errors, with `FLOOR` as the border, per point."""
    total = 0.0
    for x, y in points:
        error = relative(sum(c * TERMS[name](x) for name, c in terms.items()), y)
        total += error * error / 2 if error <= FLOOR else FLOOR * (error - FLOOR / 2)
    return total / len(points)


def robust(points, names):
    """The coefficients of these terms, by reweighting; None if there are none."""
    rows = [tuple(TERMS[name](x) / y for name in names) for x, y in points]
    weights = [1.0] * len(points)
    factors = None
    for _ in range(ROUNDS_MAX):
        before, factors = factors, solve(rows, weights)
        if factors is None:
            factors = before
            break
        if before and all(abs(f - b) <= 1e-3 * abs(b) for f, b in zip(factors, before)):
            break
        errors_now = (abs(sum(f * r for f, r in zip(factors, row)) - 1) for row in rows)
        weights = [1.0 if error <= FLOOR else FLOOR / error for error in errors_now]
    return dict(zip(names, factors)) if factors else None


def fit(points, names):
    """The best coefficients that are not negative. A term whose coefficient would be negative is
    left out; the result has it as 0."""
    choices = [list(names)] + ([[name] for name in names] if len(names) > 1 else [])
    best = None
    for choice in choices:
        terms = robust(points, choice)
        if terms is None or min(terms.values()) < 0:
            continue
        if len(choice) == len(names):
            return terms
        found = {name: terms.get(name, 0.0) for name in names}
        if best is None or loss(points, found) < loss(points, best):
            best = found
    return best


def fit_piece(points, names):
    terms = fit(points, names)
    return Piece(points[0][0], points[-1][0], terms) if terms is not None else None


def border(left, right):
    """Where one piece ends and the next begins, between the last point of one and the first of the
    other: where they meet; if they do not meet there, at the last point, because a protocol that
    changes does so above a round number of bytes, and sweeps have those."""
    low, high = left.high, right.low
    difference = lambda x: left.at(x) - right.at(x)
    if difference(low) * difference(high) > 0:
        return low
    for _ in range(60):
        middle = (low + high) / 2
        if difference(left.high) * difference(middle) > 0:
            low = middle
        else:
            high = middle
    return float(math.floor(low))


def fit_pieces(points, names, pieces_max=PIECES_MAX):
    """Fits a piece to each of the ranges into which the points fall. The ranges are those of the
    least loss; one more range has to be worth its coefficients (Schwarz' criterion)."""
    points = sorted(points)
    count = len(points)
    single = {}

    def cost(i, j):
        if (i, j) not in single:
            terms = fit(points[i:j], names)
            single[i, j] = (math.inf if terms is None else loss(points[i:j], terms) * (j - i))
        return single[i, j]

    # best[k][j]: the least loss of the first j points in k pieces, and where the last one begins
    best = [{0: (0.0, 0)}]
    for k in range(1, pieces_max + 1):
        row = {}
        for j in range(k * POINTS_MIN if k > 1 else 1, count + 1):
            starts = [i for i in best[k - 1] if j - i >= POINTS_MIN or (k == 1 and i == 0)]
            options = [(best[k - 1][i][0] + cost(i, j), i) for i in starts]
            if options:
                row[j] = min(options)
        best.append(row)

    def score(k):
        mean = best[k][count][0] / count + FLOOR * FLOOR / 8
        return count * math.log(mean) + 2 * k * (len(names) + 1) * math.log(max(count, 2)) / 2

    wanted = min((k for k in range(1, pieces_max + 1) if count in best[k]), key=score)
    cuts, j = [], count
    for k in range(wanted, 0, -1):
        i = best[k][j][1]
        cuts.append((i, j))
        j = i
    pieces = [fit_piece(points[i:j], names) for i, j in reversed(cuts)]
    for left, right in zip(pieces, pieces[1:]):
        left.high = right.low = border(left, right)
    return pieces


def fit_ranges(points, names, limits):
    """Fits a piece to the points up to each limit, and one to those above the last."""
    pieces, low = [], -math.inf
    for limit in [*limits, math.inf]:
        within = [point for point in sorted(points) if low < point[0] <= limit]
        if within:
            # One point determines one coefficient only.
            piece = fit_piece(within, names[:len(within)] if len(names) > 1 else names)
            if piece is not None:
                pieces.append(piece)
        low = limit
    return pieces


def predict(pieces, x):
    """The time at x. Beyond the ranges the nearest piece is extended."""
    for piece in pieces:
        if x <= piece.high:
            return piece.at(x)
    return pieces[-1].at(x)


def leave_one_out(points, names, limits):
    """Predicts each point from a fit to the others: [(x, y, prediction)]. A point that is the only
    one of its range cannot be predicted."""
    found = []
    for i, (x, y) in enumerate(points):
        others = points[:i] + points[i + 1:]
        range_of = lambda value: sum(value > limit for limit in limits)
        if any(range_of(other) == range_of(x) for other, _ in others):
            found.append((x, y, predict(fit_ranges(others, names, limits), x)))
    return found


def errors(pairs):
    """The median and the largest relative error of (measured, predicted)."""
    found = sorted(relative(predicted, measured) for measured, predicted in pairs)
    if not found:
        return None
    middle = len(found) // 2
    median = found[middle] if len(found) % 2 else (found[middle - 1] + found[middle]) / 2
    return {"count": len(found), "median": median, "largest": found[-1],
            "within_15_percent": sum(error <= 0.15 for error in found) / len(found)}
