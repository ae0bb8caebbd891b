"""A saved model scores graphs as the fitted one does, to the last bit, for every method and every task."""

from dataclasses import replace

import numpy as np
import pytest

import gcaps
from gcaps.data import make_families
from gcaps.estimators import METHODS, make_estimator
from tests.estimators.test_every_task import binary_targets, real_targets
from tests.estimators.test_manners import SMALL, suited

TASKS = {
    "classes": ("classification", lambda size: np.where(size > np.median(size), "large", "small")),
    "several classes": ("classification", lambda size: np.digitize(size, np.quantile(size, (0.3, 0.6)))),
    "several binary targets": ("classification", binary_targets),
    "a real number": ("regression", lambda size: size / 7),
    "several real numbers": ("regression", real_targets),
}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("method", METHODS)
def test_scores_are_those_of_the_fitted_model(method, task, tmp_path):
    graphs = suited(method, replace(make_families(48, seed=1), y=None))
    kind, targets = TASKS[task]
    model = make_estimator(method, SMALL[method], 0, kind).fit(graphs[:40], targets(graphs.sizes.astype(float))[:40])
    model.save(tmp_path / "model")
    again = gcaps.load_model(tmp_path / "model")
    for some in (graphs[40:], graphs[:40], graphs[[3]], graphs):
        assert np.array_equal(again.scores(some), model.scores(some), equal_nan=True)
        assert np.array_equal(again.predict(some), model.predict(some), equal_nan=kind == "regression")
