"""Requests that schemathesis makes from the server's own description are answered as the description says."""

import urllib.request

import pytest

schemathesis = pytest.importorskip("schemathesis")
from hypothesis import HealthCheck, given, settings  # noqa: E402

CHECKS = schemathesis.checks
AS_DESCRIBED = [
    CHECKS.not_a_server_error,
    CHECKS.status_code_conformance,
    CHECKS.content_type_conformance,
    CHECKS.response_schema_conformance,
    CHECKS.negative_data_rejection,
    CHECKS.unsupported_method,
]


OPERATIONS = {
    "/model": "GET",
    "/health": "GET",
    "/metrics": "GET",
    "/predict": "POST",
    "/predict/file": "POST",
    "/explain": "POST",
    "/explain/file": "POST",
}
BODIES = [path for path, method in OPERATIONS.items() if method == "POST"]
SETTINGS = settings(
    max_examples=15, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module")
def described(running):
    return schemathesis.openapi.from_url(f"{running.url}/openapi.json")


@pytest.mark.parametrize(
    ("path", "mode"),
    [(path, mode) for path in OPERATIONS for mode in schemathesis.GenerationMode if mode.is_positive or path in BODIES],
)
def test_every_operation_answers_as_it_is_described(described, path, mode):
    operation = described[path][OPERATIONS[path]]
    answered = []

    @SETTINGS
    @given(operation.as_strategy(generation_mode=mode))
    def ask(case):
        answered.append(case.call_and_validate(checks=AS_DESCRIBED).status_code)

    ask()
    assert answered
    assert max(answered) < 500


def test_examples_of_the_description_are_answered(running):
    with urllib.request.urlopen(f"{running.url}/openapi.json") as answer:
        assert answer.headers["content-type"] == "application/json"
    _, document = running.ask("/openapi.json")
    schemas = document["components"]["schemas"]
    for path, kind in (("/predict", "PredictRequest"), ("/explain", "ExplainRequest")):
        (example,) = schemas[kind]["examples"]
        assert running.ask(path, example)[0] == 200
    assert set(document["paths"]) == set(OPERATIONS)
