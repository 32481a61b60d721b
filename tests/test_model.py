"""fompi-model: its fits on points whose formulas are known, its document against the schema, its
answers against sums by hand, its C header against its own predictions, and short measurements with
each MPI.

usage: /usr/bin/python3 -m pytest tests/test_model.py
"""

import functools
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

import jsonschema
import pytest

TOP = Path(__file__).resolve().parent.parent
TOOL = TOP / "scripts" / "fompi-model"
TARGET = TOP / "target"
sys.path.insert(0, str(TOP / "scripts"))

import programs  # noqa: E402
from conftest import call  # noqa: E402
from fompi_model import fits, header, job, models, plan, questions  # noqa: E402

SCHEMA = json.loads((TOP / "scripts/fompi_model/model.schema.json").read_text(encoding="utf-8"))


def faults(document):
    """What in a document is not as the schema says."""
    validator = jsonschema.validators.validator_for(SCHEMA)
    return [error.message for error in validator(SCHEMA).iter_errors(document)]


# What the synthetic calls cost, in ns.
def put_ns(s):
    return 120 + 0.05 * s if s <= 8192 else 900 + 0.11 * s


TRUE = {"put": put_ns, "get": lambda s: 100 + 0.06 * s, "put_rate": lambda s: 50 + 0.04 * s,
        "notified_put": lambda s: 180 + 0.03 * s, "one_way_flag": lambda s: 400 + 0.03 * s,
        "acc_sum": lambda s: 40 if s == 8 else 300 + 0.4 * s, "acc_min": lambda s: 350 + 0.5 * s,
        "fence": lambda p: 2900 * math.log2(p) if p <= 4 else 20000 + 3000 * p,
        "post": lambda k: 350 * k, "start": lambda k: 700, "complete": lambda k: 100 + 350 * k,
        "wait": lambda k: 1800, "pscw": lambda k: 4000 + 700 * k, "flush": lambda _: 76,
        "sync": lambda _: 17, "cas": lambda _: 2400, "fop_sum": lambda _: 2500,
        "lock_exclusive": lambda _: 5400, "lock_shared": lambda _: 2700, "lock_all": lambda _: 2700,
        "unlock_exclusive": lambda _: 400, "unlock_shared": lambda _: 400,
        "unlock_all": lambda _: 500}
PARAMETERS = {"put": "bytes", "get": "bytes", "put_rate": "bytes", "notified_put": "bytes",
              "one_way_flag": "bytes", "acc_sum": "elements",
              "acc_min": "elements", "fence": "ranks", "cas": "elements", "fop_sum": "elements"}
PARAMETERS.update({name: "neighbours" for name in ("post", "start", "complete", "wait", "pscw")})


def lines_of(made, noise):
    """What rma_bench would print for a plan, on a machine where calls cost the above."""
    pick = random.Random(7)
    parts = " ".join(made.words()).split(" then ")
    for part in parts[1:]:
        words = part.split()
        options = dict(zip(words[1::2], words[2::2]))
        if options["--place"] != "node":
            continue
        names = words[0].replace("lock_calls", ",".join(n for n in TRUE if "lock" in n))
        names = names.replace("pscw_calls", "post,start,complete,wait")
        for name in names.split(","):
            parameter = PARAMETERS.get(name, "ranks")
            ranks = options.get("--ranks", str(made.ranks))
            values = options.get("--values", ranks) if parameter != "ranks" else ranks
            for value in map(int, values.split(",")):
                size = value * 8 if parameter == "elements" else value
                ns = TRUE[name](size) * (1 + pick.uniform(0, noise))
                ns *= 3 if noise and pick.random() < 0.05 else 1
                yield (f"measurement={name} ranks={ranks} nodes=one window=allocate "
                       f"parameter={parameter} value={value} median_ns={ns:.2f} "
                       f"least_ns={ns * 0.9:.2f} p90_ns={ns * 1.3:.2f} runs=100 batch=16 "
                       "verified=1")


@functools.cache
def text_of_document(noise):
    return json.dumps(fitted_document(noise))


def document(noise=0.04):
    return json.loads(text_of_document(noise))


def fitted_document(noise):
    made, output = plan.Plan(8), job.Output(1)
    for line in lines_of(made, noise):
        output.line(line)
    about = {"made": {"tool": "fompi-model 0", "date": "2026-01-01T00:00:00+00:00",
                      "command": "fompi-model", "passes": 4, "seconds_per_point": 0.02},
             "machine": {"host": "a", "processor": "b", "kernel": "c", "cores": 4, "load": 0.1},
             "job": {"mpi": "MPI 1", "layer": "libfompi 0", "transports": ["shared memory"], "ranks": 8,
                     "nodes": 1, "ranks_on_node": 8}}
    return models.document(plan.points(made, output.points), about)


