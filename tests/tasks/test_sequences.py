from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import Ridge

import gcaps
from gcaps.data.sequence import Edges, GraphSequence
from gcaps.errors import ConfigError, DataError, ModelError
from gcaps.tasks import CapsuleForecaster
from gcaps.tasks.autoregression import (
    choose_autoregression,
    fit_autoregression,
    mean_squared_error,
    squared_errors,
)

SMALL = {"hidden": 3, "window": 4, "horizons": 2, "epochs": 4}


def example(T=40, n=5, seed=0, *, dynamic=False) -> GraphSequence:
    """Waves that travel around a ring, with noise."""
    rng = np.random.default_rng(seed)
    i = np.arange(n)
    ring = np.stack([i, (i + 1) % n])
    phase = np.arange(T)[:, None] / 3 - 2 * np.pi * i / n
    values = np.sin(phase) * (1 + i) + 0.2 * rng.standard_normal((T, n)) + 10 * i
    edges = [Edges(ring, rng.uniform(0.5, 2, n)) for _ in range(T if dynamic else 1)]
    return GraphSequence("waves", values, tuple(edges))


@pytest.fixture(scope="module", params=[False, True], ids=["fixed", "dynamic"])
def sequence(request):
    return example(dynamic=request.param)


@pytest.mark.parametrize("lags", [1, 3])
def test_autoregression_of_each_node_is_a_ridge_regression(lags):
    values, stop, ridge = example().values, 30, 0.1
    model = fit_autoregression(values, stop, 2, lags, ridge)
    made = model.predict(values)
    for node in range(values.shape[1]):
        for h in (1, 2):
            X = np.array([values[t - lags + 1 : t + 1, node][::-1] for t in range(lags - 1, stop - h)])
            y = values[lags - 1 + h : stop, node]
            expected = Ridge(alpha=ridge * len(X)).fit(X, y)
            np.testing.assert_allclose(model.weight[node, h - 1, 1:], expected.coef_, rtol=1e-4, atol=1e-6)
            at = values[20 - lags + 1 : 21, node][::-1][None]
            np.testing.assert_allclose(made[20, node, h - 1], expected.predict(at)[0], rtol=1e-4)
    assert np.isnan(made[: lags - 1]).all()


def test_infinite_pull_gives_all_nodes_one_regression():
    values = example().values
    shared = fit_autoregression(values, 30, 2, 3, 1e-3, shared=np.inf).weight
    assert np.ptp(shared, axis=0).max() == 0
    near = fit_autoregression(values, 30, 2, 3, 1e-3, shared=1e9).weight
    np.testing.assert_allclose(near, shared, atol=1e-3)


def test_errors_are_those_of_the_forecasts_made_h_steps_before():
    values = np.arange(12.0).reshape(6, 2)
    forecasts = np.zeros((6, 2, 2))
    forecasts[3, 1, 1] = 4.0  # of step 5, at step 3
    squares = squared_errors(forecasts, values, np.array([5]))
    assert squares.shape == (1, 2, 2)
    assert squares[0, 1, 1] == (11 - 4) ** 2
    assert squares[0, 1, 0] == 11**2
    assert mean_squared_error(forecasts * np.nan, values, np.array([5])) == np.inf


@pytest.mark.parametrize("base", ["autoregression", "last", "mean"])
def test_no_forecast_looks_ahead(sequence, base):
    """Other values and edges after step t change no forecast made up to t."""
    model = CapsuleForecaster(**SMALL, base=base).fit(sequence.until(30), validation=8)
    with torch.no_grad():
        torch.nn.init.normal_(model.network_.head.weight)  # a correction that is not zero
    before = model.predict(sequence)
    values = sequence.values.copy()
    values[33:] += 100
    edges = sequence.edges
    if len(edges) > 1:
        edges = (*edges[:33], *(Edges(e.edge_index[::-1].copy(), e.edge_weight * 9) for e in edges[33:]))
    after = model.predict(replace(sequence, values=values, edges=edges))
    np.testing.assert_array_equal(after[:33], before[:33])
    assert np.abs(after[33:] - before[33:]).max() > 1
    np.testing.assert_allclose(model.predict(sequence.until(33)), before[:33], rtol=1e-5, atol=1e-5)


def test_fit_uses_nothing_but_the_given_steps_and_standardises_by_them():
    sequence = example()
    model = CapsuleForecaster(**SMALL, refit=False).fit(sequence.until(30), validation=10)
    np.testing.assert_allclose(model.mean_, sequence.values[:20].mean(axis=0))
    again = CapsuleForecaster(**SMALL).fit(sequence.until(30), validation=10)
    np.testing.assert_allclose(again.mean_, sequence.values[:30].mean(axis=0))


