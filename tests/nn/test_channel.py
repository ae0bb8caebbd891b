"""Processes of one machine exchange arrays through shared memory."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gcaps.nn import channel
from gcaps.nn.channel import Channel, can_share, opened, room

pytestmark = pytest.mark.skipif(not can_share(), reason="needs Linux on x86-64")


@pytest.fixture
def small(monkeypatch):
    """Memory so small that most arrays need several exchanges, and threads that take turns often."""
    monkeypatch.setattr(channel, "CAPACITY", 64)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def sent(rank, number):
    """What a process sends in an exchange: of another length and type each time."""
    rng = np.random.default_rng([rank, number])
    shape = [(3,), (2, 20), (1,), (41,)][number % 4]
    return rng.standard_normal(shape).astype(np.float32 if number % 3 else np.float64)


@pytest.mark.parametrize("processes", [2, 3])
def test_everyone_gets_what_everyone_sent(tmp_path, small, processes):
    file = tmp_path / "shared"
    file.write_bytes(bytes(room(processes)))

    def take_part(rank):
        own = Channel(file, rank, processes, patience=30)
        return [own.gather(sent(rank, number)) for number in range(40)]

    with ThreadPoolExecutor(processes) as pool:
        found = list(pool.map(take_part, range(processes)))
    for number in range(40):
        expected = np.stack([sent(rank, number) for rank in range(processes)])
        for rank in range(processes):
            np.testing.assert_array_equal(found[rank][number], expected)
            assert found[rank][number].dtype == expected.dtype


def test_a_process_that_does_not_answer_is_named(tmp_path):
    file = tmp_path / "shared"
    file.write_bytes(bytes(room(2)))
    with pytest.raises(RuntimeError, match="process 1 did not answer"):
        Channel(file, 0, 2, patience=0.05).gather(np.ones(3))


def test_an_open_channel_leaves_no_file_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(channel, "SHARED", tmp_path)
    alone = opened(0, 1, 1.0, tell=str, everyone=lambda: None)
    assert alone is not None
    np.testing.assert_array_equal(alone.gather(np.arange(3)), [[0, 1, 2]])
    assert list(tmp_path.iterdir()) == []


def test_without_room_there_is_no_channel(tmp_path, monkeypatch):
    def full(handle, offset, size):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(channel, "SHARED", tmp_path)
    monkeypatch.setattr(channel.os, "posix_fallocate", full)
    assert opened(0, 1, 1.0, tell=str, everyone=lambda: None) is None
    assert list(tmp_path.iterdir()) == []