class Fits(unittest.TestCase):
    def test_a_line_is_found_in_spite_of_disturbed_points(self):
        points = [(s, (200 + 0.5 * s) * (4 if s == 64 else 1)) for s in plan.swept(65536, 64, 8)]
        terms = fits.fit(points, ("1", "x"))
        self.assertAlmostEqual(terms["1"], 200, delta=4)
        self.assertAlmostEqual(terms["x"], 0.5, delta=0.01)

    def test_no_coefficient_is_negative(self):
        terms = fits.fit([(1, 10), (2, 30), (3, 50)], ("1", "x"))
        self.assertEqual(terms["1"], 0)
        self.assertGreater(terms["x"], 0)

    def test_the_border_of_two_protocols_is_found(self):
        for limit in (4096, 8191):  # at most, and below, a power of two
            cost = lambda s: 100 + 0.05 * s if s <= limit else 2000 + 0.1 * s
            pieces = fits.fit_pieces([(s, cost(s)) for s in plan.swept(1 << 20, 64, 8)], ("1", "x"))
            self.assertEqual(len(pieces), 2)
            self.assertTrue(limit - 8 <= pieces[0].high <= limit, pieces[0].high)

    def test_one_line_is_one_piece(self):
        pick = random.Random(3)
        sizes = plan.swept(1 << 22, 64, 8)
        points = [(s, (100 + 0.1 * s) * pick.uniform(0.97, 1.03)) for s in sizes]
        self.assertEqual(len(fits.fit_pieces(points, ("1", "x"))), 1)


class Document(unittest.TestCase):
    def setUp(self):
        self.doc = document()

    def predicted(self, name, value=1):
        return models.predict(models.find(self.doc, name, "one node"), value)

    def test_it_is_as_the_schema_says(self):
        self.assertEqual(faults(self.doc), [])
        self.doc["models"][0]["pieces"][0]["low"] = "1"
        del self.doc["job"]["mpi"]
        self.assertEqual(len(faults(self.doc)), 2)

    def test_all_functions_are_there(self):
        self.assertEqual({model["name"] for model in self.doc["models"]},
                         {function.name for function in models.FUNCTIONS})

    def test_predictions_on_values_that_were_not_measured(self):
        bad = []
        names = {f.measurement: f for f in models.FUNCTIONS}
        for measured, cost in TRUE.items():
            function = names[plan.NAMES.get(measured, measured)]
            values = {"s": range(24, 1 << 20, 40008), "p": (3, 5, 7), "k": (1, 4, 7), "": (1,)}
            if measured == "put_rate":
                values["s"] = range(24, 4096, 1000)
            if measured in ("notified_put", "one_way_flag"):
                values["s"] = range(24, 65536, 4008)
            for value in values[function.parameter]:
                error = fits.relative(self.predicted(function.name, value), cost(value))
                if error > 0.1:
                    bad.append((measured, value, error))
        self.assertEqual(bad, [])

    def test_new_points_are_not_fitted(self):
        put = models.find(self.doc, "P_put", "one node")
        new = [point for point in put["points"] if not point["used"]]
        self.assertGreater(len(new), 15)
        before = put["pieces"]
        for point in new:
            point["ns"] *= 2
        points = [{"measurement": "put", "where": "one node", **point} for point in put["points"]]
        about = {key: self.doc[key] for key in ("made", "machine", "job")}
        again = models.document(points, about)["models"][0]
        self.assertEqual(again["pieces"], before)
        self.assertGreater(again["new_points"]["median"], 0.4)

    def test_a_check_tells_a_model_of_another_machine(self):
        made, output = plan.Plan(8, seed=5), job.Output(1)
        for line in lines_of(made, 0.02):
            output.line(line)
        for factor, expected in ((1, 1.0), (1.5, 0.0)):
            points = [{**p, "ns": p["ns"] * factor} for p in plan.points(made, output.points)]
            pairs = sum(models.checked(self.doc, points).values(), [])
            share = fits.errors(pairs)["within_15_percent"]
            self.assertAlmostEqual(share, expected, delta=0.1)

    def test_notation(self):
        self.assertEqual(models.piece_text({"1": 1000, "x": 0.16}, "s"), "0.16 ns * s + 1 us")
        self.assertEqual(models.piece_text({"log2": 2900}, "p"), "2.9 us * log2(p)")


