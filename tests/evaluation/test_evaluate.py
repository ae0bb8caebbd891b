import json
from dataclasses import replace

import numpy as np
import pytest

import gcaps
from gcaps.config import Config
from gcaps.errors import ConfigError, GcapsError
from gcaps.evaluation import FoldResult, evaluate
from gcaps.evaluation.protocols import summarise
from gcaps.testing import hostile_graphs

SMALL = Config(epochs=3, layers=1, hidden=4, rank=4, fc=8, ensemble_size=1, with_svm=False)


@pytest.fixture(scope="module")
def graphs():
    return hostile_graphs(64, seed=7, largest=8)


@pytest.fixture(scope="module")
def result(graphs):
    return evaluate(graphs, config=SMALL, folds=4, jobs=1)


def fold(labels, predictions, curve, number=0):
    return FoldResult(number, list(range(len(labels))), labels, predictions, [[0.5, 0.5]] * len(labels), len(curve),
                      [0.0] * len(curve), [0.0] * len(curve), curve, [], 0.0)  # fmt: skip


def test_protocols_follow_their_rules():
    folds = [fold([0, 1], [0, 1], [0.5, 0.9, 0.4]), fold([0, 1], [0, 0], [0.7, 0.2, 0.6], 1)]
    found = {name: summary.folds for name, summary in summarise([folds], selection="last").items()}
    assert found == {"honest": [1.0, 0.5], "last": [0.4, 0.6], "gin": [0.5, 0.7], "best": [0.9, 0.7]}


def test_gin_counts_only_epochs_that_every_fold_reached():
    folds = [fold([0], [0], [0.1, 0.2]), fold([0], [0], [0.1, 0.3, 1.0], 1)]
    assert summarise([folds], selection="validation")["gin"].folds == [0.2, 0.3]


def test_every_graph_is_predicted_once_and_honest_is_last_with_a_fixed_schedule(result, graphs):
    assert sorted(n for f in result.folds for n in f.test) == list(range(64))
    for f in result.folds:
        assert f.y == np.unique(graphs.y, return_inverse=True)[1][f.test].tolist()
        assert f.accuracy == pytest.approx(f.test_score[-1])
        assert len(f.train_loss) == len(f.test_score) == SMALL.epochs
    assert result.protocols["honest"].folds == pytest.approx(result.protocols["last"].folds)
    assert result.protocols["best"].mean >= result.protocols["gin"].mean >= result.protocols["last"].mean


def test_result_carries_what_it_takes_to_make_it_again(result, graphs):
    assert result.data["fingerprint"] == graphs.fingerprint()
    assert Config.parse(result.config) == SMALL
    assert {"gcaps", "python", "torch", "numpy"} <= set(result.versions)
    assert result.seed == 0
    assert result.command


def predictions(result):
    return [(f.fold, f.predictions, f.scores, f.train_loss, f.test_score) for f in result.folds]


def test_processes_and_repeats_give_the_same_predictions(result, graphs):
    seen = []
    again = evaluate(graphs, config=SMALL, folds=4, jobs=2, report=lambda run, epoch: seen.append((run, epoch.number)))
    assert predictions(again) == predictions(result)
    assert sorted(seen) == [(f, e) for f in range(4) for e in (1, 2, 3)]


def test_seed_changes_folds_and_training(result, graphs):
    other = evaluate(graphs, config=SMALL, folds=4, jobs=1, seed=1)
    assert [f.test for f in other.folds] != [f.test for f in result.folds]


def test_labels_of_the_test_fold_reach_nothing(graphs, tmp_path):
    """Flip every test label: predictions, losses and the chosen epoch do not change."""
    splits = tmp_path / "s.json"
    splits.write_text(json.dumps([{"train": list(range(48)), "test": list(range(48, 64))}]))
    config = SMALL.model_copy(update={"selection": "validation"})
    flipped = replace(graphs, y=np.where(np.arange(64) < 48, graphs.y, graphs.y.max() + graphs.y.min() - graphs.y))
    first, second = (evaluate(g, config=config, splits=splits, jobs=1).folds[0] for g in (graphs, flipped))
    assert first.predictions == second.predictions
    assert first.scores == second.scores
    assert first.epoch == second.epoch
    assert first.validation_score == second.validation_score
    assert first.train_loss == second.train_loss
    assert first.y != second.y


def test_validation_of_a_splits_file_picks_the_epoch(graphs, tmp_path):
    splits = tmp_path / "s.json"
    parts = {"train": list(range(40)), "validation": list(range(40, 48)), "test": list(range(48, 64))}
    splits.write_text(json.dumps([parts]))
    result = evaluate(graphs, config=SMALL.model_copy(update={"selection": "validation"}), splits=splits, jobs=1)
    only = result.folds[0]
    assert only.validation_score[only.epoch - 1] == max(only.validation_score)
    assert "validation" in result.protocols["honest"].rule
    assert result.splits == str(splits)


def test_folds_can_be_given_as_they_are(result, graphs):
    from gcaps.evaluation import stratified_folds

    first = stratified_folds(graphs.y, 4, seed=0)[:1]
    found = evaluate(graphs, splits=first, config=SMALL, jobs=1)
    assert len(found.folds) == 1
    assert found.folds[0].predictions == result.folds[0].predictions
    assert found.splits == "1 folds given by the caller"


def test_protocol_names_the_headline(graphs, result):
    assert result.accuracy == result.protocols["honest"].mean
    assert gcaps.evaluate is evaluate
    with pytest.raises(ConfigError, match="no protocol 'luck'"):
        evaluate(graphs, protocol="luck")
    with pytest.raises(ConfigError, match="no method 'magic'"):
        evaluate(graphs, method="magic")
    with pytest.raises(ConfigError, match="wl has no epochs: only the protocol honest"):
        evaluate(graphs, "wl", protocol="gin")


def test_auto_is_resolved_in_the_open(graphs):
    found = evaluate(graphs, config={"epochs": "auto", "hidden": 2, "layers": 1, "fc": 2}, folds=2, jobs=1)
    for fold in found.folds:
        assert fold.resolved["epochs"] == len(fold.train_loss) == 100
        assert "epochs = 100 (auto: 32 training graphs, fewer than 750)" in fold.resolution
    assert found.config["epochs"] == "auto"


def test_fgsd_with_a_forest_beats_the_majority_and_does_not_depend_on_jobs():
    graphs = gcaps.load("families")
    few = graphs.subset(np.arange(0, len(graphs), 2))
    found = [evaluate(few, "fgsd", folds=3, jobs=jobs) for jobs in (1, 2)]
    assert [f.predictions for f in found[0].folds] == [f.predictions for f in found[1].folds]
    assert found[0].accuracy > 1.5 * np.unique(few.y, return_counts=True)[1].max() / len(few)
    assert list(found[0].protocols) == ["honest"]
    assert found[0].config["n_estimators"] == 500


def test_a_failing_fold_raises(graphs):
    diverging = {"epochs": 3, "lr": 1e12, "hidden": 4}
    for jobs in (1, 2):
        with pytest.raises(GcapsError, match="diverged"):
            evaluate(graphs, "deepsets", folds=2, config=diverging, jobs=jobs)


def test_config_goes_with_names(graphs):
    with pytest.raises(ConfigError, match="config goes with a method's name"):
        evaluate(graphs, gcaps.GraphCapsuleClassifier(), config={"hidden": 3})
    with pytest.raises(ConfigError, match="evaluate takes one data set"):
        evaluate([graphs, graphs], "deepsets")
