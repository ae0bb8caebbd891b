"""Predictions of a saved model in terms of its targets, with their uncertainty.

``gcaps predict`` writes them as CSV, ``gcaps serve`` as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from gcaps.data.arrays import Array, Floats
    from gcaps.data.graphset import GraphSet
    from gcaps.data.targets import Target
    from gcaps.estimators.base import GraphEstimator
    from gcaps.estimators.novelty import Novelty
    from gcaps.estimators.predictor import NetworkPredictor
    from gcaps.features.structural import Unseen


def reading_of(estimator: GraphEstimator | NetworkPredictor, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for reading new graphs for a model.

    Molecules are prepared as those of the training were. Targets of the names that the model predicts are read where
    the source has them, unless ``options`` names others.
    """
    prepared = {} if estimator.preparation_ is None else estimator.preparation_.to_dict()
    target = options["target"] if options["target"] is not None else list(estimator.target_.names)
    return {**options, **prepared, "target": target}


def decoded(target: Target, scores: Floats, threshold: float | None = None) -> Array:
    """Return predictions [G] or [G, T], as in the source.

    Args:
        target: what is predicted.
        scores: of :meth:`gcaps.estimators.base.GraphEstimator.scores`.
        threshold: the second of two classes is predicted where its probability is above this; by default 0.5.
    """
    import numpy as np

    if threshold is None or target.classes is None:
        return target.decode(scores)
    second = scores[:, 1] if target.task == "classification" else scores
    return target.classes[(second > threshold).astype(np.int64)]


class Doubt(NamedTuple):
    """Uncertainty of the predictions of a calibrated model."""

    calibrated: Floats | None
    """[G, C], or [G, T] of the second class; None for values."""
    sets: Array | None
    """[G, T, C] whether each class is in the set; None for values."""
    intervals: Floats | None
    """[G, T, 2] lower and upper ends; None for classes."""
    novelty: Novelty


def doubt_of(
    estimator: GraphEstimator, graphs: GraphSet, scores: Floats, coverage: float, *, by_class: bool = False
) -> Doubt:
    """Return calibrated probabilities with sets, or intervals, and the similarity to the training graphs.

    Args:
        estimator: a calibrated model.
        graphs: the predicted graphs.
        scores: of these graphs.
        coverage: probability that a set or interval contains the truth.
        by_class: guarantee the coverage for each class separately.
    """
    target, found = estimator.target_, estimator.known_uncertainty()
    novelty = found.domain.compare(graphs)
    if target.classes is None:
        spread = estimator._spread(graphs) if found.spread else None
        return Doubt(None, None, found.intervals(scores, coverage, spread), novelty)
    sets = found.sets(scores, coverage, by_class=by_class).reshape(len(graphs), len(target.names), -1)
    return Doubt(found.probabilities(scores), sets, None, novelty)


def unseen_labels(estimator: GraphEstimator | NetworkPredictor, graphs: GraphSet) -> list[Unseen]:
    """Return the labels of nodes and edges that no training graph had; nothing for methods that do not list theirs."""
    features = getattr(getattr(estimator, "fitted_", None), "features", None)
    return [] if features is None else features.unseen(graphs)


def unseen_in_words(one: Unseen, *, molecules: bool) -> Unseen:
    """Return a label with its name; for atoms and bonds the chemical one."""
    if not molecules:
        return one
    from rdkit.Chem import GetPeriodicTable

    from gcaps.data.molecules.featurizer import ATOM_LABELS, BOND_LABELS

    if one.kind == "edge label":
        return one._replace(kind=f"bond {BOND_LABELS[one.column]}")
    if one.column == 0 and one.value:
        return one._replace(kind="element", name=GetPeriodicTable().GetElementSymbol(one.value))
    return one._replace(kind=f"atom {ATOM_LABELS[one.column]}")
