"""What the scripts of measurements and of pages promise in benches/fairness.md.

usage: /usr/bin/python3 -m pytest tests/test_figures.py
"""

import importlib.util
import re
import sys
import tomllib
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "scripts" / "dev"))

import bench_jobs
import bench_layers
import host_layers
import paper_runs
from bench_results import COLUMNS, Violations
from energy import Energy, Spent
from paper_numbers import Cells, Record, lacking

DEFINITIONS = bench_jobs.definitions()
TEXTS = tomllib.loads((TOP / "benches" / "paper.toml").read_text())
TABLES = tomllib.loads((TOP / "benches" / "record" / "tables.toml").read_text())
ROUNDS = DEFINITIONS["rounds_min"]


def numbers():
    """The module of scripts/dev/numbers."""
    loader = SourceFileLoader("numbers_script", str(TOP / "scripts" / "dev" / "numbers"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def call(layer, measurement, more="", **values):
    row = {"figure": "f", "place": "node", "nodes": "1", "ranks": "2", "mpi": "M 1", "layer": layer,
           "measurement": measurement, "parameter": "bytes", "value": "8", "window": "allocate", "unit": "ns",
           "median": "100", "least": "90", "p90": "110", "runs": "1000", "rounds": str(ROUNDS), "verified": "1",
           "more": more}
    return row | values


def run(layer, variant, seconds, **values):
    row = {"program": "ft", "place": "node", "nodes": "1", "ranks": "2", "mpi": "M 1", "layer": layer,
           "variant": variant, "seconds": str(seconds), "least": str(seconds), "p90": str(seconds),
           "runs": str(ROUNDS), "verified": "1", "more": ""}
    return row | values


def written(folder, name, columns, rows, head=()):
    folder.mkdir(exist_ok=True)
    lines = [*(f"# {line}" for line in head), ",".join(columns),
             *(",".join(row[column] for column in columns) for row in rows)]
    (folder / name).write_text("\n".join(lines) + "\n")


def test_an_error_line_of_an_mpi_fails_and_a_warning_is_kept():
    warnings = set()
    line = "[vm:1] OSC UCX component priority set inside component query failed "
    assert bench_jobs.error_line(["begin=put\n", line], warnings) == line.strip()
    assert bench_jobs.error_line(["plm:ssh: Warning: setpgid(7,7) failed"], warnings) == ""
    assert warnings == {"plm:ssh: Warning: setpgid(N,N) failed"}
    assert bench_jobs.error_line(["measurement=put verified=1", "fompi: cannot"], warnings) == ""


def test_a_job_with_an_error_line_has_no_points(tmp_path):
    program = tmp_path / "mpiexec"
    program.write_text("#!/bin/sh\necho begin=put\necho 'measurement=put value=8 median_ns=1 verified=1'\n"
                       "echo \"$SAID\" >&2\n")
    program.chmod(0o755)

    class Options:
        runs, seconds, nodes, smoke, start, minutes = 1, 0.001, 0, False, 0, 0

    class OneMpi:
        name, version, label, exec, prefix = "other", "1", "other-1", str(program), None

        @staticmethod
        def environment():
            return {"PATH": "/usr/bin:/bin", "SAID": OneMpi.said}
    for OneMpi.said, count in (("query failed", 0), ("all is well", 1)):
        engine = bench_jobs.Engine(OneMpi, "plain", "rma_bench")
        job = bench_jobs.Job(engine, 2, "allocate", [("put", [8])])
        points = bench_jobs.Runner(Options, [], "").run(job, 1, lambda _: None)
        assert (len(points), len(job.broken)) == (count, 1 - count), OneMpi.said


def test_settings_hold_in_all_layers_and_keep_those_of_the_user(monkeypatch):
    class OneMpi:
        name, version = "openmpi", "5.0.11"
    for place in ("node", "nodes"):
        assert bench_jobs.settings_for(OneMpi, place, DEFINITIONS["setting"]) == {"OMPI_MCA_osc": "^ucx"}
    monkeypatch.setenv("OMPI_MCA_osc", "rdma")
    assert bench_jobs.settings_for(OneMpi, "node", DEFINITIONS["setting"]) == {"OMPI_MCA_osc": "rdma"}


@pytest.mark.parametrize("reader, text, component", [
    (host_layers.of_openmpi, "[vm:1] select: component sm selected", "osc/sm"),
    (host_layers.of_openmpi, "select: component rdma selected\nrank 0 found btl for peer 1 (tcp, 1, rdma)",
     "osc/rdma over btl/tcp"),
    (host_layers.of_mpich, "UCX  INFO  x inter-node cfg#1 tag(tcp/eth0)  rma_am(tcp/eth0)  am(tcp/eth0)",
     "ch4:ucx, rma_am(tcp/eth0)"),
    (host_layers.of_mpich, "libfabric provider: sockets - 1", "ch4:ofi, provider sockets"),
])
def test_components_are_those_that_an_mpi_names(reader, text, component):
    assert reader(text) == component


def test_messages_run_without_windows_once_and_all_others_one_sided():
    for application in TEXTS["application"]:
        program = application["program"]
        messages = paper_runs.variants_of(TEXTS["application"], program, "messages")
        assert set(application["messages"]) <= set(messages)
        for layer in ("plain", "libfompi"):
            onesided = paper_runs.variants_of(TEXTS["application"], program, layer)
            assert application["onesided"] in onesided and not set(onesided) & set(messages)


def test_a_program_is_compared_with_its_fastest_messages():
    rows = [run("messages", "alltoall", 3), run("messages", "ialltoall", 2), run("messages", "messages", 4),
            run("plain", "onesided", 5), run("libfompi", "onesided", 4)]
    application = next(one for one in TEXTS["application"] if one["program"] == "ft")
    cells, key = Cells(application, rows), ("node", "M 1", 2)
    assert cells.row(key, "messages")["variant"] == "ialltoall"
    assert (cells.times(key, "messages"), cells.times(key, "plain")) == (0.5, 1.25)


def test_points_of_few_rounds_are_left_out_and_hide_no_others(tmp_path):
    written(tmp_path / "2026-01-01", "bench-node.csv", COLUMNS, [call("plain", "put"), call("libfompi", "put")])
    written(tmp_path / "2026-01-02", "bench-node.csv", COLUMNS,
            [call("libfompi", "put", median="1", rounds=str(ROUNDS - 1))])
    record = Record("bench", tmp_path.iterdir(), ROUNDS)
    assert [row["median"] for row in record.rows] == ["100", "100"] and record.left_out == 1
    assert list(record.heads) == ["2026-01-01/bench-node.csv"]


def test_points_that_the_mpi_alone_lacks_are_counted():
    rows = [call("libfompi", "put"), call("libfompi", "get"), call("plain", "get"), call("plain", "fence")]
    assert lacking(rows) == 1


def test_more_ranks_than_cores_have_no_ratio(tmp_path):
    import paper_applications

    class Page:
        @staticmethod
        def table(columns, lines):
            Page.lines = lines
    rows = [run(layer, variant, 1, ranks=ranks) for ranks in ("2", "4")
            for layer, variant in (("messages", "messages"), ("plain", "onesided"), ("libfompi", "onesided"))]
    written(tmp_path / "2026-01-01", "applications-node.csv", paper_runs.COLUMNS, rows,
            ["machine: M, 4 processors, 2 cores"])
    record = Record("applications", tmp_path.iterdir(), ROUNDS)
    paper_applications.table(Page, [one for one in TEXTS["application"] if one["program"] == "ft"], record)
    ratios = {line[3]: re.findall(r">([^<]+)<", "".join(line[-2:])) for line in Page.lines}
    assert ratios == {2: ["1.00", "1.00"], 4: ["-", "-"]}


def test_a_picture_of_all_ways_has_messages_and_what_is_done_by_hand_in_the_part_of_each_mpi(tmp_path, monkeypatch):
    import paper_page
    figure = next(one for one in DEFINITIONS["figure"] if one["name"] == "notified")
    rows = [call(layer, series[bench_layers.KEY_OF_LAYER[layer]], mpi=mpi, median=median, value=value)
            for layer, median in (("libfompi", "1"), ("plain", "2"), ("messages", "3"), ("hand", "4"))
            for mpi in ("M 1", "O 1") if (layer, mpi) != ("hand", "O 1")
            for series in figure["series"] if bench_layers.KEY_OF_LAYER[layer] in series
            for value in ("8", "64")]
    found = {}
    monkeypatch.setattr(paper_page.paper_plots, "panel", lambda path, *rest: found.update({path.stem: rest}) or True)
    page = paper_page.Page(tmp_path, DEFINITIONS, TEXTS, {"notified-node-together-2"})
    assert "One-sided ways with libfompi, 2 ranks, M 1 and O 1." in page.panels_of(figure, rows, "node")
    parts = found["notified-node-together-2"][-1]
    ways = [("put, flush, flag", 1), ("put, fence", 1), ("PSCW", 1), ("notified put", 1), ("message", 3),
            ("flag by hand", 4)]
    for mpi, lines in parts:
        assert [(way, points) for way, _, points in lines] == [
            (way, [(8, median, 110), (64, median, 110)]) for way, median in ways], mpi
    assert [mpi for mpi, _ in parts] == ["M 1", "O 1"] and page.drawn == {"notified-node-together-2"}


def test_coarrays_and_openshmem_are_two_layers_each_that_are_measured_only_if_they_are_named():
    for name in bench_layers.NAMED:
        layers = bench_layers.expanded([name])
        assert [bench_layers.is_ours(layer) for layer in layers] == [False, True]
        assert {bench_layers.KEY_OF_LAYER[layer] for layer in layers} == {name}
        assert not set(layers) & set(bench_layers.STANDARD)
        source = (bench_layers.LAYERS / f"{name}.c").read_text()
        named = {series[name] for figure in DEFINITIONS["figure"] for series in figure["series"] if name in series}
        rows = set(re.findall(r'(?:ROW|EVERY|LOCK)\("?(\w+)', source)) - {"name"}
        assert named == rows


def test_an_mpi_without_a_compiler_of_coarrays_is_an_error(tmp_path):
    class OneMpi:
        name, label, prefix = "mpich", "mpich-5", str(tmp_path)
    with pytest.raises(SystemExit, match=f"no caf for mpich-5: {tmp_path}/bin/caf"):
        bench_layers.compiler("coarrays", OneMpi, {})
    (tmp_path / "caf").write_text("")
    (tmp_path / "caf").chmod(0o755)
    assert bench_layers.compiler("coarrays", OneMpi, {"mpich-5": tmp_path / "caf"}) == tmp_path / "caf"


def powercap(folder, zones):
    """A folder of counters, by the name of the zone: what it counts, and its microjoules."""
    for zone, (name, count) in zones.items():
        (folder / zone).mkdir(parents=True, exist_ok=True)
        for file, text in (("name", name), ("energy_uj", count), ("max_energy_range_uj", 9_999_999)):
            (folder / zone / file).write_text(f"{text}\n")


def test_energy_is_that_of_packages_and_memory_once_also_when_a_counter_begins_again(tmp_path):
    def counters(package, dram, other):
        return {"intel-rapl:0": ("package-0", package), "intel-rapl:0:0": ("core", other),
                "intel-rapl:0:1": ("dram", dram), "intel-rapl:1": ("psys", other),
                "intel-rapl-mmio:0": ("package-0", other)}
    powercap(tmp_path, counters(9_000_000, 100, 5))
    energy = Energy(tmp_path)
    spent, before = Spent(energy), energy.read()
    powercap(tmp_path, counters(1_000_000, 500_100, 900_000))
    assert energy and energy.since(before) == 2.5
    for _ in range(2):
        spent.add("MPICH 4, libfompi", before, 1.5)
    assert spent.lines() == ["energy: MPICH 4, libfompi: 5.0 J in 3.0 s of its runs"]


def test_a_machine_without_readable_counters_says_so(tmp_path):
    assert Spent(Energy(tmp_path)).lines() == [f"energy: not measured: no RAPL counters in {tmp_path}"]
    powercap(tmp_path, {"intel-rapl:0": ("package-0", 1)})
    (tmp_path / "intel-rapl:0" / "energy_uj").unlink()
    energy = Energy(tmp_path)
    assert not energy and energy.since(energy.read()) == 0
    assert Spent(energy).lines() == [
        f"energy: not measured: {tmp_path}/intel-rapl:0/energy_uj: No such file or directory"]


def test_the_energy_of_a_job_is_in_the_head_or_in_its_row(tmp_path, monkeypatch):
    powercap(tmp_path, {"intel-rapl:0": ("package-0", 1_000_000)})
    program = tmp_path / "mpiexec"
    program.write_text(f"#!/bin/sh\necho 3500000 > {tmp_path}/intel-rapl:0/energy_uj\n"
                       "echo begin=put\necho 'measurement=put value=8 median_ns=1 verified=1'\n"
                       "echo 'example=ft variant=onesided seconds=1 verified=1'\n")
    program.chmod(0o755)

    class OneMpi:
        name, version, label, exec, prefix = "other", "1", "other-1", str(program), None

        @staticmethod
        def environment():
            return {"PATH": "/usr/bin:/bin"}

    class Options:
        runs, seconds, nodes, smoke, start, minutes = 1, 0.001, 0, False, 0, 0
    for module in (bench_jobs, paper_runs):
        monkeypatch.setattr(module, "Energy", lambda: Energy(tmp_path))
    runner = bench_jobs.Runner(Options, [], "")
    runner.run(bench_jobs.Job(bench_jobs.Engine(OneMpi, "plain", "x"), 2, "allocate", [("put", [8])]), 1,
               lambda _: None)
    assert runner.spent.lines()[0].startswith("energy: other 1, plain: 2.5 J in ")
    powercap(tmp_path, {"intel-rapl:0": ("package-0", 1_000_000)})
    runs = paper_runs.Runs(TEXTS["application"], "", 0, [])
    ft = next(one for one in TEXTS["application"] if one["program"] == "ft")
    runs.add(ft, OneMpi, "plain", 2, tmp_path)
    assert [row["more"] for row in runs.rows()] == ["job_joules=2.500"]


@pytest.mark.parametrize("plain, messages, ours, count", [
    (0.3, 0.2, 0.3, 0), (0.3, 0.2, 0.29, 1), (0.1, 0.5, 0.4, 1), (0.1, 0.2, 0.9, 0)])
def test_less_overlap_than_another_layer_is_a_violation(plain, messages, ours, count):
    rows = [call("plain", "put_overlap", f"overlap={plain}"), call("libfompi", "put_overlap", f"overlap={ours}"),
            call("messages", "send_overlap", f"overlap={messages}")]
    found = Violations(DEFINITIONS["rule"], DEFINITIONS["tolerance"], rows, lambda _: 2).find()
    assert [row["rule"] for row in found] == ["put-overlap"] * count


def test_slower_calls_are_violations_of_one_record_only_and_with_a_core_for_each_rank():
    rows = [call("libfompi", "fence", ranks="4"), call("libfompi", "flush_barrier", median="1", least="1", ranks="4"),
            call("libfompi", "fence", median="100", record="a"), call("libfompi", "flush_barrier", median="50",
            least="50", record="a"), call("libfompi", "fence", record="b", median="100", place="nodes")]
    found = Violations(DEFINITIONS["rule"], DEFINITIONS["tolerance"], rows, lambda _: 2).find()
    assert [(row["rule"], row["record"], row["times"]) for row in found] == [("fence-barrier", "a", "2.00")]


def test_a_part_measures_each_figure_that_a_page_shows_between_nodes():
    measured = {name for part in TEXTS["part"] if part["place"] == "nodes" for name in part.get("figures", ())}
    shown = {row[1] for table in TABLES["table"] if table.get("of") == "calls" and table["place"] == "nodes"
             for row in table["rows"]}
    shown |= {name.split("-nodes-")[0] for name in TEXTS["selected"] if "-nodes-" in name}
    assert shown and shown <= measured
    programs = {part["place"] for part in TEXTS["part"] if "figures" not in part}
    assert programs == {"node", "nodes"}


def test_each_row_of_a_table_is_a_point_of_its_figure():
    figures = {figure["name"]: figure for figure in DEFINITIONS["figure"]}
    names = {one.get("name", one["program"]) for one in TEXTS["application"]}
    calls = [(table["place"], wanted) for table in TABLES["table"] if table["of"] == "calls"
             for row in table["rows"]
             for wanted in (row[1:] if isinstance(row[1], list) else [row[1:]]) if wanted]
    calls += [(row[1], row[2:]) for part in TABLES["picture"]["part"] for row in part["rows"]]
    for place, (name, measurement, value, ranks) in calls:
        figure = figures[name]
        series = [one for one in figure["series"] if measurement.startswith(one["rma"])]
        values = bench_jobs.sweep_of(figure, series[0], False) or [ranks]
        assert place in figure["place"] and ranks in figure["ranks"] and value in values, (name, measurement)
    for table in (one for one in TABLES["table"] if one["of"] == "programs"):
        assert {row[1] for row in table["rows"]} <= names and {row[2] for row in table["rows"]} <= {"node", "nodes"}


def test_each_record_on_a_page_names_the_settings_of_each_mpi():
    module = numbers()
    assert module.records("bench").rows
    for kind in ("bench", "applications"):
        record = module.records(kind)
        for name in record.heads:
            told = {mpi for file, mpi, *_ in record.hosts() if file == name}
            assert told == set(record.facts(name)["mpi"]), name


def test_a_table_of_programs_without_a_loss_is_refused(monkeypatch):
    module = numbers()
    table = next(one for one in TABLES["table"] if one.get("has_a_loss"))
    monkeypatch.setitem(module.READERS, "programs", lambda *_: "1 ns")
    with pytest.raises(SystemExit, match="no row in which libfompi is slower"):
        module.text(dict(table))
