"""What rma_bench measures in one job, and how its lines become points of the model. Every process
of a job makes the same plan, because each of them starts rma_bench by itself."""

import random

KIB, MIB = 1024, 1024 * 1024
PLACES = {"node": "one node", "nodes": "between nodes"}
CONSTANTS = ("flush", "sync", "lock_calls")
SINGLE = ("cas", "fop_sum")
# Measurements of rma_bench under another name in the model.
NAMES = {"fop_sum": "fetch_and_op"}


def swept(top, fine, step):
    """Powers of two up to `top`; from `fine` on also what is in the middle of two, and what is one
    step below: protocols change at round numbers, some of them at the number and some above it."""
    values, power = [], 1
    while power <= top:
        values += [power - step, power] if power >= fine else [power]
        if power >= fine and power * 3 // 2 <= top:
            values.append(power * 3 // 2)
        power *= 2
    return values


class Plan:
    """Sizes and numbers of ranks. `used` are fitted, and `new` only show how good the fit is."""

    def __init__(self, ranks, quick=False, seconds=None, seed=None):
        self.ranks = ranks or 16  # where the process manager does not say how many
        self.seconds = seconds if seconds is not None else 0.005 if quick else 0.02
        self.passes = 2 if quick else 4
        self.random = random.Random(seed) if seed is not None else None
        top = 64 * KIB if quick else 4 * MIB
        self.repeats = 1 if quick else 3
        ranges = {"bytes": (8, top, 64, 8), "rate": (8, 4 * KIB, 64, 8),
                  "one_way": (8, 64 * KIB, 64, 8),
                  "elements": (2, top // 8, 8, 1)}
        if quick:  # powers of two alone
            ranges = {kind: (low, high, 2 * high, 1) for kind, (low, high, _, _) in ranges.items()}
        self.used = {kind: [] if self.random else swept(top, fine, step)
                     for kind, (_, top, fine, step) in ranges.items()}
        self.new = {kind: self.others(low, top) for kind, (low, top, _, _) in ranges.items()}

    def others(self, low, high):
        """Values that are not swept: between two powers of two, at about a quarter or three
        quarters of the way by turns, or anywhere if a seed was given."""
        values, power, turn = [], low, 0
        while power < high:
            share = self.random.uniform(0.05, 0.95) if self.random else (0.27, 0.77)[turn % 2]
            value = int(power * (1 + share))
            if value not in swept(high, low, 1):
                values.append(value)
            power, turn = power * 2, turn + 1
        return values

    def rank_counts(self):
        """2, 3, 4, ... 8, 12, 16, 24, ... up to the ranks of the job, which is one of them."""
        counts = [p for p in range(2, min(self.ranks, 8) + 1)]
        step = 12
        while step <= self.ranks:
            counts.append(step)
            step = step * 4 // 3 if step & (step - 1) else step * 3 // 2
        return sorted({*counts, self.ranks} - {1})

    def neighbour_counts(self):
        return [p - 1 for p in self.rank_counts()]

    def values(self, kind):
        return sorted({*self.used[kind], *self.new[kind]})

    def parts_of(self, place):
        """The parts of one pass in one place, each a list of words."""
        seconds = ["--place", place, "--seconds", str(self.seconds)]
        pair = ["--ranks", "2", *seconds]
        listed = lambda values: ",".join(str(value) for value in values)
        constants = [[",".join(CONSTANTS), *pair], [",".join(SINGLE), "--values", "1", *pair]]
        parts = [["put,get", "--values", listed(self.values("bytes")), *pair],
                  ["put_rate", "--values", listed(self.values("rate")), *pair],
                  ["notified_put,one_way_flag", "--values", listed(self.values("one_way")), *pair],
                  ["acc_sum,acc_min", "--values", listed(self.values("elements")), *pair]]
        # In these all ranks wait for others, so that it matters where the system runs them.
        together = [["fence", "--ranks", str(count), *seconds] for count in self.rank_counts()]
        together += [["pscw_calls,pscw", "--values", listed(self.neighbour_counts()), *seconds]]
        # Both several times in a pass, between the others.
        often = constants + together
        for index in range(self.repeats):
            at = index * (len(often) + 1)
            parts[at:at] = often
        return parts

    def words(self):
        """The arguments of rma_bench."""
        words = ["about"]
        for _ in range(self.passes):
            for place in PLACES:
                for part in self.parts_of(place):
                    words += ["then", *part]
        return words

    def expected(self):
        """About how many points one place has."""
        sizes = 2 * (len(self.values("bytes")) + len(self.values("one_way")))
        sizes += len(self.values("rate"))
        few = (10 + 6 * len(self.rank_counts())) * self.repeats
        return self.passes * (sizes + 2 * len(self.values("elements")) + few)

    def is_used(self, name, value):
        kind = {"put": "bytes", "get": "bytes", "put_rate": "rate", "notified_put": "one_way",
                "one_way_flag": "one_way", "acc_sum": "elements", "acc_min": "elements"}.get(name)
        return kind is None or value in self.used[kind]


def is_constant(row):
    return row["measurement"] in SINGLE or (row["parameter"] == "ranks"
                                            and row["measurement"] != "fence")


def point_of(rows, is_used):
    """One point of several measurements of it: the lowest median, from the pass that other programs
    have disturbed least."""
    least = min(rows, key=lambda row: float(row["median_ns"]))
    return {"ns": float(least["median_ns"]), "least_ns": float(least["least_ns"]),
            "p90_ns": float(least["p90_ns"]), "runs": sum(int(row["runs"]) for row in rows),
            "used": is_used}


def points(plan, rows):
    """The points of the model from the lines of rma_bench. What a pass measures of a constant is a
    point, and every other one of these a new point."""
    groups = {}
    for row in rows:
        value = 1 if is_constant(row) else int(row["value"])
        where = "one node" if row["nodes"] == "one" else "between nodes"
        groups.setdefault((row["measurement"], where, value), []).append(row)
    found = []
    for (name, where, value), some in groups.items():
        row = some[0]
        fixed = {"measurement": NAMES.get(name, name), "where": where}
        if is_constant(row):
            each = max(len(some) // plan.passes, 1)
            sets = [some[i:i + each] for i in range(0, len(some), each)]
            found += [{**fixed, "value": 1, **point_of(part, i % 2 == 0)}
                      for i, part in enumerate(sets)]
        else:
            bytes_each = 8 if row["parameter"] == "elements" else 1
            found.append({**fixed, "value": value * bytes_each,
                          **point_of(some, plan.is_used(name, value))})
    return found