class Machine(unittest.TestCase):
    STAT = ("cpu 99 0 99 99 0 0 0 0 0 0\n" "cpu0 10 1 20 300 7 2 3 4 10 1\n"
            "cpu1 1 0 0 5 0 0 0 0 0 0\n" "cpu10 50 0 0 5 0 0 0 0 0 0\n" "intr 1 2 3\n")

    def test_the_ticks_of_the_cores_that_may_be_used(self):
        self.assertEqual(job.ticks(self.STAT, {0}), (40, 307))
        self.assertEqual(job.ticks(self.STAT, {0, 1}), (41, 312))

    def test_a_process_that_computes_keeps_a_core_busy(self):
        computing = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            self.assertGreater(job.busy_cores(1), 0.2)
        finally:
            computing.kill()
            computing.wait()


class Questions(unittest.TestCase):
    def setUp(self):
        self.doc = document(noise=0)

    def test_fence_or_pscw(self):
        found = questions.fence_or_pscw(self.doc, "one node", 4, 1)
        self.assertEqual(found["answer"], "PSCW")
        self.assertEqual(found["question"], "fence or PSCW for 1 neighbour among 4 ranks")
        self.assertAlmostEqual(found["ratio"], 2 * 2900 / 4700, delta=0.02)
        found = questions.fence_or_pscw(self.doc, "one node", 4, 3)
        # 5800 < 4000 + 3 * 700
        self.assertIn("a fence is faster from 3 neighbours on", found["turns"])
        found = questions.fence_or_pscw(self.doc, "one node", 64, 3)
        self.assertIn("extrapolated", " ".join(found["remarks"]))

    def test_one_put_or_many(self):
        found = questions.one_put_or_many(self.doc, "one node", 8, 1000)
        ways = {way["way"]: way["ns"] for way in found["ways"]}
        self.assertEqual(found["answer"], "one put")
        self.assertAlmostEqual(ways["one put"], 520, delta=10)
        self.assertAlmostEqual(ways["many puts"], 120.4 + 999 * 50.32, delta=1500)

    def test_lock_or_lock_all(self):
        found = questions.lock_or_lock_all(self.doc, "one node", 1)
        self.assertEqual(found["answer"], "either")
        self.assertEqual(found["turns"], "lock_all is faster from 2 targets on")

    def test_notify_or_flag(self):
        found = questions.notify_or_flag(self.doc, "one node", 8)
        self.assertEqual(found["answer"], "notified put")
        self.assertAlmostEqual(found["ratio"], 400.24 / 180.24, delta=0.02)
        self.assertEqual(questions.notify_or_flag(self.doc, "one node", 65536)["answer"], "either")

    def test_a_function_that_is_missing(self):
        with self.assertRaisesRegex(questions.NoModel, "P_put for between nodes"):
            questions.one_put_or_many(self.doc, "between nodes", 8, 10)


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.at = Path(self.folder.name)
        self.doc = document()
        self.model = self.at / "fompi-model.json"
        self.model.write_text(json.dumps(self.doc), encoding="utf-8")

    def tearDown(self):
        self.folder.cleanup()

    def tool(self, *words):
        library = self.at / "libfompi.so"
        library.write_text("libfompi version 1.2.3")
        return subprocess.run([TOOL, *words], cwd=self.at, capture_output=True, text=True,
                              env={**os.environ, "FOMPI_LIB": str(library)}, timeout=120, check=False)

    def test_the_header_predicts_the_same(self):
        text = header.header(self.doc, "one node")
        (self.at / "fompi_model.h").write_text(text, encoding="utf-8")
        calls = {("P_put", s): f"fompi_model_put({s})" for s in (1, 8192, 8193, 1 << 20)}
        calls |= {("P_fence", 5): "fompi_model_fence(5)", ("P_post", 3): "fompi_model_post(3)",
                  ("P_lock,excl", 1): "fompi_model_lock_excl()"}
        prints = "".join(f'printf("%.9g\\n", {call});' for call in calls.values())
        (self.at / "a.c").write_text('#include <stdio.h>\n#include "fompi_model.h"\n'
                                     f"int main(void) {{ {prints} return 0; }}\n", encoding="utf-8")
        subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-o", "a", "a.c", "-lm"], cwd=self.at,
                       check=True)
        said = subprocess.run([self.at / "a"], capture_output=True, text=True, check=True)
        for (name, value), line in zip(calls, said.stdout.split()):
            wanted = models.predict(models.find(self.doc, name, "one node"), value)
            self.assertAlmostEqual(float(line) / wanted, 1, places=4)

    def test_the_picture(self):
        said = self.tool("draw")
        if "python3-matplotlib" in said.stdout:
            self.skipTest(said.stdout)
        self.assertEqual(said.returncode, 0, said.stderr)
        root = xml.etree.ElementTree.parse(self.at / "fompi-model.svg").getroot()
        text = "".join(root.itertext())
        for words in ("P_put", "P_notify", "P_acc,min", "P_fence", "P_pscw", "P_lock_all", "64 KiB", "libfompi 0 on MPI 1"):
            self.assertIn(words, text)

    def test_the_commands(self):
        said = self.tool("ask", "one-put-or-many", "--bytes", "8", "--count", "1000", "--json")
        self.assertEqual(json.loads(said.stdout)["answer"], "one put", said.stderr)
        self.assertIn("P_unlock_all", self.tool("show").stdout)
        self.assertIn("double fompi_model_put(double s)", self.tool("header").stdout)

    def test_mistakes_are_said(self):
        for words, expected in ((["ask", "lock-or-lock-all"], "needs --targets N"),
                                (["show", "--model", "none.json"], "measure` writes it"),
                                (["measure"], "neither -n RANKS nor mpirun"),
                                (["draws"], "see fompi-model --help"),
                                (["-n", "2", "--mpi", "none"], "neither mpirun.none nor")):
            said = self.tool(*words)
            self.assertEqual((said.returncode, said.stdout), (2, ""), words)
            self.assertIn(expected, said.stderr)

    def test_the_compiler_beside_a_launcher(self):
        for folder, names in {"a": ["mpicc", "mpirun", "hydra_pmi_proxy"],
                              "b": ["mpicc", "mpicc.mpich", "mpicc.openmpi"]}.items():
            (self.at / folder).mkdir()
            for name in names:
                (self.at / folder / name).touch(mode=0o755)
        for launcher, expected in (("a/hydra_pmi_proxy", "a/mpicc"), ("a/mpirun", "a/mpicc"),
                                   ("b/orted", "b/mpicc.openmpi"), ("b/prterun", "b/mpicc.openmpi"),
                                   ("b/hydra_pmi_proxy", "b/mpicc.mpich")):
            self.assertEqual(job.compiler_beside(str(self.at / launcher)), str(self.at / expected))
        self.assertIsNone(job.compiler_beside(str(self.at / "a" / "bash")))


