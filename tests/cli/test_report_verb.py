"""``gcaps report`` as a user types it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gcaps.cli.app import main
from gcaps.evaluation.comparison import Comparison
from tests.fake_runs import fake_comparison, save


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(fake_comparison(methods=("gcaps", "wl"), folds=3), tmp_path_factory.mktemp("report") / "run")


@pytest.fixture
def gcaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> int:
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        code = left.value.code
        return code if isinstance(code, int) else 0

    return call


def test_a_run_becomes_a_page(gcaps: Callable[..., int], run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gcaps("report", run) == 0
    assert "has the highest honest accuracy" in Path("report.html").read_text(encoding="utf-8")
    assert "wrote report.html" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "first"), [("markdown", "| method"), ("latex", "% Honest"), ("csv", "data,method")])
def test_text_goes_to_the_screen_or_a_file(
    gcaps: Callable[..., int], run: Path, kind: str, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gcaps("report", run, "--format", kind) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(first)
    assert gcaps("report", run, "--format", kind, "-o", "table.txt") == 0
    assert Path("table.txt").read_text(encoding="utf-8") == shown


def test_result_files_become_a_page(gcaps: Callable[..., int], run: Path) -> None:
    comparison = Comparison.read(run)
    for result in comparison.results():
        result.save(f"{result.label}.json")
    assert gcaps("report", "gcaps.json", "wl.json", "-o", "page.html") == 0
    assert "WL" in Path("page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "nowhere: is not the folder of a comparison"),
        (["."], ".: is not the folder of a comparison"),
        (["RUN", "RUN"], "two results are about gcaps on MUTAG with seed 0"),
        (["RUN", "--format", "pdf"], "unknown format 'pdf'"),
    ],
)
def test_mistakes_get_one_line(
    gcaps: Callable[..., int], run: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gcaps("report", *(str(run) if word == "RUN" else word for word in arguments)) > 0
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_a_report_needs_neither_torch_nor_matplotlib(run: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from gcaps.cli.app import main\n"
        f"try: main(['report', {str(run)!r}, '-o', {str(tmp_path / 'page.html')!r}])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('torch', 'matplotlib', 'numba') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
