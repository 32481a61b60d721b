"""What scripts/dev/changed.py takes for changed since a commit, in a repository made for it.

usage: /usr/bin/python3 -m pytest tests/test_changed.py
"""

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts" / "dev"))

import changed  # noqa: E402

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

CODE = "//! A file.\nfn f() {} // f\n"
ROWS = '[[rule]]\nrule = "{}"\nmutant = "none"\nfrom = "a"\nto = "b"\n'


def git(folder, *words):
    command = ["git", "-C", folder, "-c", "user.name=n", "-c", "user.email=e", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def tree(tmp_path):
    """A repository of one commit; returns its folder."""
    (tmp_path / "src").mkdir()
    (tmp_path / "docs" / "conformance").mkdir(parents=True)
    (tmp_path / "src" / "a.rs").write_text(CODE)
    (tmp_path / "a.c").write_text("int a;\n")
    (tmp_path / "docs" / "conformance" / "1.toml").write_text(ROWS.format("A rule."))
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "m")
    return tmp_path


def base(tree, commit=None):
    return changed.Base(commit or git(tree, "rev-list", "HEAD").split()[-1], tree)


@pytest.fixture
def use(monkeypatch):
    """Makes changed.py compare with this base, on MPIs of these labels."""
    def use(one, *mpis):
        changed.old_rows.cache_clear()
        monkeypatch.setattr(changed, "base", lambda: one)
        monkeypatch.setattr(changed, "tested", lambda: {"mpis": list(mpis)})
    yield use
    changed.old_rows.cache_clear()


def test_only_files_that_differ_have_changed(tree):
    (tree / "a.c").write_text("int b;\n")
    (tree / "new.c").write_text("int c;\n")
    (tree / "docs" / "conformance" / "1.toml").unlink()
    here = base(tree)
    assert here.missing is None
    assert here.differs == {"a.c", "new.c", "docs/conformance/1.toml"}
    assert here.any_changed([tree / "src" / "a.rs", tree / "a.c"])
    assert not here.any_changed([tree / "src" / "a.rs"])


def test_a_change_that_is_committed_counts(tree):
    (tree / "a.c").write_text("int b;\n")
    git(tree, "commit", "-q", "-a", "-m", "m")
    assert base(tree).differs == {"a.c"}


def test_comments_of_rust_do_not_count_but_code_does(tree):
    (tree / "src" / "a.rs").write_text("//! Another text.\n\n/// f\nfn f() {} // f\n")
    assert base(tree).differs == set()
    (tree / "src" / "a.rs").write_text(CODE.replace("f()", "g()"))
    assert base(tree).differs == {"src/a.rs"}


def test_without_the_commit_or_git_all_has_changed(tree, monkeypatch):
    absent = base(tree, "0123456789" * 4)
    assert "not here" in absent.missing and absent.any_changed([tree / "a.c"])
    (tree / "outside").mkdir()
    monkeypatch.setenv("PATH", str(tree / "outside"))
    without = base(tree, "0123456789" * 4)
    assert "no git" in without.missing and without.any_changed([tree / "a.c"])


def test_a_row_changes_with_its_text_its_mutation_its_files_and_its_test(tree, use):
    values = {"rule": "A rule.", "mutant": "none", "from": "a", "to": "b"}
    row = lambda **more: SimpleNamespace(values=values | more, mutant="none",
                                         test=SimpleNamespace(path=tree / "src" / "a.rs"))
    has_changed = lambda one, *others: changed.row_has_changed(one, others, [tree / "a.c"], None)
    use(base(tree))
    assert not has_changed(row())
    assert not has_changed(row(), row())
    assert has_changed(row(rule="Another rule."))
    assert has_changed(row(), row(to="c"))
    (tree / "a.c").write_text("int b;\n")
    use(base(tree))
    assert has_changed(row())


def test_a_run_changes_with_its_program_its_defect_and_the_mpi(tree, use):
    program = SimpleNamespace(path=tree / "a.c", head={})
    defect = lambda reason: SimpleNamespace(reason=reason)
    job = lambda version, row=None: SimpleNamespace(
        test=program, mpi=SimpleNamespace(label=version), ranks=2, per_node=0, defect=row)

    class Old(SimpleNamespace):
        def covers(self, *_):
            return True
    use(base(tree), "mpich-4")
    assert not changed.run_has_changed(job("mpich-4"), [])
    assert changed.run_has_changed(job("mpich-5"), [])
    assert changed.run_has_changed(job("mpich-4", defect("r")), [])
    assert not changed.run_has_changed(job("mpich-4", defect("r")), [Old(reason="r")])
    assert changed.run_has_changed(job("mpich-4", defect("s")), [Old(reason="r")])
    assert changed.run_has_changed(job("mpich-4"), [Old(reason="r")])
    (tree / "a.c").write_text("int b;\n")
    use(base(tree), "mpich-4")
    assert changed.run_has_changed(job("mpich-4"), [])
