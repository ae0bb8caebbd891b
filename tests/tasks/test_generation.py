from itertools import product

import networkx as nx
import numpy as np
import pytest
import torch

import gcaps
from gcaps.data.graphset import GraphSet
from gcaps.errors import DataError, ModelError
from gcaps.tasks import CapsuleGraphGenerator
from gcaps.tasks.dense_graphs import Alphabet, DenseGraphs, is_connected, orders
from gcaps.tasks.generation_quality import (
    Variety,
    clustering_histograms,
    degree_histograms,
    distances_to,
    graphlet_shares,
    mmd,
    spectrum_histograms,
    variety,
)
from gcaps.tasks.graph_chain import Critic, GraphChain, Limits, random_trees
from gcaps.tasks.random_graphs import communities, configuration_model, erdos_renyi
from gcaps.testing import assert_batch_equals_singles, assert_permutation_invariant, hostile_graphs

SMALL = {
    "hidden": 4,
    "layers": 2,
    "rank": 4,
    "chains": 16,
    "batch_size": 8,
    "steps": 4,
    "epochs": 3,
    "updates": 2,
    "sampling_steps": 30,
}


@pytest.fixture(scope="module")
def molecules() -> GraphSet:
    pytest.importorskip("rdkit")
    return gcaps.load(["CCO", "CC(=O)O", "C1CCCCC1", "CCN", "CC#N", "OCC=C", "C1CC1O", "CCCC"], labelled=False)


@pytest.fixture(scope="module")
def fitted(molecules) -> CapsuleGraphGenerator:
    return CapsuleGraphGenerator(**SMALL).fit(molecules)


def critic_of(L: int, R: int, scale: float = 1.0) -> Critic:
    torch.manual_seed(3)
    critic = Critic(L, R, hidden=3, capsule_size=2, layers=2, walks=4, rank=3)
    with torch.no_grad():
        critic.last.weight *= scale
    return critic


@pytest.mark.parametrize(("L", "R", "connected", "scale"), [(1, 2, False, 60), (2, 1, True, 8)])
def test_chain_tends_to_the_distribution_exp_score(L, R, connected, scale):
    N = 3
    limits = Limits(torch.tensor([3, 1])[:L], connected)
    chain = GraphChain(critic_of(L, R, scale), limits, L, R)
    states = []
    for nodes, (a, b, c) in product(product(range(L), repeat=N), product(range(R + 1), repeat=3)):
        edges = torch.tensor([[0, a, b], [a, 0, c], [b, c, 0]])
        states.append((torch.tensor(nodes), edges))
    every = DenseGraphs(
        torch.stack([s[0] for s in states]),
        torch.stack([s[1] for s in states]),
        torch.ones(len(states), N, dtype=torch.bool),
    )
    allowed = (orders(every) <= limits.order[every.nodes]).all(dim=1)
    if connected:
        allowed &= is_connected(every)
    with torch.no_grad():
        expected = torch.softmax(chain.score(every).double().masked_fill(~allowed, -torch.inf), 0)
    generator = torch.Generator().manual_seed(0)
    start = random_trees(
        torch.ones(3000, N, dtype=torch.bool), torch.zeros(3000, N, dtype=torch.long), limits, generator
    )
    end = chain.run(start, 60, generator)
    code = {tuple(torch.cat([n, e.flatten()]).tolist()): k for k, (n, e) in enumerate(states)}
    visits = [code[tuple(row.tolist())] for row in torch.cat([end.nodes, end.edges.flatten(1)], dim=1)]
    share = torch.bincount(torch.tensor(visits), minlength=len(states)).double() / len(visits)
    assert not share[~allowed].any()
    assert 0.5 * (share - expected).abs().sum() < 0.06
    assert expected.max() > 1.5 / int(allowed.sum())  # a uniform distribution would be no test


