from pathlib import Path

import numpy as np
import pytest

import gcaps
from gcaps.config import CONFIGS, Config
from gcaps.data.catalog import load
from gcaps.errors import ConfigError
from gcaps.estimators.registry import METHODS
from gcaps.evaluation import Comparison, Fold, Result
from gcaps.report import write_report

SMALL = {
    "rw": {"decays": (1e-2,)},
    "sp": {},
    "gk": {"sizes": (3, 5), "samples": 20},
    "wl": {"n_iter": (0, 2)},
    "wloa": {"n_iter": (1,)},
    "wwl": {"n_iter": (0, 2), "rates": (1.0,)},
    "retgk": {"gamma": (10.0,), "n_features": 50},
    "dgk": {"n_iter": (1,), "sizes": (3,), "dimension": 8},
    "mlg": {"levels": (1,), "eta": (0.1,), "gamma": (0.1,), "rank": 5, "samples": 10},
}


def test_every_kernel_is_a_method_with_a_configuration() -> None:
    kernels = {name for name, method in METHODS.items() if method.family == "kernel" and not method.needs_molecules}
    assert kernels == set(SMALL)
    assert set(METHODS) == set(CONFIGS)


@pytest.mark.parametrize("method", list(SMALL))
def test_kernel_methods_beat_the_majority_class_on_mutag(method: str) -> None:
    graphs = load("MUTAG")
    config = CONFIGS[method](C=(1.0, 100.0), inner_folds=3, **SMALL[method])
    result = gcaps.evaluate(graphs, method, folds=3, jobs=1, config=config)
    assert list(result.protocols) == ["honest"]
    assert result.accuracy > 0.68
    assert result.config == config.to_dict()
    assert all(fold.chosen["C"] in (1.0, 100.0) and fold.chosen["kernel"] for fold in result.folds)
    np.testing.assert_allclose([np.sum(scores) for fold in result.folds for scores in fold.scores], 1, atol=1e-5)


@pytest.mark.slow
def test_result_does_not_depend_on_jobs() -> None:
    config = CONFIGS["wl"](C=(1.0,), n_iter=(1,), inner_folds=2)
    one, two = (gcaps.evaluate("MUTAG", "wl", folds=2, jobs=jobs, config=config) for jobs in (1, 2))
    assert [fold.scores for fold in one.folds] == [fold.scores for fold in two.folds]


def test_result_is_saved_and_reported(tmp_path: Path) -> None:
    config = CONFIGS["wl"](C=(1.0,), n_iter=(1,), inner_folds=2)
    one = gcaps.evaluate("MUTAG", "wl", folds=2, jobs=1, config=config)
    one.save(tmp_path / "result.json")
    assert Result.read(tmp_path / "result.json").protocols == one.protocols
    write_report(Comparison.of_results([one]), tmp_path / "page.html")
    assert "n_iter" in (tmp_path / "page.html").read_text()
    assert "config={'C': (1.0,)" in one.command


def test_validation_graphs_of_a_file_do_the_choosing() -> None:
    graphs = load("MUTAG")
    order = np.random.default_rng(0).permutation(len(graphs))
    fold = Fold(np.sort(order[:150]), np.sort(order[150:]), np.sort(order[:30]))
    result = gcaps.evaluate(graphs, "wl", splits=[fold], jobs=1, config=CONFIGS["wl"](C=(1.0, 10.0), n_iter=(0, 1)))
    assert result.accuracy > 0.7


def test_the_test_fold_decides_nothing() -> None:
    graphs = load("MUTAG")
    config = CONFIGS["dgk"](C=(1.0,), inner_folds=2, n_iter=(1,), sizes=(3,), dimension=4)
    train, test = np.arange(100), np.arange(100, 188)
    both = [gcaps.evaluate(graphs, "dgk", splits=[Fold(train, t)], jobs=1, config=config) for t in (test, test[:9])]
    assert both[0].folds[0].chosen == both[1].folds[0].chosen
    assert both[0].folds[0].scores[:9] == both[1].folds[0].scores


def test_settings_that_do_not_apply_are_refused() -> None:
    graphs = load("MUTAG")
    with pytest.raises(ConfigError, match="wl takes a WLConfig, not a Config"):
        gcaps.evaluate(graphs, "wl", config=Config(layers=2))
    with pytest.raises(ConfigError, match="only the protocol honest"):
        gcaps.evaluate(graphs, "wl", protocol="best")
    with pytest.raises(ConfigError, match="n_iter"):
        gcaps.evaluate(graphs, "wl", config={"n_iter": "tall"})
