"""What scripts/dev/check-gpu-node says of a driver that it finds, with the stand-in of
c-tests/gpu_libraries as one, and of records.

usage: /usr/bin/python3 -m pytest tests/test_check_gpu_node.py
"""

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
SCRIPT = TOP / "scripts" / "dev" / "check-gpu-node"
STAND_IN = TOP / "c-tests" / "gpu_libraries" / "cuda.c"
NAME = "stand-in of c-tests/gpu_libraries"
HEAD = "figure,ranks,mpi,layer,measurement,verified"


@pytest.fixture(scope="module")
def node():
    sys.path.insert(0, str(SCRIPT.parent))
    loader = importlib.machinery.SourceFileLoader("check_gpu_node", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def driver(folder, text):
    """Builds a libcuda.so.1 from the source of the stand-in or a changed one; returns its folder."""
    folder.mkdir()
    source = folder / "cuda.c"
    source.write_text(text)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", f"-I{STAND_IN.parent}", "-o",
                    folder / "libcuda.so.1", source], check=True)
    return str(folder)


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    return driver(tmp_path_factory.mktemp("drivers") / "stand-in", STAND_IN.read_text())


def gpu(node, monkeypatch, folders, stand_in):
    monkeypatch.setattr(node, "DRIVER_FOLDERS", folders)
    return node.Gpu(stand_in, False)


def test_a_driver_with_a_gpu_is_used(node, monkeypatch, tmp_path, stand_in):
    text = STAND_IN.read_text().replace(NAME, "another").replace(" || attribute == 115", "")
    found = gpu(node, monkeypatch, (driver(tmp_path / "real", text),), stand_in)
    assert found.is_real and "another" in found.line() and "CUDA 13.0" in found.line()
    assert found.facts["managed memory"] and not found.facts["pools"]


def test_the_stand_in_is_no_gpu(node, monkeypatch, stand_in):
    found = gpu(node, monkeypatch, (stand_in,), stand_in)
    assert not found.is_real and "stand-in" in found.line()


def test_a_driver_without_a_gpu_is_not_used(node, monkeypatch, tmp_path, stand_in):
    text = STAND_IN.read_text().replace("*count = 1", "*count = 0")
    found = gpu(node, monkeypatch, (driver(tmp_path / "empty", text),), stand_in)
    assert not found.is_real and "no GPU" in found.line()


def test_points_of_the_library_count_and_others_do_not(node, tmp_path):
    rows = ["scaling,2,MPICH 5,libfompi,fence,1", "scaling,2,MPICH 5,libfompi,counter,0",
            "scaling,2,MPICH 5,plain,pscw,1", "scaling,4,MPICH 5,libfompi,fence,1"]
    (tmp_path / "bench.csv").write_text("\n".join(["# date: today", HEAD, *rows]))
    assert node.scaling_points(tmp_path / "bench.csv") == {
        ("MPICH 5", 2): {"fence": [True], "counter": [False]}, ("MPICH 5", 4): {"fence": [True]}}


def test_rows_of_a_comparison_are_found(node):
    said = "median of 3 runs, ns    plain  libfompi  ratio\nlimit.put8   5.3   5.1   1.04\nx: y\n"
    assert node.table_of(said) == {"limit.put8": ["5.3", "5.1", "1.04"]}
