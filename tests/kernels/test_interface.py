"""The common interface of all kernels."""

import subprocess
import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils import get_tags

from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError, DataError
from gcaps.kernels import (
    DeepGraphKernel,
    Graphlet,
    MultiscaleLaplacian,
    RandomWalk,
    ReturnProbability,
    ShortestPath,
    WassersteinWL,
    WeisfeilerLehman,
    WLOptimalAssignment,
)
from gcaps.kernels.base import GraphKernel
from gcaps.testing import assert_permutation_invariant, hostile_graphs

KERNELS = {
    "rw": RandomWalk(1e-2, diverging="damp"),
    "rw-unlabelled": RandomWalk(1e-2, labels=False, diverging="damp"),
    "sp": ShortestPath(),
    "gk": Graphlet(4),
    "gk-sampled": Graphlet(5, samples=50),
    "wl": WeisfeilerLehman(3),
    "wloa": WLOptimalAssignment(3),
    "dgk-wl": DeepGraphKernel("wl", dimension=8),
    "dgk-sp": DeepGraphKernel("sp", dimension=8),
    "dgk-graphlet": DeepGraphKernel("graphlet", dimension=8, size=4),
    "mlg": MultiscaleLaplacian(2, samples=20, rank=5),
    "wwl": WassersteinWL(3),
    "retgk": ReturnProbability(n_features=20),
    "retgk-exact": ReturnProbability(exact=True, steps=10),
}
ALL = pytest.mark.parametrize("kernel", list(KERNELS.values()), ids=list(KERNELS))


def normalized(kernel: GraphKernel, normalize: bool) -> GraphKernel:
    """An unfitted copy with this ``normalize``, where it is a parameter."""
    made: GraphKernel = clone(kernel)
    return made.set_params(normalize=normalize) if "normalize" in made.get_params() else made


@ALL
@pytest.mark.parametrize("normalize", [False, True])
def test_gram_is_finite_symmetric_and_positive_semidefinite_on_hostile_graphs(
    kernel: GraphKernel, normalize: bool
) -> None:
    graphs = hostile_graphs(24, seed=1, largest=10)
    K = normalized(kernel, normalize).fit_transform(graphs)
    assert K.shape == (24, 24)
    assert np.isfinite(K).all()
    np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-12)
    assert np.linalg.eigvalsh((K + K.T) / 2).min() >= -1e-9 * max(1.0, np.abs(K).max())
    if normalize:
        np.testing.assert_allclose(K.diagonal()[K.diagonal() > 0], 1)


@ALL
@pytest.mark.parametrize("normalize", [False, True])
def test_transform_of_training_graphs_is_their_gram(kernel: GraphKernel, normalize: bool) -> None:
    graphs = hostile_graphs(16, seed=2, largest=8)
    made = normalized(kernel, normalize)
    K = made.fit_transform(graphs)
    np.testing.assert_allclose(made.transform(graphs), K, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["rw", "rw-unlabelled", "sp", "gk", "gk-sampled", "wl", "wloa", "wwl"])
