"""Networks and support vector machines with fingerprints and descriptors beside the graph vector."""

from dataclasses import replace

import numpy as np
import pytest

import gcaps
import gcaps.models.gcaps as network_module
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError, DataError
from gcaps.estimators import GraphEnsembleRegressor, make_estimator
from gcaps.features.fingerprints import fingerprint, fingerprint_columns
from gcaps.testing import assert_batch_equals_singles, assert_permutation_invariant, hostile_graphs
from gcaps.training.checkpoint import Checkpoint

pytest.importorskip("rdkit")

SMALL = {"layers": 1, "hidden": 4, "rank": 4, "extra_features": "maccs,morgan_bits"}
SHORT = {**SMALL, "fc": 8, "epochs": 3}
BESIDE = {**SHORT, "ensemble_size": 2, "with_svm": True}
METHODS = [("gcaps", {**SHORT, "ensemble_size": 1, "with_svm": False}), ("gcaps", BESIDE), ("capsule-svm", SMALL)]
EACH = pytest.mark.parametrize(("method", "settings"), METHODS, ids=["network", "ensemble with SVM", "SVM"])


@pytest.fixture(scope="module")
def molecules():
    """Chains that differ in their heteroatoms and rings."""
    ends = ("", "O", "N", "Cl", "c1ccccc1", "C(=O)O")
    texts = [f"{'C' * length}{end}" for length in range(2, 9) for end in ends]
    return replace(gcaps.load(texts, labelled=False), y=np.arange(len(texts)) % 2)


@pytest.fixture(scope="module")
def targets(molecules):
    """Targets of every task."""
    some = np.arange(len(molecules), dtype=np.float64)
    several = np.stack([some % 2, some % 3 == 0], axis=1)
    several[0, 1] = np.nan
    return {"classification": molecules.y, "multilabel": several, "regression": some + 0.5}


def made(method, settings, task="classification"):
    return make_estimator(method, settings, task=task)


@EACH
@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
def test_saved_models_of_every_task_predict_the_same(method, settings, task, molecules, targets, tmp_path):
    weight = np.linspace(0.5, 2, len(molecules))
    model = made(method, settings, task).fit(molecules, targets[task], sample_weight=weight)
    model.save(tmp_path / "model")
    again = gcaps.load_model(tmp_path / "model")
    assert np.isfinite(model.scores(molecules)).all()
    assert (again.scores(molecules) == model.scores(molecules)).all()
    assert (again.transform(molecules) == model.transform(molecules)).all()
    assert again.fitted_.features.state() == model.fitted_.features.state()


@EACH
def test_graph_vectors_end_with_them(method, settings, molecules):
    model = made(method, settings).fit(molecules)
    extra = model.fitted_.features.graphs.encode(molecules)
    assert (model.transform(molecules)[:, -extra.shape[1] :] == extra).all()


@EACH
def test_order_of_nodes_and_company_change_nothing(method, settings, molecules):
    model = made(method, settings).fit(molecules)
    assert_permutation_invariant(model.predict_proba, molecules, atol=1e-5)
    assert_batch_equals_singles(model.predict_proba, molecules, atol=1e-5)


@EACH
def test_a_mapped_set_gives_the_predictions_of_one_in_memory(method, settings, molecules, tmp_path):
    molecules.save(tmp_path / "set")
    mapped = gcaps.GraphSet.open(tmp_path / "set")
    expected = made(method, settings).fit(molecules).predict_proba(molecules)
    found = made(method, settings).fit(mapped)
    np.testing.assert_allclose(found.predict_proba(mapped), expected, atol=2e-5)
    assert (found.predict_proba(mapped) == found.predict_proba(molecules)).all()


def learns(method, extra, train, test):
    """Whether the test graphs are predicted clearly better than by the mean."""
    settings = {"epochs": 60, "layers": 1, "hidden": 4, "fc": 16} if method == "gcaps" else {"layers": 1, "hidden": 4}
    model = made(
        method, {**settings, "extra_features": extra, "features": "constant", "edge_features": ()}, "regression"
    )
    return model.fit(train).score(test) > 0.8


