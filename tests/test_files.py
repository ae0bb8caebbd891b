"""The guarded way to files: what is no regular file is one line, and what is replaced is there at any moment."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gcaps import files
from gcaps.errors import DataError, GcapsError
from gcaps.files import open_file, output_text, read_bytes, replacing


def _fifo(place: Path) -> Path:
    os.mkfifo(place)
    return place


def _socket(place: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(place))
    return place


def _loop(place: Path) -> Path:
    place.symlink_to(place)
    return place


HOSTILE = {
    "named pipe": (_fifo, "named pipe"),
    "socket": (_socket, "socket"),
    "loop of links": (_loop, "loop"),
    "device": (lambda _: Path("/dev/zero"), "device"),
    "folder": (lambda place: place.parent, "folder"),
    "nothing": (lambda place: place, "does not exist"),
    "NUL": (lambda place: Path(f"{place}\0"), "not the name of a file"),
    "long name": (lambda place: place / ("n" * 5000), "too long"),
}


@pytest.mark.parametrize(("make", "words"), HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_regular_file_is_one_line(make, words, tmp_path):
    path = make(tmp_path / "x")
    for read in (open_file, read_bytes):
        with pytest.raises(DataError, match=words) as caught:
            read(path)
        assert "\n" not in str(caught.value)


def test_the_limit_is_a_setting(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"12345")
    assert read_bytes(tmp_path / "a", 5) == b"12345"
    monkeypatch.setenv("GCAPS_MAX_BYTES", "4")
    with pytest.raises(DataError, match="more than the limit of 4"):
        read_bytes(tmp_path / "a", 5)


def test_a_link_is_followed_and_stays(tmp_path):
    (tmp_path / "real").write_text("before")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files.write_text(tmp_path / "link", "after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "after"


def test_nothing_but_files_and_folders_is_replaced(tmp_path):
    pipe = _fifo(tmp_path / "pipe")
    with pytest.raises(GcapsError, match="named pipe and is not replaced"):
        files.write_text(pipe, "x")
    assert pipe.is_fifo()
    with pytest.raises(GcapsError, match="is a folder"), output_text(tmp_path):
        pass
    with output_text("/dev/null") as stream:
        stream.write("gone")
    assert Path("/dev/null").is_char_device()


def test_output_is_streamed_into_a_named_pipe(tmp_path):
    pipe = _fifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True)
    with output_text(pipe) as stream:
        stream.write("a,b\n")
    assert reader.communicate(timeout=30)[0] == "a,b\n"
    assert pipe.is_fifo()


def test_leavings_of_killed_writers_are_removed_and_others_stay(tmp_path):
    left, foreign = tmp_path / ".model.abcdefgh", tmp_path / ".model.v2.abcdefgh"
    for folder in (left, foreign):
        (folder / "model").mkdir(parents=True)
        (folder / "lock").touch()
    with replacing(tmp_path / "model") as draft:
        draft.mkdir()
    assert not left.exists()
    assert foreign.exists()


def test_a_folder_without_a_lock_is_removed_when_it_is_old_and_empty(tmp_path):
    young, old, full = (tmp_path / f".model.{name * 8}" for name in "abc")
    for folder in (young, old, full):
        folder.mkdir()
        (folder / "lock.new").touch()
    (full / "model").mkdir()
    for folder in (old, full):
        os.utime(folder, (0, 0))
    with replacing(tmp_path / "model") as draft:
        draft.mkdir()
    assert young.exists(), "its writer may be about to lock it"
    assert not old.exists()
    assert (full / "model").exists()


KILLED = """
import os, shutil, sys
from pathlib import Path
from gcaps import files

goal, fallback = Path(sys.argv[1]), sys.argv[2] == "fallback"
if fallback:
    files._renameat2 = lambda: None

def write(text):
    with files.replacing(goal) as draft:
        draft.mkdir()
        (draft / "content").write_text(text)

write("old")
missing, step, code = 0, 0, 9
while code == 9:
    step += 1
    child = os.fork()
    if not child:
        left = [step]
        def trace(frame, event, argument):
            if frame.f_code.co_filename == files.__file__ and event in ("line", "return"):
                left[0] -= 1
                if not left[0]:
                    os._exit(9)
            return trace
        sys.settrace(trace)
        write("new")
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if goal.exists():
        assert (goal / "content").read_text() in ("old", "new")
    else:
        missing += 1
    write("old")
    assert (goal / "content").read_text() == "old"
    for left in set(goal.parent.iterdir()) - {goal}:  # killed before it was locked
        assert not (left / "lock").exists()
        assert not (left / "model").exists()
        shutil.rmtree(left)
print(step, missing)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="exchanges paths")
@pytest.mark.parametrize("how", ["exchange", "fallback"])
def test_a_folder_is_there_wherever_a_writer_is_killed(how, tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "model"), how], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    steps, missing = map(int, run.stdout.split())
    assert steps > 30
    # without an exchange of paths, nothing is there between two renames until the next writer puts it back
    assert missing == 0 if how == "exchange" else 0 < missing < 6


def test_a_failed_rename_puts_the_old_folder_back(tmp_path, monkeypatch):
    goal = tmp_path / "model"
    goal.mkdir()
    (goal / "old").touch()
    monkeypatch.setattr(files, "_renameat2", lambda: None)
    rename, calls = Path.replace, []

    def failing(self, target):
        calls.append(target)
        if len(calls) == 2:
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(OSError, match="no"), replacing(goal) as draft:
        draft.mkdir()
    assert (goal / "old").exists()
