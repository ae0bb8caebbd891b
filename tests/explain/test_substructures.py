"""Exact contributions of substructures: they are those of the counts, and add up to the decision value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gcaps
from gcaps.data.synthetic import make_motifs
from gcaps.errors import ConfigError
from gcaps.estimators import KernelSVC, KernelSVR, make_estimator
from gcaps.explain import explain
from gcaps.explain.feature_names import label_words
from gcaps.explain.occurrences import occurrences, spread_over_balls
from gcaps.explain.substructures import coefficients
from gcaps.kernels import Graphlet, ShortestPath, WeisfeilerLehman, WLOptimalAssignment

KERNELS = {
    "wl": WeisfeilerLehman(2),
    "wl, not normalised": WeisfeilerLehman(1, normalize=False),
    "wloa": WLOptimalAssignment(2),
    "sp": ShortestPath(),
    "gk 3": Graphlet(3),
    "gk 4, connected": Graphlet(4, connected=True),
    "gk 5, sampled": Graphlet(5, samples=300),
}


@pytest.fixture(scope="module")
def graphs():
    made = make_motifs(40, 1).graphs
    assert made.y is not None
    return made


@pytest.mark.parametrize("name", KERNELS)
def test_occurrences_add_up_to_the_counts_of_the_kernel(name, graphs):
    kernel = KERNELS[name].fit(graphs[:30])
    for g in (0, 31):
        single = graphs.subset([g])
        found, counted = occurrences(kernel, single), kernel.count_substructures(single)
        for hashes, counts in ((found.hashes, found.counts),):
            for h in np.unique(counted.hashes):
                own = counted.counts[counted.hashes == h].sum()
                np.testing.assert_allclose(counts[hashes == h].sum(), own, atol=1e-9)
        each = np.random.default_rng(0).normal(size=len(found.hashes))
        spread = found.spread(each)
        assert spread.shape == (single.num_nodes,)
        np.testing.assert_allclose(spread.sum(), each.sum(), atol=1e-9)


@pytest.mark.parametrize("name", KERNELS)
def test_contributions_add_up_to_the_decision_value_minus_the_bias(name, graphs):
    model = KernelSVC(KERNELS[name], C=(1.0,)).fit(graphs[:30])
    found = explain(model, graphs[28:])
    assert found.method == "substructures"
    value = model.decision_function(graphs[28:])
    np.testing.assert_allclose(found.values, value, atol=1e-10)
    for g, own in enumerate(found.nodes):
        assert own.dtype == np.float64
        np.testing.assert_allclose(own.sum(), value[g] - model.svm_.intercepts[0], atol=1e-10)
        np.testing.assert_allclose(sum(one.contribution for one in found.substructures[g]), own.sum(), atol=1e-10)
        np.testing.assert_allclose(sum(found.features[g].values()), own.sum(), atol=1e-10)
    assert found.output.words == "decision value of class 1"
    assert not found.output.is_probability


def test_of_several_classes_the_sum_of_the_predicted_ones_decision_values_is_explained(graphs):
    model = make_estimator("wl", {"n_iter": (1,), "C": (1.0,)}).fit(graphs, np.arange(len(graphs)) % 3)
    found = explain(model, graphs[:6])
    pairs = model.svm_.pair_values(model.transform(graphs[:6]))
    for g, code in enumerate(found.output.column):
        signs = [(1 if b == code else -1 if a == code else 0) for a, b in model.svm_.pairs]
        np.testing.assert_allclose(found.values[g], pairs[g] @ signs, atol=1e-10)
        np.testing.assert_allclose(found.nodes[g].sum(), found.values[g] - found.baselines[g], atol=1e-10)


def test_values_are_explained_in_their_units(graphs):
    model = KernelSVR(ShortestPath(), C=(1.0,)).fit(graphs, 50 + 10 * graphs.sizes.astype(float))
    found = explain(model, graphs[:5])
    np.testing.assert_allclose(found.values, model.predict(graphs[:5]), atol=1e-9)
    for own, value, base in zip(found.nodes, found.values, found.baselines, strict=True):
        np.testing.assert_allclose(own.sum(), value - base, atol=1e-9)


def test_the_weight_of_a_substructure_is_that_of_the_dual_coefficients(graphs):
    model = make_estimator("wl", {"n_iter": (1,), "C": (1.0,)}).fit(graphs)
    kernel, (beta, _) = model._fitted_kernel(), coefficients(model, 1)
    support = model._fitted_kernel()._train_.toarray()
    expected = (beta / np.linalg.norm(support, axis=1)) @ support
    np.testing.assert_allclose(kernel.weights(beta[None])[0], expected, atol=1e-12)


def test_each_height_is_divided_among_the_nodes_within_so_many_steps():
    path = gcaps.GraphSet.from_networkx([__import__("networkx").path_graph(4)])
    each = np.zeros((3, 4))
    each[0, 0], each[1, 1], each[2, 3] = 1.0, 3.0, 6.0
    np.testing.assert_allclose(spread_over_balls(path, each), [1 + 1, 1 + 2, 1 + 2, 2])


def test_weighted_graphs_and_restored_models(graphs, tmp_path):
    weight = 1.0 + (np.arange(len(graphs.col)) * 0)
    weighted = replace(graphs, edge_weight=weight * 2.0)
    model = KernelSVC(ShortestPath(), C=(1.0,)).fit(weighted)
    found = explain(model, weighted[:3])
    np.testing.assert_allclose(found.values, model.decision_function(weighted[:3]), atol=1e-10)
    own = make_estimator("wl", {"n_iter": (2,), "C": (1.0,)}).fit(graphs)
    own.save(tmp_path / "model")
    again = gcaps.load_model(tmp_path / "model")
    for one, other in zip(explain(own, graphs[:3]).nodes, explain(again, graphs[:3]).nodes, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_other_kernels_are_refused(graphs):
    model = make_estimator("rw", {"decays": (0.01,), "C": (1.0,)}).fit(graphs)
    with pytest.raises(ConfigError, match="explains support vector machines on the kernels wl, wloa, sp and gk"):
        explain(model, graphs[:1], method="substructures")
    assert explain(model, graphs[:1]).method == "occlusion"


def test_atoms_are_told_apart_in_words():
    pytest.importorskip("rdkit")
    graphs = gcaps.load(["C[NH3+]", "c1ccccc1O"], labelled=False)
    words = [[label_words(graphs.subset([g]), k) for k in range(n)] for g, n in enumerate(graphs.sizes.tolist())]
    assert words[0] == ["CH3 of 1 bond", "NH3+ of 1 bond"]
    assert words[1][:2] == ["aromatic CH of 2 bonds"] * 2
    assert words[1][5:] == ["aromatic C of 3 bonds", "OH of 1 bond"]
