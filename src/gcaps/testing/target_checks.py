"""Checks of what classifiers and regressors on graphs make of targets and sample weights; see :mod:`.checks`."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import replace
from typing import Any
from unittest import SkipTest

import numpy as np
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import get_tags

from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet
from gcaps.testing.checks import (
    TEST,
    check,
    examples,
    fitted,
    made_for,
    predicts,
    raises,
    require_same,
    results,
    takes_weights,
)

CLASS_WORDS = ("class",)
"""A message about too few classes has this word."""


def _has_class_weight(estimator: Any) -> bool:
    return is_classifier(estimator) and "class_weight" in estimator.get_params()


def _is_multilabel(estimator: Any) -> bool:
    return is_classifier(estimator) and bool(get_tags(estimator).classifier_tags.multi_label)


def _three_classes(estimator: Any) -> tuple[GraphSet, Array]:
    graphs, _ = made_for(estimator, 24, classes=3, seed=1)
    assert graphs.y is not None
    return graphs, graphs.y


def _labels(estimator: Any) -> tuple[GraphSet, Array]:
    """Return graphs and two columns of binary targets."""
    graphs, y = examples(estimator)
    return graphs, np.stack([y, np.arange(len(y)) // 2 % 2], axis=1)


@check(is_classifier)
def check_classifiers_train(estimator: Any) -> None:
    """Two and three classes are learned; shapes, probabilities, decision values and ``score`` fit together."""
    for graphs, y in (examples(estimator), _three_classes(estimator)):
        model = clone(estimator).fit(graphs, y)
        count = len(np.unique(y))
        np.testing.assert_array_equal(model.classes_, np.unique(y))
        found = model.predict(graphs)
        assert found.shape == y.shape
        assert model.score(graphs, y) == np.mean(found == y)
        if not get_tags(estimator).classifier_tags.poor_score:
            assert np.mean(found == y) > 1 / count, f"accuracy {np.mean(found == y):.2f} of training graphs"
        if hasattr(model, "predict_proba"):
            probabilities = model.predict_proba(graphs)
            assert probabilities.shape == (len(y), count)
            assert (probabilities >= 0).all()
            np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
            np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], found)
        if hasattr(model, "predict_log_proba"):
            np.testing.assert_allclose(np.exp(model.predict_log_proba(graphs)), model.predict_proba(graphs), rtol=1e-5)
        with raises(ValueError, "y of another length", "each graph", "inconsistent", "length"):
            clone(estimator).fit(graphs, y[:-1])


@check(is_classifier)
def check_classifiers_predictions(estimator: Any) -> None:
    """``predict`` returns the class with the largest decision value, for classes that are words."""
    for graphs, codes in (examples(estimator), _three_classes(estimator)):
        names = np.array(["one", "two", "three"])
        model = clone(estimator).fit(graphs, names[codes])
        np.testing.assert_array_equal(model.classes_, np.unique(names[codes]))
        if not hasattr(model, "decision_function"):
            continue
        values = model.decision_function(graphs)
        count = len(model.classes_)
        assert values.shape == ((len(codes),) if count == 2 else (len(codes), count))
        best = (values.ravel() > 0).astype(int) if count == 2 else values.argmax(axis=1)
        np.testing.assert_array_equal(model.predict(graphs), model.classes_[best])


@check(is_classifier)
def check_classifiers_classes(estimator: Any) -> None:
    """Classes may be strings, booleans or any integers; predictions have their type, and probabilities agree."""
    graphs, y = examples(estimator)
    expected = clone(estimator).fit(graphs, y).predict(graphs)
    for names in (np.array(["a", "b"], dtype=object), np.array([False, True]), np.array([-1, 7])):
        model = clone(estimator).fit(graphs, names[y])
        assert model.classes_.tolist() == names.tolist()
        found = model.predict(graphs)
        assert found.dtype.kind == (model.classes_.dtype.kind)
        np.testing.assert_array_equal(found, names[expected])
    reverse = clone(estimator).fit(graphs, np.array(["b", "a"])[y])
    assert reverse.classes_.tolist() == ["a", "b"]


@check(is_classifier)
def check_classifiers_one_label(estimator: Any) -> None:
    """Graphs of one class give that class, or a ValueError that speaks of classes."""
    graphs, y = examples(estimator)
    with raises(ValueError, "fit on one class", *CLASS_WORDS, may_pass=True):
        model = clone(estimator).fit(graphs, np.zeros_like(y))
        np.testing.assert_array_equal(model.predict(graphs), np.zeros_like(y))


@check(lambda estimator: is_classifier(estimator) and takes_weights(estimator))
def check_classifiers_one_label_sample_weights(estimator: Any) -> None:
    """Weights that leave one class give that class, or a ValueError that speaks of classes."""
    graphs, y = examples(estimator)
    with raises(ValueError, "weights that leave one class", *CLASS_WORDS, may_pass=True):
        model = clone(estimator).fit(graphs, y, sample_weight=(y == 1).astype(float))
        np.testing.assert_array_equal(model.predict(graphs), np.ones_like(y))


@check(is_classifier)
def check_classifiers_regression_target(estimator: Any) -> None:
    """Real numbers as targets raise a ValueError."""
    graphs, y = examples(estimator)
    with raises(ValueError, "real targets", "real number", "unknown label type", "continuous"):
        clone(estimator).fit(graphs, y + np.linspace(0, 0.5, len(y)))


@check(lambda estimator: is_classifier(estimator) and not get_tags(estimator).classifier_tags.multi_class)
def check_classifier_not_supporting_multiclass(estimator: Any) -> None:
    """A classifier of two classes raises a ValueError for three."""
    with raises(ValueError, "three classes", *CLASS_WORDS):
        clone(estimator).fit(*_three_classes(estimator))


@check(lambda estimator: is_classifier(estimator) and hasattr(estimator, "decision_function"))
def check_decision_proba_consistency(estimator: Any) -> None:
    """Probabilities of the second class rise with its decision value."""
    graphs, y = examples(estimator)
    model = clone(estimator).fit(graphs, y)
    order = np.argsort(model.decision_function(graphs), kind="stable")
    assert (np.diff(model.predict_proba(graphs)[order, 1]) >= -1e-10).all()


@check(_has_class_weight)
def check_class_weight_classifiers(estimator: Any) -> None:
    """A class of a large weight is predicted more often than with equal weights, or always."""
    graphs, y = _hard(estimator)
    for name in (0, 1):
        weight = {name: 1000.0, 1 - name: 1e-4}
        found = clone(estimator).set_params(class_weight=weight).fit(graphs, y)
        assert np.mean(found.predict(graphs) == name) > 0.87, f"class_weight={weight} predicts {name} too seldom"


@check(_has_class_weight)
def check_class_weight_balanced_classifiers(estimator: Any) -> None:
    """``class_weight="balanced"`` is the same as the weights n / (classes · graphs of the class)."""
    graphs, y = _hard(estimator)
    keep = np.sort(np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:4]]))
    graphs, y = graphs[keep], y[keep]
    weight = {int(name): float(len(y) / (2 * np.sum(y == name))) for name in (0, 1)}
    balanced = clone(estimator).set_params(class_weight="balanced").fit(graphs, y)
    given = clone(estimator).set_params(class_weight=weight).fit(graphs, y)
    require_same(results(balanced, graphs), results(given, graphs), "class_weight='balanced'")


def _hard(estimator: Any) -> tuple[GraphSet, Array]:
    """Return graphs whose classes tell nothing about them."""
    graphs, y = examples(estimator)
    return graphs, np.arange(len(y)) // 2 % 2


@check(_is_multilabel)
def check_classifier_multioutput(estimator: Any) -> None:
    """Several binary targets are learned together; every column of the results belongs to a column of y."""
    graphs, y = _labels(estimator)
    model = clone(estimator).fit(graphs, y)
    assert model.predict(graphs).shape == y.shape
    assert isinstance(model.score(graphs, y), float)


@check(_is_multilabel)
def check_classifiers_multilabel_representation_invariance(estimator: Any) -> None:
    """Several binary targets may be an array of any numbers or a list of lists."""
    graphs, y = _labels(estimator)
    expected = clone(estimator).fit(graphs, y).predict(graphs)
    for form in (y.tolist(), y.astype(np.float64), y.astype(bool), [list(row) for row in y]):
        found = clone(estimator).fit(graphs, form).predict(graphs)
        np.testing.assert_array_equal(found.astype(int), expected)


@check(_is_multilabel)
def check_classifiers_multilabel_output_format_predict(estimator: Any) -> None:
    """``predict`` of several binary targets has the shape and type of y."""
    graphs, y = _labels(estimator)
    found = clone(estimator).fit(graphs, y).predict(graphs)
    assert isinstance(found, np.ndarray)
    assert (found.shape, found.dtype.kind) == (y.shape, y.dtype.kind)
    assert set(np.unique(found)) <= {0, 1}


@check(_is_multilabel)
def check_classifiers_multilabel_output_format_predict_proba(estimator: Any) -> None:
    """``predict_proba`` of several binary targets is an array of the second class, or a list of two columns each."""
    graphs, y = _labels(estimator)
    model = clone(estimator).fit(graphs, y)
    found = model.predict_proba(graphs)
    if isinstance(found, list):
        assert [one.shape for one in found] == [(len(y), 2)] * y.shape[1]
        found = np.stack([one[:, 1] for one in found], axis=1)
    assert found.shape == y.shape
    assert ((found >= 0) & (found <= 1)).all()
    np.testing.assert_array_equal(model.predict(graphs), (found > 0.5).astype(int))


@check(lambda estimator: _is_multilabel(estimator) and hasattr(estimator, "decision_function"))
def check_classifiers_multilabel_output_format_decision_function(estimator: Any) -> None:
    """``decision_function`` of several binary targets has the shape of y."""
    graphs, y = _labels(estimator)
    model = clone(estimator).fit(graphs, y)
    assert model.decision_function(graphs).shape == y.shape


@check(is_regressor)
def check_regressors_train(estimator: Any) -> None:
    """Real targets are learned; ``predict`` has y's shape, ``score`` is R², and y of another length is refused."""
    graphs, y = examples(estimator)
    model = clone(estimator).fit(graphs, y)
    found = model.predict(graphs)
    assert found.shape == y.shape
    assert found.dtype.kind == "f"
    score = 1 - np.mean((found - y) ** 2) / np.var(y)
    np.testing.assert_allclose(model.score(graphs, y), score, rtol=1e-5, atol=1e-6)
    if not get_tags(estimator).regressor_tags.poor_score:
        assert score > 0, f"R² {score:.2f} of training graphs"
    with raises(ValueError, "y of another length", "each graph", "inconsistent", "length"):
        clone(estimator).fit(graphs, y[:-1])


