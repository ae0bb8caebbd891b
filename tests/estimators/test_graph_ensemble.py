"""Ensembles of methods: honest, bounded in time and memory, resumable, the same for any number of processes."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import gcaps
import gcaps.estimators.ensemble as ensemble
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError, MemoryLimitError
from gcaps.estimators import GraphEnsemble, GraphEnsembleRegressor, KernelSVC, make_estimator
from gcaps.estimators.out_of_fold import Folds, InnerFolds, comparable
from gcaps.estimators.portfolio import PORTFOLIO
from gcaps.estimators.registry import METHODS
from gcaps.estimators.search import Search
from gcaps.kernels import WeisfeilerLehman
from gcaps.testing import hostile_graphs

TASKS = ("classification", "multilabel", "regression")
EACH = pytest.mark.parametrize("task", TASKS)
QUICK = {
    "wl": {"n_iter": (1, 2), "C": (1.0,), "inner_folds": 2},
    "sp": {"C": (1.0,), "inner_folds": 2},
    "wloa": {"n_iter": (1,), "C": (1.0,), "inner_folds": 2},
    "fgsd": {"bins": 10, "n_estimators": 10},
    "deepsets": {"epochs": 3, "hidden": 8},
}


def quick(task, *names):
    """Members with settings of short fits."""
    return [make_estimator(name, QUICK[name], task=task) for name in names or ("wl", "sp", "fgsd", "deepsets")]


def targets(task, graphs):
    rng = np.random.default_rng(1)
    size = graphs.sizes + rng.normal(size=len(graphs))
    if task == "classification":
        return np.array(["a", "b", "c"])[np.digitize(size, np.quantile(size, [0.4, 0.7]))]
    if task == "multilabel":
        y = np.stack([size > np.median(size), rng.uniform(size=len(graphs)) < 0.5], axis=1).astype(float)
        y[::9, 1] = np.nan
        return y
    y = np.stack([10 + 3 * size, rng.normal(size=len(graphs))], axis=1)
    y[::9, 1] = np.nan
    return y


@pytest.fixture(scope="module")
def graphs():
    return hostile_graphs(60, seed=11, largest=12)


def made(task, members=None, **settings):
    kind = GraphEnsembleRegressor if task == "regression" else GraphEnsemble
    return kind(members or quick(task), **settings)


@EACH
def test_every_kind_of_target(task, graphs, tmp_path):
    y = targets(task, graphs)
    model = made(task, inner_folds=3).fit(graphs[:45], y[:45])
    scores = model.scores(graphs[45:])
    assert np.isfinite(scores).all()
    if task == "classification":
        np.testing.assert_allclose(scores.sum(axis=1), 1)
    rows = model.leaderboard_
    assert [row["member"] for row in rows] == ["wl", "sp", "fgsd", "deepsets"]
    assert sum(row["weight"] for row in rows) == pytest.approx(1)
    assert model.weights_.sum() == pytest.approx(1)
    assert all(row["kept"] or row["reason"] for row in rows)
    model.save(tmp_path / "m")
    again = gcaps.load_model(tmp_path / "m")
    np.testing.assert_array_equal(again.scores(graphs[45:]), scores)
    assert again.leaderboard_ == rows
    assert again.describes == model.describes
    assert json.loads(json.dumps(model.chosen_)) == model.chosen_


@EACH
def test_scores_are_the_weighted_mean_of_calibrated_members(task, graphs):
    y = targets(task, graphs)
    model = made(task, quick(task, "wl", "fgsd"), inner_folds=3).fit(graphs[:45], y[:45])
    new = graphs[45:]
    expected = np.zeros_like(model.scores(new))
    for member, weight, calibration in zip(model.estimators_, model.weights_, model.calibrations_, strict=True):
        own = comparable(member, model.target_, member.scores(new))
        own = calibration.apply(task, own)
        expected += weight * (own * model.target_.scale + model.target_.mean if task == "regression" else own)
    np.testing.assert_allclose(model.scores(new), expected, rtol=1e-10)


@EACH
def test_nothing_of_other_graphs_reaches_the_fit(task, graphs):
    y, train = targets(task, graphs), np.arange(40)
    other = hostile_graphs(60, seed=12, largest=9)
    changed = y.copy()
    changed[40:] = y[40:][::-1]
    swapped = gcaps.load([*graphs.subset(train).to_pyg(), *other.subset(np.arange(40, 60)).to_pyg()], labelled=False)
    fits = []
    for own, labels in ((graphs, y), (graphs, changed), (swapped, y)):
        model = made(task, inner_folds=3)
        model.fit_prepared(PreparedSet(replace(own, y=labels)), train)
        fits.append(model)
    for model in fits[1:]:
        np.testing.assert_array_equal(model.weights_, fits[0].weights_)
        assert [c.to_dict() for c in model.calibrations_] == [c.to_dict() for c in fits[0].calibrations_]
        np.testing.assert_allclose(model.scores(graphs), fits[0].scores(graphs), rtol=1e-9, atol=1e-12)


@EACH
def test_held_out_scores_come_from_members_fitted_without_them(task, graphs, monkeypatch):
    seen = {}
    weigh = ensemble.weigh

    def spy(truth, scores, blocks, rule):
        seen.update(scores=scores, blocks=blocks)
        return weigh(truth, scores, blocks, rule)

    monkeypatch.setattr(ensemble, "weigh", spy)
    y = targets(task, graphs)
    model = made(task, quick(task, "sp"), inner_folds=3).fit(graphs, y)
    (member,) = quick(task, "sp")
    for block in range(3):
        held = seen["blocks"] == block
        own = clone(member).fit(graphs.subset(np.flatnonzero(~held)), y[~held])
        scores = own.scores(graphs.subset(np.flatnonzero(held)))
        np.testing.assert_allclose(seen["scores"][0][held], comparable(own, model.target_, scores), atol=1e-8)


@pytest.mark.parametrize("jobs", [2])
def test_the_number_of_processes_changes_nothing(jobs, graphs):
    y = targets("classification", graphs)
    one, several = (made("classification", inner_folds=3, n_jobs=n).fit(graphs, y) for n in (1, jobs))
    np.testing.assert_array_equal(one.weights_, several.weights_)
    np.testing.assert_array_equal(one.predict_proba(graphs), several.predict_proba(graphs))


def test_folds_of_a_prepared_set_are_those_of_single_fits(graphs):
    y = targets("classification", graphs)
    prepared, train = PreparedSet(replace(graphs, y=y)), np.arange(0, 60, 2)
    model = made("classification", inner_folds=3)
    model.prepare(prepared)
    model.fit_prepared(prepared, train)
    alone = made("classification", inner_folds=3).fit(graphs.subset(train), y[train])
    np.testing.assert_allclose(model.scores_prepared(prepared, np.arange(60)), alone.scores(graphs), atol=1e-6)


def test_networks_of_the_inner_folds_are_averaged(graphs):
    y = targets("classification", graphs)
    model = made("classification", quick("classification", "deepsets"), inner_folds=3).fit(graphs, y)
    (bag,) = model.estimators_
    assert len(bag.estimators_) == 3
    mean = np.mean([m.predict_proba(graphs) for m in bag.estimators_], axis=0)
    np.testing.assert_allclose(bag.predict_proba(graphs), mean, rtol=1e-6)
    assert model.describes.startswith("1.00 × 3 times one network")


class Clock:
    """A clock that moves when a member is fitted."""

    def __init__(self, monkeypatch, cost):
        self.time, self.fits = 100.0, []
        monkeypatch.setattr(ensemble, "now", lambda: self.time)
        fold = Folds._fold

        def costly(folds, member, number, path):
            self.time += cost[member.name]
            self.fits.append(member.name)
            return fold(folds, member, number, path)

        monkeypatch.setattr(Folds, "_fold", costly)


def test_what_does_not_fit_into_the_time_is_never_started(graphs, monkeypatch):
    clock = Clock(monkeypatch, {"wl": 1, "sp": 1, "fgsd": 30, "wloa": 2})
    members = quick("classification", "wl", "sp", "fgsd", "wloa")
    model = made("classification", members, inner_folds=3, time_limit="40s", weights="equal")
    model.fit(graphs, targets("classification", graphs))
    rows = {row["member"]: row for row in model.leaderboard_}
    assert clock.fits == ["wl"] * 3 + ["sp"] * 3 + ["fgsd"]  # its first fold tells that the others do not fit
    assert "needs about" in rows["fgsd"]["reason"]
    assert "needs about" in rows["wloa"]["reason"]
    assert [row["member"] for row in model.leaderboard_ if row["kept"]] == ["wl", "sp"]
    assert clock.time <= 140


def test_one_member_is_fitted_however_little_time_there_is(graphs, monkeypatch):
    Clock(monkeypatch, {"wl": 1000, "sp": 1})
    model = made("classification", quick("classification", "wl", "sp"), inner_folds=3, time_limit=5)
    model.fit(graphs, targets("classification", graphs))
    assert [m.method for m in model.estimators_] == ["wl"]
    assert model.resolved_["time_limit"] == "5"


def test_a_search_ends_when_members_do_not_help(graphs, monkeypatch):
    Clock(monkeypatch, dict.fromkeys(["wl", "wl#2", "wl#3", "wl#4", "wl#5", "sp"], 1.0))
    losses = iter([1.0, 0.9, 0.91, 0.92, 0.93])
    monkeypatch.setattr(Search, "_loss", lambda self, standings: next(losses))
    members = [*quick("classification", *["wl"] * 5), *quick("classification", "sp")]
    model = made("classification", members, inner_folds=3, time_limit="1h").fit(
        graphs, targets("classification", graphs)
    )
    assert model.leaderboard_[-1]["reason"] == "the last 3 members did not help"
    assert len([row for row in model.leaderboard_ if row["score"] is not None]) == 5


def test_gram_matrices_that_do_not_fit_are_not_computed(graphs):
    y = targets("classification", graphs)
    members = quick("classification", "sp", "wl", "fgsd")  # one matrix of 60² doubles is 28 kB
    model = made("classification", members, inner_folds=3, memory_limit="120k").fit(graphs, y)
    reasons = {row["member"]: row["reason"] for row in model.leaderboard_}
    assert reasons["wl"].startswith("its Gram matrices need")
    assert {m.method for m in model.estimators_} <= {"sp", "fgsd"}
    prepared = PreparedSet(replace(graphs, y=y))
    model.prepare(prepared)
    assert len([key for key in prepared._results if key[0] == "grams"]) == 1
    with pytest.raises(MemoryLimitError, match="no member of the ensemble can be fitted"):
        made("classification", quick("classification", "wl"), memory_limit="1k").fit(graphs, y)


class KilledError(Exception):
    """Stands for a signal."""


def test_an_interrupted_fit_goes_on_with_finished_members(graphs, tmp_path, monkeypatch):
    train = replace(graphs, y=targets("classification", graphs))
    whole = made("classification", inner_folds=3).fit_all(train)
    fold, done = Folds._fold, []

    def dies(folds, member, number, path):
        if member.name == "deepsets" and number == 1 and len(done) < 11:
            raise KilledError
        done.append(member.name)
        return fold(folds, member, number, path)

    monkeypatch.setattr(Folds, "_fold", dies)
    with pytest.raises(KilledError):
        made("classification", inner_folds=3).fit_all(train, checkpoint=tmp_path / "c")
    assert done == ["wl"] * 3 + ["sp"] * 3 + ["fgsd"] * 3 + ["deepsets"]
    (tmp_path / "c" / "stray.npz").write_bytes(b"damaged")
    done.append("again")
    resumed = made("classification", inner_folds=3).fit_all(train, checkpoint=tmp_path / "c")
    assert done[11:] == ["deepsets"] * 2
    assert resumed.predict_proba(graphs).tobytes() == whole.predict_proba(graphs).tobytes()
    assert not (tmp_path / "c").exists()


def test_results_of_other_data_or_settings_are_not_taken_up(graphs, tmp_path, monkeypatch):
    monkeypatch.setattr("gcaps.estimators.out_of_fold.Store.remove", lambda self: None)
    y = targets("classification", graphs)
    fold, done = Folds._fold, []
    monkeypatch.setattr(Folds, "_fold", lambda self, m, n, path: done.append(m.name) or fold(self, m, n, path))

    def fits(y=y, seed=0, members=("sp",), **options):
        done.clear()
        model = made("classification", quick("classification", *members), inner_folds=3, random_state=seed)
        model.fit_all(replace(graphs, y=y), checkpoint=tmp_path, **options)
        return len(done)

    assert fits() == 3
    assert fits() == 0
    assert fits(y=y[::-1]) == 3
    assert fits(seed=1) == 3
    assert fits(sample_weight=np.linspace(1, 2, 60)) == 3
    assert fits(groups=np.arange(60) // 2) == 3
    next(tmp_path.glob("sp-0-*.npz")).write_bytes(b"damaged")
    assert fits() + fits(y=y[::-1]) + fits(seed=1) >= 1


def test_groups_are_kept_whole_and_validation_graphs_are_the_only_fold(graphs):
    model, y = made("classification"), targets("classification", graphs)
    prepared, groups = PreparedSet(replace(graphs, y=y)), np.arange(60) // 4
    problem = model._start(prepared, np.arange(60), {})
    inner = InnerFolds.of(problem, 5, 0, {"groups": groups})
    for learn, check in inner.splits:
        assert not set(groups[learn]) & set(groups[check])
    assert sorted(inner.rows) == list(range(60))
    single = InnerFolds.of(problem, 5, 0, {"groups": groups, "validation": np.arange(40, 60)})
    assert len(single.splits) == 1
    np.testing.assert_array_equal(single.rows, np.arange(40, 60))
    np.testing.assert_array_equal(single.splits[0][0], np.arange(40))
    assert all(len(set(single.blocks[groups[40:] == g])) == 1 for g in set(groups[40:]))
    fitted = made("classification").fit_all(prepared.graphs, validation=np.arange(40, 60))
    assert all(not getattr(m, "estimators_", []) for m in fitted.estimators_)  # nothing is averaged


def test_too_few_graphs_give_the_plain_mean(graphs):
    y = np.array(["a"] + ["b"] * 11)
    model = GraphEnsemble(quick("classification", "wl", "sp")).fit(graphs[:12], y)
    assert model.rule_ == "mean"
    np.testing.assert_array_equal(model.weights_, [0.5, 0.5])


def test_weights_of_graphs_and_classes_reach_members_and_weights(graphs):
    y = targets("classification", graphs)
    plain = made("classification", ["sp", "fgsd"], inner_folds=3).fit(graphs, y)
    by_class = made("classification", ["sp", "fgsd"], inner_folds=3, class_weight={"a": 9.0}).fit(graphs, y)
    by_graph = made("classification", ["sp", "fgsd"], inner_folds=3).fit(graphs, y, np.where(y == "a", 9.0, 1.0))
    np.testing.assert_allclose(by_class.predict_proba(graphs), by_graph.predict_proba(graphs), atol=1e-9)
    assert by_class.predict_proba(graphs)[:, 0].mean() > plain.predict_proba(graphs)[:, 0].mean() + 0.05
    zero = np.ones(60)
    zero[40:] = 0
    some = made("classification", ["sp"], inner_folds=3).fit(graphs, y, zero)
    few = made("classification", ["sp"], inner_folds=3).fit(graphs[:40], y[:40])
    np.testing.assert_allclose(some.predict_proba(graphs), few.predict_proba(graphs), atol=1e-12)


def test_members_of_little_weight_are_left_out(graphs, monkeypatch):
    monkeypatch.setattr(ensemble, "LEAST_WEIGHT", 0.4)
    monkeypatch.setattr(ensemble, "LEAST_COSTLY_WEIGHT", 0.5)
    y = targets("regression", graphs)[:, :1]
    model = GraphEnsembleRegressor(quick("regression"), weights="stacked", inner_folds=3).fit(graphs, y)
    left = [row for row in model.leaderboard_ if not row["kept"]]
    assert left
    assert all("is below" in row["reason"] for row in left)
    assert len(model.estimators_) == 4 - len(left) == len(model.weights_)


def test_a_failing_member_is_an_error_only_if_it_was_asked_for(graphs, monkeypatch):
    y = targets("classification", graphs)
    with pytest.raises(gcaps.errors.DataError, match="molecules"):
        GraphEnsemble("sp,ecfp", inner_folds=3).fit(graphs, y)
    monkeypatch.setattr("gcaps.estimators.auto.portfolio_names", lambda count: ("ecfp", "sp"))
    model = GraphEnsemble(inner_folds=3).fit(graphs, y)
    assert "molecules" in model.leaderboard_[0]["reason"]
    assert [m.method for m in model.estimators_] == ["sp"]


def test_settings_and_parameters(graphs):
    own = KernelSVC(WeisfeilerLehman(1))
    model = GraphEnsemble(["sp", own], time_limit=90, memory_limit="2G", n_jobs=2)
    again = clone(model)
    assert again.get_params(deep=False)["methods"][0] == "sp"
    assert again.config.time_limit == "90"
    assert GraphEnsemble("wl,sp").config.methods == ("wl", "sp")
    for wrong in ({"time_limit": "soon"}, {"memory_limit": "-1"}, {"weights": "best of all"}, {"inner_folds": 1}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            GraphEnsemble(["sp"], **wrong).fit(graphs, targets("classification", graphs))
    with pytest.raises(ConfigError, match="at least one"):
        GraphEnsemble([]).fit(graphs, targets("classification", graphs))


def test_the_portfolio_names_methods():
    names = [entry.name for entry in PORTFOLIO]
    assert set(names) <= set(METHODS)
    assert len(set(names)) == len(names)
