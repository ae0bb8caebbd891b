r"""Attributions of networks by gradients: integrated gradients, saliency, and gradient × input.

A network is a function f of the encoded node features X [n, d] and of the weights w [e] of the arcs.

- *Integrated gradients* (Sundararajan, Taly and Yan, 2017) along the straight line from the baseline 0:
  :math:`X \odot \int_0^1 \nabla f(\alpha X)\, d\alpha`. The baseline is a node without features: no label and no degree
  that the training graphs have, attributes at their mean. Contributions add up to f(X) − f(0) (completeness).
- *Gradient × input*, :math:`X \odot \nabla f(X)`: integrated gradients from a single point of the line.
- *Saliency*, :math:`|\nabla f(X)|`: how much f reacts to small changes, without a sign.

Everything is computed in float64.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gcaps.batching import Batch, BatchSource
from gcaps.data.arrays import Floats, strides
from gcaps.data.graphset import GraphSet
from gcaps.explain.edges import edges_of
from gcaps.explain.feature_names import by_name, column_names
from gcaps.explain.output import Output
from gcaps.models.losses import scores_of
from gcaps.models.registry import network_class
from gcaps.training.loop import reproducible

if TYPE_CHECKING:
    from gcaps.data.targets import Target
    from gcaps.estimators.network import NetworkEstimator

GradientMethod = Literal["integrated-gradients", "saliency", "gradient-x-input"]
POINTS, PIECES, MAX_POINTS = 8, 4, 512
"""Points of the quadrature of a piece of the line, pieces at first, and points of all pieces at most."""
TOLERANCE = 0.01
"""Largest relative difference between the sum of contributions and f(X) − f(0)."""
NODES = 1 << 14
"""Nodes of all copies of a graph whose gradients are computed together."""
SMOOTH_FILTERS = ("adjacency", "laplacian", "kipf", "mean")
"""Filters of capsules that are smooth in the weights of arcs down to 0; others divide by degrees."""


class Attribution(NamedTuple):
    """Contributions of the node features and edges of one graph."""

    value: float
    """f(X)."""
    baseline: float
    """f of the baseline."""
    nodes: Floats
    """[n] sums over the features of each node."""
    features: dict[str, float]
    edges: Floats | None
    """[m] of undirected edges; None for a network whose edges do not enter by their weights."""
    gap: float
    """|Σ contributions − (f(X) − f(0))|, of the nodes."""


class DifferentiableModel:
    """A fitted network as a function of the node features and arc weights of graphs, in float64.

    Args:
        model: a fitted estimator with a network.
        graphs: the graphs.
        output: the output that is explained.
    """

    def __init__(self, model: NetworkEstimator, graphs: GraphSet, output: Output) -> None:
        fitted = model.fitted_
        self.target: Target = model.target_
        self.network = deepcopy(fitted.network).to("cpu").double().eval()
        for parameter in self.network.parameters():
            parameter.requires_grad_(False)
        self.threads, self.seed = int(getattr(fitted.config, "threads", 1)), fitted.seed
        with reproducible(self.seed, self.threads):
            x = fitted.features.encode(graphs)
            extras = network_class(fitted.config).prepare(fitted.config, graphs)
        self.source = BatchSource(graphs, x, dtype=torch.float64, extras=extras)
        self.names = column_names(fitted.features, graphs)
        self.output, self.sizes = output, graphs.sizes
        self.weighs_edges = weighs_edges(fitted.config)

    def values(self, batch: Batch, graph: int) -> Tensor:
        """[B] the explained output for copies of a graph."""
        scores = scores_of(self.network.task, self.network(batch))
        column = int(self.output.column[graph])
        chosen = scores[:, column]
        if self.target.task == "regression":
            assert self.target.mean is not None
            assert self.target.scale is not None
            chosen = chosen * float(self.target.scale[column]) + float(self.target.mean[column])
        return chosen

    def value(self, graph: int, share: float = 1.0, *, edges: bool = False) -> float:
        """Return f where the features, or the arc weights, are those of a graph times ``share``."""
        with torch.no_grad(), reproducible(self.seed, self.threads):
            batch, _ = self._scaled(graph, np.array([share]), edges=edges)
            return float(self.values(batch, graph))

    def gradient(self, graph: int, *, edges: bool = False) -> Callable[[Floats, Floats], Floats]:
        """Return the function (α [S], c [S]) ↦ Σ_s c_s ∇f(α_s X) of a graph, [n, d]; for arc weights [e]."""

        def weighted(shares: Floats, weights: Floats) -> Floats:
            total: Floats | None = None
            copies = np.full(len(shares), max(int(self.sizes[graph]), 1))
            for first, last in strides(copies, NODES):
                batch, leaf = self._scaled(graph, shares[first:last], edges=edges)
                (slope,) = torch.autograd.grad(self.values(batch, graph).sum(), leaf, allow_unused=True)
                slope = torch.zeros_like(leaf) if slope is None else slope
                each = slope.reshape(last - first, -1, *leaf.shape[1:]).numpy()
                part: Floats = np.einsum("s,s...->...", weights[first:last], each)
                total = part if total is None else total + part
            assert total is not None
            return total

        def run(shares: Floats, weights: Floats) -> Floats:
            with reproducible(self.seed, self.threads):
                return weighted(shares, weights)

        return run

    def inputs(self, graph: int, *, edges: bool = False) -> Floats:
        """X [n, d] of a graph, or the weights [e] of its arcs."""
        batch = self.source.take(np.array([graph]))
        found: Floats = (arc_weights(batch) if edges else batch.x).numpy()
        return found

    def _scaled(self, graph: int, shares: Floats, *, edges: bool) -> tuple[Batch, Tensor]:
        """Return copies of a graph with features, or arc weights, times ``shares``, and that tensor."""
        batch = self.source.take(np.full(len(shares), graph))
        factor = torch.from_numpy(np.asarray(shares, np.float64))[batch.batch]
        if edges:
            factor = factor.repeat_interleave(batch.rowptr.diff())
            leaf = (arc_weights(batch) * factor).requires_grad_()
            return replace(batch, dense=batch.x, weight=leaf, one_hot_index=None, one_hot=0), leaf
        leaf = (batch.x * factor.unsqueeze(1)).requires_grad_()
        return replace(batch, dense=leaf, one_hot_index=None, one_hot=0), leaf


def arc_weights(batch: Batch) -> Tensor:
    """[e] weights of the arcs of a batch, ones where it has none."""
    return torch.ones(len(batch.col), dtype=batch.dense.dtype) if batch.weight is None else batch.weight


def weighs_edges(config: object) -> bool:
    """Whether a network is smooth in the weights of the arcs down to 0, where there is no edge."""
    method = getattr(config, "method", "")
    if method in ("gcaps", "capsule-svm"):
        return getattr(config, "filter", "") in SMOOTH_FILTERS
    return method == "gin"


def integrated_gradients(
    value: Callable[[float], float], gradient: Callable[[Floats, Floats], Floats], inputs: Floats
) -> Floats:
    r"""Return integrated gradients from the baseline 0 by adaptive Gauss–Legendre quadrature.

    The line α x is cut into pieces. Over a piece [a, b] contributions should add up to f(b x) − f(a x), so that the
    error of each is known, and the piece with the largest is halved until the errors add up to less than
    :data:`TOLERANCE` of |f(x) − f(0)| or :data:`MAX_POINTS` gradients have been computed. A confident classifier jumps
    from 0 to 1 somewhere on the line, which equidistant points would miss.

    Args:
        value: α ↦ f(α x).
        gradient: (α [S], c [S]) ↦ Σ_s c_s ∇f(α_s x).
        inputs: x.

    Returns:
        Contributions, in the shape of x.
    """
    places, weights = np.polynomial.legendre.leggauss(POINTS)

    def piece(a: float, b: float, low: float, high: float) -> _Piece:
        part: Floats = inputs * gradient(a + (places + 1) / 2 * (b - a), weights / 2 * (b - a))
        return _Piece(-abs(float(part.sum()) - (high - low)), a, b, low, high, part)

    ends = np.linspace(0, 1, PIECES + 1).tolist()
    values = [value(end) for end in ends]
    pieces = [piece(*four) for four in zip(ends[:-1], ends[1:], values[:-1], values[1:], strict=True)]
    heapq.heapify(pieces)
    enough = TOLERANCE * max(abs(values[-1] - values[0]), 1e-6)
    while -sum(one.gap for one in pieces) > enough and POINTS * (len(pieces) + 1) <= MAX_POINTS:
        worst = heapq.heappop(pieces)
        middle = (worst.a + worst.b) / 2
        between = value(middle)
        heapq.heappush(pieces, piece(worst.a, middle, worst.low, between))
        heapq.heappush(pieces, piece(middle, worst.b, between, worst.high))
    total: Floats = np.sum([one.part for one in pieces], axis=0)
    return total


class _Piece(NamedTuple):
    """Contributions over a part [a, b] of the line; ordered by the error, the largest first."""

    gap: float
    """Minus the error."""
    a: float
    b: float
    low: float
    high: float
    part: Floats


def attribute(model: DifferentiableModel, graph: int, method: GradientMethod, *, edges: bool = True) -> Attribution:
    """Return the contributions of node features and edges of one graph; of edges where the network weighs them.

    Args:
        model: the network on the graphs.
        graph: number of the graph.
        method: which attribution.
        edges: whether those of edges are computed.
    """
    value, baseline = model.value(graph), model.value(graph, 0.0)
    by_column = _attribution(model, graph, method, edges=False)
    ends = edges_of(model.source.graphs.subset([graph]))[0]
    to_edges: Floats | None = None
    if edges and model.weighs_edges:
        to_edges = np.zeros(len(ends.ends))
        if len(ends.ends):
            arcs = _attribution(model, graph, method, edges=True)
            to_edges = arcs[ends.forward] + arcs[ends.back]
    return Attribution(
        value,
        baseline,
        by_column.sum(axis=1),
        by_name(model.names, by_column.sum(axis=0)),
        to_edges,
        abs(float(by_column.sum()) - (value - baseline)),
    )


def _attribution(model: DifferentiableModel, graph: int, method: GradientMethod, *, edges: bool) -> Floats:
    """Return contributions of features [n, d], or of arcs [e]."""
    gradient, inputs, one = model.gradient(graph, edges=edges), model.inputs(graph, edges=edges), np.ones(1)
    if method == "saliency":
        slopes: Floats = np.abs(gradient(one, one))
        return slopes
    if method == "gradient-x-input":
        product: Floats = inputs * gradient(one, one)
        return product
    return integrated_gradients(lambda share: model.value(graph, share, edges=edges), gradient, inputs)
