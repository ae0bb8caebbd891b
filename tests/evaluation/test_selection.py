"""Nested selection: grids, and that nothing of a test fold chooses."""

from dataclasses import replace

import numpy as np
import pytest

from gcaps.config import CONFIGS
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError
from gcaps.evaluation import Comparison, compare, evaluate, stratified_folds
from gcaps.evaluation.experiments import DEFAULT_GRID, configurations, read_grid
from gcaps.evaluation.worker import Worker, inner_fold, plane

GRID = {"deepsets": {"epochs": [2, 6], "hidden": [2, 16]}}


def test_a_grid_is_the_product_of_its_lists():
    found = configurations("deepsets", {"deepsets": {"epochs": [1, 2], "hidden": 8, "lr": [0.1, 0.2]}})
    assert [(c["epochs"], c["hidden"], c["lr"]) for c in found] == [(1, 8, 0.1), (1, 8, 0.2), (2, 8, 0.1), (2, 8, 0.2)]
    assert configurations("wl", {}) == [CONFIGS["wl"]().to_dict()]


def test_equal_configurations_are_tried_once():
    assert len(configurations("deepsets", {"deepsets": {"hidden": [64, 64]}})) == 1


def test_default_grids_are_valid_and_hold_the_default():
    assert read_grid("default") is DEFAULT_GRID
    for method in DEFAULT_GRID:
        found = configurations(method, DEFAULT_GRID)
        assert 2 <= len(found) <= 4
        assert CONFIGS[method]().to_dict() in found


def test_grids_from_files(tmp_path):
    (tmp_path / "g.toml").write_text("[gin]\nhidden = [16, 32]\n")
    assert read_grid(tmp_path / "g.toml") == {"gin": {"hidden": [16, 32]}}
    (tmp_path / "g.toml").write_text("[magic]\nhidden = 3\n")
    with pytest.raises(ConfigError, match="a method 'magic'"):
        read_grid(tmp_path / "g.toml")
    (tmp_path / "g.toml").write_text("gin = 3\n")
    with pytest.raises(ConfigError, match="must be a table"):
        read_grid(tmp_path / "g.toml")
    with pytest.raises(ConfigError, match=r"nothing\.toml"):
        read_grid(tmp_path / "nothing.toml")
    with pytest.raises(ConfigError, match="without values"):
        configurations("gin", {"gin": {"hidden": []}})


def test_labels_of_the_test_fold_choose_nothing(small):
    fold = stratified_folds(small.y, 4, seed=0)[0]
    flipped = small.y.copy()
    flipped[fold.test] = small.y.max() + small.y.min() - flipped[fold.test]
    configs = configurations("deepsets", GRID)
    first, second = (
        Worker(PreparedSet(graphs), "deepsets", configs, 0).run(fold, 0)
        for graphs in (small, replace(small, y=flipped))
    )
    assert len(first.candidates) == 4
    assert first.candidates == second.candidates
    assert first.config == second.config
    assert first.result.predictions == second.result.predictions
    assert first.result.y != second.result.y


def test_the_best_inside_is_tested_as_evaluate_would(small, tmp_path):
    found = compare(small, "deepsets", run=tmp_path / "run", folds=2, grid=GRID, jobs=1)
    for outcome in found.outcomes:
        inner = [candidate["inner"] for candidate in outcome.candidates]
        assert outcome.config == outcome.candidates[int(np.argmax(inner))]["config"]
        expected = evaluate(small, "deepsets", folds=2, config=outcome.config, jobs=1).folds[outcome.fold]
        assert replace(outcome.result, seconds=0) == replace(expected, seconds=0)
    result = Comparison.read(tmp_path / "run").result("families", "deepsets")
    assert {"epochs", "hidden", "inner"} == set(result.folds[0].chosen)
    assert "epochs" not in result.config
    assert result.config["lr"] == 0.005


