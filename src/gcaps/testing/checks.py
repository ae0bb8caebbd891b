"""Checks of any estimator on graphs, after those of ``sklearn.utils.estimator_checks`` that take a 2-D X.

A check has the name of the scikit-learn check that it adapts. It raises an AssertionError, or whatever the estimator
raises.
"""

from __future__ import annotations

import inspect
import io
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import joblib
import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet
from gcaps.testing.graphs import example_graphs, example_molecules

Function = Callable[[Any], None]
METHODS = ("predict", "predict_proba", "decision_function", "transform")
"""Methods whose results are compared."""
TEST = 6
"""The last graphs of the examples, which are not fitted on."""


class Check(NamedTuple):
    """A check of an estimator on graphs."""

    name: str
    """As in scikit-learn, where it adapts one of its checks."""
    about: str
    """Description of the check, in one sentence."""
    run: Function
    applies: Callable[[Any], bool]
    """Whether an estimator is checked."""
    adapted: bool = True
    """False if scikit-learn's check runs unchanged, because it needs no X."""


CHECKS: dict[str, Check] = {}
"""Every check that :func:`gcaps.testing.check_graph_estimator` runs, by name."""


def check(applies: Callable[[Any], bool] = lambda estimator: True) -> Callable[[Function], Function]:
    """Register a function as a check of the estimators that ``applies`` names."""

    def register(function: Function) -> Function:
        name = function.__name__
        about = (function.__doc__ or "").split("\n\n")[0].strip()
        CHECKS[name] = Check(name, " ".join(about.split()), function, applies)
        return function

    return register


def is_transformer(estimator: Any) -> bool:
    """Whether an estimator has ``transform``."""
    return hasattr(estimator, "transform")


def predicts(estimator: Any) -> bool:
    """Whether an estimator is a classifier or a regressor."""
    return bool(is_classifier(estimator) or is_regressor(estimator))


def takes_weights(estimator: Any) -> bool:
    """Whether ``fit`` has a parameter ``sample_weight``."""
    return bool(has_fit_parameter(estimator, "sample_weight"))


def takes_any_graphs(estimator: Any) -> bool:
    """Whether an estimator takes graphs that are no molecules: whether it has no true ``needs_molecules``."""
    return not getattr(estimator, "needs_molecules", False)


def made_for(estimator: Any, count: int, classes: int = 2, seed: int = 0) -> tuple[GraphSet, Array]:
    """Return :func:`example_graphs`, or :func:`example_molecules` for an estimator that needs them."""
    make = example_graphs if takes_any_graphs(estimator) else example_molecules
    return make(count, classes, seed)


def as_list(estimator: Any, graphs: GraphSet) -> list[Any]:
    """Return a list of graphs, or of SMILES for an estimator that needs molecules."""
    return list(graphs) if takes_any_graphs(estimator) else graphs.columns["smiles"].tolist()


def examples(estimator: Any, count: int = 20, seed: int = 0) -> tuple[GraphSet, Array]:
    """Return graphs without targets of their own, and targets of the estimator's kind."""
    graphs, share = made_for(estimator, count, seed=seed)
    assert graphs.y is not None
    return replace(graphs, y=None), (10 * share if is_regressor(estimator) else graphs.y)


_fitted: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def fitted(estimator: Any) -> tuple[Any, GraphSet]:
    """Return a clone fitted on the examples but the last, and the last; each estimator is fitted once."""
    graphs, y = examples(estimator)
    if estimator not in _fitted:
        _fitted[estimator] = clone(estimator).fit(graphs[:-TEST], y[:-TEST])
    return _fitted[estimator], graphs[-TEST:]


def results(estimator: Any, X: Any, only: str | None = None) -> dict[str, Array]:
    """Return what the methods of a fitted estimator return for graphs."""
    names = METHODS if only is None else (only,)
    return {name: np.asarray(getattr(estimator, name)(X)) for name in names if hasattr(estimator, name)}


def require_same(found: dict[str, Array], expected: dict[str, Array], what: str, *, exact: bool = False) -> None:
    """Assert that results are equal, or equal up to rounding."""
    assert found.keys() == expected.keys(), f"{what}: other methods"
    for name, array in expected.items():
        if exact or array.dtype.kind not in "fc":
            np.testing.assert_array_equal(found[name], array, err_msg=f"{name}: {what}")
            continue
        # networks compute in float32, and SVMs stop at a tolerance
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5, err_msg=f"{name}: {what}")


