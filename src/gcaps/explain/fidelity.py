"""Faithfulness of explanations: change of a prediction when the nodes with the largest contributions are hidden.

- *Deletion*: nodes are hidden one after the other, those of the largest |contribution| first. The sooner the prediction
  changes, the better: the area under |f(G) − f(G without the first share)| is large.
- *Insertion*: all nodes are hidden and shown again in the same order. The sooner the prediction is what it was, the
  better: the area under |f(G) − f(only the first share)| is small.
- *Randomised model* (Adebayo et al., 2018): an explanation that stays the same when the weights of the model are drawn
  anew, or when it is fitted to permuted targets, does not depend on what was learned. The rank correlation of
  contributions should be low.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import spearmanr
from sklearn.base import clone

from gcaps.data.arrays import Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError
from gcaps.estimators.base import GraphEstimator
from gcaps.estimators.network import NetworkEstimator
from gcaps.estimators.problem import targets_of
from gcaps.explain.contributions import explain
from gcaps.explain.explanation import Explanation
from gcaps.explain.occlusion import Occlusion
from gcaps.explain.output import explained_output
from gcaps.explain.predictor import predictor_of, target_of

SHARES = np.linspace(0, 1, 11)
"""Shares of the nodes that are hidden, or shown, at the points of the curves."""
RANDOM_ORDERS = 5


class Fidelity(NamedTuple):
    """Deletion and insertion curves of an order of the nodes, mean over graphs."""

    shares: Floats
    """[s] share of the nodes that are hidden, or shown."""
    deletion: Floats
    """[s] mean |f(G) − f(G without that share)|."""
    insertion: Floats
    """[s] mean |f(G) − f(that share alone)|."""

    @property
    def deletion_area(self) -> float:
        """Area under the deletion curve: larger is better."""
        return float(np.trapezoid(self.deletion, self.shares))

    @property
    def insertion_area(self) -> float:
        """Area under the insertion curve: smaller is better."""
        return float(np.trapezoid(self.insertion, self.shares))


def fidelity_of(model: Any, explanation: Explanation, scores: Sequence[Floats] | None = None) -> Fidelity:
    """Return deletion and insertion curves of the model's predictions (probabilities, or values in regression).

    Args:
        model: the model that made the predictions.
        explanation: of these predictions.
        scores: [n] for each graph: the importance of its nodes; by default |contribution|.
    """
    predictor, graphs = predictor_of(model), explanation.graphs
    target = target_of(predictor, explanation.scores)
    output = explained_output(target, explanation.scores)
    if explanation.output.target:
        output = explained_output(target, explanation.scores, target.names[explanation.output.target])
    hide = Occlusion(predictor, graphs, output, explanation.atoms)
    given = [np.abs(own) for own in explanation.nodes] if scores is None else scores
    deletion, insertion = np.zeros(len(SHARES)), np.zeros(len(SHARES))
    for g, importance in enumerate(given):
        order = np.argsort(-importance, kind="stable")
        counts = np.ceil(SHARES * len(order)).astype(int)
        sets: list[Ints] = [order[:count] for count in counts] + [order[count:] for count in counts]
        change = np.abs(hide.sets(g, sets))
        deletion += change[: len(counts)] / len(given)
        insertion += change[len(counts) :] / len(given)
    return Fidelity(SHARES, deletion, insertion)


def random_fidelity(model: Any, explanation: Explanation) -> Fidelity:
    """Return the curves of nodes in random order, averaged over :data:`RANDOM_ORDERS` orders."""
    rng = np.random.default_rng(0)
    found = [
        fidelity_of(model, explanation, [rng.random(len(own)) for own in explanation.nodes])
        for _ in range(RANDOM_ORDERS)
    ]
    return Fidelity(
        SHARES, np.mean([one.deletion for one in found], axis=0), np.mean([one.insertion for one in found], axis=0)
    )


def randomised(model: GraphEstimator, training: GraphSet | None = None, seed: int = 1) -> GraphEstimator:
    """Return a model without what was learned: a network with weights drawn anew, or a fit to permuted targets.

    Args:
        model: a fitted estimator.
        training: graphs with targets, for the fit; not needed for networks.
        seed: decides weights and permutation.

    Raises:
        ConfigError: it is no network, and there are no training graphs.
    """
    if isinstance(model, NetworkEstimator) and model.method != "capsule-svm":
        return _with_fresh_weights(model, seed)
    if training is None:
        raise ConfigError("the check against a randomised model needs the training graphs, except for networks")
    y = targets_of(training)
    shuffled = y[np.random.default_rng(seed).permutation(len(y))]
    made: GraphEstimator = clone(model).fit(replace(training, y=shuffled))
    return made


def _with_fresh_weights(model: NetworkEstimator, seed: int) -> NetworkEstimator:
    """Return a copy of a model whose networks are initialised anew."""
    from copy import deepcopy

    fresh = copy(model)
    network = deepcopy(model.fitted_.network)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for part in network.modules():
            reset = getattr(part, "reset_parameters", None)
            if callable(reset):
                reset()
    fresh.fitted_ = replace(model.fitted_, network=network.eval())
    return fresh


def rank_correlation(first: Explanation, second: Explanation) -> float:
    """Return the mean over graphs of |Spearman's ρ| of the |contributions| of their nodes.

    Graphs with fewer than three nodes, or with equal contributions of all nodes, are left out; NaN if none is left.
    """
    found = []
    for one, other in zip(first.nodes, second.nodes, strict=True):
        a, b = np.abs(one), np.abs(other)
        if len(a) > 2 and np.ptp(a) > 0 and np.ptp(b) > 0:
            found.append(abs(float(spearmanr(a, b).statistic)))
    return float(np.mean(found)) if found else float("nan")


def randomised_correlation(
    model: GraphEstimator, explanation: Explanation, training: GraphSet | None = None, seed: int = 1
) -> float:
    """Return the rank correlation of an explanation with that of a randomised model, by the same method.

    Args:
        model: the model that made the predictions.
        explanation: of its predictions.
        training: see :func:`randomised`.
        seed: see :func:`randomised`.
    """
    other = randomised(model, training, seed)
    names = model.target_.names
    target = names[explanation.output.target] if len(names) > 1 else None
    theirs = explain(other, explanation.graphs, target, method=explanation.method, nodes_only=True)
    return rank_correlation(explanation, theirs)