@check(is_regressor)
def check_regressors_int(estimator: Any) -> None:
    """Integer targets are fitted as the same numbers in floating point."""
    graphs, y = examples(estimator)
    whole = np.rint(y).astype(int)
    one, two = (clone(estimator).fit(graphs, whole.astype(kind)).predict(graphs) for kind in (int, float))
    np.testing.assert_array_equal(one, two)


@check(is_regressor)
def check_regressors_no_decision_function(estimator: Any) -> None:
    """A regressor has neither ``decision_function`` nor ``predict_proba``."""
    for name in ("decision_function", "predict_proba", "predict_log_proba"):
        assert not hasattr(estimator, name), f"a regressor has {name}"


@check(lambda estimator: is_regressor(estimator) and get_tags(estimator).target_tags.multi_output)
def check_regressor_multioutput(estimator: Any) -> None:
    """Several real targets are fitted together; ``predict`` has y's shape."""
    graphs, y = examples(estimator)
    both = np.stack([y, -y + 3], axis=1)
    found = clone(estimator).fit(graphs, both).predict(graphs)
    assert (found.shape, found.dtype.kind) == (both.shape, "f")


@check(predicts)
def check_supervised_y_2d(estimator: Any) -> None:
    """One column of targets gives the predictions of the same targets in one dimension, or a ValueError."""
    graphs, y = examples(estimator)
    expected = clone(estimator).fit(graphs, y).predict(graphs)
    with raises(ValueError, "y as a column", "shape", "column", may_pass=True):
        found = clone(estimator).fit(graphs, y[:, None]).predict(graphs)
        np.testing.assert_allclose(np.ravel(found).astype(float), expected.astype(float), rtol=1e-5)