@contextmanager
def raises(kind: Any, what: str, *words: str, may_pass: bool = False) -> Iterator[None]:
    """Assert that an exception of that kind (or one of several) is raised, whose message has one of ``words``."""
    said = None
    try:
        yield
    except kind as error:
        said = str(error)
    if said is None:
        assert may_pass, f"{what}: no error was raised"
    elif words:
        assert any(word in said.lower() for word in words), f"{what}: the message {said[:200]!r} has none of {words}"


@check()
def check_fit_score_takes_y(estimator: Any) -> None:
    """The second parameter of ``fit``, ``fit_transform`` and ``score`` is called y."""
    for name in ("fit", "score", "fit_predict", "fit_transform"):
        if callable(method := getattr(estimator, name, None)):
            names = [p for p in inspect.signature(method).parameters if p != "self"]
            assert names[1:2] == ["y"], f"{name} has the parameters {names}"


@check()
def check_estimators_overwrite_params(estimator: Any) -> None:
    """``fit`` leaves the values of all parameters as they are."""
    graphs, y = examples(estimator)
    model = clone(estimator)
    before = model.get_params()
    copy = deepcopy(before)
    model.fit(graphs, y)
    for name, value in model.get_params().items():
        assert value is before[name] or hasattr(value, "get_params"), f"fit replaced the parameter {name}"
        assert joblib.hash(value) == joblib.hash(copy[name]), f"fit changed the parameter {name}"


@check()
def check_dont_overwrite_parameters(estimator: Any) -> None:
    """Attributes that ``fit`` adds or changes begin or end with an underscore."""
    graphs, y = examples(estimator)
    model = clone(estimator)
    before = dict(vars(model))
    model.fit(graphs, y)
    public = {name: value for name, value in vars(model).items() if not (name.startswith("_") or name.endswith("_"))}
    changed = [name for name, value in public.items() if name not in before or before[name] is not value]
    assert not changed, f"fit added or changed {', '.join(changed)}"


@check()
def check_estimators_fit_returns_self(estimator: Any) -> None:
    """``fit`` returns the estimator."""
    graphs, y = examples(estimator)
    model = clone(estimator)
    assert model.fit(graphs, y) is model


@check()
def check_readonly_memmap_input(estimator: Any) -> None:
    """Graphs in read-only memory-mapped arrays are fitted, predicted and left as they are."""
    graphs, y = examples(estimator)
    model = clone(estimator).fit(graphs, y)
    with tempfile.TemporaryDirectory() as folder:
        replace(graphs, y=y).save(Path(folder) / "graphs.gset")
        mapped = GraphSet.open(Path(folder) / "graphs.gset")
        before = mapped.fingerprint()
        again = clone(estimator).fit(mapped, y)
        require_same(results(again, mapped), results(model, graphs), "memory-mapped graphs")
        assert mapped.fingerprint() == before, "the graphs were changed"


@check(lambda estimator: get_tags(estimator).requires_fit)
def check_estimators_unfitted(estimator: Any) -> None:
    """Methods raise a NotFittedError before ``fit``."""
    graphs, _ = examples(estimator)
    for name in (*METHODS, "predict_log_proba"):
        if hasattr(estimator, name):
            with raises(NotFittedError, f"{name} before fit"):
                getattr(clone(estimator), name)(graphs)


@check(takes_any_graphs)
def check_estimators_dtypes(estimator: Any) -> None:
    """Node attributes in single and double precision, or integers, are fitted and predicted."""
    graphs, y = examples(estimator)
    for dtype in (np.float32, np.float64, np.int64):
        typed = [graph._replace(x=np.rint(np.asarray(graph.x)).astype(dtype)) for graph in graphs]
        results(clone(estimator).fit(typed, y), typed)


@check()
def check_dtype_object(estimator: Any) -> None:
    """Arrays of dtype object hold graphs; other objects raise an error that names them."""
    model, new = fitted(estimator)
    require_same(results(model, as_objects(as_list(estimator, new))), results(model, new), "an array of objects")
    wrong = np.empty(2, dtype=object)
    wrong[:] = [{"foo": "bar"}] * 2
    with raises((TypeError, ValueError), "fit on dictionaries"):
        clone(estimator).fit(wrong, examples(estimator)[1][:2])


