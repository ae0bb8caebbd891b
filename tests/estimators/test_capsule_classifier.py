import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import gcaps
from gcaps import GraphCapsuleClassifier, load_model
from gcaps.config import SEVERAL
from gcaps.errors import ConfigError, DataError
from gcaps.testing import hostile_graphs

SMALL = {"epochs": 2, "layers": 2, "hidden": 4, "rank": 4, "fc": 8}


@pytest.fixture(scope="module")
def graphs():
    return hostile_graphs(64, seed=7, largest=10)


def test_fit_predict_score_transform(graphs):
    y = np.where(graphs.labels == 1, 40, -3)
    model = GraphCapsuleClassifier(**SMALL).fit(graphs, y)
    assert model.classes_.tolist() == [-3, 40]
    probabilities = model.predict_proba(graphs)
    assert probabilities.shape == (64, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert np.array_equal(model.predict(graphs), np.array([-3, 40])[probabilities.argmax(axis=1)])
    assert model.score(graphs, y) == np.mean(model.predict(graphs) == y)
    assert model.transform(graphs).shape == (64, SEVERAL * (2 * 4 * 2 + 10 + 1))


def test_pyg_and_networkx_graphs_are_taken_as_they_are(graphs):
    model = GraphCapsuleClassifier(**SMALL).fit(graphs)
    expected = model.predict_proba(graphs[:8])
    np.testing.assert_allclose(model.predict_proba(graphs[:8].to_networkx()), expected, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(graphs[:8].to_pyg()), expected, atol=1e-6)


def test_saved_and_loaded_it_predicts_the_same(graphs, tmp_path):
    model = GraphCapsuleClassifier(seed=3, **SMALL).fit(graphs)
    model.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert np.array_equal(again.predict_proba(graphs), model.predict_proba(graphs))
    assert again.get_params() | {"verbose": False} == model.get_params()


def test_clone_get_params_and_grid_search_work(graphs):
    model = GraphCapsuleClassifier(hidden=5, seed=2)
    assert clone(model).get_params() == model.get_params()
    assert model.get_params()["hidden"] == 5
    assert model.set_params(hidden=6).config.hidden == 6
    y = graphs.labels
    scores = cross_val_score(GraphCapsuleClassifier(**SMALL), graphs, y, cv=2)
    assert scores.shape == (2,)
    search = GridSearchCV(GraphCapsuleClassifier(**SMALL), {"capsule_size": [1, 2]}, cv=2).fit(graphs, y)
    assert search.best_params_["capsule_size"] in (1, 2)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_mistakes_are_named(graphs):
    with pytest.raises(TypeError, match="unknown settings: wings"):
        GraphCapsuleClassifier(wings=2)
    with pytest.raises(ConfigError, match="hidden"):
        GraphCapsuleClassifier(hidden=0).fit(graphs)
    with pytest.raises(DataError, match="at least two classes"):
        GraphCapsuleClassifier(**SMALL).fit(graphs, np.zeros(64, dtype=int))
    with pytest.raises(DataError, match="64 integers"):
        GraphCapsuleClassifier(**SMALL).fit(graphs, np.zeros(3, dtype=int))


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
