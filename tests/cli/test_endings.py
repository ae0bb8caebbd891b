"""How verbs end: by signals, with failed cells, on full disks, and with bugs."""

import signal
import subprocess
import sys
import time

import pytest

from gcaps.cli import app
from gcaps.cli.app import BUG, main
from gcaps.disk import StorageError, storage_error
from gcaps.errors import DataError, FailedCellsError
from tests.faults.processes import accept_signals

QUICK = ["--method", "deepsets", "--epochs", "2"]


def ended(capsys, *arguments):
    """The exit code of a verb, and what it said on standard error."""
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    return stop.value.code, capsys.readouterr().err


def test_the_output_of_a_training_is_checked_before_it_begins(tmp_path, capsys, monkeypatch):
    from gcaps.estimators.network import NetworkEstimator

    monkeypatch.setattr(NetworkEstimator, "fit_prepared", lambda *_, **__: pytest.fail("it trains"))
    (tmp_path / "late").mkdir()
    (tmp_path / "late" / "x").touch()
    code, said = ended(capsys, "train", "MUTAG", "-o", tmp_path / "late", *QUICK)
    assert code == 6
    assert "is not a saved model" in said
    assert ended(capsys, "train", "MUTAG", "-o", tmp_path / "late" / "x" / "y", *QUICK)[0] == 6


def test_a_model_that_cannot_be_saved_leaves_the_checkpoint(tmp_path, capsys, monkeypatch):
    from gcaps import persistence
    from gcaps.training.checkpoint import Checkpoint

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    with monkeypatch.context() as patched:
        patched.setattr(persistence, "_write", full)
        code, said = ended(capsys, "train", "MUTAG", "-o", tmp_path / "model", *QUICK)
    assert code == StorageError.exit_code
    assert "resumes from" in said.splitlines()[-1]
    assert "Traceback" not in said
    assert (tmp_path / "model.checkpoint").exists()
    assert ended(capsys, "train", "MUTAG", "-o", tmp_path / "model", *QUICK)[0] == 0
    assert (tmp_path / "model").exists()
    assert not (tmp_path / "model.checkpoint").exists()


def test_train_with_a_rate_that_diverges_exits_with_one_line(tmp_path, capsys):
    code, said = ended(
        capsys, "train", "MUTAG", "-o", tmp_path / "m", "--lr", "1e12", "--epochs", 3, "--with-svm", "false"
    )
    assert code == 10
    assert "diverged in epoch" in said
    assert not (tmp_path / "m").exists()


def test_compare_with_failed_cells_exits_with_11(tmp_path, capsys):
    grid = tmp_path / "grid.toml"
    grid.write_text("[deepsets]\nlr = 1e12\nepochs = 3\n")
    given = ["--methods", "deepsets", "--folds", 2, "--jobs", 1, "--grid", grid, "-o", tmp_path / "run"]
    code, said = ended(capsys, "compare", "MUTAG", *given)
    assert code == FailedCellsError.exit_code
    assert "2 of 2 cells failed" in said


def test_a_seed_beyond_the_generators_is_a_usage_error(tmp_path, capsys):
    assert ended(capsys, "train", "MUTAG", "-o", tmp_path / "m", "--seed", 4294967296)[0] == 2


def test_a_bug_shows_its_traceback_and_asks_for_a_report(capsys, monkeypatch):
    def broken(given):
        raise KeyError("oops")

    monkeypatch.setattr(app, "_run", broken)
    code, said = ended(capsys, "data", "list")
    assert code == BUG
    assert "Traceback" in said
    assert "report" in said.splitlines()[-1]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(28, "No space left on device", "x"), 9),
        (OSError(122, "Disk quota exceeded", "x"), 9),
        (OSError(5, "Input/output error", "x"), 9),
        (OSError("1000 requested and 0 written"), 9),
        (RuntimeError("I/O error: No space left on device (os error 28)"), 9),
        (MemoryError(), 7),
        (PermissionError(13, "Permission denied", "x"), 3),
    ],
)
def test_errors_of_the_system_are_one_line(capsys, monkeypatch, error, code):
    def failing(given):
        raise error

    monkeypatch.setattr(app, "_run", failing)
    found, said = ended(capsys, "data", "list")
    assert (found, len(said.splitlines())) == (code, 1)


def test_other_errors_are_none_of_the_disk():
    assert storage_error(ValueError("3 requested"), "x") is None
    assert isinstance(DataError("x"), ValueError)


def wait_for(process, text):
    for line in process.stderr:
        if text in line:
            return
    pytest.fail(f"it never says {text!r}")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
@pytest.mark.parametrize("busy", ["time.sleep(60)", "ctypes.CDLL(None).sleep(60)", "Deleted()"])
def test_a_signal_ends_a_verb_even_in_compiled_code_or_where_exceptions_are_ignored(name, busy):
    """The call of a C library returns to Python only after a minute; an exception in ``__del__`` ends nothing."""
    script = f"""
import ctypes, sys, time
from gcaps.cli import app
class Deleted:
    def __del__(self):
        time.sleep(60)
def run(given):
    print("begun", file=sys.stderr, flush=True)
    while True:
        {busy}
app._run = run
app.main([])
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=accept_signals) as process:
        try:
            wait_for(process, "begun")
            time.sleep(0.1)
            process.send_signal(getattr(signal, name))
            said = process.communicate(timeout=30)[1]
        finally:
            process.kill()
    assert process.returncode == 128 + getattr(signal, name)
    assert said == f"stopped by {name}\n"