def test_critic_does_not_depend_on_node_order_or_company():
    graphs = hostile_graphs(16, seed=2, largest=6)
    alphabet = Alphabet.of(graphs)
    critic = critic_of(alphabet.num_nodes, alphabet.num_edges).double()

    def score(some):
        dense = alphabet.encode(some, 24)
        one_hot = torch.nn.functional.one_hot(dense.nodes, alphabet.num_nodes) * dense.mask.unsqueeze(2)
        edges = torch.nn.functional.one_hot(dense.edges, alphabet.num_edges + 1)
        return critic(one_hot.double(), edges.double(), dense.mask).detach().numpy()

    assert_permutation_invariant(score, graphs, atol=1e-9)
    assert_batch_equals_singles(score, graphs, atol=1e-9)


def test_generated_graphs_keep_the_limits_of_the_training_graphs(fitted, molecules):
    made = fitted.sample(40)
    dense = fitted.alphabet_.encode(made, int(made.sizes.max()))
    assert is_connected(dense).all()
    assert (orders(dense) <= fitted.limits_.order[dense.nodes])[dense.mask].all()
    assert set(made.sizes) <= set(molecules.sizes)
    assert set(made.node_labels[:, 0]) <= set(molecules.node_labels[:, 0])


def test_same_seed_gives_the_same_graphs_and_another_seed_others(fitted):
    first, again, other = (fitted.sample(20, random_state=seed) for seed in (1, 1, 2))
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()


