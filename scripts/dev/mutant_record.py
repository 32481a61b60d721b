"""The record of the changes by cargo-mutants that no unit test notices, missed-mutants.toml: for
unit-mutants, which says what it is for."""

import json
import re
import tomllib
from collections import Counter

SHARDS = 30
HEAD = """\
# The changes by cargo-mutants that no unit test of their crate notices, in the shards of thirty that were
# run. scripts/dev/unit-mutants reads this file, and writes it with --record. A list gets longer only with
# a shard that was not run before.
"""


class Crate:
    """What is known of a crate: the shards that were run, and the changes that were missed."""

    def __init__(self, shards=(), missed=()):
        self.shards, self.missed = set(shards), Counter(missed)

    def is_new(self, shards):
        """Whether what is missed in a run may be old: of shards that were not run before, or of changed
        lines (no shards) before all were run."""
        return not (shards or set(range(SHARDS))) <= self.shards


def of_text(text):
    return {name: Crate(of["shards"], of["missed"]) for name, of in tomllib.loads(text).items()}


def to_text(record):
    parts = [HEAD]
    for name, crate in sorted(record.items()):
        lines = "".join(f"  {json.dumps(change)},\n" for change in sorted(crate.missed.elements()))
        parts.append(f"[{name}]\nshards = {sorted(crate.shards)}\n"
                     f"missed = [ # {crate.missed.total()}\n{lines}]\n")
    return "\n".join(parts)


def risen(now, before):
    """The crates that miss more than before, although no shard was run for the first time: the numbers
    now and before."""
    counts = {name: (crate.missed.total(), before[name].missed.total())
              for name, crate in now.items() if name in before and crate.shards <= before[name].shards}
    return {name: (new, old) for name, (new, old) in counts.items() if new > old}


def can_fail(mutants, record):
    """Those of the changed lines whose miss would be a failure: their crates' shards were all run."""
    return [mutant for mutant in mutants
            if not record.get(crate_of(mutant), Crate()).is_new(set())]


def crate_of(mutant):
    return mutant["package"].removeprefix("fompi-")


def name_of(mutant):
    """What a change is called in the record: without the line, which others move."""
    return re.sub(r"^crates/\w+/src/(\S+?):\d+:\d+: ", r"\1: ", mutant["name"])


def missed_in(seen, crate):
    """The changes of a crate that were missed among those that were run."""
    return Counter(name_of(mutant) for mutant, summary in seen
                   if crate_of(mutant) == crate and summary == "MissedMutant")


def judged(seen, record, shards):
    """What is missed in a run and not in the record: failures, and what may be old; by crate."""
    failures, old = {}, {}
    for name in {crate_of(mutant) for mutant, _ in seen}:
        crate = record.get(name, Crate())
        (old if crate.is_new(shards) else failures)[name] = missed_in(seen, name) - crate.missed
    return failures, old


def recorded(seen, record, shards, there):
    """The record after a run. A change leaves it that was noticed, or that is not `there` any more: the
    names of all changes by crate."""
    result = dict(record)
    for name in {crate_of(mutant) for mutant, _ in seen}:
        crate = record.get(name, Crate())
        if not shards and crate.is_new(shards):
            continue
        missed = missed_in(seen, name)
        noticed = {name_of(mutant) for mutant, summary in seen
                   if crate_of(mutant) == name and summary in ("CaughtMutant", "Timeout")}
        kept = Counter({change: count for change, count in crate.missed.items()
                        if change in there[name] and (change in missed or change not in noticed)})
        result[name] = Crate(crate.shards | shards, kept | missed)
    return result
