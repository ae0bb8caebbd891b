"""Relations and edge attributes in the graph capsule convolution."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from gcaps.batching import BatchSource
from gcaps.config import Config, FeatureConfig
from gcaps.features import NodeFeatures
from gcaps.models import GCAPS
from gcaps.nn import FILTERS, GraphCapsuleConv, batch_filter, flatten_capsules
from gcaps.nn.cpu.stack import can_fuse
from gcaps.nn.filters import stack_relations
from gcaps.testing import hostile_graphs
from tests.conftest import whole_batch
from tests.oracle import dense


def with_edges(count=12, *, seed=0, relations=3, columns=2, unseen=False, weighted=False, largest=9, symmetric=True):
    """A batch of hostile graphs in float64 with random edge types and attributes, the same in both directions."""
    graphs = hostile_graphs(count, seed=seed, weighted=weighted, largest=largest)
    if weighted:
        graphs.edge_weight[:] = graphs.edge_weight ** (1 / 3) / 3
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((graphs.num_nodes, 3))
    batch = whole_batch(graphs, x)
    edge_type = rng.integers(-1 if unseen else 0, relations, len(graphs.col))
    edge_attr = rng.standard_normal((len(graphs.col), columns))
    if symmetric:
        reverse = batch_filter("adjacency", batch).transposed_order().numpy()
        first = np.minimum(np.arange(len(reverse)), reverse)
        edge_type, edge_attr = edge_type[first], edge_attr[first]
    parts = {"edge_type": torch.from_numpy(edge_type), "edge_attr": torch.from_numpy(edge_attr)}
    return graphs, replace(batch, **parts)


def dense_parts(graph, edge_type, edge_attr, relations):
    """A and its parts A_r, and the attributes of each entry [n, n, ·], of one graph."""
    n = graph.num_nodes
    A = dense.adjacency(graph)
    parts = np.zeros((relations, n, n))
    attributes = np.zeros((n, n, edge_attr.shape[1]))
    for e, (i, j) in enumerate(graph.edge_index.T):
        if edge_type[e] < 0:  # divided among all relations
            parts[:, i, j] = A[i, j] / relations
        else:
            parts[edge_type[e], i, j] = A[i, j]
        attributes[i, j] = edge_attr[e]
    return A, parts, attributes


def expected_layer(conv, name, x, A, parts, attributes, W, relations):
    """[n, h, P] of the layer, all matrices written out; W is [P, c, 1 + R·orders, h]."""
    P, _, count, h = W.shape
    orders = (count - 1) // relations
    out = np.zeros((len(x), h, P))
    bound = conv.capsule.bound
    for p in range(P):
        base = x if bound is None or p == 0 else x / np.sqrt(1 + (x / bound) ** 2)
        total = base ** (p + 1) @ W[p, :, 0]
        for r in range(relations):
            M = dense.relation_filter(name, A, parts[r], relations)
            if conv.gate is not None:
                u, c = conv.gate.weight.detach().numpy()[p], conv.gate.bias.detach().numpy()[p]
                G = dense.gate(attributes.reshape(-1, attributes.shape[2]), u, c).reshape(A.shape)
                M = np.where(np.eye(len(A)) > 0, M, M * G)
            bases = dense.polynomial_basis(name, M, conv.degree)
            for k in range(orders):
                total = total + bases[k + 1] @ base ** (p + 1) @ W[p, :, 1 + r * orders + k]
        out[:, :, p] = np.maximum(total + conv.bias.detach().numpy().reshape(P, h)[p], 0)
    return out


def full_weight(conv):
    """[P, c, 1 + R·K, h] weights of every relation, summed up from their definition."""
    weight = conv.weight.detach().numpy()
    P, c, count, h = weight.shape
    K = (count - 1) // (conv.num_bases or conv.num_relations)
    if not K:
        return weight
    blocks = weight[:, :, 1:].reshape(P, c, -1, K, h)
    if conv.comp is not None:
        comp = conv.comp.detach().numpy()
        blocks = np.stack(
            [sum(comp[r, b] * blocks[:, :, b] for b in range(comp.shape[1])) for r in range(len(comp))], 2
        )
    return np.concatenate([weight[:, :, :1], blocks.reshape(P, c, -1, h)], 2)


def worst_error(conv, name, graphs, batch):
    torch.nn.init.normal_(conv.bias)
    if conv.gate is not None:
        torch.nn.init.normal_(conv.gate.bias)
    found = conv(batch.x, batch_filter(name, batch, conv.num_relations)).detach().numpy()
    W, R = full_weight(conv), conv.num_relations
    edge_type = batch.edge_type.numpy() if conv.num_relations > 1 else np.zeros(len(batch.col), int)
    worst, first = 0.0, graphs.rowptr[graphs.ptr]
    for number in range(len(graphs)):
        nodes, arcs = slice(*graphs.ptr[number : number + 2]), slice(*first[number : number + 2])
        A, parts, attributes = dense_parts(graphs[number], edge_type[arcs], batch.edge_attr.numpy()[arcs], R)
        expected = expected_layer(conv, name, batch.x.numpy()[nodes], A, parts, attributes, W, R)
        worst = max(worst, np.abs(found[nodes] - expected).max() / max(1.0, np.abs(expected).max()))
    return worst


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize(("capsule_size", "degree", "bases"), [(1, 0, None), (2, 1, None), (3, 2, 2), (2, 3, None)])
def test_relations_match_dense_oracle(name, capsule_size, degree, bases):
    for weighted in (False, True):
        for unseen in (False, True):
            graphs, batch = with_edges(seed=degree, weighted=weighted, unseen=unseen)
            conv = GraphCapsuleConv(
                3, 4, capsule_size, degree, filter=name, bound=2.0, num_relations=3, num_bases=bases
            ).double()
            assert worst_error(conv, name, graphs, batch) <= 1e-10


@pytest.mark.parametrize("name", [name for name in FILTERS if name not in ("chebyshev", "cayley")])
@pytest.mark.parametrize("relations", [1, 3])
@pytest.mark.parametrize("symmetric", [True, False])
def test_gates_match_dense_oracle(name, relations, symmetric):
    for degree in (0, 1, 2):
        graphs, batch = with_edges(seed=degree, weighted=True, symmetric=symmetric)
        conv = GraphCapsuleConv(3, 4, 2, degree, filter=name, num_relations=relations, edge_dim=2).double()
        assert worst_error(conv, name, graphs, batch) <= 1e-10


@pytest.mark.parametrize("capsule", ["central", "density"])
def test_statistics_of_relations_and_gated_neighborhoods_match_dense_oracle(capsule):
    graphs, batch = with_edges(seed=1)
    for edge_dim in (None, 2):
        conv = GraphCapsuleConv(3, 4, 2, 2, capsule, "mean", num_relations=3, edge_dim=edge_dim).double()
        found = conv(batch.x, batch_filter("mean", batch, 3)).detach().numpy()
        W, first = conv.weight.detach().numpy(), graphs.rowptr[graphs.ptr]
        known = {}
        if capsule == "density":
            known = {
                "center": conv.capsule.center.detach().numpy(),
                "width": conv.capsule.log_width.exp().detach().numpy(),
            }
        for number in range(len(graphs)):
            nodes, arcs = slice(*graphs.ptr[number : number + 2]), slice(*first[number : number + 2])
            x = batch.x.numpy()[nodes]
            A, parts, attributes = dense_parts(
                graphs[number], batch.edge_type.numpy()[arcs], batch.edge_attr.numpy()[arcs], 3
            )
            for p in range(2):
                total = x @ W[p, :, 0]
                for r in range(3):
                    G = np.ones_like(A)
                    if edge_dim is not None:
                        u, c = conv.gate.weight.detach().numpy()[p], conv.gate.bias.detach().numpy()[p]
                        G = dense.gate(attributes.reshape(-1, 2), u, c).reshape(A.shape)
                    M = dense.relation_filter("mean", A, parts[r], 3)
                    M = np.where(np.eye(len(A)) > 0, M, M * G)
                    S = dense.capsule_statistics(capsule, x, parts[r] * G, 2, **known)[p]
                    total = total + S @ W[p, :, 1 + 2 * r] + M @ S @ W[p, :, 2 + 2 * r]
                np.testing.assert_allclose(found[nodes][:, :, p], np.maximum(total, 0), atol=1e-10)


def test_filters_of_relations_sum_to_the_filter_of_the_graph():
    _, batch = with_edges(seed=2, weighted=True, unseen=True)
    y = torch.randn(len(batch.dense), 5, dtype=torch.float64)
    for name in FILTERS:
        if name == "chebyshev":  # each M_r has its own −I
            continue
        M = batch_filter(name, batch, 3)
        parts = stack_relations(M, y.dtype).matmul(y.repeat_interleave(3, 0)).unflatten(0, (-1, 3)).sum(1)
        torch.testing.assert_close(parts, M.matmul(y))


@pytest.mark.parametrize("capsule", ["moments", "central", "polynomial", "density", "routing"])
@pytest.mark.parametrize("degree", [1, 2])
def test_edges_gradcheck(capsule, degree):
    _, batch = with_edges(4, seed=3, unseen=True, largest=4, symmetric=False)
    conv = GraphCapsuleConv(
        3, 2, 2, degree, capsule, "random_walk", bound=2.0, activation="tanh", num_relations=3, num_bases=2, edge_dim=2
    ).double()
    M = batch_filter("random_walk", batch, 3)
    names = [name for name, _ in conv.named_parameters()]

    def output(*values):
        return torch.func.functional_call(conv, dict(zip(names, values, strict=True)), (batch.x, M))

    inputs = [value.detach().clone().requires_grad_() for value in conv.parameters()]
    assert torch.autograd.gradcheck(output, inputs)


def test_frozen_gates_pass_gradients_to_features():
    _, batch = with_edges(6, seed=4, largest=5, symmetric=False)
    conv = GraphCapsuleConv(3, 2, 2, 2, filter="random_walk", activation="tanh", num_relations=3, edge_dim=2).double()
    conv.gate.requires_grad_(False)
    M = batch_filter("random_walk", batch, 3)
    some = torch.arange(8)

    def output(x):
        return conv(batch.x.index_copy(0, some, x), M)

    assert torch.autograd.gradcheck(output, [batch.x[some].clone().requires_grad_()])


@pytest.mark.parametrize("capsule", ["moments", "central", "polynomial", "density", "routing"])
def test_edges_are_equivariant_to_the_order_of_nodes_and_edges(capsule):
    rng = np.random.default_rng(0)
    n, e = 20, 60
    pairs = rng.integers(0, n, (2, e))
    edge_index = torch.from_numpy(pairs)  # with repeated edges and self-loops, as PyG may have them
    x = torch.from_numpy(rng.standard_normal((n, 3)))
    edge_type, edge_attr = torch.from_numpy(rng.integers(-1, 3, e)), torch.from_numpy(rng.standard_normal((e, 2)))
    weight = torch.from_numpy(rng.random(e))
    conv = GraphCapsuleConv(3, 4, 3, 2, capsule, "symmetric", bound=3.0, num_relations=3, edge_dim=2).double()
    found = conv(x, edge_index, weight, None, edge_type, edge_attr)
    place, order = torch.from_numpy(rng.permutation(n)), torch.from_numpy(rng.permutation(e))
    moved = torch.empty_like(x).index_copy(0, place, x)
    again = conv(moved, place[edge_index][:, order], weight[order], None, edge_type[order], edge_attr[order])
    torch.testing.assert_close(again[place], found, rtol=1e-10, atol=1e-10)


def test_one_relation_and_ones_as_gates_are_the_plain_layer():
    _, batch = with_edges(seed=5)
    plain = GraphCapsuleConv(3, 4, 2, 2).double()
    related = GraphCapsuleConv(3, 4, 2, 2, num_relations=3, edge_dim=2).double()
    with torch.no_grad():
        related.weight.copy_(torch.cat([plain.weight[:, :, :1], plain.weight[:, :, 1:].repeat(1, 1, 3, 1)], 2))
        related.gate.weight.zero_()
    # powers of M_r do not add up to those of M unless all edges are of one relation
    batch.edge_type.zero_()
    M = batch_filter("laplacian", batch, 3)
    torch.testing.assert_close(related(batch.x, M), plain(batch.x, batch_filter("laplacian", batch)))


def test_edges_that_a_layer_needs_must_be_given():
    _, batch = with_edges()
    index = torch.tensor([[0, 1], [1, 0]])
    x = batch.x[:2]
    with pytest.raises(ValueError, match="give it edge_type"):
        GraphCapsuleConv(3, 4, num_relations=2).double()(x, index)
    with pytest.raises(ValueError, match="give it edge_attr"):
        GraphCapsuleConv(3, 4, edge_dim=2).double()(x, index)
    with pytest.raises(ValueError, match="edge_type is from 0 to 1"):
        GraphCapsuleConv(3, 4, num_relations=2).double()(x, index, edge_type=torch.tensor([0, 2]))
    with pytest.raises(ValueError, match="chebyshev"):
        GraphCapsuleConv(3, 4, filter="chebyshev", edge_dim=2)


def network_and_batch(edges, dtype=torch.float64, **settings):
    """A network on hostile graphs with node labels and attributes, and edges of three relations and two attributes."""
    graphs = hostile_graphs(48, seed=5, weighted=True, largest=20)
    nodes = NodeFeatures.fit(FeatureConfig(features=("labels", "attributes")), graphs).encode(graphs)
    batch = BatchSource(graphs, nodes, dtype).take(np.arange(48))
    rng = np.random.default_rng(0)
    edge_type = torch.from_numpy(rng.integers(-1 if edges == "unseen" else 0, 3, len(batch.col)))
    edge_attr = torch.from_numpy(rng.standard_normal((len(batch.col), 2))).to(dtype)
    shape = {} if edges == "attributes" else {"num_relations": 3}
    shape |= {} if edges == "relations" else {"edge_dim": 2}
    config = {"hidden": 4, "layers": 3, "rank": 4, "fc": 4, "reduce": "mean", "dropout": 0.5} | settings
    network = GCAPS(nodes.shape[1], 2, Config(**config), **shape).to(dtype)
    return network, replace(batch, edge_type=edge_type, edge_attr=edge_attr)


def plain_capsules(network, batch):
    M = batch_filter(network.config.filter, batch, network.num_relations)
    x, outputs = batch.x, []
    for conv in network.convs:
        x = flatten_capsules(conv(x, M))
        outputs.append(x)
    return torch.cat(outputs, dim=1)


@pytest.mark.parametrize("edges", ["relations", "attributes", "both", "unseen"])
@pytest.mark.parametrize("name", ["laplacian", "symmetric", "random_walk", "adjacency", "kipf", "mean"])
@pytest.mark.parametrize(("size", "degree", "bound"), [(1, 1, 3.0), (2, 0, 3.0), (2, 1, 3.0), (3, 3, None)])
def test_compiled_relations_and_gates_equal_the_plain_layers(edges, name, size, degree, bound):
    if bound is None and name in ("laplacian", "adjacency"):
        bound = 2.0  # weights of 1e3 to the ninth power leave no digits to compare
    network, batch = network_and_batch(edges, filter=name, capsule_size=size, degree=degree, bound=bound)
    assert can_fuse(list(network.convs), batch, batch_filter(name, batch, network.num_relations))
    found = []
    for compute in (network.node_capsules, lambda batch: plain_capsules(network, batch)):
        network.zero_grad()
        Z = compute(batch)
        (Z * torch.randn(Z.shape, generator=torch.Generator().manual_seed(1), dtype=Z.dtype)).sum().backward()
        grads = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in network.convs.parameters()]
        found.append([Z.detach(), *grads])
    for one, other in zip(*found, strict=True):
        scale = max(1.0, float(other.abs().max()))
        torch.testing.assert_close(one / scale, other / scale, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("edges", ["relations", "attributes", "both", "unseen"])
@pytest.mark.parametrize("training", [False, True])
def test_results_do_not_depend_on_the_number_of_threads(edges, training):
    network, batch = network_and_batch(edges, torch.float32)
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        copied = copy.deepcopy(network).train(training)
        copied.zero_grad()
        Z = copied.node_capsules(batch)
        Z.square().sum().backward()
        found.append([Z.detach(), *(p.grad for p in copied.convs.parameters())])
    torch.set_num_threads(1)
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


@pytest.mark.parametrize("edges", ["relations", "attributes", "both", "unseen"])
@pytest.mark.parametrize("capsule", ["moments", "central"])
def test_a_batch_gives_what_its_graphs_give_one_by_one(edges, capsule):
    network, batch = network_and_batch(edges, capsule=capsule)
    network.eval()
    together = network(batch)
    graphs = hostile_graphs(48, seed=5, weighted=True, largest=20)
    nodes = NodeFeatures.fit(FeatureConfig(features=("labels", "attributes")), graphs).encode(graphs)
    source, first = BatchSource(graphs, nodes, torch.float64), graphs.rowptr[graphs.ptr]
    for number in range(48):
        arcs = slice(first[number], first[number + 1])
        one = replace(source.take([number]), edge_type=batch.edge_type[arcs], edge_attr=batch.edge_attr[arcs])
        torch.testing.assert_close(network(one)[0], together[number], rtol=1e-8, atol=1e-8)