@pytest.mark.parametrize("method", ["gcaps", "capsule-svm"])
def test_a_target_that_they_determine_is_learned(method):
    """The number of heteroatoms of chains of one length, which networks that see no labels cannot tell."""
    rng = np.random.default_rng(0)
    texts = ["C" + "".join(rng.choice(["C", "O", "N", "S"], 6)) + "C" for _ in range(160)]
    graphs = gcaps.load(texts, labelled=False)
    at = fingerprint_columns("descriptors").index("NumHeteroatoms")
    graphs = replace(graphs, y=fingerprint(graphs, "descriptors")[:, at].astype(np.float64) + 0.25)
    assert learns(method, "maccs,descriptors", graphs[:120], graphs[120:])
    assert not learns(method, "none", graphs[:120], graphs[120:])


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("extra", [{}, {"selection": "validation", "with_svm": False}])
def test_a_resumed_training_gives_the_same_predictions(molecules, tmp_path, monkeypatch, extra):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)

    def stop(epoch):
        if epoch.number == 2:
            raise StoppedError

    def train(graphs, **options):
        return made("gcaps", BESIDE | extra).fit_all(graphs, checkpoint=tmp_path / "kept", **options)

    expected = train(molecules).predict_proba(molecules)
    with pytest.raises(StoppedError):
        train(molecules, on_epoch=stop)
    seen = []
    others = replace(molecules, columns={"smiles": molecules.columns["smiles"][::-1]})
    with pytest.raises(StoppedError):  # the same arrays, other molecules
        train(others, on_epoch=lambda epoch: seen.append(epoch.number) or stop(epoch))
    assert seen == [1, 2]
    with pytest.raises(StoppedError):
        train(molecules, on_epoch=stop)
    seen = []
    found = train(molecules, on_epoch=lambda epoch: seen.append(epoch.number)).predict_proba(molecules)
    assert seen == [3]
    assert (found == expected).all()


def test_test_graphs_do_not_reach_the_fit(molecules):
    train, test = np.arange(0, 30), np.arange(30, len(molecules))
    texts = molecules.columns["smiles"].copy()
    texts[test] = "CS(C)(=O)=O"
    others = replace(molecules, columns={"smiles": texts})
    one, two = (made("gcaps", BESIDE).fit_prepared(PreparedSet(graphs), train) for graphs in (molecules, others))
    assert one.fitted_.features.state() == two.fitted_.features.state()
    assert (one.predict_proba(molecules) == two.predict_proba(molecules)).all()


def test_compiled_layers_stay_in_use(molecules, monkeypatch):
    calls, stack = [], network_module.capsule_stack
    monkeypatch.setattr(network_module, "capsule_stack", lambda *given: calls.append(1) or stack(*given))
    made(*METHODS[0]).fit(molecules)
    assert len(calls) == 3, "one batch in each of three epochs"


def test_graphs_that_are_not_molecules_are_refused_in_one_line(molecules):
    with pytest.raises(DataError, match=r"^extra_features: maccs needs molecules"):
        made(*METHODS[0]).fit(hostile_graphs(16))
    with pytest.raises(DataError, match=r"^extra_features: maccs needs molecules"):
        made(*METHODS[0]).fit(molecules).predict(replace(molecules, columns={}))


def test_names_may_be_a_string_or_none():
    assert gcaps.GraphCapsuleClassifier(extra_features="morgan, maccs").config.extra_features == ("morgan", "maccs")
    for none in (None, "none", "", ()):
        assert gcaps.GraphCapsuleClassifier(extra_features=none).config.extra_features == ()
    with pytest.raises(ConfigError, match="extra_features"):
        _ = gcaps.GraphCapsuleClassifier(extra_features="ecfp").config


def test_a_member_of_an_ensemble_may_have_extra_features(molecules, targets):
    y = targets["regression"]
    plain, extra = (
        make_estimator("capsule-svm", {"extra_features": names}, task="regression").fit(molecules, y)
        for names in ("none", "maccs,morgan")
    )
    both = GraphEnsembleRegressor(["capsule-svm", "capsule-svm+maccs+morgan"], weights="mean").fit(molecules, y)
    assert not np.allclose(plain.predict(molecules), extra.predict(molecules))
    expected = (plain.predict(molecules) + extra.predict(molecules)) / 2
    np.testing.assert_allclose(both.predict(molecules), expected, rtol=1e-12)


def test_the_members_of_an_ensemble_depend_on_the_task(molecules, targets, monkeypatch):
    made_of = []

    def cheap(name, settings, random_state, task):
        made_of.append((name, settings, task))
        return make_estimator("ecfp", {"n_estimators": 2}, random_state, task)

    monkeypatch.setattr("gcaps.estimators.members.make_estimator", cheap)
    model = GraphEnsembleRegressor(weights="mean").fit(molecules, targets["regression"])
    assert model.resolved_["methods"] == ["gcaps", "gcaps+descriptors", "descriptors"]
    assert made_of == [
        ("gcaps", None, "regression"),
        ("gcaps", {"extra_features": "descriptors"}, "regression"),
        ("descriptors", None, "regression"),
    ]
    model = gcaps.GraphEnsemble(weights="mean").fit(molecules, targets["classification"])
    assert model.resolved_["methods"] == ["gcaps", "gcaps+descriptors", "ecfp", "descriptors", "tanimoto"]