def test_the_inner_fold_lies_within_the_training_graphs(small):
    fold = stratified_folds(small.y, 4, seed=0)[1]
    inner = inner_fold(small.y, fold, seed=5)
    assert sorted([*inner.train, *inner.test]) == fold.train.tolist()
    assert set(small.y[inner.test]) == set(small.y)
    given = inner_fold(small.y, fold._replace(validation=fold.train[3:7]), seed=5)
    assert given.test.tolist() == fold.train[3:7].tolist()
    assert given.train.tolist() == [*fold.train[:3], *fold.train[7:]]


def test_the_inner_fold_keeps_groups_whole(small):
    groups = np.arange(len(small)) // 3
    fold = stratified_folds(small.y, 4, seed=0)[1]
    for y in (small.y, np.random.default_rng(0).normal(size=(len(small), 1))):
        inner = inner_fold(y, fold, 5, groups)
        assert sorted([*inner.train, *inner.test]) == fold.train.tolist()
        assert 1 <= len(inner.test) <= 3
        assert not set(groups[inner.train]) & set(groups[inner.test])


@pytest.mark.parametrize("method", ["deepsets", "wl", "capsule-svm", "gcaps"])
def test_what_is_chosen_inside_a_grouped_fold_keeps_groups_whole(small, monkeypatch, method):
    """Epochs, kernels and C are chosen on graphs of groups that were not trained on."""
    import gcaps.kernels.svm
    import gcaps.training.fit
    import gcaps.training.random_capsules

    groups, seen = np.arange(len(small)) // 4, []
    graphs = replace(small, columns={"batch": groups})

    def watched(function):
        def call(*given, **options):
            found = function(*given, **options)
            own = options.get("groups", given[-1])
            seen.extend((own, learn, check) for learn, check in (found if isinstance(found, list) else [found]))
            return found

        return call

    for module, name in (
        (gcaps.training.fit, "inner_split"),
        (gcaps.estimators.kernel_svm, "inner_splits"),
        (gcaps.training.random_capsules, "inner_splits"),
    ):
        monkeypatch.setattr(module, name, watched(getattr(module, name)))
    capsules = {"layers": 1, "hidden": 4, "rank": 4}
    config = {
        "deepsets": {"epochs": 2, "hidden": 4, "selection": "validation"},
        "wl": {"C": (1.0,), "n_iter": (1,), "inner_folds": 3},
        "capsule-svm": {**capsules, "C": (1.0,), "gamma": (1.0,), "inner_folds": 3},
        "gcaps": {**capsules, "epochs": 1, "fc": 8, "with_svm": True},
    }[method]
    evaluate(graphs, method, folds=2, split="group:batch", config=config, jobs=1)
    assert len(seen) >= 2
    for own, learn, check in seen:
        assert len(check)
        assert not set(own[learn]) & set(own[check])


def test_a_grid_is_searched_on_other_groups_than_it_is_fitted_on(small, monkeypatch):
    import gcaps.evaluation.worker as worker

    groups, seen, inner = np.arange(len(small)) // 4, [], worker.inner_fold
    monkeypatch.setattr(worker, "inner_fold", lambda *given: seen.append(inner(*given)) or seen[-1])
    graphs = replace(small, columns={"batch": groups})
    compare(graphs, "deepsets", folds=2, split="group:batch", grid=GRID, jobs=1)
    assert len(seen) == 8
    for fold in seen:
        assert not set(groups[fold.train]) & set(groups[fold.test])


def test_the_plane_keeps_most_variance_and_its_signs():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 5)) * [9, 4, 1, 1, 1] + 7
    found = plane(x)
    centred = x - x.mean(axis=0)
    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(np.abs(found), np.abs(left[:, :2] * size[:2]), atol=1e-8)
    np.testing.assert_allclose(plane(x), found)
    assert plane(np.arange(4.0)[:, None]).shape == (4, 2)
    assert plane(np.ones((4, 3))).tolist() == [[0.0, 0.0]] * 4