def test_pairwise_kernels_do_not_depend_on_the_training_graphs(name: str) -> None:
    graphs = hostile_graphs(24, seed=3, largest=8)
    kernel = normalized(KERNELS[name], True)
    assert kernel.pairwise(graphs)
    whole = kernel.fit_transform(graphs)
    train, test = np.arange(0, 24, 2), np.arange(1, 24, 2)
    inside = kernel.fit_transform(graphs.subset(train))
    across = kernel.transform(graphs.subset(test))
    np.testing.assert_allclose(inside, whole[np.ix_(train, train)], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(across, whole[np.ix_(test, train)], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", ["rw", "rw-unlabelled", "sp", "gk", "wl", "wloa", "wwl"])
def test_node_order_changes_nothing(name: str) -> None:
    graphs = hostile_graphs(16, seed=4, largest=8)
    kernel = normalized(KERNELS[name], True)
    assert_permutation_invariant(kernel.fit_transform, graphs, atol=1e-9)


def test_node_order_changes_nothing_for_a_learned_basis() -> None:
    graphs = hostile_graphs(16, seed=4, largest=8)
    for name in ("dgk-wl", "dgk-sp", "dgk-graphlet", "mlg"):
        kernel = normalized(KERNELS[name], True).fit(graphs)
        assert_permutation_invariant(kernel.transform, graphs, atol=1e-8)


@ALL
def test_clones_give_the_same_gram(kernel: GraphKernel) -> None:
    graphs = load("MUTAG").subset(range(12))
    np.testing.assert_array_equal(clone(kernel).fit_transform(graphs), clone(kernel).fit_transform(graphs))


@ALL
def test_parameters_are_stored_as_given_and_checked_in_fit(kernel: GraphKernel) -> None:
    graphs = hostile_graphs(8, largest=6)
    params = kernel.get_params()
    assert all(clone(kernel).get_params()[name] == value for name, value in params.items())
    if "random_state" in params:
        with pytest.raises(ConfigError, match="random_state must be an integer from 0 to 4294967295, not None"):
            clone(kernel).set_params(random_state=None).fit(graphs)


@pytest.mark.parametrize("name", [name for name, kernel in KERNELS.items() if "n_jobs" in kernel.get_params()])
def test_n_jobs_changes_nothing(name: str) -> None:
    graphs = hostile_graphs(24, seed=7, largest=8)
    one, *others = (clone(KERNELS[name]).set_params(n_jobs=n_jobs).fit_transform(graphs) for n_jobs in (1, 3, -1, None))
    for K in others:
        np.testing.assert_array_equal(K, one)
    if name not in ("rw-unlabelled", "retgk"):  # they need no threads
        with pytest.raises(ConfigError, match="n_jobs must not be 0"):
            clone(KERNELS[name]).set_params(n_jobs=0).fit(graphs)


@ALL
def test_columns_are_named_and_graphs_are_not_a_pairwise_input(kernel: GraphKernel) -> None:
    graphs = hostile_graphs(8, largest=6)
    fitted = clone(kernel).fit(graphs)
    prefix = type(kernel).__name__.lower()
    assert fitted.get_feature_names_out().tolist() == [f"{prefix}{i}" for i in range(8)]
    tags = get_tags(make_pipeline(kernel, SVC(kernel="precomputed")))
    assert not get_tags(kernel).input_tags.pairwise
    assert not tags.input_tags.pairwise
    assert get_tags(kernel).transformer_tags is not None


def test_importing_the_package_compiles_and_loads_nothing() -> None:
    code = "import sys, gcaps.kernels; print(any(m in sys.modules for m in ('numba', 'sklearn', 'gcaps.kernels.base')))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_grid_search_over_kernel_and_svm() -> None:
    graphs = load("MUTAG").subset(range(60))
    pipeline = make_pipeline(WeisfeilerLehman(), SVC(kernel="precomputed"))
    search = GridSearchCV(pipeline, {"weisfeilerlehman__n_iter": [0, 2], "svc__C": [1, 100]}, cv=3)
    search.fit(graphs, graphs.y)
    assert search.best_score_ > 0.7
    assert search.predict(graphs).shape == (60,)


@pytest.mark.parametrize("name", ["sp", "wl", "wloa"])
def test_unseen_labels_match_nothing_of_training_but_each_other(name: str) -> None:
    graphs = hostile_graphs(8, seed=5, largest=6)
    foreign = replace(graphs, node_labels=graphs.node_labels + 100)
    kernel = clone(KERNELS[name]).set_params(normalize=False).fit(graphs)
    np.testing.assert_array_equal(kernel.transform(foreign), 0)
    own = kernel.features(foreign)
    np.testing.assert_allclose((own @ own.T).toarray(), clone(kernel).fit_transform(graphs), rtol=1e-12)
    assert np.isfinite(clone(kernel).set_params(normalize=True).fit(graphs).transform(foreign)).all()


def test_labels_that_are_missing_in_one_set_are_an_error() -> None:
    graphs = hostile_graphs(8)
    kernel = WeisfeilerLehman().fit(graphs)
    with pytest.raises(DataError, match="0 columns of node labels; the kernel was fitted on 1"):
        kernel.transform(replace(graphs, node_labels=None))


@ALL
def test_sets_without_node_labels_work(kernel: GraphKernel) -> None:
    graphs = GraphSet.from_networkx([nx.star_graph(5), nx.cycle_graph(6), nx.empty_graph(1), nx.path_graph(7)])
    K = normalized(kernel, True).fit_transform(graphs)
    assert np.isfinite(K).all()
    assert K[0, 0] == pytest.approx(1)


def test_verbose_shows_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    ShortestPath(verbose=True).fit(hostile_graphs(8))
    assert "shortest paths" in capsys.readouterr().err
    ShortestPath().fit(hostile_graphs(8))
    assert capsys.readouterr().err == ""
