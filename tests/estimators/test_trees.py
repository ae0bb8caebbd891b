"""Trees as flat arrays predict what scikit-learn's models predict."""

import numpy as np
import pytest
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from gcaps.estimators.trees import ROWS, Trees

COUNT = 9 * ROWS + 7
"""More rows than a block has, and no multiple of it."""


@pytest.fixture(scope="module")
def x():
    """Columns of counts, of real numbers, one with NaN in some rows, and a constant."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.poisson(1.0, COUNT), rng.standard_normal((COUNT, 3)), np.ones(COUNT)])
    x[::3, 1] = np.nan
    return x.astype(np.float32)


@pytest.fixture(scope="module")
def value(x):
    return x[:, 0] + np.nan_to_num(x[:, 1], nan=2.0) * x[:, 2]


def classes_of(value, count):
    return np.searchsorted(np.quantile(value, np.arange(1, count) / count), value)


@pytest.mark.parametrize("count", [2, 4])
def test_forest_classifiers(x, value, count):
    forest = RandomForestClassifier(12, random_state=0).fit(x[:300], classes_of(value, count)[:300])
    np.testing.assert_array_equal(Trees.of_forest(forest).predict(x), forest.predict_proba(x))


def test_forest_regressors(x, value):
    forest = RandomForestRegressor(12, max_features=1 / 3, random_state=0).fit(x[:300], value[:300])
    np.testing.assert_allclose(Trees.of_forest(forest).predict(x)[:, 0], forest.predict(x), rtol=1e-12)


@pytest.mark.parametrize("count", [2, 4])
def test_boosted_classifiers(x, value, count):
    model = HistGradientBoostingClassifier(max_iter=12, random_state=0).fit(x[:300], classes_of(value, count)[:300])
    np.testing.assert_allclose(Trees.of_boosting(model).predict(x), model.predict_proba(x), atol=1e-6)


def test_boosted_regressors(x, value):
    model = HistGradientBoostingRegressor(max_iter=12, random_state=0).fit(x[:300], value[:300])
    np.testing.assert_allclose(Trees.of_boosting(model).predict(x)[:, 0], model.predict(x), atol=1e-6)


@pytest.mark.parametrize("kind", [RandomForestRegressor, HistGradientBoostingRegressor])
def test_values_that_are_missing_for_the_first_time(kind, x, value):
    complete = np.nan_to_num(x)
    model = kind(random_state=0).fit(complete[:300], value[:300])
    trees = (Trees.of_forest if kind is RandomForestRegressor else Trees.of_boosting)(model)
    np.testing.assert_allclose(trees.predict(x)[:, 0], model.predict(x), atol=1e-6)


@pytest.mark.parametrize("kind", [RandomForestRegressor, HistGradientBoostingRegressor])
def test_splits_between_missing_and_other_values_have_finite_thresholds(kind):
    x = np.ones((80, 1), dtype=np.float32)
    x[::2] = np.nan
    model = kind(random_state=0).fit(x, np.isnan(x[:, 0]).astype(float))
    trees = (Trees.of_forest if kind is RandomForestRegressor else Trees.of_boosting)(model)
    assert np.isfinite(trees.threshold).all()
    np.testing.assert_allclose(trees.predict(x)[:, 0], model.predict(x), atol=1e-6)
    assert np.ptp(trees.predict(x)) > 0.9


def test_trees_are_their_arrays_and_their_link(x, value):
    model = HistGradientBoostingClassifier(max_iter=3).fit(x[:300], classes_of(value, 3)[:300])
    trees = Trees.of_boosting(model)
    again = Trees(**trees.arrays(), link=trees.link)
    assert len(again) == 9
    np.testing.assert_array_equal(again.predict(x), trees.predict(x))


def test_a_single_class_is_certain(x):
    forest = RandomForestClassifier(3).fit(x[:9], np.ones(9, dtype=int))
    np.testing.assert_array_equal(Trees.of_forest(forest).predict(x[:4]), [[0.0, 1.0]] * 4)
    np.testing.assert_array_equal(Trees.constant([0.25, 0.75]).predict(x[:2]), [[0.25, 0.75]] * 2)
