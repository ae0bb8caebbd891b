"""How similar graphs are to the training graphs, against counting by hand."""

from collections import Counter
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import gcaps
from gcaps.data import make_families
from gcaps.errors import DataError
from gcaps.estimators import novelty
from gcaps.estimators.novelty import Domain
from gcaps.kernels.weisfeiler_lehman import refine
from gcaps.testing import hostile_graphs, permute_nodes


def colors_of(graphs):
    """A counter of (refinement, color) for each graph, one node at a time."""
    labels, arcs = graphs.node_labels is not None, graphs.edge_labels is not None
    found = refine(graphs, novelty.REFINEMENTS, labels=labels, edge_labels=arcs)
    return [
        Counter((i, int(found[i, node])) for i in range(len(found)) for node in range(a, b))
        for a, b in zip(graphs.ptr[:-1], graphs.ptr[1:], strict=True)
    ]


def ruzicka(one, other):
    keys = one.keys() | other.keys()
    largest = sum(max(one[k], other[k]) for k in keys)
    return sum(min(one[k], other[k]) for k in keys) / largest if largest else 1.0


@pytest.fixture(scope="module")
def hostile():
    return replace(hostile_graphs(40, seed=3, largest=12), x=None)


def test_similarity_is_that_of_counting_colors(hostile):
    domain = Domain.of(hostile[:25], 0)
    counts = colors_of(hostile)
    expected = np.array([[ruzicka(a, b) for b in counts[:25]] for a in counts])
    found = domain.compare(hostile)
    np.testing.assert_allclose(found.similarity, expected.max(axis=1), atol=1e-12)
    own = expected[:25].copy()
    np.fill_diagonal(own, -1)
    closest = own.max(axis=1)
    share = (closest[None, :] > expected.max(axis=1)[:, None] + 1e-12).mean(axis=1)
    np.testing.assert_allclose(found.percentile, share)
    np.testing.assert_array_equal(found.novel, share >= 0.99)


def test_a_training_graph_is_its_own_neighbor(hostile):
    found = Domain.of(hostile, 0).compare(hostile)
    np.testing.assert_allclose(found.similarity, 1)
    assert not found.novel.any()


def test_molecules_are_compared_by_circular_substructures():
    pytest.importorskip("rdkit")
    from rdkit import Chem, DataStructs
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    texts = ["CCO", "CCCO", "c1ccccc1", "CC(=O)O", "c1ccccc1O", "C", "ClC(Cl)Cl", "CCN"]
    graphs = gcaps.load(texts, labelled=False)
    make = GetMorganGenerator(radius=2).GetSparseCountFingerprint
    prints = [make(Chem.MolFromSmiles(text)) for text in texts]
    expected = np.array([[DataStructs.TanimotoSimilarity(a, b) for b in prints[:5]] for a in prints])
    found = Domain.of(graphs[:5], 0).compare(graphs)
    np.testing.assert_allclose(found.similarity, expected.max(axis=1))
    assert found.nearest[7] == str(graphs.ids[int(expected[7].argmax())])
    with pytest.raises(DataError, match="needs molecules"):
        Domain.of(graphs[:5], 0).compare(make_families(4))


def test_what_resembles_nothing_is_flagged_and_what_is_usual_is_not():
    graphs = make_families(400, seed=0)
    domain = Domain.of(graphs[:300], 0)
    assert domain.compare(graphs[300:]).novel.mean() <= 0.05
    strange = gcaps.GraphSet.from_networkx([nx.complete_graph(9), nx.star_graph(30), nx.path_graph(20)])
    assert domain.compare(strange).novel.all()


def test_attributes_of_nodes_count():
    graphs = make_families(200, seed=0)
    x = np.random.default_rng(0).normal(size=(graphs.num_nodes, 3)).astype(np.float32)
    domain = Domain.of(replace(graphs, x=x), 0)
    usual, strange = replace(graphs, x=x + 0.01), replace(graphs, x=x + 50)
    assert domain.compare(strange).similarity.mean() < domain.compare(usual).similarity.mean() - 0.1
    with pytest.raises(DataError, match="node attributes"):
        domain.compare(graphs)


def test_neither_order_nor_company_changes_a_comparison(hostile):
    domain = Domain.of(hostile[:20], 0)
    together = domain.compare(hostile)
    for i in range(len(hostile)):
        alone = domain.compare(hostile[[i]])
        assert alone.similarity[0] == together.similarity[i]
        assert alone.novel[0] == together.novel[i]
    np.testing.assert_allclose(domain.compare(permute_nodes(hostile, seed=1)[0]).similarity, together.similarity)


def test_what_is_kept_is_bounded(monkeypatch):
    graphs = make_families(120, seed=0)
    monkeypatch.setattr(novelty, "MAX_GRAPHS", 50)
    domain = Domain.of(graphs, 0)
    assert len(domain.names) == 50
    assert domain.names.tolist() == Domain.of(graphs, 0).names.tolist()
    monkeypatch.setattr(novelty, "MAX_COUNTS", 60)
    small = Domain.of(graphs, 0)
    assert small.kernel.counts.sum() <= 60
    assert 1 <= len(small.names) < 50
    kept = [domain_name in set(small.names) for domain_name in graphs.ids.astype(str)]
    np.testing.assert_allclose(small.compare(graphs[np.flatnonzero(kept)]).similarity, 1)
    assert len(domain.compare(graphs[:0]).similarity) == 0
