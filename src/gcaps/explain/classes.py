"""Summaries of the classes of a model: typical graphs, and contributions of substructures and channel pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from gcaps.data.arrays import Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError
from gcaps.estimators.base import GraphEstimator
from gcaps.estimators.network import NetworkEstimator
from gcaps.explain.gradients import DifferentiableModel
from gcaps.explain.output import Output
from gcaps.explain.substructures import contributions, is_exact, require_exact
from gcaps.models.ensemble import Ensemble
from gcaps.models.gcaps import GCAPS
from gcaps.models.losses import scores_of
from gcaps.nn.readout import MeanCovariance

if TYPE_CHECKING:
    from gcaps.models.network import Network

TYPICAL = 4
"""Number of typical graphs of a class."""
MOST_EVIDENCE = 8
"""Number of substructures, or pairs, of a class."""
EXPLAINED = 200
"""Number of graphs of a class, the most typical ones, over which contributions are averaged."""


class Evidence(NamedTuple):
    """A substructure, or a pair of channels, with a large contribution to the prediction of a class."""

    words: str
    contribution: float
    """Mean over the graphs of the class."""
    share: float
    """Share of these graphs in which it contributes."""
    graph: int
    """Number of the graph in which it contributes most."""
    nodes: Ints
    """Nodes that it covers there; empty for a pair of channels."""


class ClassSummary(NamedTuple):
    """Summary of one class."""

    name: str
    graphs: int
    """Number of graphs that are predicted to be of the class."""
    typical: Ints
    """Numbers of the graphs with the highest probability of the class, in descending order."""
    probability: Floats
    """Their probabilities of the class."""
    substructures: list[Evidence]
    """Of support vector machines on counts, by mean contribution to the decision value."""
    pairs: list[Evidence]
    """Of capsule networks, by gradient × input of the covariance readout."""


def class_summaries(model: GraphEstimator, graphs: GraphSet) -> list[ClassSummary]:
    """Summarise each class of a classifier by the graphs that it predicts to be of the class.

    Args:
        model: a fitted classifier.
        graphs: any graphs, such as the training graphs.

    Raises:
        ConfigError: the model is not a classifier.
    """
    target = model.target_
    if target.task != "classification" or target.classes is None:
        raise ConfigError("classes: needs a model of classes; this one predicts values or several targets")
    graphs = model.loaded(graphs)
    scores = model.scores(graphs)
    predicted = scores.argmax(axis=1)
    found = []
    for code, name in enumerate(target.classes.tolist()):
        own = np.flatnonzero(predicted == code)
        own = own[np.argsort(-scores[own, code], kind="stable")]
        used = own[:EXPLAINED]
        found.append(
            ClassSummary(
                str(name),
                len(own),
                own[:TYPICAL],
                scores[own[:TYPICAL], code],
                class_substructures(model, graphs, used, code) if len(own) and is_exact(model) else [],
                class_pairs(model, graphs, used, code) if len(own) and isinstance(model, NetworkEstimator) else [],
            )
        )
    return found


def class_substructures(model: GraphEstimator, graphs: GraphSet, chosen: Ints, code: int) -> list[Evidence]:
    """Return the substructures with the largest mean contribution to the decision value of a class, over some graphs.

    Args:
        model: a support vector machine on counts of substructures.
        graphs: a set.
        chosen: graphs of the class in that set.
        code: number of the class.
    """
    output = Output(np.full(len(chosen), code, dtype=np.int64), 0, "", False)
    totals: dict[int, float] = {}
    best: dict[int, Evidence] = {}
    times: dict[int, int] = {}
    for g, found in zip(
        chosen.tolist(), contributions(require_exact(model), graphs.subset(chosen), output), strict=True
    ):
        for one in found.substructures:
            totals[one.hash] = totals.get(one.hash, 0.0) + one.contribution
            times[one.hash] = times.get(one.hash, 0) + 1
            if one.hash not in best or abs(one.contribution) > abs(best[one.hash].contribution):
                best[one.hash] = Evidence(one.words, one.contribution, 0.0, g, one.nodes)
    order = sorted(totals, key=lambda h: -abs(totals[h]))[:MOST_EVIDENCE]
    count = len(chosen)
    return [best[h]._replace(contribution=totals[h] / count, share=times[h] / count) for h in order]


def class_pairs(model: NetworkEstimator, graphs: GraphSet, chosen: Ints, code: int) -> list[Evidence]:
    """Return the covariances of two channels with the largest mean contribution to the probability of a class.

    The contribution of an entry of the readout [μ, C] is its gradient × input. Networks of other readouts have none.

    Args:
        model: a fitted network.
        graphs: a set.
        chosen: graphs of the class in that set.
        code: number of the class.
    """
    some = graphs.subset(chosen)
    output = Output(np.full(len(chosen), code, dtype=np.int64), 0, "", True)
    parts = _covariance_networks(model.fitted_.network)
    if not parts:
        return []
    own = DifferentiableModel(model, some, output)
    members = _covariance_networks(own.network)
    found: list[Evidence] = []
    for number, network in enumerate(members):
        with torch.no_grad():
            vectors = torch.cat([network.embed(own.source.take(np.array([g]))) for g in range(len(some))])
        leaf = vectors.clone().requires_grad_()
        value = scores_of(network.task, network.head(leaf))[:, code]
        (slope,) = torch.autograd.grad(value.sum(), leaf)
        each = (slope * vectors).numpy() / len(members)
        readout = network.readout
        assert isinstance(readout, MeanCovariance)
        rank = readout.in_channels if readout.rank is None else readout.rank
        rows, columns = np.triu_indices(rank)
        block = each[:, readout.in_channels : readout.in_channels + len(rows)]
        mean = block.mean(axis=0)
        for k in np.argsort(-np.abs(mean), kind="stable")[:MOST_EVIDENCE].tolist():
            strongest = int(np.abs(block[:, k]).argmax())
            pair = f"{rows[k]} and {columns[k]}" if rows[k] != columns[k] else f"{rows[k]} with itself"
            words = f"channels {pair}" + (f" of network {number + 1}" if len(members) > 1 else "")
            share = float((np.sign(block[:, k]) == np.sign(mean[k])).mean())
            found.append(Evidence(words, float(mean[k]), share, int(chosen[strongest]), np.empty(0, np.int64)))
    return sorted(found, key=lambda one: -abs(one.contribution))[:MOST_EVIDENCE]


def _covariance_networks(network: Network) -> list[GCAPS]:
    """Return the capsule networks with a covariance readout that a network is made of."""
    members = network.members if isinstance(network, Ensemble) else [network]
    return [m for m in members if isinstance(m, GCAPS) and m.trained and isinstance(m.readout, MeanCovariance)]
