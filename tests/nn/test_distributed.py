"""Exchange of arrays between processes of one host through shared memory."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch.distributed as dist

from gcaps.nn import distributed
from gcaps.nn.distributed import SharedMemory, supports_shared_memory

pytestmark = pytest.mark.skipif(not supports_shared_memory(), reason="needs Linux on x86-64")


@pytest.fixture
def small(monkeypatch):
    """Memory so small that most arrays take several exchanges, and threads that switch often."""
    monkeypatch.setattr(distributed, "CAPACITY", 64)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def sent(rank, number):
    """Array that a process sends in an exchange, of varying length and type."""
    rng = np.random.default_rng([rank, number])
    shape = [(3,), (2, 20), (1,), (41,)][number % 4]
    return rng.standard_normal(shape).astype(np.float32 if number % 3 else np.float64)


@pytest.mark.parametrize("processes", [2, 3])
def test_every_process_receives_the_arrays_of_all(tmp_path, small, processes):
    file = tmp_path / "shared"
    file.write_bytes(bytes(SharedMemory.size(processes)))

    def take_part(rank):
        own = SharedMemory(file, rank, processes, timeout=30)
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
    file.write_bytes(bytes(SharedMemory.size(2)))
    with pytest.raises(RuntimeError, match="process 1 did not answer"):
        SharedMemory(file, 0, 2, timeout=0.05).gather(np.ones(3))


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """A process group of one process, and a folder for shared memory."""
    monkeypatch.setattr(distributed, "FOLDER", tmp_path / "memory")
    (tmp_path / "memory").mkdir()
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1)
    yield tmp_path / "memory"
    dist.destroy_process_group()


def test_shared_memory_leaves_no_file_behind(alone):
    memory = SharedMemory.create(1.0)
    assert memory is not None
    np.testing.assert_array_equal(memory.gather(np.arange(3)), [[0, 1, 2]])
    assert list(alone.iterdir()) == []


def test_without_room_there_is_no_shared_memory(alone, monkeypatch):
    def full(handle, offset, size):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(distributed.os, "posix_fallocate", full)
    assert SharedMemory.create(1.0) is None
    assert list(alone.iterdir()) == []
