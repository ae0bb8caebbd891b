"""Weights of an ensemble's members, against slow searches."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.special import expit, softmax

import gcaps.estimators.stacking as stacking
from gcaps.estimators.stacking import (
    IDENTITY,
    RULES,
    Calibration,
    Truth,
    blocks_of,
    calibrate,
    equal_weights,
    greedy_weights,
    judged,
    stacked_objective,
    stacked_weights,
    weigh,
)

TASKS = ("classification", "multilabel", "regression")
EACH = pytest.mark.parametrize("task", TASKS)


def example(task, n=60, members=3, seed=0, weighted=False):
    """Targets, and members of which the first knows most."""
    rng = np.random.default_rng(seed)
    noise = np.linspace(0.7, 3.0, members)
    if task == "classification":
        y = rng.integers(0, 3, n)
        scores = np.stack([softmax(2 * np.eye(3)[y] + s * rng.normal(size=(n, 3)), axis=1) for s in noise])
    elif task == "multilabel":
        y = rng.integers(0, 2, (n, 2)).astype(float)
        scores = np.stack([expit(3 * y - 1.5 + s * rng.normal(size=y.shape)) for s in noise])
        y[::7, 1] = np.nan
    else:
        y = rng.normal(size=(n, 2))
        scores = np.stack([y + s * rng.normal(size=y.shape) for s in noise])
        y[::7, 1] = np.nan
    return Truth(task, y, rng.uniform(0.2, 2, n) if weighted else None), scores


def slow_loss(truth, mixed):
    """The weighted mean of the losses of all known values, one by one."""
    total = weights = 0.0
    for i in range(len(truth.y)):
        own = 1.0 if truth.weight is None else truth.weight[i]
        if truth.task == "classification":
            total, weights = total - own * np.log(mixed[i, truth.y[i]]), weights + own
            continue
        for t, value in enumerate(truth.y[i]):
            if np.isnan(value):
                continue
            if truth.task == "multilabel":
                loss = -np.log(mixed[i, t] if value else 1 - mixed[i, t])
            else:
                loss = (mixed[i, t] - value) ** 2
            total, weights = total + own * loss, weights + own
    return total / weights


@EACH
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_is_that_of_every_known_value(task, weighted):
    truth, scores = example(task, weighted=weighted)
    weights = np.array([0.5, 0.3, 0.2])
    mixed = np.einsum("m,mnk->nk", weights, scores)
    assert truth.loss(scores, weights) == pytest.approx(slow_loss(truth, mixed), rel=1e-12)


def slow_greedy(truth, scores, steps):
    chosen, best, kept = [], np.inf, None
    for _ in range(steps):
        trials = [slow_loss(truth, scores[[*chosen, m]].mean(axis=0)) for m in range(len(scores))]
        chosen.append(int(np.argmin(trials)))
        if min(trials) < best - 1e-12:
            best, kept = min(trials), list(chosen)
    return np.bincount(kept, minlength=len(scores)) / len(kept)


@EACH
def test_greedy_selection_is_that_of_a_slow_loop(task, monkeypatch):
    monkeypatch.setattr(stacking, "STEPS", 9)
    truth, scores = example(task, n=25, weighted=True, seed=3)
    np.testing.assert_allclose(greedy_weights(truth, scores), slow_greedy(truth, scores, 9), atol=1e-12)


@EACH
def test_greedy_selection_is_close_to_the_best_multiset(task, monkeypatch):
    monkeypatch.setattr(stacking, "STEPS", 5)
    truth, scores = example(task, n=30)
    every = [
        truth.loss(scores, np.bincount(chosen, minlength=3) / len(chosen))
        for size in range(1, 6)
        for chosen in combinations_with_replacement(range(3), size)
    ]
    found = truth.loss(scores, greedy_weights(truth, scores))
    assert min(every) - 1e-12 <= found <= min(every) + 0.05 * (max(every) - min(every))


@EACH
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_of_the_stacker(task, weighted):
    truth, scores = example(task, weighted=weighted)
    objective, w, step = stacked_objective(truth, scores), np.array([0.2, 0.5, 0.3]), 1e-6
    slopes = [(objective(w + step * e)[0] - objective(w - step * e)[0]) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(objective(w)[1], slopes, rtol=1e-5)


@EACH
def test_the_stacker_is_optimal_on_the_simplex(task):
    truth, scores = example(task)
    objective, w = stacked_objective(truth, scores), stacked_weights(truth, scores)
    assert w.sum() == pytest.approx(1)
    gradient = objective(w)[1]
    np.testing.assert_allclose(gradient, gradient.mean(), atol=1e-4)  # Karush-Kuhn-Tucker inside the simplex
    grid = np.random.default_rng(1).dirichlet(np.ones(3), 3000)
    assert objective(w)[0] <= min(objective(one)[0] for one in grid) + 1e-9


@EACH
def test_the_best_member_counts_most_and_few_graphs_mean_equal_weights(task):
    truth, scores = example(task, n=2000)
    w = stacked_weights(truth, scores)
    assert w[0] > w[1] > w[2]
    few = Truth(task, truth.y[:4])
    assert np.abs(stacked_weights(few, scores[:, :4]) - 1 / 3).max() < 0.2
    np.testing.assert_array_equal(equal_weights(truth, scores), np.full(3, 1 / 3))


def test_a_temperature_minimises_the_log_loss_and_keeps_classes():
    truth, scores = example("classification", n=300)
    sharp = softmax(6 * np.log(scores[1]), axis=1)
    found = calibrate(truth, sharp)
    soft = found.apply("classification", sharp)
    np.testing.assert_array_equal(soft.argmax(axis=1), sharp.argmax(axis=1))
    np.testing.assert_allclose(soft.sum(axis=1), 1)
    losses = [
        slow_loss(truth, Calibration(np.array([slope]), np.zeros(1)).apply("classification", sharp))
        for slope in np.geomspace(0.02, 50, 400)
    ]
    assert slow_loss(truth, soft) <= min(losses) + 1e-6
    assert slow_loss(truth, soft) < slow_loss(truth, (sharp + 1e-12) / (sharp + 1e-12).sum(axis=1, keepdims=True))


def test_platt_scaling_keeps_the_order_of_graphs_and_repairs_an_offset():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(500, 2))
    y = (rng.uniform(size=x.shape) < expit(2 * x - 3)).astype(float)
    y[:, 1] = 0  # a single class: nothing to fit to
    truth, scores = Truth("multilabel", y), expit(x)
    found = calibrate(truth, scores)
    assert found.slope[0] == pytest.approx(2, abs=0.5)
    assert found.offset[0] == pytest.approx(-3, abs=0.6)
    assert (found.slope[1], found.offset[1]) == (1, 0)
    p = found.apply("multilabel", scores)
    np.testing.assert_array_equal(np.argsort(p[:, 0]), np.argsort(x[:, 0]))
    assert p[:, 0].mean() == pytest.approx(y[:, 0].mean(), abs=0.02)


def test_values_are_not_calibrated():
    truth, scores = example("regression")
    assert calibrate(truth, scores[2]) is IDENTITY
    np.testing.assert_array_equal(IDENTITY.apply("regression", scores[2]), scores[2])
    again = Calibration.from_dict(Calibration(np.ones(2), np.full(2, 0.3)).to_dict())
    np.testing.assert_array_equal(again.offset, [0.3, 0.3])


@EACH
def test_rules_are_judged_on_graphs_that_they_were_not_fitted_to(task):
    truth, scores = example(task, weighted=True)
    blocks = np.arange(60) % 4
    for rule in RULES:
        losses, _ = judged(rule, blocks_of(truth, scores, blocks))
        assert losses.shape == (60,)
    changed = scores.copy()
    changed[:, blocks == 0] = changed[::-1, blocks == 0]
    before, after = (blocks_of(truth, s, blocks)[0] for s in (scores, changed))
    np.testing.assert_array_equal(before.fitting, after.fitting)
    np.testing.assert_array_equal(
        RULES["stacked"](before.others, before.fitting), stacked_weights(after.others, after.fitting)
    )
    equal, _ = judged("equal", blocks_of(truth, scores, blocks))
    by_hand = 0.0
    for block in blocks_of(truth, scores, blocks):
        by_hand += block.share @ block.held.losses(block.held.evidence(block.judging.mean(axis=0)[None])[0])
    assert equal.mean() == pytest.approx(by_hand)


@EACH
def test_equal_members_have_equal_weights_and_a_useless_one_is_found_out(task):
    truth, scores = example(task, n=400)
    blocks = np.arange(400) % 5
    same = weigh(truth, np.stack([scores[0]] * 3), blocks)
    assert same.rule == "equal"
    rng = np.random.default_rng(5)
    shuffled = scores[0][rng.permutation(400)]
    found = weigh(truth, np.stack([scores[0], shuffled, shuffled]), blocks)
    assert found.rule != "equal"
    assert found.weights[0] > 0.7
    assert found.without[0] > 0.05
    assert found.losses[found.rule] < found.losses["equal"]


def test_one_block_is_not_judged():
    truth, scores = example("classification")
    found = weigh(truth, scores, np.zeros(60, int))
    assert (found.rule, found.losses) == ("equal", {})
