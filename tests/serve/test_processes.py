"""``gcaps serve`` as processes: shared memory, replaced workers, timeouts, signals, and nothing left behind."""

import os
import signal
import socket
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from gcaps.errors import ConfigError
from gcaps.serve import ServerSettings
from gcaps.serve.messages import packed, receive
from gcaps.serve.supervisor import listener
from tests.servers import Server

SLOW = """
import os, sys, time
from gcaps.serve.handler import Handler
original = Handler.handle
def handle(self, jobs):
    if any(b"HANG" in job.body for job in jobs):
        time.sleep(3600)
    if any(b"CRASH" in job.body for job in jobs):
        os._exit(11)
    return original(self, jobs)
Handler.handle = handle
import gcaps.serve.reading as reading
stream = reading.stream
def hanging(path, **options):
    if b"STUCK" in path.read_bytes():
        time.sleep(3600)
    return stream(path, **options)
reading.stream = hanging
from gcaps.cli.app import main
main()
"""
"""A server whose workers hang on, or die of, requests that say so."""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="gcaps serve needs fork")


@pytest.fixture(scope="module")
def server(molecules):
    with Server(molecules, "--max-seconds", "2", "--window", "100", code=SLOW) as running:
        yield running


def test_workers_share_the_memory_of_the_model(running):
    front, *workers = running.children()
    assert len(workers) == 2
    running.ask("/predict", {"smiles": "CCO"})
    for worker in workers:
        memory = worker.memory_full_info()
        assert memory.uss < 0.3 * memory.rss, "most pages belong to all"
    assert front.pid not in {worker.pid for worker in workers}


def test_only_this_machine_can_reach_it_by_default(running):
    addresses = {one.laddr.ip for one in running.children()[0].net_connections() if one.status == psutil.CONN_LISTEN}
    assert addresses == {"127.0.0.1"}


def test_a_request_that_hangs_is_refused_alone_and_its_worker_replaced(server):
    before = {process.pid for process in server.children()}
    bodies = [{"smiles": "CCO", "ids": ["HANG" if i == 3 else "fine"]} for i in range(12)]
    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda body: server.ask("/predict", body), bodies))
    statuses = [status for status, _ in found]
    assert statuses[3] == 504
    assert found[3][1]["error"]["code"] == "too_slow"
    assert statuses.count(200) >= 10, "those that were in its batch are tried again"
    server.wait_until(lambda: server.health()["workers"] == 2)
    assert {process.pid for process in server.children()} != before
    assert server.ask("/predict", {"smiles": "CCO"})[0] == 200


def test_an_upload_is_removed_when_its_worker_is_killed(server):
    workers = [process.pid for process in server.children()[1:]]
    status, found = server.ask("/predict/file?name=a.smi", b"CCO STUCK\n")
    assert (status, found["error"]["code"]) == (504, "too_slow")
    server.wait_until(lambda: [one.pid for one in server.children()[1:]] != workers)
    server.wait_until(lambda: not left(workers))
    server.wait_until(lambda: server.health()["workers"] == 2)


def left(pids):
    """Return the folders of uploads of some processes."""
    return [path for pid in pids for path in Path(tempfile.gettempdir()).glob(f"gcaps-serve-{pid}-*")]


def test_a_worker_that_dies_fails_one_request_and_is_replaced(server):
    bodies = [{"smiles": "CCO", "ids": ["CRASH" if i == 3 else "fine"]} for i in range(12)]
    with ThreadPoolExecutor(12) as pool:
        statuses = [status for status, _ in pool.map(lambda body: server.ask("/predict", body), bodies)]
    assert statuses == [500 if i == 3 else 200 for i in range(12)]
    server.wait_until(lambda: server.health()["workers"] == 2)
    for worker in server.children()[1:]:
        worker.kill()
    server.wait_until(lambda: server.ask("/predict", {"smiles": "CCO"})[0] == 200)
    _, text = server.ask("/metrics")
    assert int(text.split("gcaps_worker_restarts_total ")[-1].split()[0]) >= 3


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /health HT",
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    ],
)
def test_a_client_that_stops_in_the_middle_of_a_request_is_disconnected(server, sent):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(sent)
        began, received = time.monotonic(), b""
        while part := connection.recv(65536):
            received += part
    assert time.monotonic() - began < 15
    if sent.startswith(b"POST"):
        assert received.startswith(b"HTTP/1.1 408")


def test_what_is_no_http_is_refused(server):
    for sent in (b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/9.9\r\n\r\n", b"A" * 200_000, b"GET http://\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            connection.sendall(sent)
            assert connection.recv(65536).startswith((b"HTTP/1.1 4", b""))
    assert server.health()["status"] == "ok"


def test_requests_under_way_are_answered_before_the_end_and_nothing_is_left(molecules, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with Server(molecules, "--window", "300") as server:
        processes, answers = server.children(), []
        assert server.ask("/predict/file?name=a.smi", b"CCO\n")[0] == 200
        asking = threading.Thread(target=lambda: answers.append(server.ask("/predict", {"smiles": "CCO"})))
        asking.start()
        server.wait_until(lambda: "gcaps_waiting_requests 1" in server.ask("/metrics")[1])
        code, said, seconds = server.stop(signal.SIGTERM)
        asking.join()
    assert [status for status, _ in answers] == [200]
    assert (code, said) == (0, "stopped by SIGTERM\n")
    assert seconds < 5  # two on a machine that is not busy
    assert not [process for process in processes if process.is_running() and process.status() != "zombie"]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("gcaps-serve-")]


def test_a_token_on_all_addresses_and_no_process_survives_a_server_that_is_killed(molecules):
    with Server(molecules, "--host", "0.0.0.0", "--workers", "1", token="abc") as server:
        server.url = f"http://127.0.0.1:{server.port}"
        assert "warning" not in server.said
        assert "with a token" in server.said
        assert server.ask("/predict", {"smiles": "CC"})[0] == 200
        assert server.ask("/predict", {"smiles": "CC"}, Authorization="Bearer abd")[0] == 401
        assert server.ask("/health", Authorization="")[0] == 200
        processes = server.children()
        server.process.kill()
        server.process.wait()
        assert len(psutil.wait_procs(processes, timeout=5)[1]) == 0


def test_an_address_that_cannot_be_listened_at():
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigError, match="choose another --port"):
        listener(ServerSettings(port=taken.getsockname()[1]))
    with pytest.raises(ConfigError, match=r"192\.0\.2\.1:0"):
        listener(ServerSettings(host="192.0.2.1", port=0))


def test_messages_between_processes_are_json_and_bytes():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(packed([["predict", {"a": "ü"}]], [b"\x00\xff" * 1000]))
        assert receive(theirs) == ([["predict", {"a": "ü"}]], [b"\x00\xff" * 1000])
        ours.close()
        assert receive(theirs) is None
