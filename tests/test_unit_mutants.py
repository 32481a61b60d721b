"""When the record of changes that no unit test notices (scripts/dev/mutant_record.py) fails a run, and
what enters and leaves it.

usage: /usr/bin/python3 -m pytest tests/test_unit_mutants.py
"""

import sys
import tomllib
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts" / "dev"))

from mutant_record import Crate, can_fail, judged, name_of, of_text, recorded, risen, to_text  # noqa: E402

ALL = range(30)


def change(name, summary, line=7):
    return {"package": "fompi-base", "name": f"crates/base/src/util/a.rs:{line}:5: {name}"}, summary


MISSED, CAUGHT = change("delete ! in f", "MissedMutant"), change("replace g with ()", "CaughtMutant")
F, G = "util/a.rs: delete ! in f", "util/a.rs: replace g with ()"
THERE = {"base": {F, G}}


def after(seen, crate, shards=(), there=THERE):
    return recorded(seen, {"base": crate}, set(shards), there)["base"]


def test_a_name_has_no_line():
    assert name_of(MISSED[0]) == name_of(change("delete ! in f", "", line=8)[0]) == F


def test_what_is_missed_and_not_recorded_fails_if_all_shards_were_run():
    failures, old = judged([MISSED, CAUGHT], {"base": Crate(ALL)}, set())
    assert failures == {"base": Counter([F])} and old == {}
    assert judged([MISSED], {"base": Crate(ALL, [F])}, set())[0] == {"base": Counter()}
    assert judged([MISSED, MISSED], {"base": Crate(ALL, [F])}, set())[0] == {"base": Counter([F])}


def test_it_may_be_old_before_its_shard_or_all_of_them_were_run():
    for known, shards in (((0,), set()), ((0,), {1}), ((), {0}), ((0,), {0, 1})):
        failures, old = judged([MISSED], {"base": Crate(known)}, shards)
        assert failures == {} and old == {"base": Counter([F])}
    assert judged([MISSED], {"base": Crate((0,))}, {0})[0] == {"base": Counter([F])}
    assert judged([MISSED], {}, {0})[1] == {"base": Counter([F])}


def test_only_changes_of_complete_crates_can_fail():
    assert can_fail([MISSED[0]], {"base": Crate(ALL)}) == [MISSED[0]]
    assert can_fail([MISSED[0]], {"base": Crate((0,))}) == can_fail([MISSED[0]], {}) == []


def test_a_shard_is_recorded_with_what_it_misses():
    crate = after([MISSED, CAUGHT], Crate((3,), [G]), {4})
    assert crate.shards == {3, 4} and crate.missed == Counter([F])


def test_what_exists_no_longer_leaves_the_record():
    assert after([CAUGHT], Crate(ALL, [F, "util/a.rs: delete ! in h"])).missed == Counter([F])


def test_changed_lines_do_not_enter_an_incomplete_record():
    assert after([MISSED], Crate((0,))).missed == Counter()
    assert after([MISSED], Crate(ALL)).missed == Counter([F])


def test_the_record_rises_only_with_a_new_shard():
    before = {"base": Crate((0,), [F])}
    assert risen({"base": Crate((0,), [F, G])}, before) == {"base": (2, 1)}
    assert risen({"base": Crate((0, 1), [F, G])}, before) == {}
    assert risen({"base": Crate((0,), [G])}, before) == {}


def test_the_record_is_read_as_it_was_written():
    record = {"base": Crate((1, 0), [F, G, F]), "epoch": Crate()}
    again = of_text(to_text(record))
    assert {name: (crate.shards, crate.missed) for name, crate in again.items()} == {
        name: (crate.shards, crate.missed) for name, crate in record.items()}


def test_each_file_that_is_to_be_changed_exists():
    root = Path(__file__).resolve().parent.parent
    settings = tomllib.loads((root / ".cargo" / "mutants.toml").read_text())
    assert [name for name in settings["examine_globs"] if not any(root.glob(name))] == []