def _data_not_an_array(estimator: Any) -> None:
    """GraphSets, lists and object arrays of graphs give the same results, in ``fit`` and afterwards."""
    graphs, y = examples(estimator)
    expected = results(clone(estimator).fit(graphs, y), graphs)
    items = as_list(estimator, graphs)
    for form in (items, as_objects(items)):
        targets = y.tolist() if isinstance(form, list) else y
        found = clone(estimator).fit(form, targets)
        require_same(results(found, form), expected, f"graphs as a {type(form).__name__}")


for _name, _applies in {
    "check_classifier_data_not_an_array": is_classifier,
    "check_regressor_data_not_an_array": is_regressor,
    "check_transformer_data_not_an_array": lambda estimator: is_transformer(estimator) and not predicts(estimator),
    "check_estimators_data_not_an_array": lambda estimator: not (is_transformer(estimator) or predicts(estimator)),
}.items():
    CHECKS[_name] = Check(_name, str(_data_not_an_array.__doc__), _data_not_an_array, _applies)


def as_objects(graphs: list[Any]) -> Array:
    """Return an array of dtype object with the graphs of a list."""
    array = np.empty(len(graphs), dtype=object)
    for i, graph in enumerate(graphs):
        array[i] = graph
    return array


@check()
def check_estimators_empty_data_messages(estimator: Any) -> None:
    """No graphs at all raise a ValueError that says so, in ``fit`` and afterwards."""
    with raises(ValueError, "fit on no graphs", "no graphs", "0 sample", "empty"):
        clone(estimator).fit([], [])
    model, _ = fitted(estimator)
    for name in METHODS:
        if hasattr(model, name):
            with raises(ValueError, f"{name} of no graphs", "no graphs", "0 sample", "empty"):
                getattr(model, name)([])


@check(takes_any_graphs)
def check_estimators_nan_inf(estimator: Any) -> None:
    """NaN and infinity among node attributes raise a ValueError."""
    graphs, y = examples(estimator)
    model = clone(estimator).fit(graphs, y)
    for value in (np.nan, np.inf):
        bad = list(graphs)
        bad[1] = bad[1]._replace(x=np.full_like(bad[1].x, value))
        with raises(ValueError, f"fit with {value}", "finite", "nan", "inf"):
            clone(estimator).fit(bad, y)
        for name in METHODS:
            if hasattr(model, name):
                with raises(ValueError, f"{name} with {value}", "finite", "nan", "inf"):
                    getattr(model, name)(bad)


@check()
def check_pipeline_consistency(estimator: Any) -> None:
    """A pipeline of the estimator alone gives the estimator's results."""
    graphs, y = examples(estimator)
    model, pipeline = clone(estimator).fit(graphs, y), make_pipeline(clone(estimator)).fit(graphs, y)
    require_same(results(pipeline, graphs), results(model, graphs), "in a pipeline", exact=True)


@check()
def check_estimators_pickle(estimator: Any) -> None:
    """Estimators survive pickle, and joblib with memory-mapped arrays; results are the same bits."""
    unfitted = pickle.loads(pickle.dumps(clone(estimator)))
    assert joblib.hash(unfitted.get_params()) == joblib.hash(clone(estimator).get_params())
    model, new = fitted(estimator)
    expected = results(model, new)
    require_same(results(pickle.loads(pickle.dumps(model)), new), expected, "after pickle", exact=True)
    require_same(results(model, new), expected, "pickling changed the estimator", exact=True)
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    require_same(results(joblib.load(buffer), new), expected, "after joblib", exact=True)
    with tempfile.TemporaryDirectory() as folder:
        joblib.dump(model, Path(folder) / "model")
        mapped = joblib.load(Path(folder) / "model", mmap_mode="r")
        require_same(results(mapped, new), expected, "after joblib, memory-mapped", exact=True)
        del mapped


@check(lambda estimator: not get_tags(estimator).non_deterministic)
def check_methods_sample_order_invariance(estimator: Any) -> None:
    """Results of a graph do not depend on the order of the graphs."""
    model, new = fitted(estimator)
    order = np.random.default_rng(0).permutation(len(new))
    expected = {name: array[order] for name, array in results(model, new).items()}
    require_same(results(model, new[order]), expected, "another order")


@check(lambda estimator: not get_tags(estimator).non_deterministic)
def check_methods_subset_invariance(estimator: Any) -> None:
    """Results of a graph do not depend on the graphs beside it."""
    model, new = fitted(estimator)
    alone = [results(model, new[i : i + 1]) for i in range(len(new))]
    found = {name: np.concatenate([one[name] for one in alone]) for name in alone[0]}
    require_same(found, results(model, new), "one by one")


