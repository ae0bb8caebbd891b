"""Checks of transformers of graphs: shapes, names of columns, data frames; see :mod:`.checks`."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from copy import deepcopy
from typing import Any
from unittest import SkipTest

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from gcaps.testing.checks import as_list, check, examples, fitted, is_transformer, raises


@check(lambda estimator: is_transformer(estimator) and get_tags(estimator).requires_fit)
def check_transformers_unfitted(estimator: Any) -> None:
    """``transform`` raises a NotFittedError before ``fit``."""
    with raises(NotFittedError, "transform before fit"):
        clone(estimator).transform(examples(estimator)[0])


@check(lambda estimator: is_transformer(estimator) and not get_tags(estimator).requires_fit)
def check_transformers_unfitted_stateless(estimator: Any) -> None:
    """A transformer that needs no ``fit`` transforms without."""
    graphs, _ = examples(estimator)
    assert len(clone(estimator).transform(graphs)) == len(graphs)


@check(is_transformer)
def check_transformer_general(estimator: Any) -> None:
    """``fit_transform`` gives what ``fit`` and ``transform`` give, one row for each graph."""
    graphs, y = examples(estimator)
    model = clone(estimator)
    once = np.asarray(model.fit_transform(graphs, y))
    assert len(once) == len(graphs), f"{len(once)} rows for {len(graphs)} graphs"
    again = np.asarray(model.transform(graphs))
    np.testing.assert_allclose(again, once, rtol=1e-4, atol=1e-5, err_msg="transform after fit_transform")
    apart = np.asarray(clone(estimator).fit(graphs, y).transform(graphs))
    np.testing.assert_allclose(apart, once, rtol=1e-4, atol=1e-5, err_msg="fit, then transform")


@check(lambda estimator: hasattr(estimator, "get_feature_names_out"))
def check_transformer_get_feature_names_out(estimator: Any) -> None:
    """``get_feature_names_out`` names every column of ``transform``, each once."""
    model, new = fitted(estimator)
    names = model.get_feature_names_out()
    assert names.dtype == object
    assert len(names) == np.asarray(model.transform(new)).shape[1]
    assert len(set(names)) == len(names)


@check(lambda estimator: hasattr(estimator, "set_output"))
def check_set_output_transform(estimator: Any) -> None:
    """``set_output("default")`` changes nothing."""
    model, new = fitted(estimator)
    expected = model.transform(new)
    np.testing.assert_array_equal(deepcopy(model).set_output(transform="default").transform(new), expected)


def _frames(estimator: Any, library: str, use: Callable[[Any], Any]) -> None:
    """Check that ``transform`` gives a data frame with the right columns and values."""
    if importlib.util.find_spec(library) is None:
        raise SkipTest(f"{library} is not installed")
    model, new = fitted(estimator)
    expected, columns = np.asarray(model.transform(new)), list(model.get_feature_names_out())
    for form in (new, as_list(estimator, new)):
        frame = use(deepcopy(model))(form)
        assert type(frame).__module__.startswith(library)
        assert list(frame.columns) == columns
        np.testing.assert_allclose(np.asarray(frame), expected, rtol=1e-6)


@check(lambda estimator: hasattr(estimator, "set_output"))
def check_set_output_transform_pandas(estimator: Any) -> None:
    """``set_output("pandas")`` gives a data frame with named columns."""
    _frames(estimator, "pandas", lambda model: model.set_output(transform="pandas").transform)


@check(lambda estimator: hasattr(estimator, "set_output"))
def check_set_output_transform_polars(estimator: Any) -> None:
    """``set_output("polars")`` gives a data frame with named columns."""
    _frames(estimator, "polars", lambda model: model.set_output(transform="polars").transform)


def _globally(library: str) -> Callable[[Any], Any]:
    def use(model: Any) -> Any:
        def transform(graphs: Any) -> Any:
            with config_context(transform_output=library):
                return model.transform(graphs)

        return transform

    return use


@check(lambda estimator: hasattr(estimator, "set_output"))
def check_global_output_transform_pandas(estimator: Any) -> None:
    """scikit-learn's setting ``transform_output="pandas"`` gives a data frame with named columns."""
    _frames(estimator, "pandas", _globally("pandas"))


@check(lambda estimator: hasattr(estimator, "set_output"))
def check_global_set_output_transform_polars(estimator: Any) -> None:
    """scikit-learn's setting ``transform_output="polars"`` gives a data frame with named columns."""
    _frames(estimator, "polars", _globally("polars"))