def test_saved_generator_generates_the_same_graphs(fitted, molecules, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = gcaps.load_model(tmp_path / "model")
    assert loaded.sample(10).fingerprint() == fitted.sample(10).fingerprint()
    np.testing.assert_array_equal(loaded.score_samples(molecules), fitted.score_samples(molecules))


def test_damaged_state_is_refused(fitted):
    arrays, values = fitted.state()
    model = CapsuleGraphGenerator(**SMALL)
    with pytest.raises(ModelError, match="sizes"):
        model.restore(arrays | {"sizes": np.array([10**9])}, values)
    with pytest.raises(ModelError, match="damaged"):
        model.restore(arrays, {})


def test_interrupted_training_resumes_exactly(molecules, fitted, tmp_path, monkeypatch):
    monkeypatch.setenv("GCAPS_CHECKPOINT_SECONDS", "0")

    def stop(epoch):
        if epoch.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        CapsuleGraphGenerator(**SMALL).fit(molecules, checkpoint=tmp_path / "c", on_epoch=stop)
    resumed = CapsuleGraphGenerator(**SMALL).fit(molecules, checkpoint=tmp_path / "c")
    assert resumed.curves_.loss == fitted.curves_.loss
    for found, expected in zip(resumed.critic_.parameters(), fitted.critic_.parameters(), strict=True):
        assert torch.equal(found, expected)


def test_graphs_of_one_node_and_without_edges_are_generated():
    graphs = GraphSet.from_networkx([nx.empty_graph(1), nx.empty_graph(3), nx.path_graph(2)])
    made = CapsuleGraphGenerator(**SMALL).fit(graphs).sample(12)
    assert len(made) == 12
    assert set(made.sizes) <= {1, 2, 3}


def test_graphs_beyond_the_limit_are_refused():
    with pytest.raises(DataError, match="65 nodes; the generator takes at most 64"):
        CapsuleGraphGenerator().fit(GraphSet.from_networkx([nx.path_graph(65)]))


def test_dense_graphs_come_back_as_they_were():
    graphs = hostile_graphs(16, seed=1, largest=6)
    alphabet = Alphabet.of(graphs)
    back = alphabet.decode(alphabet.encode(graphs, 40), "back")
    np.testing.assert_array_equal(back.sizes, graphs.sizes)
    np.testing.assert_array_equal(back.degrees, graphs.degrees)
    np.testing.assert_array_equal(back.col, graphs.col)
    np.testing.assert_array_equal(back.node_labels, graphs.node_labels)


def test_histograms_match_networkx():
    graphs = hostile_graphs(16, seed=7, largest=8)
    clustering, spectrum = clustering_histograms(graphs), spectrum_histograms(graphs)
    for g, drawn in enumerate(graphs.to_networkx()):
        drawn = nx.Graph(drawn)
        drawn.remove_edges_from(nx.selfloop_edges(drawn))
        n = len(drawn)
        values = np.round(np.array(list(nx.clustering(drawn).values())) * 50, 6)
        bins = np.clip(np.floor(values), 0, 49).astype(int)
        np.testing.assert_allclose(clustering[g], np.bincount(bins, minlength=50) / n)
        degrees = [d for _, d in drawn.degree()]
        np.testing.assert_allclose(degree_histograms(graphs)[g, : max(degrees) + 1], np.bincount(degrees) / n)
        eigenvalues = np.linalg.eigvalsh(nx.normalized_laplacian_matrix(drawn, weight=None).toarray())
        bins = np.clip(np.floor(np.round(eigenvalues * 25, 6)), 0, 49).astype(int)
        np.testing.assert_allclose(spectrum[g], np.bincount(bins, minlength=50) / n)


def test_graphlet_shares_tell_stars_paths_and_cliques_apart():
    graphs = GraphSet.from_networkx([nx.star_graph(5), nx.path_graph(6), nx.complete_graph(5), nx.cycle_graph(4)])
    shares = graphlet_shares(graphs)
    np.testing.assert_allclose(shares.max(axis=1), 1)
    assert len(set(shares.argmax(axis=1))) == 4


@pytest.mark.parametrize("ordered", [False, True])
def test_mmd_matches_its_definition(ordered):
    rng = np.random.default_rng(0)
    x, y = rng.dirichlet(np.ones(4), 5), rng.dirichlet(np.ones(6), 7)
    wide = np.pad(x, ((0, 0), (0, 2)))

    def kernel(a, b):
        apart = np.abs(np.cumsum(a) - np.cumsum(b)).sum() if ordered else np.abs(a - b).sum()
        return np.exp(-((apart / 0.5) ** 2) / 2)

    def mean(one, other):
        return np.mean([kernel(a, b) for a in one for b in other])

    expected = mean(wide, wide) + mean(y, y) - 2 * mean(wide, y)
    assert mmd(x, y, ordered=ordered, width=0.5) == pytest.approx(expected)
    assert mmd(y, y, ordered=ordered) == pytest.approx(0, abs=1e-12)


def test_distances_grow_with_the_difference():
    graphs = communities(60)
    near, far = distances_to(communities(60, seed=1), graphs), distances_to(erdos_renyi(graphs, 60), graphs)
    assert near.keys() == {"degree", "clustering", "graphlets", "spectrum"}
    assert all(near[name] < far[name] for name in near)


def test_random_models_keep_what_they_promise():
    graphs = hostile_graphs(24, seed=4, largest=6)
    swapped, random = configuration_model(graphs, 60, seed=1), erdos_renyi(graphs, 60, seed=1)
    known = {(tuple(sorted(zip(g.node_labels[:, 0], d, strict=True)))) for g, d in with_degrees(graphs)}
    assert all(tuple(sorted(zip(g.node_labels[:, 0], d, strict=True))) in known for g, d in with_degrees(swapped))
    counts = set(zip(graphs.sizes, graphs.arc_counts, strict=True))
    assert set(zip(random.sizes, random.arc_counts, strict=True)) <= counts


def with_degrees(graphs):
    for g in range(len(graphs)):
        yield graphs[g], graphs.degrees[graphs.ptr[g] : graphs.ptr[g + 1]]


def test_mode_collapse_is_detected():
    graphs = communities(40)
    healthy = variety(communities(40, seed=5), graphs)
    stuck = variety(graphs[[0] * 40], graphs)
    assert not healthy.collapsed(natural=1.0)
    assert stuck.collapsed(natural=1.0)
    assert (stuck.novel, stuck.unique) == (0.0, 1 / 40)
    assert Variety(1.0, 1.0, 0.1).collapsed(natural=1.0)


def test_communities_are_connected_and_the_seed_decides():
    graphs = communities(20, seed=3)
    assert all(nx.is_connected(g) for g in graphs.to_networkx())
    assert graphs.fingerprint() == communities(20, seed=3).fingerprint()
    assert graphs.sizes.min() >= 12
    assert graphs.sizes.max() <= 16
