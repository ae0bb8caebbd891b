"""Edge labels count where a kernel's definition has them, by default where the training graphs have them."""

from dataclasses import replace
from typing import Any

import grakel
import numpy as np
import pytest
from sklearn.base import clone

from gcaps.data.arrays import pointer
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError, DataError
from gcaps.estimators import make_estimator
from gcaps.kernels import DeepGraphKernel, RandomWalk, WeisfeilerLehman, WLOptimalAssignment
from gcaps.kernels.base import GraphKernel
from gcaps.testing import assert_permutation_invariant, hostile_graphs
from tests.kernels import oracles
from tests.kernels.test_state import saved_and_restored

KERNELS: dict[str, GraphKernel] = {
    "wl": WeisfeilerLehman(2, normalize=False),
    "wloa": WLOptimalAssignment(2, normalize=False),
    "rw": RandomWalk(1e-3, diverging="damp", tol=1e-12, normalize=False),
    "rw-unlabelled": RandomWalk(1e-3, labels=False, diverging="damp", tol=1e-12, normalize=False),
    "dgk": DeepGraphKernel("wl", dimension=8, n_iter=2, normalize=False),
}
ALL = pytest.mark.parametrize("kernel", list(KERNELS.values()), ids=list(KERNELS))


def with_edge_labels(graphs: GraphSet, *, directed: bool = False, columns: int = 1) -> GraphSet:
    """Label each arc with one of three numbers; the two arcs of an edge differ if ``directed``."""
    source = np.repeat(np.arange(graphs.num_nodes), graphs.degrees)
    target = graphs.col + np.repeat(graphs.ptr[:-1], graphs.arc_counts)
    kind = (source + (2 if directed else 1) * target) % 3
    return replace(graphs, edge_labels=np.stack([kind // (i + 1) for i in range(columns)], axis=1))


def cycles(count: int, seed: int) -> tuple[GraphSet, np.ndarray]:
    """Cycles of 8 to 16 edges, half of them labelled 0 and half 1: in turns (class 0) or in pairs (class 1)."""
    rng = np.random.default_rng(seed)
    y, sizes = rng.integers(0, 2, count), 4 * rng.integers(2, 5, count)
    ptr = pointer(sizes)
    node, first = np.arange(ptr[-1]), np.repeat(ptr[:-1], sizes)
    place = node - first
    target = first + (place + 1) % np.repeat(sizes, sizes)
    label = np.where(np.repeat(y, sizes) == 1, place // 2, place) % 2
    return assemble("cycles", ptr, EdgeRows(node, target, label[:, None]), y=y), y


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("use_labels", [False, True])
def test_wl_refines_over_pairs_of_edge_label_and_color(directed: bool, use_labels: bool) -> None:
    graphs = with_edge_labels(hostile_graphs(16, seed=1, largest=5), directed=directed)
    options: dict[str, Any] = {"labels": use_labels, "normalize": False}
    for kernel, meet in ((WeisfeilerLehman(3, **options), None), (WLOptimalAssignment(3, **options), min)):
        expected = oracles.gram_of(graphs, lambda g: oracles.wl_colors(g, 3, True, use_labels), meet=meet)
        np.testing.assert_array_equal(kernel.fit_transform(graphs), expected)


def test_deep_wl_counts_and_embeds_colors_with_edge_labels() -> None:
    graphs = with_edge_labels(hostile_graphs(16, seed=2, largest=5))
    K = DeepGraphKernel("wl", n_iter=2, share=0.0, normalize=False).fit_transform(graphs)
    np.testing.assert_array_equal(K, WeisfeilerLehman(2, normalize=False).fit_transform(graphs))
    kernel = DeepGraphKernel("wl", n_iter=2, share=0.3, normalize=False)
    K = kernel.fit_transform(graphs)
    counts, E = kernel.base_.features(graphs).toarray(), kernel._vectors_
    assert counts.shape[1] == len(E)
    M = 0.7 * np.eye(len(E)) + 0.3 * E @ E.T
    np.testing.assert_allclose(K, counts @ M @ counts.T, rtol=1e-12)


def test_walks_of_one_edge_are_grakels_edge_histogram() -> None:
    graphs = with_edge_labels(hostile_graphs(12, seed=3, largest=5)).subset([2, 3, 5, 10, 11])
    decay = 1e-7
    K = RandomWalk(decay, labels=False, tol=1e-15, normalize=False).fit_transform(graphs)
    given = [
        [oracles.adjacency(g), {}, dict(zip(map(tuple, g.edge_index.T.tolist()), g.edge_labels[:, 0], strict=True))]
        for g in graphs
    ]
    expected = grakel.EdgeHistogram().fit_transform(given)
    np.testing.assert_allclose((K - np.outer(graphs.sizes, graphs.sizes)) / decay, expected, rtol=1e-4)


@ALL
def test_auto_takes_edge_labels_where_there_are_any(kernel: GraphKernel) -> None:
    plain = hostile_graphs(16, seed=4, largest=6)
    labelled = with_edge_labels(plain)
    on, off = (clone(kernel).set_params(edge_labels=value) for value in (True, False))
    np.testing.assert_array_equal(clone(kernel).fit_transform(labelled), on.fit_transform(labelled))
    np.testing.assert_array_equal(clone(kernel).fit_transform(plain), off.fit_transform(plain))
    np.testing.assert_array_equal(clone(kernel).fit_transform(plain), off.fit_transform(labelled))
    assert not np.array_equal(on.fit_transform(labelled), off.fit_transform(labelled))


@ALL
def test_a_fitted_kernel_remembers_whether_edge_labels_count(kernel: GraphKernel) -> None:
    plain = hostile_graphs(16, seed=5, largest=6)
    labelled = with_edge_labels(plain)
    without = clone(kernel).fit(plain)
    np.testing.assert_array_equal(without.transform(labelled), without.transform(plain))
    fitted = clone(kernel).fit(labelled)
    for made in (fitted, saved_and_restored(fitted)):
        with pytest.raises(DataError, match="0 columns of edge labels; the kernel was fitted on 1"):
            made.transform(plain)
        with pytest.raises(DataError, match="2 columns of edge labels"):
            made.transform(with_edge_labels(plain, columns=2))
    edgeless = np.flatnonzero(plain.arc_counts == 0)
    np.testing.assert_array_equal(fitted.transform(plain.subset(edgeless)), fitted.transform(labelled.subset(edgeless)))
    np.testing.assert_allclose(
        fitted.transform(labelled.subset([4, 9])), fitted.transform(labelled)[[4, 9]], rtol=1e-12
    )


@ALL
def test_edge_labels_survive_saving_and_node_orders(kernel: GraphKernel) -> None:
    graphs = with_edge_labels(hostile_graphs(16, seed=6, largest=6), directed=True, columns=2)
    fitted = clone(kernel).fit(graphs.subset(range(8)))
    test = graphs.subset(range(8, 16))
    np.testing.assert_array_equal(saved_and_restored(fitted).transform(test), fitted.transform(test))
    assert_permutation_invariant(clone(kernel).set_params(normalize=True).fit(graphs).transform, graphs, atol=1e-8)


def test_edge_labels_that_cannot_count_are_refused() -> None:
    plain = hostile_graphs(8, largest=6)
    for kernel in (WeisfeilerLehman, WLOptimalAssignment, RandomWalk, DeepGraphKernel):
        with pytest.raises(DataError, match="has no edge labels; set edge_labels=False"):
            kernel(edge_labels=True).fit(plain)
        with pytest.raises(ConfigError, match=r"edge_labels: .*'auto' \(given: 'yes'\)"):
            kernel(edge_labels="yes").fit(plain)
    with pytest.raises(ConfigError, match="goes with base='wl'"):
        DeepGraphKernel("sp", edge_labels=True).fit(with_edge_labels(plain))
    assert DeepGraphKernel("sp").fit(with_edge_labels(plain)).edge_label_columns_ == 0


@pytest.mark.parametrize("method", ["wl", "wloa", "rw", "dgk"])
def test_a_class_set_by_edge_labels_alone_is_learned(method: str) -> None:
    small = {"rw": {"decays": (0.1,)}, "dgk": {"n_iter": (2,), "sizes": (3,)}}.get(method, {"n_iter": (0, 2)})
    graphs, y = cycles(160, seed=7)
    train, test = np.arange(80), np.arange(80, 160)
    model = make_estimator(method, small).fit(graphs.subset(train), y[train])
    assert model.score(graphs.subset(test), y[test]) >= 0.95
    assert model.resolved_["edge_labels"] is True
    assert [str(entry) for entry in model.resolution_] == ["edge_labels = True (auto: edges have labels)"]
    blind = make_estimator(method, {**small, "edge_labels": False}).fit(graphs.subset(train), y[train])
    assert blind.score(graphs.subset(test), y[test]) < 0.7
    assert (blind.resolved_["edge_labels"], blind.resolution_) == (False, [])
