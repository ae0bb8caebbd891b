"""Targets: the task that they pose, their encoding for training, and the way back."""

import json

import numpy as np
import pytest

from gcaps.data.targets import Classes, Target, has_target, infer_task, resolve_task, target_array
from gcaps.errors import ConfigError, DataError

NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, None, 3], [1.0, NAN, 3.0]),
        ([True, None, False], [1.0, NAN, 0.0]),
        ([2.5, NAN, 1], [2.5, NAN, 1.0]),
        (["a", None, "b"], ["a", "", "b"]),
        (["a", "", "b"], ["a", "", "b"]),
        ([[1, 0], None, [NAN, 1]], [[1, 0], [NAN, NAN], [NAN, 1]]),
        ([(1.5, 2.0), (3.0, None)], [[1.5, 2.0], [3.0, NAN]]),
    ],
)
def test_a_missing_value_stays_missing(values, expected):
    found = target_array(values)
    np.testing.assert_array_equal(found, np.array(expected))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1, 2], [1, 2, 3]], r"graphs\[0\]: has 2 targets, others have 3"),
        ([[1, 2], 3], r"graphs\[1\]: has one target while others have several"),
        ([[1, "a"]], r"graphs\[0\]: has the label 'a' while graphs\[0\] has a number"),
    ],
)
def test_rows_that_do_not_agree_are_named(values, message):
    with pytest.raises(DataError, match=message):
        target_array(values)


def test_no_values_at_all_are_no_targets():
    assert target_array([None, NAN, ""]) is None


def test_a_graph_has_a_target_if_any_of_its_values_is_known():
    np.testing.assert_array_equal(has_target(np.array([1.0, NAN])), [True, False])
    np.testing.assert_array_equal(has_target(np.array([[NAN, 1.0], [NAN, NAN]])), [True, False])
    np.testing.assert_array_equal(has_target(np.array(["a", ""])), [True, False])


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (["toxic", "safe"], "classification"),
        ([True, False], "classification"),
        ([0, 1, 1, 0], "classification"),
        ([1.0, NAN, 2.0], "classification"),
        (list(range(30)) * 10, "classification"),
        (list(range(30)), "regression"),
        ([0.5, 1.0], "regression"),
        ([[0, 1], [1, 1]], "multilabel"),
        ([[0, NAN], [1, 1]], "multilabel"),
        ([[True, False]], "multilabel"),
        ([["yes", "no"], ["no", ""]], "multilabel"),
        ([[0.5, 1.0], [2.0, NAN]], "regression"),
        ([[1], [2]], "classification"),
        ([[1.5], [2]], "regression"),
    ],
)
def test_the_values_tell_the_task(y, task):
    assert infer_task(np.array(y)).task == task
    assert resolve_task(np.array(y)).task == task
    assert infer_task(np.array(y)).reason


def test_a_task_may_be_asked_for():
    assert resolve_task(np.array([0, 1]), "regression").task == "regression"
    with pytest.raises(ConfigError, match="there is no task 'ranking'; there are auto, classification, multilabel"):
        resolve_task(np.array([0, 1]), "ranking")


@pytest.mark.parametrize(
    ("y", "task", "message"),
    [
        ([1, 1], "classification", "all graphs have the label 1; a classifier needs at least two classes"),
        ([0.5, 1.5], "classification", "real numbers, not classes; a regressor takes them"),
        ([[1, 2], [3, 4]], "classification", "has 2 columns; classification takes one"),
        ([[0, 1], [2, 1]], "multilabel", "has 3 different values; targets of a multilabel task are binary"),
        ([[1, 1], [1, 1]], "multilabel", "all known values are 1; a multilabel task has two"),
        (["a", "b"], "regression", "contains strings; regression takes numbers"),
        ([1.0, np.inf], "regression", "contains infinity"),
        ([NAN, NAN], "regression", "contains no value: all targets are missing"),
        (["", ""], "classification", "contains no value: all targets are missing"),
    ],
)
def test_targets_that_do_not_pose_the_task_are_refused(y, task, message):
    with pytest.raises(DataError, match=message):
        Target.of(np.array(y), task)


@pytest.mark.parametrize(
    "y", [["b", "a", "c"], [True, False, True], [7, -1, 7], [3.0, 5.0, 3.0], [10**12, 5, 5]], ids=str
)
def test_classes_of_any_type_come_back_as_they_were(y):
    y = np.array(y)
    target = Target.of(y, "classification")
    scores = np.eye(target.outputs)[target.encode(y)]
    np.testing.assert_array_equal(target.decode(scores), y)


def test_an_unknown_or_missing_class_has_no_number():
    target = Target.of(np.array([1, 2, 2]), "classification")
    np.testing.assert_array_equal(target.encode(np.array([2.0, NAN, 3.0])), [1, -1, -1])
    np.testing.assert_array_equal(Classes(np.array(["a", "b"])).encode(np.array(["b", "", "c"])), [1, -1, -1])


def test_binary_targets_are_zeros_and_ones_with_nan_for_missing():
    y = np.array([["yes", "no"], ["", "yes"]])
    target = Target.of(y, "multilabel", ["A", "B"])
    np.testing.assert_array_equal(target.encode(y), [[1, 0], [NAN, 1]])
    np.testing.assert_array_equal(target.decode(np.array([[0.9, 0.1], [0.2, 0.6]])), [["yes", "no"], ["no", "yes"]])
    assert target.names == ("A", "B")
    assert target.outputs == 2


def test_regression_targets_are_standardised_and_given_back_in_their_units():
    y = np.array([[10.0, 3.0], [30.0, NAN], [20.0, 3.0]])
    target = Target.of(y, "regression")
    encoded = target.encode(y)
    np.testing.assert_allclose(np.nanmean(encoded, axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(encoded[:, 0]), 1)
    np.testing.assert_array_equal(encoded[[0, 2], 1], 0)  # a constant target is not divided by zero
    np.testing.assert_allclose(target.in_units(encoded), y)
    assert target.decode(target.in_units(encoded)).shape == (3, 2)
    single = Target.of(y[:, 0], "regression")
    np.testing.assert_allclose(single.decode(single.in_units(single.encode(y[:, 0]))), y[:, 0])


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (np.array(["b", "a"]), "classification"),
        (np.array([1, 2]), "classification"),
        (np.array([[True, False]]), "multilabel"),
        (np.array([1.5, 2.5]), "regression"),
        (np.array([[1.5, 2.5], [1.0, NAN]]), "regression"),
    ],
)
def test_a_target_survives_json(y, task):
    target = Target.of(y, task)
    again = Target.from_dict(json.loads(json.dumps(target.to_dict())))
    for name, value in vars(target).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(again, name))
            assert value.dtype == getattr(again, name).dtype
        else:
            assert value == getattr(again, name)
