"""Every limit and every wrong request is an error of 4xx in one shape, which tells nothing about the server."""

import gzip
import io
import json
import zipfile

import pytest

from gcaps.serve.schema import ErrorResponse


def refused(answer, status, words="", code=None):
    assert answer.status_code == status, answer.text
    error = ErrorResponse.model_validate(answer.json()).error
    assert error.status == status
    assert words in error.message
    assert "/tmp" not in answer.text
    assert "gcaps-serve-" not in answer.text
    assert "Traceback" not in answer.text
    assert "GCAPS_" not in answer.text
    assert code in (None, error.code)
    return error


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "is not JSON"),
        (b"{", 400, "is not JSON"),
        (b"\xff\xfe", 400, "is not JSON"),
        (b'{"smiles": NaN}', 400, "is not JSON"),
        (b"[" * 100_000, 400, "levels of brackets"),
        (b'{"smiles": "CC", "coverage": 1e999}', 400, "is not JSON"),
        (b"[]", 422, ""),
        (b"null", 422, ""),
        (b"{}", 422, 'give "smiles" or "graphs"'),
        (b'{"smiles": "CC", "graphs": [{"nodes": []}]}', 422, 'give "smiles" or "graphs"'),
        (b'{"smiles": 3}', 422, "smiles"),
        (b'{"smiles": []}', 422, "smiles"),
        (b'{"smiles": "CC", "more": 1}', 422, "more: is not a known field"),
        (b'{"smiles": "CC", "coverage": 1}', 422, "coverage"),
        (b'{"smiles": "CC", "coverage": "0.9"}', 422, "coverage"),
        (b'{"smiles": "CC", "neighbors": 1000}', 422, "neighbors"),
        (b'{"smiles": "CC", "ids": ["a", "b"]}', 422, "2 names for 1 graphs"),
        (b'{"smiles": "nonsense!"}', 422, "is not a SMILES"),
        (b'{"smiles": "\\ud800"}', 400, "is not JSON"),
        (b'{"smiles": "C\\u0000C"}', 422, "not a SMILES"),
        (b'{"graphs": [{"nodes": "x"}]}', 422, ""),
        (b'{"graphs": [{"nodes": [], "links": []}]}', 422, ""),
        (b'{"graphs": [{"nodes": [{"id": 0}], "links": [{"source": 0, "target": 9}]}]}', 422, "not among its nodes"),
        (b'{"graphs": [{"nodes": [{"id": 0}], "links": [{"source": 0}]}]}', 422, "malformed"),
        (b'{"graphs": [{"directed": true, "nodes": [{"id": 0}]}]}', 422, "directed"),
        (b'{"smiles": ["' + b"C" * 30_000 + b'"]}', 422, "smiles"),
    ],
)
def test_a_body_that_is_wrong(client, body, status, words):
    refused(client.post("/predict", content=body), status, words)


def test_paths_and_methods_that_do_not_exist(client):
    refused(client.get("/nothing"), 404, "/openapi.json describes all paths")
    refused(client.get("/docs"), 404)
    refused(client.get("/../../etc/passwd"), 404)
    assert "POST" in client.get("/predict").headers["allow"]
    refused(client.get("/predict"), 405, "this path answers POST, not GET")
    refused(client.post("/predict/file", content=b"C\n"), 422, "needs the name of the file, such as ?name=new.csv")
    refused(client.request("TRACE", "/health"), 405)


def test_bytes_are_limited_whatever_the_header_says(client_of, molecules):
    client = client_of(molecules, max_bytes=2048)
    body = json.dumps({"smiles": "C" * 3000}).encode()
    refused(client.post("/predict", content=body), 413, "2,048 bytes", "too_large")
    refused(client.post("/predict", content=(body[i : i + 100] for i in range(0, len(body), 100))), 413, "2,048 bytes")
    lying = client.post("/predict", content=body, headers={"content-length": "10"})
    assert 400 <= lying.status_code < 500
    refused(client.post("/predict", content=b"{}", headers={"content-length": "9" * 30}), 413)


def test_graphs_nodes_and_edges_are_limited(client_of, molecules, mutag):
    client = client_of(molecules, max_graphs=3, max_nodes=20, max_edges=10)
    assert client.post("/predict", json={"smiles": ["C"] * 3}).status_code == 200
    refused(client.post("/predict", json={"smiles": ["C"] * 4}), 413, "4 graphs")
    refused(client.post("/predict", json={"smiles": "C" * 30}), 413, "30 nodes")
    refused(client.post("/predict", json={"smiles": "C" * 15}), 413, "14 edges")
    refused(client.post("/explain", json={"smiles": "C" * 30}), 413, "30 nodes")
    refused(client.post("/predict/file?name=a.smi", content=b"C\n" * 5), 413, "5 graphs")
    ring = {"nodes": [{"id": i} for i in range(21)]}
    refused(client_of(mutag, max_nodes=20).post("/predict", json={"graphs": [ring]}), 413, "21 nodes")


