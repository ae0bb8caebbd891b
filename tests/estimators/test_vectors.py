"""Vectors of graphs, and nearest neighbors among them."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import gcaps
from gcaps.errors import ConfigError
from gcaps.estimators.registry import make_estimator
from gcaps.estimators.vectors import GraphVectors, nearest, nystrom_features
from gcaps.testing import example_graphs


@pytest.fixture(scope="module")
def graphs():
    return example_graphs(30)[0]


def test_nystrom_features_reproduce_a_gram_matrix():
    x = np.random.default_rng(0).normal(size=(12, 5))
    K = x @ x.T
    features = K @ nystrom_features(K)
    assert features.shape == (12, 5), "zero eigenvalues are left out"
    np.testing.assert_allclose(features @ features.T, K, atol=1e-10)
    assert (np.diff((features**2).sum(axis=0)) <= 1e-9).all(), "the largest eigenvalue first"


@pytest.mark.parametrize("method", ["wl", "sp", "retgk"])
def test_inner_products_with_support_graphs_are_the_values_of_the_kernel(graphs, method, tmp_path):
    model = make_estimator(method, {"C": (1.0,)}).fit(graphs)
    vectors = GraphVectors(model)(graphs)
    K = model.transform(graphs)
    gram = model.kernel_.training_gram()
    support = gram @ nystrom_features(gram)
    np.testing.assert_allclose(vectors @ support.T, K, atol=1e-5)
    model.save(tmp_path / "m")
    np.testing.assert_allclose(GraphVectors(gcaps.load_model(tmp_path / "m"))(graphs), vectors, atol=1e-9)


def test_vectors_of_networks_and_trees_are_those_of_transform(graphs):
    for method, settings in (("deepsets", {"epochs": 1}), ("fgsd", {"n_estimators": 3})):
        model = make_estimator(method, settings).fit(graphs)
        np.testing.assert_array_equal(GraphVectors(model)(graphs), model.transform(graphs))


def test_an_ensemble_has_no_vectors_and_says_what_to_do():
    with pytest.raises(ConfigError, match=r"has no vectors of graphs.*gcaps train --method gcaps"):
        GraphVectors(make_estimator("ensemble"))


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
@pytest.mark.parametrize("same", [False, True])
def test_nearest_neighbors_are_those_of_the_whole_matrix_of_distances(distance, same, monkeypatch):
    monkeypatch.setattr("gcaps.estimators.vectors.VALUES", 100)
    rng = np.random.default_rng(1)
    others = np.concatenate([rng.normal(size=(30, 4)), 1e4 + rng.normal(size=(10, 4))])
    own = others if same else rng.normal(size=(17, 4))
    gaps = cdist(own, others, distance)
    if same:
        np.fill_diagonal(gaps, np.inf)
    parts = list(nearest(own, others, 3, distance, same=same))
    assert len(parts) > 2, "in pieces"
    places, found = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    np.testing.assert_allclose(found, np.sort(gaps, axis=1)[:, :3], atol=1e-9)
    np.testing.assert_allclose(np.take_along_axis(gaps, places, 1), found, atol=1e-9)


def test_equal_graphs_are_neighbors_at_distance_zero_in_their_order():
    x = np.repeat(np.eye(2), 3, axis=0)
    (part,) = nearest(x, x, 2, same=True)
    assert part.places.tolist() == [[1, 2], [0, 2], [0, 1], [4, 5], [3, 5], [3, 4]]
    assert not part.distances.any()


def test_more_neighbors_than_graphs_are_all_of_them():
    (part,) = nearest(np.eye(3), np.eye(3), 10, same=True)
    assert part.places.shape == (3, 2)
    with pytest.raises(ConfigError, match="too few graphs"):
        list(nearest(np.eye(1), np.eye(1), 1, same=True))