def test_without_a_better_epoch_the_forecast_is_that_of_the_base():
    rng = np.random.default_rng(0)
    noise = GraphSequence("noise", rng.standard_normal((40, 4)), (Edges(np.zeros((2, 0), dtype=np.int64)),))
    settings = SMALL | {"lr": 3.0, "refit": False}
    model = CapsuleForecaster(**settings, base="mean").fit(noise, validation=10)
    assert model.epoch_ == 0
    assert np.abs(model.predict(noise)[10:] - model.mean_[:, None]).max() < 1e-6


def test_choice_has_the_least_error_on_validation():
    values = example().values
    model, choice = choose_autoregression(values, 28, np.arange(28, 40), 2, share=False)
    assert model.lags == choice.lags
    assert choice.error == pytest.approx(mean_squared_error(model.predict(values), values, np.arange(28, 40)))
    for lags in (1, 2, 3):
        other = fit_autoregression(values, 28, 2, lags, 0.1).predict(values)
        assert choice.error <= mean_squared_error(other, values, np.arange(28, 40)) + 1e-12


@pytest.mark.parametrize(("convolution", "cell"), [("capsule", "gru"), ("capsule", "lstm"), ("gcn", "gru")])
def test_saved_forecaster_makes_the_same_forecasts(sequence, convolution, cell, tmp_path):
    model = CapsuleForecaster(**SMALL, convolution=convolution, cell=cell).fit(sequence, validation=8)
    model.save(tmp_path / "model")
    loaded = gcaps.load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(sequence), model.predict(sequence))
    assert loaded.score(sequence, steps=8) == model.score(sequence, steps=8)


def test_damaged_state_is_refused(sequence):
    model = CapsuleForecaster(**SMALL).fit(sequence, validation=8)
    arrays, values = model.state()
    with pytest.raises(ModelError, match="autoregression"):
        CapsuleForecaster(**SMALL).restore(arrays | {"base": np.zeros((2, 2, 2))}, values)
    with pytest.raises(ModelError, match="means"):
        CapsuleForecaster(**SMALL).restore(arrays | {"mean": np.zeros(99)}, values)


def test_interrupted_training_resumes_exactly(sequence, tmp_path, monkeypatch):
    monkeypatch.setenv("GCAPS_CHECKPOINT_SECONDS", "0")
    settings = SMALL | {"base": "last", "dropout": 0.5}
    expected = CapsuleForecaster(**settings).fit(sequence, validation=8)

    def stop(epoch):
        if epoch.number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        CapsuleForecaster(**settings).fit(sequence, validation=8, checkpoint=tmp_path / "c", on_epoch=stop)
    resumed = clone(expected).fit(sequence, validation=8, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(resumed.predict(sequence), expected.predict(sequence))
    assert resumed.curves_.loss == expected.curves_.loss


def test_order_of_the_nodes_does_not_matter():
    """Without node vectors, nodes in another order get the same forecasts in that order."""
    sequence, order = example(dynamic=True), np.array([3, 0, 4, 1, 2])
    rank = np.argsort(order)
    edges = tuple(Edges(rank[index], weight) for index, weight in sequence.edges)
    moved = GraphSequence("moved", sequence.values[:, order], edges)
    settings = SMALL | {"embedding": 0, "dropout": 0.0, "context": True}
    one, other = (CapsuleForecaster(**settings).fit(s, validation=8) for s in (sequence, moved))
    np.testing.assert_allclose(other.predict(moved), one.predict(sequence)[:, order], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("edges", [np.zeros((2, 0), dtype=np.int64), np.array([[0, 0, 0, 1], [0, 1, 1, 0]])])
def test_hostile_graphs_give_finite_forecasts(edges):
    """No edges; self-loops, repeated edges and an isolated node; one constant node."""
    values = np.random.default_rng(1).standard_normal((30, 3))
    values[:, 2] = 7.0
    sequence = GraphSequence("hostile", values, (Edges(edges),))
    model = CapsuleForecaster(**SMALL).fit(sequence, validation=6)
    assert np.isfinite(model.predict(sequence)[12:]).all()
    single = GraphSequence("single", values[:, :1], (Edges(np.zeros((2, 0), dtype=np.int64)),))
    assert np.isfinite(CapsuleForecaster(**SMALL).fit(single, validation=6).predict(single)[12:]).all()


def test_wrong_input_is_refused_in_one_line():
    sequence = example()
    with pytest.raises(DataError, match="too few"):
        CapsuleForecaster(**SMALL).fit(sequence.until(8), validation=4)
    with pytest.raises(ConfigError, match="cell"):
        CapsuleForecaster(**SMALL, cell="rnn").fit(sequence)
    model = CapsuleForecaster(**SMALL).fit(sequence, validation=8)
    with pytest.raises(DataError, match="has 3 nodes"):
        model.predict(example(n=3))
    with pytest.raises(DataError, match="cannot forecast 40"):
        model.score(sequence, steps=40)
