"""A server that does everything wrong, and a download that leaves nothing behind."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gcaps.cli.app import main
from gcaps.data.download import download
from gcaps.data.io.tu import read_tu
from gcaps.errors import DownloadError
from tests.tu_files import write_folder, zipped


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    requests = 0

    def handle_error(self, request, client_address):
        """The client hangs up on purpose here."""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests += 1
        self.server.behave(self)

    def log_message(self, *_):
        pass

    def head(self, length=None, code=200, **headers):
        self.send_response(code)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    made = _Server(("127.0.0.1", 0), _Handler)
    made.leaving = threading.Event()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    made.url = f"http://127.0.0.1:{made.server_port}"
    monkeypatch.setenv("GCAPS_TU_URL", made.url)
    yield made
    made.leaving.set()
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def body(tmp_path):
    return zipped(write_folder(tmp_path / "made" / "DS"), tmp_path / "made" / "DS.zip").read_bytes()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


def sends(body, length="as it is", **headers):
    def behave(request):
        request.head(len(body) if length == "as it is" else length, **headers)
        request.wfile.write(body)

    return behave


def test_good_zip_is_kept_with_its_record(server, folder, body):
    server.behave = sends(body)
    seen = []
    path = download("DS", folder, progress=lambda *numbers: seen.append(numbers))
    assert path == folder / "DS.zip"
    assert path.read_bytes() == body
    assert len(read_tu(path)) == 2
    record = json.loads((folder / "DS.zip.json").read_text())
    assert (record["url"], record["bytes"]) == (f"{server.url}/DS.zip", len(body))
    assert set(record) == {"url", "bytes", "sha256", "date"}
    assert seen[-1] == (len(body), len(body))
    assert sorted(p.name for p in folder.iterdir()) == ["DS.zip", "DS.zip.json"]


def test_length_need_not_be_announced(server, folder, body):
    server.behave = sends(body, length=None)
    assert download("DS", folder).read_bytes() == body


def test_redirect_within_http_is_followed(server, folder, body):
    def behave(request):
        if request.path == "/DS.zip":
            request.head(0, 302, Location="/elsewhere")
        else:
            sends(body)(request)

    server.behave = behave
    assert download("DS", folder).read_bytes() == body


def test_what_is_there_and_whole_is_not_fetched_again(server, folder, body):
    server.behave = sends(body)
    download("DS", folder)
    download("DS", folder)
    assert server.requests == 1
    download("DS", folder, force=True)
    assert server.requests == 2
    (folder / "DS.zip").write_bytes(b"damaged since")
    assert download("DS", folder).read_bytes() == body


def drips(request):
    request.head(1 << 20)
    while not request.server.leaving.wait(0.02):
        request.wfile.write(b"P")
        request.wfile.flush()


def drips_headers(request):
    request.wfile.write(b"HTTP/1.0 200 OK\r\nX-Slow: ")
    while not request.server.leaving.wait(0.02):
        request.wfile.write(b"x")
        request.wfile.flush()


def never_ends(request):
    request.head()
    while not request.server.leaving.is_set():
        request.wfile.write(b"PK" * 4096)


def stalls(request):
    request.head(1 << 20)
    request.wfile.write(b"PK\x03\x04")
    request.wfile.flush()
    request.server.leaving.wait()


def chunked_and_broken_off(request):
    request.protocol_version = "HTTP/1.1"
    request.head(None, 200, **{"Transfer-Encoding": "chunked"})
    request.wfile.write(b"1000\r\nPK")
    request.close_connection = True


IMPATIENT = {"timeout": 0.3, "min_speed": 1000.0}
FAULTS = {
    "breaks off": (lambda body: sends(body[:-40], len(body)), {}, "ended after"),
    "breaks off in a chunk": (lambda _: chunked_and_broken_off, {}, "cannot be fetched"),
    "cut without a length": (lambda body: sends(body[:-40], None), {}, "is not a complete zip archive"),
    "empty": (lambda _: sends(b""), {}, "is not a complete zip archive"),
    "garbage": (lambda _: sends(b"<html>Sorry, maintenance</html>"), {}, "is not a complete zip archive"),
    "another data set": (lambda _: sends(_other_zip()), {}, "is a zip without DS_A.txt"),
    "flipped bit": (lambda body: sends(_flipped(body)), {}, "the archive is damaged"),
    "announces too much": (lambda body: sends(body), {"limit": 100}, "more than the limit of 100"),
    "sends too much": (lambda _: never_ends, {"limit": 1 << 18}, "sends more than the limit of 262,144 bytes"),
    "more than the disk": (lambda _: sends(b"", 1 << 60), {"limit": 1 << 61}, "make room"),
    "drips": (lambda _: drips, IMPATIENT, "bytes in 0.3 seconds, stopped"),
    "drips headers": (lambda _: drips_headers, IMPATIENT, "bytes in 0.3 seconds, stopped"),
    "stalls": (lambda _: stalls, IMPATIENT, "try again"),
    "never ends": (lambda _: drips, {"timeout": 0.2, "min_speed": 0.0, "deadline": 0.5}, "finished after 0.5 seconds"),
    "not found": (lambda _: lambda r: r.send_error(404), {}, "there is no DS (404)"),
    "server error": (lambda _: lambda r: r.send_error(503), {}, "answers 503"),
    "redirect to a file": (lambda _: lambda r: r.head(0, 302, Location="file:///etc/passwd"), {}, "passwd, refused"),
    "redirect to ftp": (lambda _: lambda r: r.head(0, 301, Location="ftp://127.0.0.1/DS.zip"), {}, "refused"),
    "redirects in a circle": (lambda _: lambda r: r.head(0, 302, Location="/DS.zip"), {}, "answers 302"),
    "not HTTP": (lambda _: lambda r: r.wfile.write(b"\x16\x03\x01nonsense\r\n\r\n"), {}, "cannot be fetched"),
}


def _other_zip() -> bytes:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as place:
        return zipped(write_folder(Path(place) / "OTHER", "OTHER"), Path(place) / "OTHER.zip").read_bytes()


def _flipped(body: bytes) -> bytes:
    damaged = bytearray(body)
    damaged[60] ^= 0x20
    return bytes(damaged)


@pytest.mark.parametrize(("behave", "options", "message"), FAULTS.values(), ids=FAULTS)
def test_failure_is_one_line_and_leaves_everything_as_it_was(server, folder, body, behave, options, message):
    server.behave = behave(body)
    folder.mkdir()
    (folder / "DS.zip").write_bytes(b"the old file")
    with pytest.raises(DownloadError) as caught:
        download("DS", folder, force=True, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [p.name for p in folder.iterdir()] == ["DS.zip"]
    assert (folder / "DS.zip").read_bytes() == b"the old file"


def test_server_that_is_not_there(folder, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(DownloadError, match="cannot be fetched"):
        download("DS", folder, "http://127.0.0.1:9")


@pytest.mark.parametrize("name", ["../DS", "a/b", "", ".hidden", "DS zip", "DS\n", "DS?x=1", "-rf"])
def test_name_that_is_no_name_is_refused(folder, name):
    with pytest.raises(DownloadError, match="is not a data set's name"):
        download(name, folder)
    assert not folder.exists()


@pytest.mark.parametrize("url", ["file:///etc", "ftp://127.0.0.1", "DS"])
def test_other_schemes_are_refused(folder, url):
    with pytest.raises(DownloadError, match="neither http nor https"):
        download("DS", folder, url)


def test_file_of_the_users_own_is_not_replaced(server, folder, body):
    folder.mkdir()
    (folder / "DS.zip").write_bytes(b"mine")
    with pytest.raises(DownloadError, match="was not downloaded by gcaps; --force replaces it"):
        download("DS", folder)
    assert server.requests == 0


def test_change_on_the_server_is_not_taken_silently(server, folder, body, tmp_path):
    server.behave = sends(body)
    download("DS", folder)
    (folder / "DS.zip").unlink()
    changed = zipped(write_folder(tmp_path / "v2" / "DS", graph_labels="1\n2\n"), tmp_path / "DS.zip").read_bytes()
    server.behave = sends(changed)
    with pytest.raises(DownloadError, match=r"has changed since .*--force accepts the new file"):
        download("DS", folder)
    assert [p.name for p in folder.iterdir()] == ["DS.zip.json"]
    assert download("DS", folder, force=True).read_bytes() == changed


def _run(monkeypatch, *arguments) -> int:
    monkeypatch.setattr("sys.argv", ["gcaps", "data", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    return left.value.code or 0


def test_command_fetches_and_the_name_is_enough_afterwards(server, folder, body, monkeypatch, capsys):
    server.behave = sends(body)
    monkeypatch.setenv("GCAPS_CACHE", str(folder))
    assert _run(monkeypatch, "get", "DS") == 0
    assert capsys.readouterr().out.strip() == f"{folder / 'DS.zip'} ({len(body):,} bytes)"
    assert _run(monkeypatch, "check", "DS") == 0
    assert _run(monkeypatch, "convert", "DS", folder / "DS.gset") == 0
    assert "2 graphs, 6 nodes, 5 edges, 2 classes" in capsys.readouterr().out


def test_command_fails_in_one_line(server, folder, monkeypatch, capsys):
    server.behave = lambda request: request.send_error(404)
    assert _run(monkeypatch, "get", "PROTIENS", "--to", folder) == DownloadError.exit_code
    error = capsys.readouterr().err
    assert error.strip().count("\n") == 0
    assert "did you mean PROTEINS?" in error


def test_the_papers_ptc_is_not_to_be_had(server, monkeypatch, capsys):
    assert _run(monkeypatch, "get", "PTC") == DownloadError.exit_code
    assert "gcaps data get PTC_MR" in capsys.readouterr().err
    assert server.requests == 0


def test_watchdog_stops_even_if_the_reader_never_returns():
    import socket

    from gcaps.data.download import _Watchdog

    near, far = socket.socketpair()
    with near, far, _Watchdog(timeout=0.1, min_speed=1.0, deadline=10.0) as watchdog:
        watchdog.watch(near)
        assert near.recv(1) == b"", "hung up, not waited for"
        while watchdog.problem is None:
            time.sleep(0.01)
    assert "stopped" in watchdog.problem


@pytest.mark.parametrize("goal", ["http://example.org/DS.zip", "ftp://example.org/DS.zip", "file:///etc/passwd"])
def test_https_is_never_redirected_to_anything_less_safe(goal):
    import io
    from urllib.request import Request

    from gcaps.data.download import _Redirects

    with pytest.raises(DownloadError, match="refused; check GCAPS_TU_URL"):
        _Redirects().http_error_302(Request("https://a.org/DS.zip"), io.BytesIO(), 302, "", {"location": goal})
