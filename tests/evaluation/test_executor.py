"""A Dask scheduler that goes at any moment is one line; what a worker reports about its disk is not taken for that."""

import asyncio
import errno
from concurrent.futures import CancelledError

import pytest

from gcaps.errors import GcapsError
from gcaps.evaluation.executor import DaskCluster
from gcaps.evaluation.plan import Limits
from gcaps.evaluation.supervise import Listener

distributed = pytest.importorskip("distributed")
GONE = [
    distributed.comm.core.CommClosedError("in <TCP (closed) ConnectionPool.gather>: Connection reset by peer"),
    CancelledError("cancelled"),
    asyncio.CancelledError(),
    OSError("Timed out trying to connect to tcp://127.0.0.1:9 after 30 s"),
    TimeoutError(),
    ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
]


class Future:
    """A future that is done at once."""

    def __init__(self, result):
        self._result = result

    def result(self, timeout=None):
        if isinstance(self._result, BaseException):
            raise self._result
        return self._result

    def add_done_callback(self, call):
        call(self)


class Client:
    """A client one of whose calls fails."""

    status = "running"

    def __init__(self, failing, error):
        self.failing, self.error, self.submitted, self.closed = failing, error, 0, False

    def submit(self, *_, **__):
        self.submitted += 1
        if self.failing == "submit" and self.submitted > 1:
            raise self.error
        if self.failing == "first":
            return Future(self.error)
        return Future(self.error if self.failing == "result" and self.submitted > 1 else [])

    def ncores(self):
        if self.failing == "ncores":
            raise self.error
        return {"worker": 2}

    def register_plugin(self, *_, **__):
        if self.failing == "register":
            raise self.error

    def cancel(self, *_, **__):
        raise self.error

    def unregister_worker_plugin(self, *_):
        raise self.error

    def close(self):
        self.closed = True


class Task:
    def for_child(self):
        return self


def run(client, monkeypatch):
    monkeypatch.setattr(distributed, "Client", lambda *_, **__: client)
    with DaskCluster("tcp://127.0.0.1:9") as cluster:
        cluster.run([Task()], Limits(), Listener(None, lambda outcome: None))


@pytest.mark.parametrize("failing", ["ncores", "register", "submit", "result"])
@pytest.mark.parametrize("error", GONE, ids=lambda error: type(error).__name__)
def test_a_scheduler_that_goes_is_one_line_whatever_was_under_way(failing, error, monkeypatch):
    client = Client(failing, error)
    with pytest.raises(GcapsError, match=r"^tcp://127\.0\.0\.1:9: the scheduler is gone; the same command continues"):
        run(client, monkeypatch)
    assert client.closed


def test_a_cluster_without_workers_says_how_to_start_them(monkeypatch):
    client = Client("first", TimeoutError())
    with pytest.raises(GcapsError, match=r"has no workers; start them with `dask worker tcp://127\.0\.0\.1:9`"):
        run(client, monkeypatch)
    assert client.closed


def test_a_full_disk_of_a_worker_is_not_taken_for_a_lost_scheduler(monkeypatch):
    with pytest.raises(OSError, match="No space left on device") as found:
        run(Client("result", OSError(errno.ENOSPC, "No space left on device")), monkeypatch)
    assert found.value.errno == errno.ENOSPC


def test_a_client_without_faults_ends(monkeypatch):
    client = Client("none", OSError())
    run(client, monkeypatch)
    assert client.closed
