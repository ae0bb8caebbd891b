import numpy as np
import pytest

import gcaps
from gcaps import GraphCapsuleClassifier
from gcaps.models.gcaps import GCAPS
from gcaps.models.random_capsules import RandomCapsuleSVM
from gcaps.testing import hostile_graphs

SMALL = {"epochs": 2, "layers": 2, "hidden": 4, "rank": 4, "fc": 8}


@pytest.fixture(scope="module")
def graphs():
    return hostile_graphs(64, seed=7, largest=10)


def test_fit_predict_score_transform(graphs):
    y = np.where(graphs.y == 1, 40, -3)
    model = GraphCapsuleClassifier(**SMALL).fit(graphs, y)
    assert model.classes_.tolist() == [-3, 40]
    probabilities = model.predict_proba(graphs)
    assert probabilities.shape == (64, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert np.array_equal(model.predict(graphs), np.array([-3, 40])[probabilities.argmax(axis=1)])
    assert model.score(graphs, y) == np.mean(model.predict(graphs) == y)
    assert model.transform(graphs).shape == (64, 3 * (2 * 4 * 2 + 10 + 1))


def test_pyg_and_networkx_graphs_are_taken_as_they_are(graphs):
    model = GraphCapsuleClassifier(**SMALL).fit(graphs)
    expected = model.predict_proba(graphs[:8])
    np.testing.assert_allclose(model.predict_proba(graphs[:8].to_networkx()), expected, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(graphs[:8].to_pyg()), expected, atol=1e-6)


def test_predictions_compare_with_y_of_the_set():
    """On MUTAG, whose classes are −1 and 1, codes and classes must not be confused."""
    from sklearn.metrics import accuracy_score

    graphs = gcaps.load("MUTAG")
    model = GraphCapsuleClassifier(**SMALL).fit(graphs)
    assert set(model.predict(graphs)) <= {-1, 1}
    assert accuracy_score(graphs.y, model.predict(graphs)) == model.score(graphs) > 0.66


@pytest.mark.parametrize(
    ("given", "networks", "svm", "described"),
    [
        ({}, 3, True, "3 networks and an SVM on random capsules"),
        ({"ensemble_size": 1}, 1, True, "one network and an SVM on random capsules"),
        ({"with_svm": False}, 3, False, "3 networks,"),
        ({"selection": "validation"}, 3, False, "3 networks,"),
    ],
)
def test_a_small_set_has_an_ensemble_and_an_svm(graphs, given, networks, svm, described):
    model = GraphCapsuleClassifier(**SMALL, **given).fit(graphs)
    parts = [type(part) for part in model.fitted_.network.modules() if isinstance(part, GCAPS | RandomCapsuleSVM)]
    assert (RandomCapsuleSVM in parts) == svm
    assert parts.count(GCAPS) == networks + svm, "an SVM has capsules of its own"
    assert model.describes.startswith(described)
    assert (model.resolved_["ensemble_size"], model.resolved_["with_svm"]) == (networks, svm)


def test_importing_gcaps_loads_nothing_heavy():
    import subprocess
    import sys

    code = "import gcaps, sys; print([m for m in ('torch', 'numpy', 'sklearn', 'torch_geometric') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_training_and_prediction_do_not_import_torch_geometric():
    import subprocess
    import sys

    code = (
        "import sys, gcaps\n"
        "from gcaps.testing import hostile_graphs\n"
        "model = gcaps.GraphCapsuleClassifier(epochs=1, layers=1, hidden=2, rank=2, fc=2)\n"
        "model.fit(hostile_graphs(16)).predict(hostile_graphs(16))\n"
        "print('torch_geometric' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_every_public_name_is_there():
    for name in gcaps.__all__:
        if name != "pyg":
            assert getattr(gcaps, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = gcaps.nonsense