@check(predicts)
def check_supervised_y_no_nan(estimator: Any) -> None:
    """Infinite targets raise a ValueError; NaN may be a missing target."""
    graphs, y = examples(estimator)
    with raises(ValueError, "an infinite target"):
        clone(estimator).fit(graphs, np.where(np.arange(len(y)) == 3, np.inf, y.astype(float)))


@check(lambda estimator: predicts(estimator) and get_tags(estimator).target_tags.required)
def check_requires_y_none(estimator: Any) -> None:
    """Graphs without targets raise a ValueError that asks for y."""
    graphs, _ = examples(estimator)
    with raises(ValueError, "fit without y", "y"):
        clone(estimator).fit(graphs, None)


@check(takes_weights)
def check_sample_weights_list(estimator: Any) -> None:
    """Weights may be a list; weights of one are the same as none."""
    graphs, y = examples(estimator)
    plain = results(clone(estimator).fit(graphs, y), graphs)
    require_same(results(clone(estimator).fit(graphs, y, sample_weight=[1.0] * len(y)), graphs), plain, "weights of 1")


class _NotAnArray:
    """Something that NumPy makes an array of."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.values.astype(dtype or self.values.dtype)


@check(takes_weights)
def check_sample_weights_not_an_array(estimator: Any) -> None:
    """Weights may be any object that NumPy makes an array of."""
    graphs, y = examples(estimator)
    clone(estimator).fit(graphs, y, sample_weight=_NotAnArray(np.ones(len(y))))


@check(takes_weights)
def check_sample_weights_pandas_series(estimator: Any) -> None:
    """Weights and targets may be pandas series, whose index is ignored."""
    if importlib.util.find_spec("pandas") is None:
        raise SkipTest("pandas is not installed")
    pd: Any = importlib.import_module("pandas")
    graphs, y = examples(estimator)
    index = np.arange(len(y))[::-1]
    model = clone(estimator).fit(graphs, pd.Series(y, index), sample_weight=pd.Series(np.ones(len(y)), index))
    plain = clone(estimator).fit(graphs, y, sample_weight=np.ones(len(y)))
    require_same(results(model, graphs), results(plain, graphs), "pandas series")


@check(takes_weights)
def check_sample_weights_shape(estimator: Any) -> None:
    """Weights of another length or of two dimensions raise a ValueError."""
    graphs, y = examples(estimator)
    for wrong in (np.ones(len(y) - 1), np.ones((len(y), 2))):
        with raises(ValueError, f"weights of shape {wrong.shape}", "weight"):
            clone(estimator).fit(graphs, y, sample_weight=wrong)


@check(takes_weights)
def check_sample_weights_not_overwritten(estimator: Any) -> None:
    """``fit`` leaves the weights as they are."""
    graphs, y = examples(estimator)
    weight = np.linspace(0.5, 2.0, len(y))
    before = weight.copy()
    clone(estimator).fit(graphs, y, sample_weight=weight)
    np.testing.assert_array_equal(weight, before)


@check(takes_weights)
def check_all_zero_sample_weights_error(estimator: Any) -> None:
    """Weights that are all zero raise a ValueError."""
    graphs, y = examples(estimator)
    with raises(ValueError, "weights of zero", "weight"):
        clone(estimator).fit(graphs, y, sample_weight=np.zeros(len(y)))


@check(takes_weights)
def check_sample_weight_equivalence_on_dense_data(estimator: Any) -> None:
    """A weight of zero is the same as leaving the graph out."""
    graphs, y = examples(estimator)
    keep = np.arange(len(y)) % 5 != 2
    weighted = clone(estimator).fit(graphs, y, sample_weight=keep.astype(float))
    removed = clone(estimator).fit(graphs[keep], y[keep])
    require_same(results(weighted, graphs), results(removed, graphs), "a weight of 0")


@check(takes_weights)
def check_sample_weight_repetition(estimator: Any) -> None:
    """A graph of weight two counts as two graphs."""
    graphs, y = examples(estimator)
    times = 1 + (np.arange(len(y)) % 3 == 0)
    weighted = clone(estimator).fit(graphs, y, sample_weight=times.astype(float))
    repeated = np.repeat(np.arange(len(y)), times)
    model = clone(estimator).fit(graphs[repeated], y[repeated])
    for name in {"predict", "predict_proba", "decision_function"} & set(dir(model)):
        require_same(results(weighted, graphs, name), results(model, graphs, name), "a weight of 2")


@check(takes_weights)
def check_metadata_routing(estimator: Any) -> None:
    """``set_fit_request(sample_weight=True)`` and ``set_score_request`` are understood by scikit-learn's routing."""
    with config_context(enable_metadata_routing=True):
        model = clone(estimator).set_fit_request(sample_weight=True)
        assert model.get_metadata_routing().fit.requests["sample_weight"] is True
        if hasattr(model, "set_score_request"):
            model.set_score_request(sample_weight=True)
            assert clone(model).get_metadata_routing().score.requests["sample_weight"] is True


@check(predicts)
def check_graphs_with_their_own_targets(estimator: Any) -> None:
    """A GraphSet's own targets are fitted when y is not given."""
    graphs, y = examples(estimator)
    model, new = fitted(estimator)
    own = clone(estimator).fit(replace(graphs, y=y)[:-TEST])
    require_same(results(own, new), results(model, new), "the graphs' own targets")
