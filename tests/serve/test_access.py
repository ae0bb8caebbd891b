"""Who may use a server: token, names of the host, and what browsers are told."""

import pytest

from gcaps.serve import ServerSettings
from gcaps.serve.guard import PUBLIC, hosts_of
from tests.serve.test_refusals import refused

PATHS = {"GET": ("/model", "/metrics", "/openapi.json"), "POST": ("/predict", "/predict/file", "/explain")}


def test_with_a_token_only_the_page_and_health_are_public(client_of, molecules):
    client = client_of(molecules, {"token": "secret word"})
    for method, paths in PATHS.items():
        for path in paths:
            for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": "secret word"},
                          {"authorization": "Basic secret word"}, {"authorization": "Bearer "}):  # fmt: skip
                answer = client.request(method, path, headers=given)
                refused(answer, 401, "Bearer TOKEN", "no_token")
                assert answer.headers["www-authenticate"] == "Bearer"
    for path in PUBLIC:
        assert client.get(path).status_code == 200
        assert "the-model" not in client.get(path).text, "the public pages tell nothing of the model"
    right = {"authorization": "bearer secret word"}
    assert client.post("/predict", json={"smiles": "CC"}, headers=right).status_code == 200
    assert client.get("/model", headers=right).json()["name"] == "the-model"
    assert client.get("/openapi.json", headers=right).json()["components"]["securitySchemes"]


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", ""])
def test_other_names_of_the_host_are_refused(client, host):
    refused(client.get("/model", headers={"host": host}), 421, "--allow-host", "unknown_host")


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8000", "127.0.0.1:1", "[::1]:9", "LOCALHOST", "models.example"]
)
def test_names_that_are_known(client_of, molecules, host):
    client = client_of(molecules, {"allow_hosts": ("models.example",)})
    assert client.get("/health", headers={"host": host}).status_code == 200


def test_a_server_on_all_addresses_is_reached_by_numbers_but_not_by_any_name(client_of, molecules):
    client = client_of(molecules, {"host": "0.0.0.0"})
    assert client.get("/health", headers={"host": "192.168.1.7:8000"}).status_code == 200
    refused(client.get("/health", headers={"host": "evil.example"}), 421)
    assert "*" in hosts_of(ServerSettings(allow_hosts=("*",)))


def test_every_answer_has_the_headers_that_protect_a_page(client):
    for answer in (
        client.get("/"),
        client.get("/nothing"),
        client.post("/predict", json={"smiles": "C"}),
        client.get("/", headers={"host": "x"}),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in answer.headers


def test_a_page_elsewhere_may_not_ask(client):
    answer = client.options(
        "/predict", headers={"origin": "https://evil.example", "access-control-request-method": "POST"}
    )
    refused(answer, 403, "other sites", "foreign_origin")
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("origin", "host", "status"),
    [
        ("http://localhost", "localhost", 200),
        ("http://127.0.0.1:8000", "127.0.0.1:8000", 200),
        ("https://models.example", "127.0.0.1:8000", 200),
        ("https://models.example", "models.example", 200),
        ("http://localhost:3000", "localhost:8000", 403),
        ("https://evil.example", "localhost", 403),
        ("https://evil.example", "models.example", 403),
        ("null", "localhost", 403),
        ("://", "", 421),
        ("localhost", "localhost", 403),
    ],
)
def test_pages_of_other_sites_cannot_make_the_server_work(client_of, molecules, origin, host, status):
    client = client_of(molecules, {"allow_hosts": ("models.example",)})
    headers = {"origin": origin, "host": host, "content-type": "text/plain"}
    answer = client.post("/predict", content=b'{"smiles": "CC"}', headers=headers)
    assert answer.status_code == status, answer.text
    assert ("graphs_total 1" in client.get("/metrics").text) is (status == 200)


def test_the_page_loads_nothing_from_elsewhere(client):
    for path in ("/", "/page.css", "/page.js"):
        text = client.get(path).text
        assert "//cdn" not in text
        assert "https://" not in text
        assert "onclick=" not in text.partition("use strict")[0]


def test_counters_are_those_of_what_was_asked(client):
    client.post("/predict", json={"smiles": ["CC", "CO"]})
    client.post("/predict", content=b"{")
    client.get("/wp-login.php?a=1")
    text = client.get("/metrics").text
    assert 'gcaps_requests_total{path="/predict",status="200"} 1' in text
    assert 'gcaps_requests_total{path="/predict",status="400"} 1' in text
    assert 'gcaps_requests_total{path="other",status="404"} 1' in text
    assert "gcaps_graphs_total 2" in text
    assert 'gcaps_request_seconds_bucket{path="/predict",le="+Inf"} 2' in text
    assert "wp-login" not in text
