"""The list of kernels of ``python -m gcaps.compile``: complete for a training and a prediction, and decodable."""

import json
import subprocess
import sys

import numba
import numpy as np
import pytest

from gcaps.compile import PARTS, dispatcher_of, is_compiled, kernels, require
from gcaps.compile.types import decode, encode
from gcaps.nn.cpu.state import Norm, Output


@pytest.mark.parametrize(
    "value",
    [
        np.zeros((2, 3), np.float32),
        np.zeros((2, 3))[:, 1:],
        np.zeros(3, np.int32),
        np.broadcast_to(np.zeros(2), (3, 2)),
        1,
        0.5,
        True,
        (np.zeros(1), np.zeros(1)),
        (np.zeros(1), 1),
        Output(np.zeros((1, 1)), np.zeros((1, 1))),
        Norm(np.zeros((1, 1)), *(np.zeros(1) for _ in range(4)), 0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_types_survive_json(value):
    given = numba.typeof(value)
    assert decode(json.loads(json.dumps(encode(given)))) == given


def test_every_listed_kernel_exists_and_its_types_can_be_read():
    listed = kernels()
    assert {one.part for one in listed} == set(PARTS)
    for one in listed:
        assert dispatcher_of(one.name).py_func.__code__.co_argcount == len([decode(given) for given in one.types])


def test_each_kernel_of_the_default_network_is_compiled_for_few_kinds_of_arguments():
    names = [one.name for one in kernels(["prediction", "training"])]
    assert max(names.count(name) for name in names) <= 2


TRAINING = """
import json, sys
from dataclasses import replace
from gcaps.compile.record import used
from gcaps.estimators.registry import make_estimator
from gcaps.testing import example_graphs
graphs, _ = example_graphs(20)
model = make_estimator("gcaps", {"epochs": 1}).fit(replace(graphs, x=None))
model.predict_proba(graphs)
print(json.dumps([[name, types] for name, types, _ in used()]))
"""


def test_a_training_and_a_prediction_call_no_kernel_that_is_not_listed():
    found = subprocess.run([sys.executable, "-c", TRAINING], check=True, stdout=subprocess.PIPE, text=True)
    called = json.loads(found.stdout.splitlines()[-1])
    listed = [[one.name, one.types] for one in kernels(["prediction", "training"])]
    assert called
    assert [one for one in called if one not in listed] == []


def test_what_is_waited_for_is_said_once(monkeypatch, capsys):
    done = set()
    monkeypatch.setattr("gcaps.compile.is_compiled", lambda parts: set(parts) <= done)
    monkeypatch.setattr("gcaps.compile.compile_kernels", lambda parts, report: done.update(parts) or len(parts))
    require(["prediction"])
    assert "compiled 1 kernels for this processor" in " ".join(capsys.readouterr().err.split())
    require(["prediction"])
    assert capsys.readouterr().err == ""


def test_kernels_that_cannot_be_compiled_ahead_stop_nothing(monkeypatch, capsys):
    def fail(parts, report):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gcaps.compile.is_compiled", lambda parts: False)
    monkeypatch.setattr("gcaps.compile.compile_kernels", fail)
    require(["prediction"])
    assert "each is compiled when it is called" in " ".join(capsys.readouterr().err.split())


def test_kernels_count_as_compiled_only_for_this_code_and_processor(monkeypatch, tmp_path):
    monkeypatch.setattr("gcaps.compile.folder", lambda: tmp_path)
    assert not is_compiled(["prediction"])
    from gcaps.compile import _mark

    _mark(["prediction"])
    assert is_compiled(["prediction"])
    assert not is_compiled(["prediction", "training"])
    monkeypatch.setattr("gcaps.compile.state", lambda: "another")
    assert not is_compiled(["prediction"])
