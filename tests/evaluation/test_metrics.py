"""Metrics are scikit-learn's, for each target, with missing values left out."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from gcaps.data.targets import Target
from gcaps.errors import ConfigError
from gcaps.evaluation.metrics import METRICS, compute_metrics, metric_for, metrics_for, target_metrics

SEEDS = st.integers(0, 2**32)


def known_classification(y: np.ndarray, p: np.ndarray) -> dict[str, float]:
    """scikit-learn's metrics of class numbers y [n] and probabilities p [n, C]."""
    two, guess, labels = p.shape[1] == 2, p.argmax(axis=1), np.arange(p.shape[1])
    scores = p[:, 1] if two else p
    hot = (y[:, None] == labels).astype(int)
    return {
        "accuracy": sk.accuracy_score(y, guess),
        "balanced_accuracy": sk.balanced_accuracy_score(y, guess),
        "f1": sk.f1_score(y, guess, average="binary" if two else "macro", zero_division=0),
        "mcc": sk.matthews_corrcoef(y, guess),
        "roc_auc": sk.roc_auc_score(y, scores) if two else sk.roc_auc_score(y, scores, multi_class="ovr"),
        "pr_auc": sk.average_precision_score(y, scores) if two else sk.average_precision_score(hot, p, average="macro"),
        **({"enrichment": y[p[:, 1].argmax()] / y.mean()} if two else {}),
        "log_loss": sk.log_loss(y, p, labels=labels),
        "brier": sk.brier_score_loss(y, p, labels=labels, scale_by_half=False),
    }


def enrichment(y: np.ndarray, p: np.ndarray) -> float:
    """Mean over many orders of ties of the enrichment factor among the first hundredth, rounded up."""
    top, shares = int(np.ceil(len(y) / 100)), []
    for seed in range(2000):
        order = np.random.default_rng(seed).permutation(len(y))
        best = order[np.argsort(-p[order], kind="stable")][:top]
        shares.append(y[best].mean() / y.mean())
    return float(np.mean(shares))


@pytest.mark.parametrize("n", [5, 100, 101, 250])
def test_enrichment_is_that_of_the_first_hundredth_in_expectation_over_ties(n: int) -> None:
    rng = np.random.default_rng(n)
    y = (rng.random(n) < 0.3).astype(int)
    y[:2] = 0, 1
    target = Target.of(y, "classification")
    distinct, tied = rng.permutation(n) / n, rng.integers(0, 3, n) / 2
    for p, tolerance in ((distinct, 1e-9), (tied, 0.15), (np.full(n, 0.5), 0.15)):
        found = compute_metrics(target, y, np.stack([1 - p, p], axis=1))["enrichment"]
        assert found == pytest.approx(enrichment(y, p), abs=tolerance)
    assert compute_metrics(target, y, np.full((n, 2), 0.5))["enrichment"] == pytest.approx(1)


def test_enrichment_of_a_perfect_order_is_one_over_the_share_of_actives() -> None:
    y = np.array(["active"] * 4 + ["inactive"] * 396)[np.random.default_rng(0).permutation(400)]
    target = Target.of(y, "classification")  # the second class counts: inactive
    p = np.where(y == "inactive", 0.9, 0.1)
    scores = np.stack([1 - p, p], axis=1)
    assert compute_metrics(target, y, scores)["enrichment"] == pytest.approx(400 / 396)
    codes = (y == "active").astype(int)
    assert compute_metrics(Target.of(codes, "classification"), codes, scores[:, ::-1])["enrichment"] == 100


def test_enrichment_needs_two_classes() -> None:
    y = np.array([0, 1, 2] * 5)
    found = compute_metrics(Target.of(y, "classification"), y, np.full((15, 3), 1 / 3))
    assert "roc_auc" in found
    assert "enrichment" not in found
    with pytest.raises(ConfigError, match="enrichment is a metric of two classes, not of 3"):
        metric_for("classification", "enrichment", 3)
    assert metric_for("multilabel", "EF1").name == "enrichment"


def known_regression(y: np.ndarray, values: np.ndarray) -> dict[str, float]:
    return {
        "rmse": sk.root_mean_squared_error(y, values),
        "mae": sk.mean_absolute_error(y, values),
        "r2": sk.r2_score(y, values),
        "spearman": spearmanr(y, values).statistic,
    }


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(2, 5), st.integers(20, 60))
def test_metrics_of_classes_are_scikit_learns_and_skip_missing_labels(seed: int, classes: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.tile(np.arange(classes), 2), rng.integers(0, classes, n)])
    p = rng.dirichlet(np.ones(classes), len(codes))
    names = np.array([f"class {c}" for c in range(classes)])
    y = names[codes]
    target = Target.of(y, "classification")
    expected = known_classification(codes, p)
    assert compute_metrics(target, y, p) == pytest.approx(expected)
    names = [metric.name for metric in metrics_for("classification") if classes == 2 or not metric.binary]
    assert list(compute_metrics(target, y, p)) == names
    extra = rng.integers(0, len(y), 5)
    with_missing = np.insert(y, extra, "")
    scores = np.insert(p, extra, 1 / classes, axis=0)
    assert compute_metrics(target, with_missing, scores) == pytest.approx(expected)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 4))
