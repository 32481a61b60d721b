"""Questions that a fitted model answers: which of two ways is faster, by how much, and from where
on the other one is. A value beyond what was measured is said to be so."""

from fompi_model.models import find, is_beyond, predict, time_text


class NoModel(Exception):
    """A function that the question needs is not in the document."""


class Way:
    """One way to do it: a sum of functions, each so many times."""

    def __init__(self, doc, where, what, parts):
        self.what, self.parts, self.ns, self.remarks = what, [], 0.0, []
        for times, name, value in parts:
            model = find(doc, name, where)
            if model is None:
                raise NoModel(f"the model has no {name} for {where}")
            self.ns += times * predict(model, value)
            call = name + (f"({value:g})" if model["parameter"] else "")
            self.parts.append(call if times == 1 else f"{times:g} * {call}")
            if model["parameter"] and is_beyond(model, value):
                low, high = model["pieces"][0]["low"], model["pieces"][-1]["high"]
                self.remarks.append(f"{name} was measured for {model['parameter']} = {low:g} to "
                                    f"{high:g}: {call} is extrapolated")

    def as_json(self):
        return {"way": self.what, "sum_of": self.parts, "ns": self.ns}


def answer(question, ways, turn=None):
    """What is faster, as the JSON that --json prints."""
    fast, slow = sorted(ways, key=lambda way: way.ns)
    ratio = slow.ns / fast.ns if fast.ns > 0 else 1.0
    return {"question": question, "answer": fast.what if ratio >= 1.15 else "either",
            "faster": fast.what, "ratio": ratio, "ways": [way.as_json() for way in ways],
            "turns": turn, "remarks": sorted({r for way in ways for r in way.remarks})}


def counted(number, thing):
    return f"{number} {thing}{'s' * (number != 1)}"


def first_not_faster(this, other, values):
    """The first of the values for which `this` takes longer than `other`."""
    for value in values:
        if this(value).ns > other(value).ns:
            return value
    return None


CALLS = ("P_post", "P_start", "P_complete", "P_wait")


def fence_or_pscw(doc, where, ranks, neighbours):
    """Both with the time for which a rank waits for others. Where the whole cycle was not measured,
    the sum of its calls counts, as in the paper."""
    fence = lambda k: Way(doc, where, "fence", [(1, "P_fence", ranks)])
    calls = lambda k: Way(doc, where, "PSCW", [(1, name, k) for name in CALLS])
    is_whole = find(doc, "P_pscw", where) is not None
    pscw = (lambda k: Way(doc, where, "PSCW", [(1, "P_pscw", k)])) if is_whole else calls
    ways = [fence(neighbours), pscw(neighbours)]
    turn = first_not_faster(pscw, fence, range(1, ranks))
    said = (f"among {ranks} ranks PSCW is faster for every number of neighbours" if turn is None
            else f"among {ranks} ranks a fence is faster from {counted(turn, 'neighbour')} on")
    found = answer(f"fence or PSCW for {counted(neighbours, 'neighbour')} among {ranks} ranks",
                   ways, said)
    if is_whole:
        alone = calls(neighbours)
        found["remarks"].append(f"without the waiting: {time_text(alone.ns)} = "
                                + " + ".join(alone.parts))
    job, cores = doc["job"], doc["machine"]["cores"]
    if job["ranks_on_node"] > cores:
        found["remarks"].append(f"up to {job['ranks_on_node']} ranks were measured on {cores} "
                                "cores of a node: waiting ranks take turns there")
    return found


def one_put_or_many(doc, where, size, count):
    one = lambda n: Way(doc, where, "one put", [(1, "P_put", n * size)])
    many = lambda n: Way(doc, where, "many puts",
                         [(1, "P_put", size)] + [(n - 1, "P_issue", size)] * (n > 1))
    ways = [one(count), many(count)]
    gap = ways[1].ns - ways[0].ns
    said = None
    if gap > 0 and count > 1:
        said = (f"packing {count} pieces of {counted(size, 'byte')} pays if it takes less than "
                f"{time_text(gap / count)} for each piece")
    return answer(f"one put of {count} x {counted(size, 'byte')} or {counted(count, 'put')}, and "
                  "one flush", ways, said)


def notify_or_flag(doc, where, size):
    """Both with the time until the target knows of the data."""
    ways = [Way(doc, where, "notified put", [(1, "P_notify", size)]),
            Way(doc, where, "put and flag", [(1, "P_flag", size)])]
    return answer(f"a notified put of {counted(size, 'byte')}, or a put, a flush and a flag", ways)


def lock_or_lock_all(doc, where, targets):
    lock = lambda n: Way(doc, where, "lock", [(n, "P_lock,shrd", 1), (n, "P_unlock,shrd", 1)])
    every = lambda n: Way(doc, where, "lock_all", [(1, "P_lock_all", 1), (1, "P_unlock_all", 1)])
    ways = [lock(targets), every(targets)]
    turn = first_not_faster(lock, every, range(1, 1001))
    said = ("lock is faster for up to 1,000 targets" if turn is None
            else f"lock_all is faster from {counted(turn, 'target')} on")
    return answer(f"lock or lock_all for {counted(targets, 'target')}", ways, said)


def text(found):
    """An answer as lines of text."""
    lines = [f"{found['question']}: {found['answer']}"]
    if found["answer"] == "either":
        lines[0] += " (the difference is below 15 %)"
    else:
        lines[0] += f", {found['ratio']:.3g} times as fast"
    width = max(len(way["way"]) for way in found["ways"])
    for way in found["ways"]:
        lines.append(f"  {way['way'].ljust(width)}  {time_text(way['ns']):>8} = "
                     + " + ".join(way["sum_of"]))
    if found["turns"]:
        lines.append(f"  {found['turns']}")
    lines += [f"  {remark}" for remark in found["remarks"]]
    return "\n".join(lines)