@check()
def check_fit1d(estimator: Any) -> None:
    """A single graph instead of a list raises a ValueError that says so."""
    graphs, y = examples(estimator)
    with raises(ValueError, "fit on one graph", "one graph", "single graph", "a list"):
        clone(estimator).fit(graphs[0], y[:1])


@check()
def check_fit2d_predict1d(estimator: Any) -> None:
    """Methods raise a ValueError that says so when they are given one graph instead of several."""
    model, new = fitted(estimator)
    for name in METHODS:
        if hasattr(model, name):
            with raises(ValueError, f"{name} of one graph", "one graph", "single graph", "a list"):
                getattr(model, name)(new[0])


@check()
def check_fit2d_1sample(estimator: Any) -> None:
    """A set of one graph is fitted, or raises a ValueError that says what is missing."""
    graphs, y = examples(estimator)
    words = ("1 graph", "one graph", "one class", "two classes", "1 sample", "one sample", "at least", "two")
    with raises(ValueError, "fit on one graph", *words, may_pass=True):
        results(clone(estimator).fit(graphs[:1], y[:1]), graphs)


@check()
def check_fit2d_1feature(estimator: Any) -> None:
    """Graphs with node labels alone, attributes alone and neither are fitted and predicted."""
    graphs, y = examples(estimator)
    for absent in ({"node_labels"}, {"x"}, {"node_labels", "x"}):
        bare = replace(graphs, **dict.fromkeys(absent))  # type: ignore[arg-type]
        model = clone(estimator).fit(bare, y)
        assert all(len(array) == len(bare) for array in results(model, bare).values())


@check()
def check_dict_unchanged(estimator: Any) -> None:
    """``predict``, ``transform`` and so on change no attribute of the estimator."""
    graphs, y = examples(estimator)
    model = clone(estimator).fit(graphs, y)
    for name in (*METHODS, "score_samples"):
        if hasattr(model, name):
            before = dict(vars(model))
            getattr(model, name)(graphs)
            assert vars(model).keys() == before.keys(), f"{name} adds or removes attributes"
            replaced = {key for key, value in vars(model).items() if value is not before[key]}
            plain = (int, float, str, list, dict)
            changed = {key for key in replaced if type(before[key]) not in plain or vars(model)[key] != before[key]}
            assert not changed, f"{name} changes {', '.join(changed)}"


@check()
def check_fit_idempotent(estimator: Any) -> None:
    """Fitting twice gives the results of fitting once, also after a fit on other graphs."""
    graphs, y = examples(estimator)
    model = clone(estimator).fit(graphs[:-TEST], y[:-TEST])
    first = results(model, graphs)
    require_same(results(model.fit(graphs[:-TEST], y[:-TEST]), graphs), first, "fitted twice")
    others = np.arange(TEST, len(y))
    model.fit(graphs[others], y[others])
    require_same(results(model.fit(graphs[:-TEST], y[:-TEST]), graphs), first, "fitted on other graphs before")


@check(lambda estimator: get_tags(estimator).requires_fit)
def check_fit_check_is_fitted(estimator: Any) -> None:
    """``check_is_fitted`` tells fitted from unfitted estimators."""
    with raises(NotFittedError, "check_is_fitted before fit"):
        check_is_fitted(clone(estimator))
    check_is_fitted(fitted(estimator)[0])


@check(lambda estimator: not get_tags(estimator).no_validation)
def check_param_validation(estimator: Any) -> None:
    """A parameter of a wrong type raises a ValueError or TypeError in ``fit``, not before."""
    graphs, y = examples(estimator)
    for name in estimator.get_params(deep=False):
        if name == "verbose":
            continue
        model = clone(estimator).set_params(**{name: type("WrongType", (), {})()})
        with raises((TypeError, ValueError), f"fit with a wrong {name}"):
            model.fit(graphs, y)


@check()
def check_html_repr(estimator: Any) -> None:
    """The estimator is shown as HTML in notebooks, unfitted and fitted."""
    for model in (clone(estimator), fitted(estimator)[0]):
        assert type(model).__name__ in model._repr_html_()


@check()
def check_graph_tags(estimator: Any) -> None:
    """The tags say that X is no 2-D array, not sparse and not pairwise."""
    tags = get_tags(estimator).input_tags
    assert not tags.two_d_array, "input_tags.two_d_array is True"
    assert not tags.sparse
    assert not tags.pairwise
