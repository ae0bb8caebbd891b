import numpy as np
import pytest
import torch

from gcaps.config import Config
from gcaps.testing import hostile_graphs
from gcaps.training import reproducible
from gcaps.training.loop import inner_split
from gcaps.training.optimizer import FlatAdam
from tests.training.fitting import fit

SMALL = Config(epochs=4, layers=2, hidden=4, rank=4, fc=8, batch_size=16, with_svm=False)


@pytest.fixture(scope="module")
def graphs():
    return hostile_graphs(64, seed=7, largest=10)


def weights(model):
    return {key: value.clone() for key, value in model.network.state_dict().items()}


def same(first, second):
    return all(torch.equal(first[key], second[key]) for key in first)


def test_same_seed_same_weights_and_another_seed_others(graphs):
    train = np.arange(48)
    one, two, other = (weights(fit(graphs, train, SMALL, seed)[0]) for seed in (3, 3, 4))
    assert same(one, two)
    assert not same(one, other)


@pytest.mark.parametrize("outside", [1, 2])
def test_threads_outside_do_not_matter(graphs, outside):
    expected = weights(fit(graphs, np.arange(48), SMALL, 0)[0])
    torch.set_num_threads(outside)
    try:
        found = weights(fit(graphs, np.arange(48), SMALL, 0)[0])
        assert torch.get_num_threads() == outside, "the caller's setting comes back"
    finally:
        torch.set_num_threads(1)
    assert same(found, expected)


def test_training_leaves_the_callers_random_numbers_alone(graphs):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit(graphs, np.arange(48), SMALL, 0)
    assert torch.equal(torch.rand(3), expected)


def test_other_graphs_change_nothing_of_the_training():
    """No test-fold information: replace every graph outside the training set, and the same model comes out."""
    train = np.arange(32)
    config = SMALL.model_copy(update={"features": ("labels", "attributes", "degree", "fgsd")})
    models = []
    for other_seed in (1, 2):
        inside, outside = hostile_graphs(32, seed=7, largest=10), hostile_graphs(32, seed=other_seed, largest=40)
        both = type(inside).from_networkx(inside.to_networkx() + outside.to_networkx())
        models.append(fit(both, train, config, 0, watch=np.arange(32, 64))[0])
    assert models[0].features.state() == models[1].features.state()
    assert same(weights(models[0]), weights(models[1]))


def test_watching_changes_nothing(graphs):
    plain = fit(graphs, np.arange(48), SMALL, 0)
    watched = fit(graphs, np.arange(48), SMALL, 0, watch=np.arange(48, 64))
    assert same(weights(plain[0]), weights(watched[0]))
    assert plain[1].watched == []
    assert len(watched[1].watched) == SMALL.epochs


def test_validation_picks_the_best_epoch_and_gives_back_its_weights(graphs):
    config = SMALL.model_copy(update={"selection": "validation", "epochs": 8, "validation": 0.25})
    seen = []
    model, curves, epoch = fit(graphs, np.arange(64), config, 0, on_epoch=seen.append)
    assert [e.number for e in seen] == list(range(1, 9))
    assert len(curves.validation) == 8
    assert curves.validation[epoch - 1] == max(curves.validation)
    _, held = inner_split(graphs.y, 0.25, 0)
    found = (model.scores(graphs.subset(held)).argmax(1) == graphs.y[held]).mean()
    assert found == pytest.approx(curves.validation[epoch - 1])


def test_patience_stops_early_and_refit_trains_on_everything(graphs):
    update = {"selection": "validation", "epochs": 30, "patience": 2}
    config = SMALL.model_copy(update=update)
    model, curves, epoch = fit(graphs, np.arange(64), config, 0)
    assert len(curves.loss) == min(epoch + 2, 30)
    again, _, same_epoch = fit(graphs, np.arange(64), config.model_copy(update={"refit": True}), 0)
    assert same_epoch == epoch
    whole = fit(graphs, np.arange(64), SMALL.model_copy(update={"epochs": epoch}), 0)[0]
    assert same(weights(again), weights(whole)), "all graphs, for the chosen number of epochs"
    assert not same(weights(again), weights(model))
    assert again.config.epochs == epoch


def test_learning_rate_decays_in_steps(graphs, monkeypatch):
    rates = []
    original = FlatAdam.step

    def step(self):
        rates.append(self.lr)
        original(self)

    monkeypatch.setattr(FlatAdam, "step", step)
    fit(graphs, np.arange(16), SMALL.model_copy(update={"schedule": "step", "decay_every": 2, "lr": 0.01}), 0)
    np.testing.assert_allclose(rates, [0.01, 0.01, 0.001, 0.001])


def test_inner_split_is_stratified_and_leaves_every_class_in_training():
    labels = np.array([0] * 40 + [1] * 20 + [2])
    train, held = inner_split(labels, 0.1, 0)
    assert sorted(np.concatenate([train, held])) == list(range(61))
    assert np.bincount(labels[held], minlength=3).tolist() == [4, 2, 0]


def test_inner_split_keeps_groups_whole_and_leaves_every_class_in_training():
    labels = np.array([0] * 40 + [1] * 20 + [2])
    groups = np.append(np.arange(60) // 3, 99)
    for seed in range(10):
        train, held = inner_split(labels, 0.1, seed, groups)
        assert sorted(np.concatenate([train, held])) == list(range(61))
        assert len(held) == 6, "two groups of three fit into a tenth of 61"
        assert not set(groups[train]) & set(groups[held])
        assert 60 in train, "the only graph of its class"


def test_inner_split_holds_back_the_smallest_group_where_none_fits_and_single_graphs_where_there_is_one_group():
    values, groups = np.zeros((40, 1)), np.array([0] * 25 + [1] * 15)
    train, held = inner_split(values, 0.1, 0, groups)
    assert (set(groups[train]), set(groups[held])) == ({0}, {1})
    _, held = inner_split(values, 0.1, 0, np.zeros(40, dtype=int))
    assert len(held) == 4


def test_reproducible_gives_the_generator_back():
    torch.manual_seed(1)
    with reproducible(9, 1):
        inside = torch.rand(1)
    with reproducible(9, 1):
        assert torch.equal(torch.rand(1), inside)
    outside = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(1), outside)


def test_patience_ends_the_search_and_not_the_refit(graphs):
    config = SMALL.model_copy(
        update={"selection": "validation", "refit": True, "patience": 2, "epochs": 12, "validation": 0.25}
    )
    for seed in range(20):
        seen = []
        _, curves, best = fit(graphs, np.arange(64), config, seed, on_epoch=lambda e, to=seen: to.append(e.number))
        searched = len(curves.validation)
        assert seen[searched:] == list(range(1, best + 1))
        if best > 2:
            return
    pytest.fail("no search went on for longer than its patience")
