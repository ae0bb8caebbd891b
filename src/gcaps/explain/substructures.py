r"""Exact contributions of substructures to the decision values of support vector machines on counting kernels.

A kernel :math:`k(G, H) = ⟨φ(G), φ(H)⟩ / (‖φ(G)‖ ‖φ(H)‖)` whose φ counts substructures makes the decision value linear
in the counts of a graph but for its norm,

.. math:: f(G) = b + \sum_c φ_c(G) w_c / ‖φ(G)‖, \qquad w_c = \sum_s β_s φ_c(G_s) / ‖φ(G_s)‖,

so a substructure c contributes :math:`φ_c(G) w_c / ‖φ(G)‖`, exactly. The contribution of each occurrence is divided
equally among the nodes that it covers, so that contributions of nodes add up to f(G) − b.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gcaps.data.arrays import Floats
from gcaps.data.graphset import GraphSet
from gcaps.data.targets import Target
from gcaps.errors import ConfigError
from gcaps.estimators.kernel_svm import KernelEstimator
from gcaps.explain.explanation import Substructure
from gcaps.explain.feature_names import largest_first
from gcaps.explain.occurrences import READERS, Occurrences, occurrences
from gcaps.explain.output import Output
from gcaps.kernels.base import FeatureKernel, inverse_root
from gcaps.kernels.gram import squares
from gcaps.kernels.svm import SVM

SHOWN = 50
"""Substructures of a graph, the largest contributions, for which the nodes of an occurrence are given."""


class SubstructureContributions(NamedTuple):
    """Contributions to the decision value of one graph."""

    value: float
    bias: float
    nodes: Floats
    """[n]"""
    features: dict[str, float]
    substructures: list[Substructure]


def is_exact(model: object) -> bool:
    """Whether the decision values of a fitted model are linear in counts of substructures."""
    if not isinstance(model, KernelEstimator):
        return False
    return type(model.kernel_) in READERS


def require_exact(model: object) -> KernelEstimator:
    """Return the model.

    Raises:
        ConfigError: its decision values are not linear in counts of substructures.
    """
    if isinstance(model, KernelEstimator) and is_exact(model):
        return model
    raise ConfigError(
        "substructures: explains support vector machines on the kernels wl, wloa, sp and gk; "
        "choose --method occlusion or auto"
    )


def decision_output(model: KernelEstimator, output: Output, scores: Floats) -> Output:
    """Return the output that is explained instead of a probability: the decision value that decides the class.

    For more than two classes it is the sum of the decision values of the predicted class against each other class.
    Regression is explained in the units of the target.
    """
    target: Target = model.target_
    if target.task == "regression":
        return output
    if target.task == "multilabel":
        assert target.classes is not None
        words = f"decision value of {target.names[output.target]} is {target.classes[1]}"
    elif scores.shape[1] == 2:
        assert target.classes is not None
        words = f"decision value of class {target.classes[1]}"
    else:
        words = "decision value of the predicted class against all others"
    return output._replace(words=words, is_probability=False)


def coefficients(model: KernelEstimator, column: int) -> tuple[Floats, float]:
    """Return dual coefficients [s] and intercept of the function that is explained; ``column`` is one of the scores."""
    svm = model.svm_
    if isinstance(svm, SVM):
        if len(svm.classes_) < 2:
            return np.zeros(svm.coefficients.shape[1]), 0.0
        place = int(np.flatnonzero(svm.classes_ == column)[0]) if column in svm.classes_ else -1
        sign = (svm.pairs[:, 1] == place).astype(np.float64) - (svm.pairs[:, 0] == place)
        return sign @ svm.coefficients, float(sign @ svm.intercepts)
    own, bias = svm.coefficients[column], float(svm.intercepts[column])
    if model.target_.task == "regression":
        assert model.target_.scale is not None
        assert model.target_.mean is not None
        scale, mean = float(model.target_.scale[column]), float(model.target_.mean[column])
        return own * scale, bias * scale + mean
    return own, bias


def contributions(model: KernelEstimator, graphs: GraphSet, output: Output) -> list[SubstructureContributions]:
    """Return the exact contributions of substructures to the decision value of each graph."""
    kernel = model._fitted_kernel()
    assert isinstance(kernel, FeatureKernel)
    graphs = kernel._graphs(graphs, fitting=False)
    norms = inverse_root(squares(kernel.features(graphs))) if kernel.normalize else np.ones(len(graphs))
    weights: dict[int, tuple[Floats, float]] = {}
    found = []
    for g in range(len(graphs)):
        column = int(output.column[g])
        if column not in weights:
            own, bias = coefficients(model, column)
            weights[column] = kernel.weights(own[None])[0], bias
        found.append(_of_graph(kernel, graphs.subset([g]), *weights[column], float(norms[g])))
    return found


def _of_graph(
    kernel: FeatureKernel, graph: GraphSet, weight: Floats, bias: float, norm: float
) -> SubstructureContributions:
    found = occurrences(kernel, graph)
    at = np.searchsorted(kernel.vocabulary_, found.hashes)
    known = at < len(weight)
    known[known] = kernel.vocabulary_[at[known]] == found.hashes[known]
    each: Floats = np.zeros(len(at))
    each[known] = found.counts[known] * weight[at[known]] * norm
    kinds, kind_at = np.unique(found.kind, return_inverse=True)
    sums = np.bincount(kind_at.ravel(), each, len(kinds)) if len(kinds) else np.zeros(0)
    features: dict[str, float] = {}
    for kind, value in zip(kinds.tolist(), sums.tolist(), strict=True):
        features[found.kinds(kind)] = features.get(found.kinds(kind), 0.0) + value
    return SubstructureContributions(
        float(each.sum()) + bias,
        bias,
        found.spread(each),
        largest_first(features),
        _grouped(found, each),
    )


def _grouped(found: Occurrences, each: Floats) -> list[Substructure]:
    """Return the summed contributions of equal substructures, the largest first, without zeros."""
    hashes, first, inverse, count = np.unique(found.hashes, return_index=True, return_inverse=True, return_counts=True)
    total = np.bincount(inverse.ravel(), each, len(hashes)) if len(hashes) else np.zeros(0)
    order = [i for i in np.argsort(-np.abs(total), kind="stable").tolist() if total[i]]
    made = []
    for place, i in enumerate(order):
        at = int(first[i])
        nodes = found.nodes(at) if place < SHOWN else np.empty(0, np.int64)
        made.append(Substructure(int(hashes[i]), found.words(at), float(total[i]), int(count[i]), nodes))
    return made


class DecisionValues:
    """The decision values of a support vector machine as scores, one for each column of its scores."""

    def __init__(self, model: KernelEstimator) -> None:
        self.model = model
        functions = [coefficients(model, column) for column in range(model.target_.outputs)]
        self.beta: Floats = np.stack([beta for beta, _ in functions])
        self.bias: Floats = np.array([bias for _, bias in functions])

    def scores(self, graphs: GraphSet, /) -> Floats:
        """[G, ·] decision values, or values of the targets."""
        found: Floats = self.model._fitted_kernel().transform(graphs) @ self.beta.T + self.bias
        return found