def test_metrics_of_several_binary_targets_are_means_over_their_known_labels(seed: int, targets: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, (40, targets)).astype(np.float64)
    y[:4] = [[0.0], [1.0], [0.0], [1.0]]
    y[4:][rng.random((36, targets)) < 0.4] = np.nan
    p = rng.random((40, targets))
    target = Target.of(y, "multilabel")
    rows = []
    for t in range(targets):
        known = ~np.isnan(y[:, t])
        binary = np.stack([1 - p[known, t], p[known, t]], axis=1)
        rows.append(known_classification(y[known, t].astype(int), binary) | {"known": known.sum()})
    found = target_metrics(target, y, p)
    assert len(found) == targets
    for one, expected in zip(found, rows, strict=True):
        assert one == pytest.approx(expected)
    means = {name: np.mean([row[name] for row in rows]) for name in rows[0] if name != "known"}
    assert compute_metrics(target, y, p) == pytest.approx(means)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 3))
def test_metrics_of_numbers_are_scikit_learns_with_missing_values_left_out(seed: int, targets: int) -> None:
    rng = np.random.default_rng(seed)
    y, values = 100 * rng.normal(size=(30, targets)), 100 * rng.normal(size=(30, targets))
    y[3:][rng.random((27, targets)) < 0.3] = np.nan
    target = Target.of(y, "regression")
    rows = []
    for t in range(targets):
        known = ~np.isnan(y[:, t])
        rows.append(known_regression(y[known, t], values[known, t]))
    found = compute_metrics(target, y, values)
    assert found == pytest.approx({name: np.mean([row[name] for row in rows]) for name in rows[0]})
    if targets == 1:
        assert compute_metrics(Target.of(y[:, 0], "regression"), y[:, 0], values) == pytest.approx(rows[0])


def test_a_target_with_a_single_class_is_left_out_of_the_mean_and_counted() -> None:
    y = np.array([[0, 1, np.nan], [1, 1, np.nan], [0, 1, np.nan], [1, 1, np.nan]])
    p = np.array([[0.1, 0.9, 0.5], [0.4, 0.9, 0.5], [0.2, 0.2, 0.5], [0.3, 0.9, 0.5]])
    target = Target.of(y, "multilabel")
    first, second, third = target_metrics(target, y, p)
    assert first["roc_auc"] == 1.0
    assert second["accuracy"] == 0.75
    assert (second["known"], third["known"]) == (4, 0)
    assert "roc_auc" not in second
    assert "accuracy" not in third
    means = compute_metrics(target, y, p)
    assert means["roc_auc"] == 1.0
    assert means["accuracy"] == np.mean([0.5, 0.75])


def test_undefined_metrics_are_left_out() -> None:
    target = Target.of(np.array(["a", "b"]), "classification")
    found = compute_metrics(target, np.array(["a", "a"]), np.array([[0.9, 0.1], [0.4, 0.6]]))
    assert sorted(found) == ["accuracy", "brier", "log_loss"]
    numbers = Target.of(np.array([1.0, 2.5]), "regression")
    assert sorted(compute_metrics(numbers, np.array([2.0]), np.array([[1.0]]))) == ["mae", "rmse"]
    assert compute_metrics(numbers, np.array([np.nan]), np.array([[1.0]])) == {}


def test_a_class_that_the_model_does_not_know_counts_as_wrong() -> None:
    target = Target.of(np.array(["a", "b"]), "classification")
    found = compute_metrics(target, np.array(["a", "b", "c", "c"]), np.tile([0.75, 0.25], (4, 1)))
    assert found["accuracy"] == 0.25
    assert found["log_loss"] > 5


def test_given_predictions_replace_those_of_the_scores() -> None:
    target = Target.of(np.array(["a", "b"]), "classification")
    y, p = np.array(["a", "b"]), np.array([[0.6, 0.4], [0.6, 0.4]])
    assert compute_metrics(target, y, p)["accuracy"] == 0.5
    assert compute_metrics(target, y, p, np.array(["a", "b"]))["accuracy"] == 1.0


def test_headline_metrics_and_other_names() -> None:
    assert metric_for("classification").name == "accuracy"
    assert metric_for("multilabel").name == "roc_auc"
    assert metric_for("regression").name == "rmse"
    assert metric_for("multilabel", "average_precision").name == "pr_auc"
    assert metric_for("classification", "ROC-AUC").name == "roc_auc"
    assert metric_for("regression", "neg_mae").name == "mae"


def test_a_wrong_metric_is_one_line_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="no metric 'auk'; for classification there are accuracy, balanced_accuracy"):
        metric_for("classification", "auk")
    with pytest.raises(ConfigError, match="roc_auc is no metric of regression; there are rmse, mae, r2, spearman"):
        metric_for("regression", "roc_auc")


def test_values_are_shown_in_percent_as_numbers_or_in_units() -> None:
    accuracy, auc, rmse = (METRICS[name] for name in ("accuracy", "roc_auc", "rmse"))
    assert accuracy.text(0.66012, 0.0591) == "66.01 ± 5.91"
    assert auc.text(0.8549, 0.0123) == "0.855 ± 0.012"
    assert [rmse.text(v) for v in (0.5871, 12.3456, 1234.5, 0.000123)] == ["0.587", "12.35", "1234", "0.000123"]
    assert accuracy.difference(-0.0123) == "−1.23"
    assert accuracy.difference(-0.00001) == "0.00"
    assert rmse.difference(0.02, like=12.0) == "+0.02"
    assert accuracy.better(0.7, 0.6)
    assert rmse.better(0.6, 0.7)
