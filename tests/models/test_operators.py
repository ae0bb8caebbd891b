"""Core operators of the networks against their dense formulas in float64."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from gcaps.batching import BatchSource
from gcaps.config import DGCNNConfig, FeatureConfig, GINConfig
from gcaps.features import NodeFeatures
from gcaps.models.coarsening import STEPS, WEAK, adjacency, polarity, pyramid, reduced
from gcaps.models.coarsening import Level as CoarseLevel
from gcaps.models.dcnn import diffused
from gcaps.models.dgcnn import DGCNN, rows_or_zero
from gcaps.models.ecc import max_pool
from gcaps.models.edge_filters import EdgeConditionedConv, EdgeFeatures
from gcaps.models.gin import GIN
from gcaps.models.network import InputLinear
from gcaps.nn.pooling import first_rows
from gcaps.nn.sparse import CSR
from gcaps.testing import hostile_graphs
from tests.oracle import dense

FEATURES = FeatureConfig(features=("labels", "attributes", "degree"))


def prepared(graphs):
    features = NodeFeatures.fit(FEATURES, graphs)
    batch = BatchSource(graphs, features.encode(graphs), torch.float64).take(np.arange(len(graphs)))
    return batch, features.transform(graphs).astype(np.float64)


def rows(graphs, number):
    return slice(graphs.ptr[number], graphs.ptr[number + 1])


def numbers(tensor):
    return tensor.detach().numpy()


def test_first_layer_is_x_times_w(hostile):
    batch, X = prepared(hostile)
    layer = InputLinear(X.shape[1], 5).double()
    np.testing.assert_allclose(numbers(layer(batch)), X @ numbers(layer.weight) + numbers(layer.bias), atol=1e-12)


def test_first_layer_gives_zero_for_labels_not_seen_in_training():
    graphs = hostile_graphs(16, seed=2)
    features = NodeFeatures.fit(FeatureConfig(features=("labels",)), graphs.subset([0]))
    batch = BatchSource(graphs, features.encode(graphs), torch.float64).take(np.arange(16))
    layer = InputLinear(1, 3, bias=False).double()
    expected = features.transform(graphs) @ numbers(layer.weight)
    np.testing.assert_allclose(numbers(layer(batch)), expected)
    assert (expected == 0).all(axis=1).any()


def test_dcnn_eq3_matches_dense_powers(hostile):
    """(1/N) 1ᵀ Pʲ X with P⁰ … P⁵ written out."""
    batch, X = prepared(hostile)
    found = numbers(diffused(batch, 5))
    for number, graph in enumerate(hostile):
        A = dense.adjacency(graph)
        degree = A.sum(axis=1)
        P = np.array([row / d if d > 0 else 0 * row for row, d in zip(A, degree, strict=True)])
        for j in range(6):
            expected = (np.linalg.matrix_power(P, j) @ X[rows(hostile, number)]).mean(axis=0)
            np.testing.assert_allclose(found[number, j], expected, atol=1e-10)


def test_gin_layers_match_their_formula(hostile):
    """hᵗ⁺¹ = MLP((A + I) hᵗ), batch normalisation with its running statistics."""
    batch, X = prepared(hostile)
    network = GIN(X.shape[1], 2, GINConfig(layers=3, hidden=4)).double().eval()
    found = [numbers(h) for h in network.node_layers(batch)]
    logits = numbers(network(batch))
    norm = 1 / np.sqrt(1 + 1e-5)  # a fresh batch normalisation
    for number, graph in enumerate(hostile):
        closed = dense.adjacency(graph) + np.eye(graph.num_nodes)
        h = X[rows(hostile, number)]
        total = h.sum(axis=0) @ numbers(network.input_score.weight)
        for t, first in enumerate((numbers(network.first.weight), numbers(network.inner[0].weight).T)):
            h = np.maximum(closed @ h @ first * norm, 0)
            h = np.maximum(h @ numbers(network.outer[t].weight).T * norm, 0)
            np.testing.assert_allclose(found[t][rows(hostile, number)], h, rtol=1e-9, atol=1e-9)
            total = total + h.sum(axis=0) @ numbers(network.scores[t].weight).T + numbers(network.scores[t].bias)
        np.testing.assert_allclose(logits[number], total, rtol=1e-8, atol=1e-8)


def test_dgcnn_layers_and_pooling_match_their_formula(hostile):
    """tanh((D+I)⁻¹ (A+I) Z W), then the k rows with the largest last channel."""
    batch, X = prepared(hostile)
    network = DGCNN(X.shape[1], 2, DGCNNConfig(layers=2, hidden=3), k=10).double().eval()
    outputs = network.node_layers(batch)
    Z = numbers(torch.cat(outputs, dim=1))
    weights = [numbers(network.first.weight), *(numbers(linear.weight).T for linear in network.linears)]
    chosen = first_rows(outputs, network.k, batch.batch, batch.ptr)
    pooled = numbers(rows_or_zero(torch.from_numpy(Z), chosen))
    for number, graph in enumerate(hostile):
        M = dense.filter_matrix("mean", dense.adjacency(graph))
        h, parts = X[rows(hostile, number)], []
        for W in weights:
            h = np.tanh(M @ h @ W)
            parts.append(h)
        own = np.concatenate(parts, axis=1)
        np.testing.assert_allclose(Z[rows(hostile, number)], own, atol=1e-10)
        expected = sorted(Z[rows(hostile, number)].tolist(), key=lambda row: row[::-1], reverse=True)[:10]
        np.testing.assert_allclose(pooled[number, : len(expected)], expected)
        assert (pooled[number, len(expected) :] == 0).all()


@pytest.mark.parametrize("share", [0.6, 0.3])
def test_dgcnn_keeps_k_nodes_such_that_a_share_of_the_graphs_has_more(share):
    graphs = hostile_graphs(64, largest=40)
    k = DGCNN.shape_from(DGCNNConfig(share=share), graphs)["k"]
    assert k == 10 or (np.mean(graphs.sizes > k) <= share <= np.mean(graphs.sizes >= k))


@pytest.mark.parametrize("kinds", [0, 1, 3])
def test_ecc_eq1_matches_a_matrix_for_every_edge(hostile, kinds):
    """The mean over the closed neighborhood of Θ(e) x, every Θ(e) written out."""
    rng = np.random.default_rng(0)
    batch, _ = prepared(hostile)
    x, edges = rng.standard_normal((len(batch.batch), 4)), rng.standard_normal((len(batch.col), kinds))
    A = CSR(batch.rowptr, batch.col, None)
    conv = EdgeConditionedConv(4, 5, kinds, 6).double()
    given = torch.from_numpy(edges) if kinds else None
    found = numbers(conv(torch.from_numpy(x), A, given))
    V = numbers(conv.linear.weight).reshape(-1, 5, 4)
    expected = np.tile(numbers(conv.bias), (len(x), 1))
    row, col = A.rows().numpy(), batch.col.numpy()
    size = np.bincount(row, minlength=len(x)) + 1
    expected += x @ V[0].T / size[:, None]
    for e in range(len(row)):
        theta = V[1].copy()
        if kinds:
            hidden = np.maximum(numbers(conv.filters.weight) @ edges[e] + numbers(conv.filters.bias), 0)
            theta += np.einsum("h,hij->ij", hidden, V[2:])
        expected[row[e]] += theta @ x[col[e]] / size[row[e]]
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_ecc_gradients():
    graphs = hostile_graphs(8, seed=1, largest=4)
    batch, _ = prepared(graphs)
    A = CSR(batch.rowptr, batch.col, None)
    conv = EdgeConditionedConv(2, 3, 2, 3).double()

    def out(x, edges, *weights):
        named = dict(zip(dict(conv.named_parameters()), weights, strict=True))
        return torch.func.functional_call(conv, named, (x, A, edges))

    x = torch.randn(len(batch.batch), 2, dtype=torch.float64, requires_grad=True)
    edges = torch.randn(len(batch.col), 2, dtype=torch.float64, requires_grad=True)
    weights = [p.detach().clone().requires_grad_() for p in conv.parameters()]
    assert torch.autograd.gradcheck(out, (x, edges, *weights))


def test_edge_features_are_one_hot_standardised_and_logarithms():
    graphs = hostile_graphs(8, seed=1, weighted=True)
    E = len(graphs.col)
    rng = np.random.default_rng(0)
    labels, attributes = rng.integers(0, 3, (E, 1)), rng.normal(5, 2, (E, 2))
    labelled = replace(graphs, edge_labels=labels, edge_attr=attributes)
    features = EdgeFeatures(**EdgeFeatures.shape_from(labelled))
    extras = {"edge_labels": torch.from_numpy(labels), "edge_attr": torch.from_numpy(attributes)}

    class Extras:
        def take(self, indices):
            return extras

    source = BatchSource(graphs, np.zeros((graphs.num_nodes, 1)), torch.float64, Extras())
    found = features(source.take(np.arange(8))).numpy()
    assert features.num_features == found.shape[1] == 3 + 2 + 1
    np.testing.assert_array_equal(found[:, :3], labels == [0, 1, 2])
    np.testing.assert_allclose(found[:, 3:5], (attributes - attributes.mean(0)) / attributes.std(0), atol=1e-10)
    np.testing.assert_allclose(found[:, 5], np.log(graphs.edge_weight))


def test_kron_reduction_is_the_schur_complement_and_keeps_resistances(monkeypatch):
    """Dense and sparse ways agree with S = L_kk − L_kd L_dd⁻¹ L_dk, where no edge is dropped."""
    monkeypatch.setattr("gcaps.models.coarsening.WEAK", 0.0)
    rng = np.random.default_rng(0)
    A = np.triu(rng.random((12, 12)) * (rng.random((12, 12)) < 0.5), 1)
    A[np.arange(11), np.arange(1, 12)] = 1  # connected
    A = A + A.T
    keep = np.array([0, 3, 4, 8, 11])
    drop = np.setdiff1d(np.arange(12), keep)
    L = np.diag(A.sum(axis=1)) - A
    S = L[np.ix_(keep, keep)] - L[np.ix_(keep, drop)] @ np.linalg.inv(L[np.ix_(drop, drop)]) @ L[np.ix_(drop, keep)]
    for size in (400, 2):
        monkeypatch.setattr("gcaps.models.coarsening.DENSE", size)
        monkeypatch.setattr("gcaps.models.coarsening.COLUMNS", 2)
        found = reduced(csr_array(A), keep).toarray()
        np.testing.assert_allclose(np.diag(found.sum(axis=1)) - found, S, atol=1e-10)
    whole, part = np.linalg.pinv(L), np.linalg.pinv(S)
    resistance = whole.diagonal()[:, None] + whole.diagonal() - 2 * whole
    left = part.diagonal()[:, None] + part.diagonal() - 2 * part
    np.testing.assert_allclose(left, resistance[np.ix_(keep, keep)], atol=1e-8)


def test_dense_and_sparse_reduction_drop_the_same_edges(monkeypatch):
    rng = np.random.default_rng(1)
    A = np.triu(10.0 ** rng.uniform(-3, 1, (30, 30)) * (rng.random((30, 30)) < 0.3), 1)
    A[np.arange(29), np.arange(1, 30)] = 1
    A = csr_array(A + A.T)
    keep = np.arange(0, 30, 2)
    dense_way = reduced(A, keep).toarray()
    monkeypatch.setattr("gcaps.models.coarsening.DENSE", 2)
    monkeypatch.setattr("gcaps.models.coarsening.COLUMNS", 4)
    np.testing.assert_allclose(reduced(A, keep).toarray(), dense_way, atol=1e-12)
    assert 0 < (dense_way > 0).sum() < len(keep) * (len(keep) - 1)
    strongest = dense_way.max(axis=1)
    weakest = WEAK * np.minimum(strongest[:, None], strongest)
    assert (dense_way[dense_way > 0] >= weakest[dense_way > 0]).all()


def test_polarity_matches_its_formula_and_favors_hubs(hostile):
    level = CoarseLevel(
        hostile.ptr, hostile.rowptr, hostile.col,
        np.ones(len(hostile.col)) if hostile.edge_weight is None else hostile.edge_weight, np.zeros(0),
    )  # fmt: skip
    found = polarity(adjacency(level))
    for number, graph in enumerate(hostile):
        A = dense.adjacency(graph)
        degree = A.sum(axis=1)
        log = np.array([np.log(d) if d > 0 else 0.0 for d in degree])
        expected = np.linalg.matrix_power(dense.filter_matrix("random_walk", A), STEPS) @ log
        np.testing.assert_allclose(found[rows(hostile, number)], expected, atol=1e-8)
        assert (degree * log) @ expected >= -1e-8
        assert abs(degree @ expected) < 1e-6 * max(degree.max(initial=0), 1)


def test_the_pyramid_keeps_components_and_stars_keep_their_hub(hostile):
    from scipy.sparse.csgraph import connected_components

    first, second = pyramid(hostile, 2)
    for number, graph in enumerate(hostile):
        fine = csr_array(dense.adjacency(graph))
        for level in (first, second):
            nodes = slice(level.ptr[number], level.ptr[number + 1])
            first_arc, last_arc = level.rowptr[nodes.start], level.rowptr[nodes.stop]
            coarse = csr_array(
                (level.weight[first_arc:last_arc], level.col[first_arc:last_arc],
                 level.rowptr[nodes.start : nodes.stop + 1] - first_arc),
                shape=(nodes.stop - nodes.start,) * 2,
            )  # fmt: skip
            assert connected_components(coarse)[0] == connected_components(fine)[0]
            assert abs(coarse - coarse.T).max() < 1e-5
            fine = coarse
        if number % 8 == 4 and hostile.edge_weight is None:
            assert first.ptr[number + 1] - first.ptr[number] == 1
            assert first.kept[first.ptr[number]] == 0


def test_coarser_graphs_do_not_depend_on_node_order():
    from gcaps.testing import permute_nodes

    graphs = hostile_graphs(64, seed=2)
    moved, _ = permute_nodes(graphs, 1)
    before, after = pyramid(graphs, 2), pyramid(moved, 2)
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(np.diff(a.ptr), np.diff(b.ptr))
        for number in range(64):
            parts = []
            for level in (a, b):
                arcs = slice(*level.rowptr[level.ptr[number : number + 2]])
                parts.append(np.sort(level.weight[arcs]))
            np.testing.assert_allclose(*parts, rtol=1e-5)


def test_max_pool_takes_the_largest_of_the_closed_neighborhood(hostile):
    batch, _ = prepared(hostile)
    x = np.random.default_rng(0).standard_normal((len(batch.batch), 3))
    kept = torch.arange(0, len(x), 2)
    found = numbers(max_pool(torch.from_numpy(x), CSR(batch.rowptr, batch.col, None), kept))
    for place, v in enumerate(kept.tolist()):
        around = [v, *batch.col[batch.rowptr[v] : batch.rowptr[v + 1]].tolist()]
        np.testing.assert_array_equal(found[place], x[around].max(axis=0))