def test_seconds_are_limited(client_of, molecules, monkeypatch):
    import time

    from gcaps.serve.handler import Handler

    client = client_of(molecules, max_seconds=0.3)
    monkeypatch.setattr(Handler, "handle", lambda *_: time.sleep(1.5))
    refused(client.post("/predict", json={"smiles": "C"}), 504, "longer than 0.3 seconds", "too_slow")


def test_a_queue_that_is_full(client_of, molecules, monkeypatch):
    import threading

    from gcaps.serve.handler import Handler

    client, let = client_of(molecules, {"max_waiting": 1, "window": 0}, max_seconds=20), threading.Event()
    original = Handler.handle

    def slow(self, jobs):
        let.wait(10)
        return original(self, jobs)

    monkeypatch.setattr(Handler, "handle", slow)
    first = threading.Thread(target=client.post, args=("/predict",), kwargs={"json": {"smiles": "C"}})
    first.start()
    while "gcaps_waiting_requests 1" not in client.get("/metrics").text:
        pass
    refused(client.post("/predict", json={"smiles": "C"}), 503, "too many requests", "busy")
    let.set()
    first.join()
    assert client.post("/predict", json={"smiles": "C"}).status_code == 200


def test_a_bug_is_told_without_its_traceback(client_of, molecules, monkeypatch, capsys):
    from gcaps.serve.reading import Reader

    def broken(*_):
        raise RuntimeError("/secret/place")

    client = client_of(molecules)
    monkeypatch.setattr(Reader, "of_smiles", broken)
    error = refused(client.post("/predict", json={"smiles": "C"}), 500)
    assert "secret" not in error.message
    assert "/secret/place" in capsys.readouterr().err


def bomb():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X_A.txt", b"1, 2\n" * 8_000_000)
    return content.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "status", "words"),
    [
        ("", b"C", 422, "name"),
        ("a.exe", b"MZ", 415, "'a.exe' is of no format"),
        ("a.parquet", b"PAR1", 415, "no format"),
        ("a", b"C", 415, "no format"),
        ("a.csv", b"", 422, "a.csv"),
        ("../../etc/passwd.csv", b"a,b\n1,2\n", 422, "passwd.csv"),
        ("a.csv", b"a,b\n1,2\n", 422, "a.csv"),
        ("a.csv", b"\x00\xff" * 100, 422, "a.csv"),
        ("a.graphml", b"<!DOCTYPE x [<!ENTITY a 'b'>]><graphml/>", 422, "document type"),
        ("a.graphml", b"<graphml>" * 5000, 422, "a.graphml"),
        ("a.json", b"[" * 5000, 422, "levels of brackets"),
        ("a.json", b"{}", 422, "a.json"),
        ("a.zip", b"PK\x03\x04nothing", 422, "not a complete zip"),
        ("a.csv.gz", gzip.compress(b"smiles\n" + b"CCCCCC\n" * 30_000_000, 9), 422, "unpacks to"),
        ("a.sdf", b"not a mol block\n$$$$\n", 422, ""),
        ("a.txt", b"C" * 25_000, 422, "characters"),
    ],
)
def test_a_hostile_file(client, name, content, status, words):
    refused(client.post("/predict/file", params={"name": name}, content=content), status, words)


def test_a_zip_bomb(client):
    refused(client.post("/predict/file", params={"name": "x.zip"}, content=bomb()), 422)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("coverage=2", "coverage"),
        ("coverage=x", "coverage"),
        ("neighbors=-1", "neighbors"),
        ("unknown=1", "unknown"),
        ("by_class=maybe", "by_class"),
    ],
)
def test_a_query_that_is_wrong(client, query, words):
    refused(client.post(f"/predict/file?name=a.smi&{query}", content=b"CC"), 422, words)


def test_explanations_of_what_is_not_there(client):
    refused(client.post("/explain", json={}), 422, 'give "smiles" or "graph"')
    refused(client.post("/explain", json={"smiles": "bad!"}), 422, "not a SMILES")
    refused(client.post("/explain", json={"smiles": "CC", "target": "x"}), 422, "no target 'x'")
    refused(client.post("/explain", json={"smiles": "CC", "method": "magic"}), 422, "method")
    refused(client.post("/explain/file?name=a.smi&row=7", content=b"CC"), 422, "no row 7")


def test_smiles_for_a_model_of_other_graphs(client_of, mutag):
    refused(client_of(mutag).post("/predict", json={"smiles": "CC"}), 422, "no molecules", "no_molecules")


def test_a_threshold_for_more_than_two_classes_and_by_class_for_values(client_of):
    import numpy as np

    import gcaps

    texts = [f"{'C' * n}" for n in range(1, 13)]
    model = gcaps.estimators.make_estimator("ecfp", {"n_estimators": 2}).fit(texts, np.arange(12) % 3)
    refused(client_of(model).post("/predict", json={"smiles": "C", "threshold": 0.5}), 422, "two classes")