# --- short runs: whether all is measured and written, not how fast it is --------------------------


@pytest.fixture
def measure(library):
    """Measures with a command; returns the document."""
    with tempfile.TemporaryDirectory(dir=TARGET) as folder:  # nodes have their own /tmp
        def run_tool(*words):
            status, _ = call(*words, "--quick", "--seconds", "0.001", "--no-svg", cwd=folder,
                             seconds=400, OMPI_MCA_osc="sm", XDG_CACHE_HOME=folder,
                             FOMPI_LIB=library)
            assert status == 0
            doc = json.loads(Path(folder, "fompi-model.json").read_text(encoding="utf-8"))
            assert faults(doc) == []
            return doc

        yield run_tool


def missing(doc, where):
    return [f.name for f in models.FUNCTIONS if not models.find(doc, f.name, where)]


def test_a_job_of_its_own(mpi, measure):
    doc = measure(TOOL, "-n", "3", "--mpi", mpi.prefix or mpi.name)
    assert missing(doc, "one node") == []
    assert doc["job"]["layer"].startswith("libfompi ")
    assert doc["job"]["transports"] == ["shared memory"]


@pytest.mark.last_mpi_in_gate
def test_in_a_job_of_mpirun(mpi, measure):
    doc = measure(programs.FOMPIRUN, "--mpi", mpi.prefix or mpi.name, "-n", "2", TOOL)
    assert missing(doc, "one node") == []
    assert (doc["job"]["ranks"], doc["job"]["layer"][:8]) == (2, "libfompi")


@pytest.mark.nightly
def test_plain(measure):
    doc = measure(TOOL, "-n", "2", "--mpi", "openmpi", "--plain")
    assert (doc["job"]["layer"], doc["job"]["transports"]) == ("the MPI's own", [])
    assert missing(doc, "one node") == ["P_notify"]


@pytest.mark.skipif(os.geteuid() != 0, reason="simulated nodes need root")
def test_between_nodes(measure, library, cluster):
    cluster(2)
    doc = measure(programs.CLUSTER, "mpirun", "--mpi", "openmpi", "-n", "4", "-x", f"LD_PRELOAD={library}", "-x",
                  "FOMPI_NET=tcp", "--", TOOL)
    assert missing(doc, "between nodes") == missing(doc, "one node") == []
    assert (doc["job"]["nodes"], doc["job"]["ranks_on_node"]) == (2, 2)
    fast, slow = (models.predict(models.find(doc, "P_put", where), 8)
                  for where in ("one node", "between nodes"))
    assert slow > 3 * fast
