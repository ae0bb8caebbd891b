"""The planted house is found by each family: ROC-AUC of |contributions of nodes| against membership ≥ 0.95.

Models that learn from the arrangement of labels get decoys; those that barely look at it, or not at all, get labels
that occur in the motif alone.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from gcaps.data.synthetic import HOUSE, make_motifs
from gcaps.estimators import KernelSVC, make_estimator
from gcaps.explain import explain
from gcaps.explain.edges import edges_of
from gcaps.kernels import Graphlet

TRAINING, TESTED = 120, 12
FAMILIES = {
    "gcaps": (True, {"epochs": 15, "ensemble_size": 1, "with_svm": False}, "auto"),
    "gin": (True, {"epochs": 40}, "gradient-x-input"),
    "dgcnn": (True, {"epochs": 40}, "auto"),
    "capsule-svm": (True, {}, "gradient-x-input"),
    "dcnn": (False, {"epochs": 40}, "auto"),
    "pscn": (False, {"epochs": 40}, "auto"),
    "ecc": (False, {"epochs": 20}, "auto"),
    "deepsets": (False, {"epochs": 30}, "auto"),
    "wl": (True, {"n_iter": (1,)}, "auto"),
    "wloa": (True, {"n_iter": (1,)}, "auto"),
    "sp": (True, {}, "auto"),
    "rw": (False, {"decays": (0.01,)}, "auto"),
}


def motif_scores(model, decoys, method):
    made = make_motifs(TRAINING + TESTED, 0, decoys=decoys)
    model.fit(made.graphs[:TRAINING])
    chosen = TRAINING + np.flatnonzero(made.graphs.y[TRAINING:] == 1)
    found = explain(model, made.graphs.subset(chosen), method=method)
    inside = [made.inside[made.graphs.ptr[g] : made.graphs.ptr[g + 1]] for g in chosen]
    return [roc_auc_score(where, np.abs(own)) for where, own in zip(inside, found.nodes, strict=True)]


@pytest.mark.parametrize("name", FAMILIES)
def test_the_motif_is_found(name):
    decoys, settings, method = FAMILIES[name]
    assert np.mean(motif_scores(make_estimator(name, settings), decoys, method)) >= 0.95


def test_connected_graphlets_find_the_motif():
    model = KernelSVC(Graphlet(4, connected=True), C=(100.0,))
    assert np.mean(motif_scores(model, True, "substructures")) >= 0.95


def test_the_motif_is_a_house_in_a_tree_and_its_labels_are_in_both_classes():
    made = make_motifs(20, 3)
    for g, graph in enumerate(made.graphs):
        inside = np.flatnonzero(made.inside[made.graphs.ptr[g] : made.graphs.ptr[g + 1]])
        ends = edges_of(made.graphs.subset([g]))[0].ends
        assert len(ends) == graph.num_nodes - 1 + 2 * graph.y
        assert len(inside) == 5 * graph.y
        assert np.isin(ends, inside).all(axis=1).sum() == len(HOUSE) * graph.y
        assert (graph.node_labels >= 3).sum() <= 5
    assert make_motifs(4, 3, labelled=False).graphs.node_labels is None
