"""A part of ``make faults`` in every run of the tests: inputs and mutants. Trials with processes are left to it."""

import random

import pytest

from tests.faults.__main__ import mutants
from tests.faults.bases import make_bases
from tests.faults.corpus import corpus
from tests.faults.runner import classify, mutated, run

BAD = ("traceback", "foreign", "hang", "crash")
INPUTS = 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    make_bases(folder / "bases")
    return folder


def test_there_are_more_than_900_inputs(folder, tmp_path):
    (tmp_path / "bases").symlink_to(folder / "bases")
    requests = list(corpus(tmp_path))
    assert len(requests) >= 900
    assert len({request["name"] for request in requests}) > 0.9 * len(requests)
    chosen = random.Random(0).sample([r for r in requests if r["do"] != "verb" or r.get("out")], INPUTS)
    found = [(request, outcome) for request, outcome in run(chosen, tmp_path, 1)]
    assert len(found) == INPUTS
    assert [(request["name"], outcome) for request, outcome in found if outcome["kind"] in BAD] == []
    assert [request["name"] for request, outcome in found if request["wrong"] and outcome["kind"] == "accepted"] == []
    assert [request["name"] for request, outcome in found if outcome.get("partial")] == []


def test_mutants_of_every_file_are_read_or_refused(folder):
    outcomes = [(r["name"], o) for r, o in run(mutants(folder / "bases", 600), folder, 1)]
    assert sum(sum(outcome["tally"].values()) for _, outcome in outcomes if outcome["kind"] == "tally") >= 500
    assert [(name, outcome) for name, outcome in outcomes if outcome["kind"] != "tally"] == []


def test_the_harness_survives_and_reports_what_it_looks_for(folder):
    request = {"do": "verb", "name": "unknown verb", "arguments": ["nothing"], "wrong": True}
    kill = {"do": "nothing", "name": "an action that fails", "wrong": True}
    kinds = {r["name"]: o["kind"] for r, o in run([request, kill], folder, 1)}
    assert kinds == {"unknown verb": "refused", "an action that fails": "foreign"}

    def foreign():
        raise KeyError("x")

    assert classify(foreign)[0] == "foreign"
    assert mutated(b"abc", random.Random(1)) == mutated(b"abc", random.Random(1))
